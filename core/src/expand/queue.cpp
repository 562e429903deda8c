#include "queue.h"

#include <algorithm>
#include <chrono>

#include "threads/spin.h"

namespace undertow::expand {
namespace {

constexpr std::chrono::milliseconds kLook{10};  // the owner looks at the clock and at its host so often

}  // namespace

void Queue::enter() {
  const std::lock_guard lock(mutex_);
  ++threads_;
}

void Queue::push(Ready ready, int64_t priority) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_settled_ && (scheduler == Scheduler::Depth || scheduler == Scheduler::LongestPath)) {
      ranked_.push_back({priority, number_++, ready});
      std::push_heap(ranked_.begin(), ranked_.end());
    } else {
      line_.push_back(ready);
    }
    count();
    wakes = asleep_ > 0;
  }
  if (wakes) changed_.notify_one();
}

void Queue::push_for_host(Ready ready) {
  {
    const std::lock_guard lock(mutex_);
    for_host_.push_back(ready);
    count();
  }
  changed_.notify_all();  // the owner may be any of those that sleep
}

bool Queue::take_for_host(Ready& ready) {
  const std::lock_guard lock(mutex_);
  if (for_host_.empty()) return false;
  ready = for_host_.front();
  for_host_.pop_front();
  count();
  return true;
}

Queue::Found Queue::take(Ready& ready, bool is_owner) {
  std::unique_lock lock(mutex_);
  const auto found = [&] {
    if (is_owner && !for_host_.empty()) {
      ready = for_host_.front();
      for_host_.pop_front();
      return true;
    }
    return pop(ready);
  };
  if (is_over_) return Found::Over;
  if (found()) {
    count();
    return Found::Work;
  }
  ++waiting_;
  const auto has_come = [&] { return is_over_ || size_ > 0 || (is_owner && for_host_size_ > 0); };
  const auto stays = [&] {
    --waiting_;
    if (is_over_) return Found::Over;
    if (!found()) return Found::Nothing;
    count();
    return Found::Work;
  };
  if (waiting_ == threads_ && line_.empty() && ranked_.empty() && for_host_.empty()) {
    is_over_ = true;  // nothing will ever be ready
    lock.unlock();
    changed_.notify_all();
    return Found::Over;
  }
  lock.unlock();
  spin(has_come);
  lock.lock();
  ++asleep_;
  if (is_owner)
    changed_.wait_for(lock, kLook, has_come);
  else
    changed_.wait(lock, has_come);
  --asleep_;
  return stays();
}

bool Queue::pop(Ready& ready) {
  if (!ranked_.empty()) {
    std::pop_heap(ranked_.begin(), ranked_.end());
    ready = ranked_.back().ready;
    ranked_.pop_back();
    return true;
  }
  if (line_.empty()) return false;
  if (scheduler == Scheduler::Random && !is_settled_) std::swap(line_[random_() % line_.size()], line_.back());
  // What threads give each other is their oldest, which most follows from: of that, the oldest again.
  const bool is_first = is_settled_ || scheduler == Scheduler::Fifo || scheduler == Scheduler::Lifo;
  ready = is_first ? line_.front() : line_.back();
  if (is_first)
    line_.pop_front();
  else
    line_.pop_back();
  return true;
}

void Queue::count() {
  size_ = static_cast<int64_t>(line_.size() + ranked_.size());
  for_host_size_ = static_cast<int64_t>(for_host_.size());
}

void Queue::settle() {
  const std::lock_guard lock(mutex_);
  if (is_settled_) return;
  is_settled_ = true;
  std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) { return a.number < b.number; });
  for (const Ranked& each : ranked_) line_.push_back(each.ready);
  ranked_.clear();
}

void Queue::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
}

}  // namespace undertow::expand
