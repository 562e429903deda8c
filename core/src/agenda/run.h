// The agenda schedule: every frame advances on its own, and frames that have come to the same stage run it together.
//
// A stage runs on a table made for it, with the values that it reads from all frames that have come there. Each frame
// counts what it has entered; when all of that has returned, the frame waits for its next stage. Cheap stages go first,
// so that stages that work on arrays find many frames. Functions that this schedule runs call each other frame by
// frame; calls into groups that another schedule runs are collected, and enter together.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "agenda/crossing.h"
#include "agenda/frame.h"
#include "run/clock.h"
#include "run/door.h"
#include "run/operators.h"
#include "undertow/run.h"

namespace undertow {

class Run;

namespace agenda {

/// An invocation: the frames of its lanes.
struct Visit {
  int32_t number;
  Invocation* invocation;
  std::vector<Frame*> frames;
  int64_t left;  ///< frames that have not returned
};

/// The queues of an active invocation. Only the innermost one advances: those below it on the stack wait for it.
struct Level {
  std::vector<std::vector<Frame*>> queues;  ///< by stage
  std::vector<Invocation*> calls;           ///< to be entered
};

/// A call by several frames, of a function that another schedule runs; its table exists only for this.
struct Outgoing : TablePart {
  const CallPlan* plan;
  std::vector<Frame*> frames;
  std::vector<Entry*> below;
};

constexpr double kBetweenLooks = 0.02;  // seconds for which a run that waits is not asked whether to stop

class Agenda final : public TableRunner {
 public:
  explicit Agenda(Run& run);

  // visits.cpp: entering and leaving invocations
  void enter(Invocation& invocation) override;
  void resume(Invocation& invocation) override;
  Place where(std::vector<Label>& labels) const override;
  void forget_deepest() override { deepest_ = nullptr; }
  Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const override;
  Place climb(const Part& part, int64_t lane, std::vector<Label>& labels) override;
  void back(Invocation& invocation) override;
  Column shared(int32_t slot) const;  ///< a value of main, if main runs here

  // run.cpp
  void step() override;

 private:
  // visits.cpp
  void begin(Visit& visit);
  void finish(Visit& visit);
  void finish_crossing();
  Level& top() { return levels_[deep_ - 1]; }
  Place place_of(const Frame& root) const;
  Place out(const Frame* frame, std::vector<Label>& labels) const;
  void climb();
  void come_out(Frame* root);
  bool goes_out(const CallItem& item) const;
  void call_out(Table& table, const CallPlan& plan);
  void call_out(Table& table, const CallPlan& plan, std::span<const int32_t> lanes);

  // run.cpp: stages
  void queue(Frame* frame);
  size_t best_stage(const Level& level) const;
  int64_t priority(size_t stage, const std::vector<Frame*>& queue) const;
  void run_stage(const StagePlan& stage);
  void give_entries(Table& table);
  void load(Table& table, int32_t number);
  void send(Table& table, const SendItem& item) override;
  void choose(Table& table, const ReplicaItem& item) override;
  bool receive(double seconds);
  void come_back(std::span<Frame* const> frames);
  Entry* made_entry(const Table&, int32_t call, int64_t lane) const override {
    return batch_[static_cast<size_t>(lane)]->made_entry(call);
  }
  void carry(std::span<Frame* const> to, const Table& from, const int32_t* lanes, const Carries& carries) {
    for (const Carry& each : carries) frames_.carry(to, tables_.column(from, each.from), lanes, each);
  }

  // enter.cpp: what a stage enters, for all lanes
  void enter(Table& table, const Item& item);
  void begin(Frame* frame, int32_t phase) {
    frame->stage = frame->plan->first[static_cast<size_t>(phase)];
    queue(frame);
  }
  void enter_branch(Table& table, int32_t number);
  void enter_call(Table& table, int32_t number);
  template <class Make>
  void enter_each(Table& table, const Carries& in, int32_t phase, Make&& make);
  Frame* call(Frame& frame, int32_t number);
  Entry* make_entry(Frame& frame, const CallItem& item);
  void enter_loop(Table& table, int32_t number);
  void enter_recv(int32_t number);
  /// Frames of a part know their tags.
  void label(Frame& frame, const Path& parent) const {
    if (crossing_) frame.path() = child(parent, frame.site, frame.index);
  }
  void enter_map(Frame& frame, Table& table, int32_t lane, int32_t number);
  void carry_mapped(std::span<Frame* const> lanes, const Table& table, int64_t lane, const MapItem& item,
                    const Transfer& transfer);

  // back.cpp: returning from frames
  Frame* go_back(Frame* frame);
  Frame* leave_loop(Frame* frame);
  void leave_map(Frame& frame, const MapItem& item);

  const Outline& outline_;
  Frames frames_;
  Frame* main_ = nullptr;
  Frame* now_ = nullptr;  ///< for tags; null: lanes are being called
  Place calling_;         ///< the first of these
  /// The first frame at the greatest depth or, once that has returned, its nearest live ancestor: each adds its label
  /// to the deepest tag when it returns.
  Frame* deepest_ = nullptr;
  std::vector<Frame*> batch_;       ///< the frames that run now, one for each lane
  std::vector<Frame*> entered_[2];  ///< the frames that they enter; of a branch, by side
  std::vector<int32_t> lanes_[2];   ///< the lanes that enter these
  std::deque<Level> levels_;
  size_t deep_ = 0;           ///< active invocations
  std::deque<Visit> visits_;  ///< by number
  std::vector<int32_t> free_visits_;
  std::optional<Crossing> crossing_;  ///< in parts of a placed graph
  std::vector<Frame*> arrived_;
  Store<Outgoing> outgoing_;
  Store<Invocation> invocations_;
};

}  // namespace agenda
}  // namespace undertow
