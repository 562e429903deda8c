// The agenda schedule: every frame goes its own way, and frames that come to the same stage run it together.
//
// A stage runs on a table that is made for it: the values that it needs, of all frames that have come there, side by
// side. What it entered is counted in each frame; when all of that has come back, the frame waits for its next stage.
// Stages that only lead to others go first, so that those that work on arrays find many frames.
#pragma once

#include <span>
#include <vector>

#include "agenda/frame.h"
#include "clock.h"
#include "operate.h"
#include "poll.h"
#include "undertow/run.h"

namespace undertow::agenda {

class Agenda {
 public:
  Agenda(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats);
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;

  std::vector<Value> run(std::span<const View> inputs);

 private:
  // run.cpp: beginning, end, and stages
  void start(std::span<const View> inputs);
  std::vector<Value> results();
  void finish_stats();
  static std::vector<Label> tag(Frame* frame);
  void climb();
  void locate(Stop& stop);
  std::vector<Label> where() const;
  void queue(Frame* frame);
  bool run_next();
  void run_stage(const StagePlan& stage);
  void give_entries(Table& table);
  void load(Table& table, int32_t number);
  void straight(Table& table, const Item& item);

  // enter.cpp: what a stage enters, for all lanes
  void enter(Table& table, const Item& item);
  void begin(Frame* frame, int32_t phase) {
    frame->stage = frame->plan->first[static_cast<size_t>(phase)];
    queue(frame);
  }
  void enter_branch(Table& table, int32_t number);
  void enter_call(Table& table, int32_t number);
  Frame* call(Frame& frame, int32_t number);
  void enter_loop(Table& table, int32_t number);
  void enter_map(Frame& frame, Table& table, int32_t lane, int32_t number);
  void carry_mapped(std::span<Frame* const> lanes, const Table& table, int64_t lane, const MapItem& item,
                    const Transfer& transfer);

  // back.cpp: what frames give back
  Frame* go_back(Frame* frame);
  Frame* leave_loop(Frame* frame);
  void leave_map(Frame& frame, const MapItem& item);
  void stack(Frame& frame, std::span<Frame* const> lanes, const LoopItem::Exit& result, const Region& body);
  [[noreturn]] void unequal(Frame& frame, std::span<Frame* const> lanes, const LoopItem::Exit& result,
                            const Slot& slot);

  const Plan& plan_;
  const Outline& outline_;
  const RunOptions& options_;
  Host& host_;
  RunStats& stats_;
  Tables tables_;
  Operate operate_;
  Frames frames_;
  Scratch scratch_;
  StepClock clock_;
  Frame* main_ = nullptr;
  Frame* now_ = nullptr;  ///< for tags
  /// The first at the greatest depth, or one that it stands in: each adds its label to the tag as it goes back.
  Frame* deepest_ = nullptr;
  std::vector<Frame*> batch_;                ///< lane by lane, what runs now
  std::vector<Frame*> entered_[2];           ///< what it has entered; of a branch, by side
  std::vector<int32_t> lanes_[2];            ///< by which lanes
  std::vector<std::vector<Frame*>> queues_;  ///< by stage
  int64_t waiting_ = 0;
  Poll poll_;
};

}  // namespace undertow::agenda
