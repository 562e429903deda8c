// Chunks of one group on several threads, each with tables of its own.
#include <exception>
#include <system_error>
#include <thread>

#include "lockstep/run.h"

namespace undertow::lockstep {
namespace {

constexpr int64_t kFewFrames = int64_t{1} << 20;  // then they are for one thread

}  // namespace

bool Lockstep::goes_parallel(const Group& group) const {
  if (is_worker_ || options_.threads < 2 || options_.is_traced || options_.frames < kFewFrames || group.visits > 1 ||
      group.request > 0 || group.lane > 0)
    return false;
  if (!plan_.is_pure[z(group.group)]) return false;
  int64_t lanes = 0;
  for (const Request* request : group.requests) lanes += request->table->lanes;
  return lanes > options_.width;
}

/// Chunks of one group are independent: run them on several threads, each with tables of its own.
void Lockstep::run_parallel(Wave& wave) {
  const Group group = std::move(wave.groups.back());
  wave.groups.pop_back();
  std::vector<Group> tasks;
  int64_t skipped = 0;
  for (size_t request = 0; request < group.requests.size(); ++request) {
    Table& table = *group.requests[request]->table;
    const CallItem& item = *group.requests[request]->item;
    for (int32_t slot : item.results)
      if (slot != kNoSlot) tables_.own(table, slot);
    if (item.makes_entry) make_entries(table, item);  // workers only look at them
    for (int64_t lane = 0; lane < table.lanes;) {
      if (skipped == 0) {
        tasks.push_back({group.group, group.visits, group.asks, group.requests, request, lane, options_.width});
        skipped = options_.width;
      }
      const int64_t step = std::min(skipped, table.lanes - lane);
      lane += step;
      skipped -= step;
    }
  }
  const size_t count = std::min(tasks.size(), z(options_.threads));
  RunOptions options = options_;
  options.threads = 1;
  options.memory = std::max<int64_t>((options_.memory - tables_.pool.live()) / static_cast<int64_t>(count), 1);
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> first_failed = INT64_MAX;  // tasks behind it stop; those before it say whether they fail too
  std::vector<std::exception_ptr> failed(tasks.size());
  std::exception_ptr interrupted;
  std::vector<RunStats> stats(tasks.size());
  std::atomic<int64_t> running = 0;
  clock_.stop(stats_);  // workers have clocks of their own
  const auto work = [&](bool polls) {
    for (size_t k; (k = next++) < tasks.size() && static_cast<int64_t>(k) < first_failed;) {
      try {
        Lockstep worker(plan_, options, polls ? host_ : quiet_, stats[k]);
        worker.run_task(*this, wave.chunk, tasks[k], static_cast<int64_t>(k), first_failed);
      } catch (const Cancelled&) {
      } catch (const Stop&) {
        failed[k] = std::current_exception();
        for (int64_t known = first_failed; static_cast<int64_t>(k) < known;)
          if (first_failed.compare_exchange_weak(known, static_cast<int64_t>(k))) break;
      } catch (...) {  // the host's, so in this thread
        interrupted = std::current_exception();
        first_failed = -1;
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t k = 1; k < count; ++k) {
    ++running;
    try {
      threads.emplace_back([&] {
        work(false);
        --running;
      });
    } catch (const std::system_error&) {  // the system has no more of them
      --running;
      break;
    }
  }
  work(true);
  while (running > 0 && first_failed >= 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    try {
      poll();
    } catch (const Stop&) {  // too late: the others see that too
      break;
    } catch (...) {
      interrupted = std::current_exception();
      first_failed = -1;
    }
  }
  for (std::thread& thread : threads) thread.join();
  clock_.start(options_.is_timed);
  if (interrupted) std::rethrow_exception(interrupted);
  for (const std::exception_ptr& fault : failed)
    if (fault) std::rethrow_exception(fault);
  int64_t frames = 0;
  for (const RunStats& part : stats) {
    stats_.activations += part.activations;
    stats_.waves += part.waves;
    stats_.lanes += part.lanes;
    stats_.peak_width = std::max(stats_.peak_width, part.peak_width);
    for (size_t k = 0; k < part.seconds.size(); ++k) stats_.seconds[k] += part.seconds[k];
    frames = std::max(frames, part.peak_frames);
    for (size_t node = 0; node < part.fired.size(); ++node) stats_.fired[node] += part.fired[node];
    if (part.max_depth > stats_.max_depth) {
      stats_.max_depth = part.max_depth;
      stats_.deepest = part.deepest;
      deepest_ = {};
    }
  }
  tables_.peak_frames = std::max(tables_.peak_frames, tables_.frames + frames * static_cast<int64_t>(count));
  for (Request* request : group.requests) {
    Fiber* waiter = request->fiber;
    space_->requests.give(request);
    come_back(wave, waiter);
  }
}

/// What a worker does: some lanes of a group that another thread's tables call.
void Lockstep::run_task(const Lockstep& owner, Chunk* chunk, const Group& task, int64_t number,
                        const std::atomic<int64_t>& first_failed) {
  began_ = last_poll_ = owner.began_;
  clock_.start(options_.is_timed);
  main_ = owner.main_;
  is_worker_ = tables_.borrows = true;
  task_ = number;
  first_failed_ = &first_failed;
  outer_depth_ = (chunk == nullptr ? 0 : chunk->depth) + 1;
  stats_.max_depth = owner.stats_.max_depth;
  guarded([&] {
    begin_wave(chunk, 0).groups.push_back(task);
    while (deep_ > 0) step();
    finish_stats();
  });
  if (space_->is_small()) Idle<WaveSpace>::all().give(std::move(space_));
}

}  // namespace undertow::lockstep
