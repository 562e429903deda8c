// The agenda schedule: every frame goes its own way, and frames that come to the same stage run it together.
//
// A stage runs on a table that is made for it: the values that it needs, of all frames that have come there, side by
// side. What it entered is counted in each frame; when all of that has come back, the frame waits for its next stage.
// Stages that only lead to others go first, so that those that work on arrays find many frames. Functions that this
// schedule runs call each other frame by frame; calls into groups that another one runs wait for each other, and go out
// together.
#pragma once

#include <deque>
#include <span>
#include <vector>

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
  int64_t left;  ///< that have not come back
};

/// What waits in an invocation that is under way. Those below it wait for it, so nothing of theirs goes on meanwhile.
struct Level {
  std::vector<std::vector<Frame*>> queues;  ///< by stage
  std::vector<Invocation*> calls;           ///< to be entered
};

/// A call that some frames make together, of a function that another schedule runs. Its table is there for this alone.
struct Outgoing : TablePart {
  const CallPlan* plan;
  std::vector<Frame*> frames;
  std::vector<Entry*> below;
};

class Agenda final : public TableRunner {
 public:
  explicit Agenda(Run& run);

  // visits.cpp: lanes of invocations come in and go out
  void enter(Invocation& invocation) override;
  void resume(Invocation& invocation) override;
  Place where(std::vector<Label>& labels) const override;
  void forget_deepest() override { deepest_ = nullptr; }
  Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const override;
  Place climb(const Part& part, int64_t lane, std::vector<Label>& labels) override;
  void back(Invocation& invocation) override;
  Column shared(int32_t slot) const;  ///< a value of main, if that is run here

  // run.cpp
  void step() override;

 private:
  // visits.cpp
  void begin(Visit& visit);
  void finish(Visit& visit);
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
  void run_stage(const StagePlan& stage);
  void give_entries(Table& table);
  void load(Table& table, int32_t number);
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
  void enter_map(Frame& frame, Table& table, int32_t lane, int32_t number);
  void carry_mapped(std::span<Frame* const> lanes, const Table& table, int64_t lane, const MapItem& item,
                    const Transfer& transfer);

  // back.cpp: what frames give back
  Frame* go_back(Frame* frame);
  Frame* leave_loop(Frame* frame);
  void leave_map(Frame& frame, const MapItem& item);

  const Outline& outline_;
  Frames frames_;
  Frame* main_ = nullptr;
  Frame* now_ = nullptr;  ///< for tags; null: lanes come in
  Place calling_;         ///< these
  /// The first at the greatest depth, or one that it stands in: each adds its label to the tag as it goes back.
  Frame* deepest_ = nullptr;
  std::vector<Frame*> batch_;       ///< lane by lane, what runs now
  std::vector<Frame*> entered_[2];  ///< what it has entered; of a branch, by side
  std::vector<int32_t> lanes_[2];   ///< by which lanes
  std::deque<Level> levels_;
  size_t deep_ = 0;           ///< so many of them are under way
  std::deque<Visit> visits_;  ///< by number
  std::vector<int32_t> free_visits_;
  Store<Outgoing> outgoing_;
  Store<Invocation> invocations_;
};

}  // namespace agenda
}  // namespace undertow
