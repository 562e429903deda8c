#include "threads/crew.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "threads/spin.h"

namespace undertow {

struct Helper::Thread {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::function<void()> work;  // empty: idle
  bool is_over = false;
  std::atomic<bool> is_called = false;  // there is work, or it is over; written under the mutex, read without

  void begin(std::function<void()> given) {
    {
      const std::lock_guard lock(mutex);
      work = std::move(given);
      is_called = true;
    }
    changed.notify_all();
  }

  void live() {
    std::unique_lock lock(mutex);
    for (;;) {
      lock.unlock();
      spin([this] { return is_called.load(std::memory_order_relaxed); });
      lock.lock();
      changed.wait(lock, [this] { return work || is_over; });
      is_called = false;
      if (is_over) break;
      lock.unlock();
      work();
      lock.lock();
      work = nullptr;
      changed.notify_all();
    }
    lock.unlock();
    delete this;
  }
};

namespace {

constexpr size_t kMost = 64;  // that are kept

/// The idle threads. Nobody waits for the lock: whoever finds it held does without. (So a child that was forked while
/// another thread held it does not deadlock.)
struct Idlers {
  std::mutex mutex;
  std::vector<Helper::Thread*> threads;
  pid_t process = getpid();
  Idlers() { threads.reserve(kMost); }
};

Idlers& idlers() {
  static Idlers& all = *new Idlers;  // never destroyed, since its threads never end
  return all;
}

Helper::Thread* idler() {
  const std::unique_lock lock(idlers().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;
  if (idlers().process != getpid()) {  // a forked child does not inherit threads
    idlers().threads.clear();
    idlers().process = getpid();
  }
  if (idlers().threads.empty()) return nullptr;
  Helper::Thread* found = idlers().threads.back();
  idlers().threads.pop_back();
  return found;
}

}  // namespace

Helper::Helper(std::function<void()> work) : thread_(idler()) {
  if (thread_ == nullptr) {
    auto made = std::make_unique<Thread>();
    std::thread([thread = made.get()] { thread->live(); }).detach();
    thread_ = made.release();
  }
  thread_->begin(std::move(work));
}

void Helper::join() {
  if (thread_ == nullptr) return;
  Thread* thread = std::exchange(thread_, nullptr);
  std::unique_lock own(thread->mutex);
  thread->changed.wait(own, [thread] { return !thread->work; });
  const std::unique_lock lock(idlers().mutex, std::try_to_lock);
  if (lock.owns_lock() && idlers().threads.size() < kMost) {
    idlers().threads.push_back(thread);
    return;
  }
  thread->is_over = true;
  thread->is_called = true;
  thread->changed.notify_all();
}

}  // namespace undertow
