// The lock of the interpreter, for threads that may outlive it.
//
// A daemon thread that waits for the lock while the interpreter ends is itself ended there: before Python 3.14 by
// pthread_exit, which unwinds the stack, and a C++ frame that it cannot unwind aborts the process. So such a thread
// stays where it is until the process is gone.
#pragma once

#include <nanobind/nanobind.h>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include <utility>

namespace undertow {

/// Does the interpreter end? Then no thread but the one that ends it gets the lock again. Needs no lock.
bool is_finalizing();

/// Stay here for ever.
[[noreturn]] void park();

/// Do something that waits for the lock, or runs Python code: both are where a thread may be ended.
template <class Work>
decltype(auto) surviving(Work&& work) {
#if defined(__GLIBCXX__)
  try {
    return std::forward<Work>(work)();
  } catch (const abi::__forced_unwind&) {
    park();
  }
#else
  return std::forward<Work>(work)();
#endif
}

/// As long as it lives, this thread does without the lock.
class Unlocked {
 public:
  Unlocked() { give(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { take(); }

  void take() {
    if (is_finalizing() && !ends_it_) park();
    surviving([this] { PyEval_RestoreThread(state_); });
  }
  void give() {
    ends_it_ = is_finalizing();
    state_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* state_ = nullptr;
  bool ends_it_ = false;  ///< had it the lock when the interpreter was ending? Then it may run programs until the end
};

/// As long as it lives, a thread that does without the lock has it again.
class Locked {
 public:
  explicit Locked(Unlocked& unlocked) : unlocked_(unlocked) { unlocked_.take(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { unlocked_.give(); }

 private:
  Unlocked& unlocked_;
};

}  // namespace undertow
