// The lanes of one invocation on several threads: each task runs some of them as an invocation with tables of its own.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>

#include "run/entries.h"
#include "run/waves.h"
#include "threads/crew.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kFewFrames = int64_t{1} << 20;  // with a lower limit of frames, one thread runs all
constexpr int64_t kManyCalls = int64_t{1} << 21;  // two milliseconds or more: worth waking other threads
constexpr int64_t kManyLanes = 1024;              // lanes of a scalar group that are enough for all threads
constexpr int64_t kTasks = 32;                    // more than threads, so that these end at about the same time

/// Thrown in a task when an earlier task has failed: its result is not needed.
struct Cancelled {};

/// The host of a task. Tasks run no operators of the host, and only the owner's thread may poll the owner's host.
class TaskHost : public Host {
 public:
  TaskHost(Host* owner, int64_t task, const std::atomic<int64_t>& first_failed)
      : owner_(owner), task_(task), first_failed_(first_failed) {}

  void apply(int32_t node, std::span<const View>, std::span<Value>) override { throw Stop{Stop::Kind::Internal, node}; }
  void poll() override {
    if (first_failed_ < task_) throw Cancelled{};
    if (owner_ != nullptr) owner_->poll();
  }
  void progress(const RunProgress& progress) override {
    if (owner_ != nullptr) owner_->progress(progress);
  }

 private:
  Host* owner_;
  int64_t task_;
  const std::atomic<int64_t>& first_failed_;
};

/// A range of lanes of an invocation, for one task.
struct Range {
  size_t part;
  int64_t lane, count;
};

/// Some lanes of an invocation as one of their own. Arguments are borrowed, since reference counts are not thread-safe;
/// results are written to columns that the owner has made.
class Task final : public Caller {
 public:
  Task(const Plan& plan, const Invocation& owner, const std::vector<std::vector<Column>>& rooms, Range range,
       Tables& tables)
      : plan_(plan), rooms_(rooms), tables_(tables) {
    made_ = {this, owner.group, owner.visits, owner.resume_group, 0, owner.depth, {}, nullptr, nullptr};
    for (; range.count > 0; ++range.part, range.lane = 0) {
      const int64_t count = std::min(range.count, owner.parts[range.part]->lanes - range.lane);
      lend(*owner.parts[range.part], range.part, range.lane, count);
      range.count -= count;
    }
    for (Lanes& part : parts_) made_.parts.push_back(&part);
  }

  Invocation& invocation() { return made_; }

  /// The sums that its lanes have collected, for the owner to add.
  void take_partials(std::vector<Partial>& partials) {
    for (size_t k = 0; k < entries_.size(); ++k) undertow::take_partials(tables_, entries_[k], *owners_[k], partials);
  }

  Column room(Part& part, size_t result) override {
    const Lanes& lanes = static_cast<Lanes&>(part);
    return rooms_[lanes.number][result].from(lanes.from);
  }
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override {
    const Slot& to = part.region->slots[z(part.item->results[result])];
    tables_.put(to, room(part, result), nullptr, slot, column, part.lanes);
  }
  void taken(Part&) override {}
  void back(Invocation&) override {}
  Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const override {
    const Lanes& lanes = static_cast<const Lanes&>(part);
    return lanes.owner->invocation->caller->out(*lanes.owner, lanes.from + lane, labels);
  }

 private:
  struct Lanes : Part {
    const Part* owner;
    size_t number;  ///< of the owner's part
    int64_t from;   ///< lane of it
    std::vector<Entry*> below;
  };

  void lend(const Part& owner, size_t number, int64_t from, int64_t count) {
    Lanes& part = parts_.emplace_back();
    static_cast<Part&>(part) = owner;
    part.invocation = &made_;
    part.owner = &owner;
    part.number = number;
    part.from = from;
    part.lanes = count;
    for (Column& column : part.arguments) {
      column = column.from(from);
      column.block = nullptr;
    }
    if (plan_.regions[z(owner.item->body)].hoisted == 0) return;
    const Entry* last = nullptr;
    for (int64_t lane = from; lane < from + count; ++lane) {
      Entry* entry = owner.entry_of(lane);
      if (entry != last) lend(*entry);
      last = entry;
      part.below.push_back(&entries_.back());
    }
    part.row = nullptr;
    part.entries = part.below.data();
    if (owner.row != nullptr || owner.entries != nullptr) return;
    part.entries = nullptr;
    part.entry = &entries_.back();
  }

  void lend(Entry& entry) {
    entries_.push_back({entry.region, entry.item, entry.values, std::vector<Sum>(entry.sums.size())});
    owners_.push_back(&entry);
    for (Column& column : entries_.back().values) column.block = nullptr;
  }

  const Plan& plan_;
  const std::vector<std::vector<Column>>& rooms_;
  Tables& tables_;
  Invocation made_;
  std::deque<Lanes> parts_;
  std::deque<Entry> entries_;
  std::vector<Entry*> owners_;  ///< the original of each
};

/// Divide the remaining lanes into tasks.
std::vector<Range> cut(const Invocation& invocation, const Progress& progress, int64_t width) {
  std::vector<Range> ranges;
  Range next{progress.part, progress.lane, 0};
  for (int64_t left = invocation.lanes() - progress.done; left > 0; left -= next.count) {
    next.count = std::min(width, left);
    ranges.push_back(next);
    next.lane += next.count;
    while (next.part < invocation.parts.size() && next.lane >= invocation.parts[next.part]->lanes)
      next.lane -= invocation.parts[next.part++]->lanes;
  }
  return ranges;
}

}  // namespace

