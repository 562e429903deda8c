// Chunks of one group on several threads, each with tables of its own.
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>

#include "crew.h"
#include "lockstep/run.h"

namespace undertow::lockstep {
namespace {

constexpr int64_t kFewFrames = int64_t{1} << 20;  // then they are for one thread
constexpr int64_t kManyCalls = int64_t{1} << 21;  // two milliseconds and more: then others are worth waking up
constexpr int64_t kManyLanes = 1024;              // of numbers: enough for all threads
constexpr int64_t kTasks = 32;                    // so that threads end at about the same time

/// An earlier task of another thread has failed: what this one would find is not asked for.
struct Cancelled {};

/// The host of a task: it runs nothing that needs one, and only the owner's thread asks the owner's.
class TaskHost : public Host {
 public:
  TaskHost(Host* owner, int64_t task, const std::atomic<int64_t>& first_failed)
      : owner_(owner), task_(task), first_failed_(first_failed) {}

  void apply(int32_t node, std::span<const View>, std::span<Value>) override { throw Stop{Stop::Kind::Internal, node}; }
  void poll() override {
    if (first_failed_ < task_) throw Cancelled{};
    if (owner_ != nullptr) owner_->poll();
  }

 private:
  Host* owner_;
  int64_t task_;
  const std::atomic<int64_t>& first_failed_;
};

/// Of the lanes that have not been called.
int64_t lanes_left(const Group& group) {
  int64_t lanes = -group.lane;  // of the first that is left
  for (size_t k = group.request; k < group.requests.size(); ++k) lanes += group.requests[k]->table->lanes;
  return lanes;
}

}  // namespace

/// Bits may depend on the width of waves where there are matrix products; so there, whether waves are cut, and where,
/// must not depend on the number of threads. Numbers are free to be cut where that is good: where the last run of the
/// plan made many calls (or waves must be narrow), as soon as there are many lanes; else where the lanes done so far
/// say that much is left.
bool Lockstep::goes_parallel(const Group& group) const {
  if (is_worker_ || options_.threads < 2 || options_.is_traced || options_.frames < kFewFrames || group.visits > 1 ||
      !plan_.is_pure[z(group.group)])
    return false;
  const int64_t left = lanes_left(group);
  if (!plan_.is_scalar[z(group.group)]) return group.done == 0 && left > options_.width;
  if (group.done == 0) {
    const bool is_eager = options_.width < kManyLanes || plan_.calls_before >= 4 * kManyCalls;
    return is_eager && left > std::min(kManyLanes, options_.width);
  }
  return (stats_.activations - group.calls_before) / group.done * left >= kManyCalls;
}

/// Chunks of one group are independent: run them on several threads, each with tables of its own.
void Lockstep::run_parallel(Wave& wave) {
  const Group group = std::move(wave.groups.back());
  wave.groups.pop_back();
  std::vector<Group> tasks;
  int64_t width = options_.width;
  if (plan_.is_scalar[z(group.group)]) width = std::min(width, (lanes_left(group) + kTasks - 1) / kTasks);
  int64_t skipped = 0;
  for (size_t request = group.request; request < group.requests.size(); ++request) {
    Table& table = *group.requests[request]->table;
    const CallItem& item = *group.requests[request]->item;
    for (int32_t slot : item.results)
      if (slot != kNoSlot) tables_.own(table, slot);
    if (item.makes_entry) make_entries(table, item);  // workers only look at them
    for (int64_t lane = request == group.request ? group.lane : 0; lane < table.lanes;) {
      if (skipped == 0) {
        tasks.push_back({group.group, group.visits, group.asks, group.requests, request, lane, width});
        skipped = width;
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
  clock_.stop(stats_);  // workers have clocks of their own
  const auto work = [&](bool polls) {
    for (size_t k; (k = next++) < tasks.size() && static_cast<int64_t>(k) < first_failed;) {
      try {
        TaskHost host(polls ? &host_ : nullptr, static_cast<int64_t>(k), first_failed);
        Lockstep worker(plan_, options, host, stats[k], poll_.began());
        worker.run_task(*this, wave.chunk, tasks[k]);
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
  std::vector<Hand> hands;
  std::mutex mutex;
  std::condition_variable is_done;
  size_t running = 0;  // under the mutex
  for (size_t k = 1; k < count; ++k) {
    try {
      const std::lock_guard lock(mutex);
      hands.emplace_back([&] {
        work(false);
        const std::lock_guard lock(mutex);
        if (--running == 0) is_done.notify_one();
      });
      ++running;
    } catch (const std::system_error&) {  // the system has no more of them
      break;
    }
  }
  work(true);
  while (first_failed >= 0) {
    {
      std::unique_lock lock(mutex);
      if (is_done.wait_for(lock, std::chrono::milliseconds(10), [&] { return running == 0; })) break;
    }
    try {
      poll_.look();
    } catch (const Stop&) {  // too late: the others see that too
      break;
    } catch (...) {
      interrupted = std::current_exception();
      first_failed = -1;
    }
  }
  hands.clear();
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
  for (size_t k = group.request; k < group.requests.size(); ++k) {
    Request* request = group.requests[k];
    Fiber* waiter = request->fiber;
    space_->requests.give(request);
    come_back(wave, waiter);
  }
}

/// What a worker does: some lanes of a group that another thread's tables call.
void Lockstep::run_task(const Lockstep& owner, Chunk* chunk, const Group& task) {
  clock_.start(options_.is_timed);
  main_ = owner.main_;
  is_worker_ = tables_.borrows = true;
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
