#include "threads/team.h"

#include <system_error>

namespace undertow {

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

/// End a job: helpers that have not begun need not begin.
void Team::finish() {
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  is_done_.wait(lock, [this] { return working_ == 0; });
}

void Team::help() {
  Scratch scratch;
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    has_job_.wait(lock, [&] { return is_over_ || (job_ != nullptr && number_ != seen); });
    if (is_over_) return;
    Job& job = *job_;
    seen = number_;
    ++working_;
    lock.unlock();
    job.guarded([&] {
      for (int64_t piece; (piece = job.next++) < job.pieces;) job.work(job.context, piece, scratch);
    });
    lock.lock();
    if (--working_ == 0) is_done_.notify_one();
  }
}

}  // namespace undertow
