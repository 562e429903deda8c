// Object pools: within a run, and from one run to the next.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace undertow {

/// A free list of objects; all are destroyed with it.
template <class T>
class Store {
 public:
  T* take() {
    if (free_.empty()) grow();
    T* found = free_.back();
    free_.pop_back();
    return found;
  }
  void give(T* object) { free_.push_back(object); }
  size_t size() const { return size_; }

 private:
  /// Double the number of objects. Nothing is allocated up front: a run has many stores, and uses few.
  void grow() {
    const size_t count = std::clamp<size_t>(size_, 1, 64);
    T* first = all_.emplace_back(std::make_unique<T[]>(count)).get();
    for (size_t k = count; k-- > 0;) free_.push_back(first + k);
    size_ += count;
  }

  std::vector<std::unique_ptr<T[]>> all_;
  std::vector<T*> free_;
  size_t size_ = 0;
};

/// A run's bookkeeping, kept for the next run. Nobody waits for the lock: whoever finds it held makes a new one.
template <class T>
class Idle {
 public:
  std::unique_ptr<T> take() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || kept_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> found = std::move(kept_.back());
    kept_.pop_back();
    return found;
  }
  void give(std::unique_ptr<T> object) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && kept_.size() < kMost) kept_.push_back(std::move(object));
  }
  /// The one instance.
  static Idle& all() {
    static Idle& made = *new Idle;  // never destroyed: runs may outlive the static objects
    return made;
  }
  static constexpr size_t kFew = 4096;  ///< objects; something that holds more is freed instead

 private:
  static constexpr size_t kMost = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace undertow
