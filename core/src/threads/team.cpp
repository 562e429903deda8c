#include "threads/team.h"

#include <chrono>
#include <system_error>

#include "threads/spin.h"

namespace undertow {
namespace {

/// What ends the work of a helper when another has failed.
struct Stopped {};

}  // namespace

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  has_job_.notify_all();
  helpers_.clear();
}

void Team::begin(Job& job) {
  while (static_cast<int64_t>(helpers_.size()) + 1 < threads_) {
    try {
      helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {  // the system has no more threads
      break;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++number_;
  }
  has_job_.notify_all();
}

/// Wait a moment for helpers to finish; those that have not begun need not begin.
bool Team::has_finished() {
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  if (working_ > 0) {
    lock.unlock();
    spin([this] { return working_ == 0; });
    lock.lock();
  }
  return is_done_.wait_for(lock, std::chrono::milliseconds(10), [this] { return working_ == 0; });
}

void Team::help() {
  Scratch scratch;
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    lock.unlock();
    spin([&] { return is_over_ || number_ != seen; });
    lock.lock();
    has_job_.wait(lock, [&] { return is_over_ || (job_ != nullptr && number_ != seen); });
    if (is_over_) return;
    Job& job = *job_;
    seen = number_;
    ++working_;
    lock.unlock();
    scratch.watch(
        [](void* stopped) {
          if (*static_cast<std::atomic<bool>*>(stopped)) throw Stopped{};
        },
        &job.is_stopped);
    job.guarded([&] {
      for (int64_t piece; (piece = job.next++) < job.pieces;) job.work(job.context, piece, scratch);
    });
    lock.lock();
    if (--working_ == 0) is_done_.notify_one();
  }
}

}  // namespace undertow
