// Objects that are used again: within a run, and by the next one.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace undertow {

/// Objects that are used again. All of them go with the store.
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
  /// As many again. One that nobody takes from needs no memory: a run has many stores, and uses few.
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

/// What a run needs besides values, kept for the next run. Nobody waits: who finds it taken makes a new one.
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
  /// The only one there is.
  static Idle& all() {
    static Idle& made = *new Idle;  // for ever: runs may go on while the process ends
    return made;
  }
  static constexpr size_t kFew = 4096;  ///< objects; what holds more of them is not worth keeping

 private:
  static constexpr size_t kMost = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace undertow
