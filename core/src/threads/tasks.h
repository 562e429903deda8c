// Tasks: the lanes of one invocation, shared out to threads or workers. Each task runs some of them as an invocation of
// its own, in a run with tables of its own, which lives until the last phase: later phases find there what earlier ones
// have left.
//
// Where lanes are cut depends on the plan and on their number, not on who runs them, and what tasks collect is added in
// their order. So results have the same bits for any number of threads and workers. Lanes of free groups may be cut
// anywhere: there, tasks are cut as suits those who run them, and a wave gives away lanes that it has not begun.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "run/door.h"

namespace undertow {

class Link;
class SharedLanes;
class Task;
struct Range;

namespace remote {
class Publisher;
}

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

  /// May lanes that a wave has not begun be given away now?
  bool may_give();
  /// Give some of them to workers: the last ones. `is_begun`: the wave has a chunk that runs.
  bool give(Invocation& invocation, Progress& progress, bool is_begun);
  /// Wait for those that were given away, and take their results.
  void take_back(Invocation& invocation);

  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }  ///< of tasks that have ended their phase
  int64_t waves() const { return waves_.load(std::memory_order_relaxed); }

 private:
  int64_t width_of(const Invocation& invocation, const Progress& progress, bool& is_out) const;
  int64_t free_width(const Invocation& invocation, int64_t left) const;
  bool pays(const Invocation& invocation, int64_t left) const;
  SharedLanes& make(Invocation& invocation, const std::vector<Range>& ranges);
  void run_phase(SharedLanes& shared);
  void run_here(SharedLanes& shared, size_t threads);
  void merge(SharedLanes& shared, size_t at_once);

  // remote/sending.cpp
  void send(SharedLanes& shared);
  void await(SharedLanes& shared);
  void receive(double seconds);
  remote::Publisher& publisher();

  Run& run_;
  std::vector<std::unique_ptr<SharedLanes>> shared_;  ///< of invocations with phases to come, or given away
  const SharedLanes* running_ = nullptr;
  std::atomic<int64_t> calls_ = 0, waves_ = 0;  ///< of the current phase
  std::unique_ptr<remote::Publisher> publisher_;
  std::unordered_map<int64_t, Task*> sent_;  ///< tasks that workers have been asked for, by their numbers
  int64_t count_ = 0;                        ///< of all that have been sent
};

}  // namespace undertow
