// The ready queue: what is ready to fire, in the order of a scheduler, and where threads wait for it.
//
// `lifo`: each thread has a stack of its own, and gives its oldest item to the queue while others wait for work.
// Any other scheduler: all that is ready is in the queue. The host's operators run on the owner's thread alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "undertow/expand.h"
#include "undertow/run.h"

namespace undertow::expand {

struct Ready {
  void* what;  ///< a copy; or lanes, if there is no step
  const Step* step;
};

class Queue {
 public:
  Queue(Scheduler scheduler, uint64_t seed) : scheduler(scheduler), random_(seed) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const Scheduler scheduler;

  /// A thread takes part from here on.
  void enter();
  /// Any thread: something is ready. The highest priority goes first, if that is the scheduler.
  void push(Ready ready, int64_t priority);
  /// Any thread: an operator of the host is ready.
  void push_for_host(Ready ready);
  /// Do threads wait, and is there nothing for them?
  bool is_hungry() const { return waiting_.load(std::memory_order_relaxed) > size_.load(std::memory_order_relaxed); }
  bool has_for_host() const { return for_host_size_.load(std::memory_order_relaxed) > 0; }

  enum class Found : uint8_t { Work, Nothing, Over };
  /// Take what goes first; `owner` for the thread that may run operators of the host. Waits while there is nothing:
  /// the owner only for a moment.
  Found take(Ready& ready, bool is_owner);
  /// The same for operators of the host, without waiting.
  bool take_for_host(Ready& ready);

  /// From here on the oldest goes first, whatever the scheduler.
  void settle();
  /// The run is over: no thread takes anything any more.
  void end();
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }

 private:
  struct Ranked {
    int64_t priority;
    uint64_t number;  ///< the latest first, among equals
    Ready ready;
    bool operator<(const Ranked& other) const {
      return priority != other.priority ? priority < other.priority : number < other.number;
    }
  };
  bool pop(Ready& ready);
  void count();

  std::mutex mutex_;  // guards all that follows; no other lock is taken under it
  std::condition_variable changed_;
  std::deque<Ready> line_;      // fifo, lifo; random: in any order
  std::vector<Ranked> ranked_;  // a heap, of the other schedulers
  std::deque<Ready> for_host_;
  std::mt19937_64 random_;
  uint64_t number_ = 0;
  int64_t threads_ = 0;  // that take part
  int64_t asleep_ = 0;   // threads that must be woken
  bool is_settled_ = false;
  // Written under the mutex; threads that spin, or have work, read them without.
  std::atomic<int64_t> size_ = 0, for_host_size_ = 0, waiting_ = 0;
  std::atomic<bool> is_over_ = false;
};

}  // namespace undertow::expand
