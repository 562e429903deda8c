// One run of a plan on one thread: what all that runs groups shares, and who runs which group.
#pragma once

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

namespace undertow {

/// What a run needs besides tables, and what runs groups.
struct RunSpace {
  Part main{};
  Invocation root{};
  std::vector<Block*> lent;     ///< what inputs were copied to
  std::vector<Box> boxes;       ///< inputs whose shape only the run knows
  std::vector<Column> results;  ///< of main
  std::vector<Runner*> stack;   ///< of the invocations that are under way
  lockstep::WaveSpace waves;
};

class Run final : private Caller {
 public:
  /// A run of its own; or, given the one whose lanes it works on, a part of another, on another thread.
  Run(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats, const Run* owner = nullptr);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  std::vector<Value> run(std::span<const View> inputs);  ///< all of it: main is entered as other functions are
  void run(Invocation& invocation);                      ///< some lanes of the owner's

  // The door. Entering and resuming return at once: `Caller::back` says when a phase is over.

  void enter(Invocation& invocation);
  void resume(Invocation& invocation);
  /// A phase of the innermost invocation is over.
  void leave(Invocation& invocation);
  /// Run the lanes that are left on several threads; false where that does not pay.
  bool share(Invocation& invocation, const Progress& progress);

  /// A value of main that is the same for all.
  Column shared(int32_t slot) const { return main_columns != nullptr ? main_columns[slot] : agenda_->shared(slot); }
  Schedule schedule_of(int32_t group) const {
    return options.goes_deep ? Schedule::Lockstep : plan.groups[static_cast<size_t>(group)].schedule;
  }

  /// Lanes are called at some depth, these before others: is that deeper than all before? Then the deepest tag is
  /// theirs, or, if no place is given, that of who asks.
  bool deepen(int64_t depth, const Place& first) {
    if (depth <= stats.max_depth) return false;
    begin_deepest(depth, first);
    return true;
  }
  /// The deepest tag goes on there.
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
  Column* main_columns = nullptr;  ///< where lockstep runs main, or another thread

 private:
  // Of main: nobody calls it, so the run does.
  Column room(Part& part, size_t result) override;
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override;
  void taken(Part&) override {}
  void back(Invocation&) override {}
  Place out(const Part&, int64_t, std::vector<Label>&) const override { return {}; }

  /// One of those that run groups: most runs need one or two of them.
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
  void begin_deepest(int64_t depth, const Place& first);
  std::vector<Label> where() const;
  void locate(Stop& stop) const;
  template <class Work>
  void guarded(Work&& work);

  bool goes_narrow(const Invocation& invocation) const;
  bool goes_parallel(const Invocation& invocation, const Progress& progress) const;

  std::unique_ptr<RunSpace> space_ = Idle<RunSpace>::all().take();
  std::vector<Runner*>& stack_ = space_->stack;
  std::vector<Column> columns_;  ///< of the owner's main, without their blocks: counting is for one thread
  Place deepest_;                ///< where the deepest tag goes on, when that call comes back
  std::optional<Narrow> narrow_;
  std::optional<lockstep::Lockstep> lockstep_;
  std::optional<agenda::Agenda> agenda_;
};

}  // namespace undertow
