// Threads that are kept: starting one takes longer than much of what it is started for.
#pragma once

#include <functional>

namespace undertow {

/// Some work that another thread does. It must be waited for, and must not throw.
class Helper {
 public:
  /// Begin it on a thread that has nothing to do, or on a new one. Throws std::system_error where the system has no
  /// more.
  explicit Helper(std::function<void()> work);
  Helper(Helper&& other) noexcept : thread_(other.thread_) { other.thread_ = nullptr; }
  Helper& operator=(Helper&&) = delete;
  ~Helper() { join(); }

  void join();  ///< wait until it is done

  struct Thread;

 private:
  Thread* thread_;
};

}  // namespace undertow
