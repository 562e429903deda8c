// One run of a plan on one thread: what its runners share, and which of them runs which group.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agenda/run.h"
#include "lockstep/run.h"
#include "narrow/run.h"
#include "run/clock.h"
#include "run/door.h"
#include "run/operators.h"
#include "run/poll.h"
#include "threads/tasks.h"

namespace undertow {

/// What the parts of a run on several threads have in common.
struct RunShare {
  RunShare(int64_t most_bytes, int64_t most_frames) : bytes(most_bytes), frames(most_frames) {}

  Budget bytes, frames;
  PackedMatrices packed;
};

/// What a run needs besides tables and runners; kept for the next run.
struct RunSpace {
  Part main{};
  Invocation root{};
  std::vector<Block*> lent;     ///< copies of inputs
  std::vector<Box> boxes;       ///< inputs of unknown shape
  std::vector<Column> results;  ///< of main
  std::vector<Runner*> stack;   ///< runners of the active invocations
  lockstep::WaveSpace waves;
};

class Run final : private Caller {
 public:
  /// A whole run; or, given what it shares with its owner, a part of another run: on another thread or, if the owner is
  /// not here, of another process. With a link, lanes may run elsewhere.
  Run(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats, const Run* owner = nullptr,
      RunShare* share = nullptr, Link* link = nullptr, Wire* wire = nullptr);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  std::vector<Value> run(std::span<const View> inputs);  ///< the whole run: main is entered like any function

  // A part of a run: some lanes of the owner, whose values are borrowed, without references to their blocks.

  void run(Invocation& invocation, bool is_first);  ///< its first phase, or the next one
  Column lend(const Slot& slot, Column column, int64_t lanes);
  void lend_main();  ///< what main has computed so far
  /// Take over the deepest tag of a part, if it has been deeper.
  void adopt_deepest(const RunStats& part);

  // The door. Entering and resuming return at once: `Caller::back` is called when a phase ends.

  void enter(Invocation& invocation);
  void resume(Invocation& invocation);
  /// A phase of the innermost invocation has ended.
  void leave(Invocation& invocation);
  /// Run the remaining lanes as tasks; false if that does not pay.
  bool share(Invocation& invocation, const Progress& progress) {
    return !is_part_ && invocation.lanes() - progress.done > 1 && made(tasks_).share(invocation, progress);
  }
  bool is_part() const { return is_part_; }
  /// Is it time to give away lanes? Asked before each chunk, if there is a link.
  bool may_give();
  /// Have workers had nothing to do when they were asked last?
  bool is_awaited() const { return is_awaited_; }
  bool give(Invocation& invocation, Progress& progress, bool is_begun) {
    return made(tasks_).give(invocation, progress, is_begun);
  }
  void take_back(Invocation& invocation) { made(tasks_).take_back(invocation); }
  /// The lanes of this invocation are sent to workers.
  void goes_away(const Invocation& invocation) {
    if (!timed_.empty() && timed_.back().invocation == &invocation) timed_.back().is_away = true;
  }

  /// A shared value of main.
  Column shared(int32_t slot) const { return main_columns != nullptr ? main_columns[slot] : agenda_->shared(slot); }
  Schedule schedule_of(int32_t group) const {
    return options.goes_deep ? Schedule::Lockstep : plan.groups[static_cast<size_t>(group)].schedule;
  }

  /// Lanes are called at this depth. If it is the greatest so far, the deepest tag is that of `first` or, without one,
  /// that of the runner that calls this.
  bool deepen(int64_t depth, const Place& first) {
    if (depth <= stats.max_depth) return false;
    begin_deepest(depth, first);
    return true;
  }
  /// Continue the deepest tag at this place.
  void go_on_deepest(const Place& place) { deepest_ = place; }

  lockstep::WaveSpace& wave_space() { return space_->waves; }

  const Plan& plan;
  const RunOptions& options;
  Host& host;
  RunStats& stats;
  Tables tables;
  OperatorRunner operators;
  StepClock clock;
  Poll poll;
  Link* const link;                ///< to workers; null: all runs here
  Wire* const wire;                ///< to the other parts of a placed graph; null: there are none
  Column* main_columns = nullptr;  ///< if lockstep or another thread runs main

 private:
  // The caller of main.
  Column room(Part& part, size_t result) override;
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override;
  void taken(Part&) override {}
  void back(Invocation&) override {}
  Place out(const Part&, int64_t, std::vector<Label>&) const override { return {}; }

  /// A runner, made at its first use: most runs need one or two.
  template <class One>
  One& made(std::optional<One>& one) {
    return one ? *one : one.emplace(*this);
  }
  Runner& runner_of(int32_t group);
  void begin(Runner& runner, Invocation& invocation);
  void loop();
  void lend(std::span<const View> inputs);
  std::vector<Value> values();
  void finish_stats();
  RunProgress progress() const;
  void begin_deepest(int64_t depth, const Place& first);
  std::vector<Label> where() const;
  void locate(Stop& stop) const;
  template <class Work>
  void guarded(Work&& work);

  bool goes_narrow(const Invocation& invocation) const;

  std::unique_ptr<RunSpace> space_ = Idle<RunSpace>::all().take();
  std::vector<Runner*>& stack_ = space_->stack;
  const Run* owner_;  ///< of which it is a part, if that is here
  bool is_part_;
  struct Timed {
    const Invocation* invocation;
    Poll::Clock::time_point began;
    bool is_away;  ///< are its lanes sent to workers?
  };
  /// It has ended: the next run knows how long it took.
  void measured(const Timed& timed) const;
  std::vector<Timed> timed_;          ///< invocations that came from outside their groups, if there is a link
  Poll::Clock::time_point may_give_;  ///< not before
  bool is_awaited_ = false;
  std::vector<Column> columns_;  ///< of the owner's main
  std::deque<std::vector<Box>> lent_;
  Place deepest_;  ///< where the deepest tag continues when that call returns
  std::optional<Narrow> narrow_;
  std::optional<lockstep::Lockstep> lockstep_;
  std::optional<agenda::Agenda> agenda_;
  std::optional<Tasks> tasks_;
};

}  // namespace undertow