/// With matrix products, the last bits of results may depend on the width of waves: there, whether and where waves are
/// cut must not depend on the number of threads. Waves of scalars may be cut anywhere. If the last run of the plan made
/// many calls (or waves must be narrow), they are cut as soon as there are many lanes; else when the lanes done so far
/// suggest that much work is left.
bool Run::goes_parallel(const Invocation& invocation, const Progress& progress) const {
  if (options.threads < 2 || options.is_traced || options.frames < kFewFrames || invocation.visits > 1 ||
      !plan.groups[z(invocation.group)].is_parallel || invocation.depth == 0)
    return false;
  const int64_t left = invocation.lanes() - progress.done;
  if (!plan.groups[z(invocation.group)].is_scalar) return progress.done == 0 && left > options.width;
  if (progress.done == 0) {
    const bool is_eager = options.width < kManyLanes || plan.calls_before >= 4 * kManyCalls;
    return is_eager && left > std::min(kManyLanes, options.width);
  }
  return (stats.activations - progress.calls_before) / progress.done * left >= kManyCalls;
}

bool Run::share(Invocation& invocation, const Progress& progress) {
  if (!goes_parallel(invocation, progress)) return false;
  int64_t width = options.width;
  if (plan.groups[z(invocation.group)].is_scalar)
    width = std::min(width, (invocation.lanes() - progress.done + kTasks - 1) / kTasks);
  const std::vector<Range> ranges = cut(invocation, progress, width);
  std::vector<std::vector<Column>> rooms(invocation.parts.size());
  for (size_t part = progress.part; part < rooms.size(); ++part)
    for (size_t k = 0; k < invocation.parts[part]->item->results.size(); ++k) {
      const bool is_order = invocation.parts[part]->item->results[k] == kNoSlot;
      rooms[part].push_back(is_order ? Column{} : invocation.caller->room(*invocation.parts[part], k));
    }
  const size_t count = std::min(ranges.size(), z(options.threads));
  RunOptions own = options;
  own.threads = 1;
  own.memory = std::max<int64_t>((options.memory - tables.pool.live()) / static_cast<int64_t>(count), 1);
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> first_failed = INT64_MAX;  // later tasks stop; earlier ones go on, since they may fail too
  std::vector<std::exception_ptr> failed(ranges.size());
  std::exception_ptr interrupted;
  std::vector<RunStats> parts(ranges.size());
  std::vector<std::vector<Partial>> partials(
      ranges.size());  // by task: added in this order, whatever the number of threads
  clock.stop(stats);   // tasks have clocks of their own
  const auto work = [&](bool polls) {
    for (size_t k; (k = next++) < ranges.size() && static_cast<int64_t>(k) < first_failed;) {
      try {
        TaskHost quiet(polls ? &host : nullptr, static_cast<int64_t>(k), first_failed);
        RunOptions mine = own;
        mine.shows_progress = own.shows_progress && polls;
        Run worker(plan, mine, quiet, parts[k], this);
        Task task(plan, invocation, rooms, ranges[k], worker.tables);
        worker.run(task.invocation());
        task.take_partials(partials[k]);
        calls_of_tasks_.fetch_add(parts[k].activations, std::memory_order_relaxed);
        waves_of_tasks_.fetch_add(parts[k].waves, std::memory_order_relaxed);
      } catch (const Cancelled&) {
      } catch (const Stop&) {
        failed[k] = std::current_exception();
        for (int64_t known = first_failed; static_cast<int64_t>(k) < known;)
          if (first_failed.compare_exchange_weak(known, static_cast<int64_t>(k))) break;
      } catch (...) {  // raised by the host, so in this thread
        interrupted = std::current_exception();
        first_failed = -1;
      }
    }
  };
  std::vector<Helper> helpers;
  std::mutex mutex;
  std::condition_variable is_done;
  size_t running = 0;  // guarded by the mutex
  for (size_t k = 1; k < count; ++k) {
    try {
      const std::lock_guard lock(mutex);
      helpers.emplace_back([&] {
        work(false);
        const std::lock_guard lock(mutex);
        if (--running == 0) is_done.notify_one();
      });
      ++running;
    } catch (const std::system_error&) {  // the system has no more threads
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
      poll.look();
    } catch (const Stop&) {  // the timeout is over: tasks check it themselves
      break;
    } catch (...) {
      interrupted = std::current_exception();
      first_failed = -1;
    }
  }
  helpers.clear();
  clock.start(options.is_timed);
  if (interrupted) std::rethrow_exception(interrupted);
  for (const std::exception_ptr& fault : failed)
    if (fault) std::rethrow_exception(fault);
  for (const auto& collected : partials)
    for (const Partial& partial : collected) add_partial(tables, partial);
  calls_of_tasks_ = waves_of_tasks_ = 0;  // they are counted from here on
  int64_t frames = 0;
  for (const RunStats& part : parts) {
    stats.activations += part.activations;
    stats.waves += part.waves;
    stats.lanes += part.lanes;
    stats.peak_width = std::max(stats.peak_width, part.peak_width);
    for (size_t k = 0; k < part.seconds.size(); ++k) stats.seconds[k] += part.seconds[k];
    frames = std::max(frames, part.peak_frames);
    for (size_t node = 0; node < part.fired.size(); ++node) stats.fired[node] += part.fired[node];
    if (part.max_depth > stats.max_depth) {
      stats.max_depth = part.max_depth;
      stats.deepest = part.deepest;
      deepest_ = {};
      for (Runner* runner : stack_) runner->forget_deepest();
    }
  }
  tables.peak_frames = std::max(tables.peak_frames, tables.frames + frames * static_cast<int64_t>(count));
  return true;
}

}  // namespace undertow
