// Threads that work on the pieces of one step together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "threads/crew.h"
#include "undertow/kernel.h"

namespace undertow {

/// The caller and some helpers, which are started at the first job. One job at a time.
class Team {
 public:
  explicit Team(int64_t threads) : threads_(threads) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// Call `work(piece, scratch)` for pieces 0, 1, ..., in any order. The caller's thread calls `between()` after each
  /// of its pieces, and now and then while it waits for the others. What any thread throws stops the others at their
  /// next look, and is rethrown here once all have stopped.
  template <class Work, class Between>
  void run(int64_t pieces, Scratch& own, Work&& work, Between&& between) {
    Job job;
    job.pieces = pieces;
    job.context = &work;
    job.work = [](void* context, int64_t piece, Scratch& scratch) {
      (*static_cast<std::remove_reference_t<Work>*>(context))(piece, scratch);
    };
    begin(job);
    job.guarded([&] {
      for (int64_t piece; (piece = job.next++) < job.pieces;) {
        work(piece, own);
        between();
      }
    });
    while (!has_finished()) job.guarded(between);
    if (job.raised) std::rethrow_exception(job.raised);
  }

 private:
  struct Job {
    int64_t pieces = 0;
    void (*work)(void* context, int64_t piece, Scratch& scratch) = nullptr;
    void* context = nullptr;
    std::atomic<int64_t> next = 0;
    std::mutex mutex;
    std::exception_ptr raised;  // guarded by the mutex
    std::atomic<bool> is_stopped = false;

    template <class Some>
    void guarded(Some&& some) {
      try {
        some();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!raised) raised = std::current_exception();
        next = pieces;  // no thread begins another
        is_stopped = true;
      }
    }
  };

  void begin(Job& job);
  bool has_finished();
  void help();

  const int64_t threads_;
  std::vector<Helper> helpers_;
  std::mutex mutex_;  // guards all below
  std::condition_variable has_job_, is_done_;
  Job* job_ = nullptr;
  // Written under the mutex; threads that spin read them without.
  std::atomic<int64_t> number_ = 0;   // of the job
  std::atomic<int64_t> working_ = 0;  // helpers at work
  std::atomic<bool> is_over_ = false;
};

}  // namespace undertow
