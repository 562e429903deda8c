// A thread pool: starting a thread takes longer than most of the work for it.
#pragma once

#include <functional>

namespace undertow {

/// Work for another thread. It must be joined, and must not throw.
class Helper {
 public:
  /// Start it on an idle thread or a new one. Throws std::system_error if the system has no more.
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
