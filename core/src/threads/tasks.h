// Tasks: the lanes of one invocation, shared out to threads. Each task runs some of them as an invocation of its own,
// in a run with tables of its own, which lives until the last phase: later phases find there what earlier ones have
// left.
//
// Where lanes are cut depends on the plan and on their number, not on the number of threads, and what tasks collect is
// added in their order. So results have the same bits for any number of threads.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "run/door.h"

namespace undertow {

class SharedLanes;

/// Runs invocations whose lanes are shared out.
class Tasks final : public Runner {
 public:
  explicit Tasks(Run& run);
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  ~Tasks();

  /// Run the remaining lanes of an invocation as tasks, and its later phases too; false if that does not pay.
  bool share(Invocation& invocation, const Progress& progress);

  void enter(Invocation& invocation) override;  ///< lanes are shared out once their first wave is about to begin
  void resume(Invocation& invocation) override;
  void step() override;
  Place where(std::vector<Label>& labels) const override;

  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }  ///< of tasks that have ended their phase
  int64_t waves() const { return waves_.load(std::memory_order_relaxed); }

 private:
  int64_t width_of(const Invocation& invocation, const Progress& progress) const;
  void run_phase(SharedLanes& shared);

  Run& run_;
  std::vector<std::unique_ptr<SharedLanes>> shared_;  ///< of invocations with phases to come
  SharedLanes* running_ = nullptr;
  std::atomic<int64_t> calls_ = 0, waves_ = 0;  ///< of the current phase
};

}  // namespace undertow
