#include "threads/tasks.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>

#include "remote/message.h"
#include "threads/crew.h"
#include "threads/spin.h"
#include "threads/task.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kFewFrames = int64_t{1} << 20;  // with a lower limit of frames, one thread runs all
constexpr int64_t kManyCalls = int64_t{1} << 21;  // two milliseconds or more: worth waking other threads
constexpr int64_t kManyLanes = 1024;              // lanes of a scalar group that are enough for all threads
constexpr int64_t kScalarTasks = 32;              // more than threads, so that these end at about the same time
constexpr int64_t kMostTasks = 16;                // each has sums of its own, which one thread adds

// Workers. A task costs the run about 0.2 ms, and bytes take their time twice: out of this process, and into another.
constexpr int64_t kWorthSending = 4'000'000;  // ns of work that are worth the way
constexpr int64_t kNanosOfByte = 4;
constexpr int64_t kShort = 200'000'000;     // ns of work that may be done the slower way,
constexpr int64_t kBetweenTrials = 64;      // once in so many times
constexpr int64_t kUnknownBytes = 1 << 22;  // sent at most while nobody knows how long lanes take
constexpr int64_t kWideLanes = 64;          // with fewer lanes, waves take almost as long as with so many
constexpr int64_t kAhead = 8;               // tasks for each worker, so that all end at about the same time
constexpr int64_t kMostBytes = 1 << 26;     // in one task that is given away

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

/// What tasks use at most, if so many run at once, and the others keep what they have for their next phase.
class Uses {
 public:
  void add(const Use& use) {
    kept_ += use.kept;
    more_ = std::max(more_, use.most - use.kept);
  }
  int64_t most(size_t at_once) const { return kept_ + more_ * static_cast<int64_t>(at_once); }

 private:
  int64_t kept_ = 0, more_ = 0;
};

/// Add what a task has counted since it was asked last. What it has reached at most stays.
void move_counts(RunStats& from, RunStats& to) {
  for (auto count : {&RunStats::activations, &RunStats::waves, &RunStats::lanes, &RunStats::packed, &RunStats::recalled,
                     &RunStats::changed, &RunStats::joint_runs, &RunStats::joint_tables})
    to.*count += std::exchange(from.*count, 0);
  to.peak_width = std::max(to.peak_width, from.peak_width);
  for (size_t k = 0; k < from.seconds.size(); ++k) to.seconds[k] += std::exchange(from.seconds[k], 0);
  for (size_t node = 0; node < from.fired.size(); ++node) to.fired[node] += std::exchange(from.fired[node], 0);
}

/// The bytes that only these lanes need.
int64_t bytes_of(const Plan& plan, const Invocation& invocation) {
  int64_t bytes = 0;
  for (const Part* part : invocation.parts)
    for (size_t k = 0; k < part->arguments.size(); ++k)
      if (const Operand x = part->item->arguments[k]; x >= 0)
        bytes += remote::bytes_of(plan.slot(*part->region, x), part->arguments[k], part->lanes);
  return bytes;
}

/// Are these calls that the group makes itself? Else they come from outside.
bool is_inside(const Invocation& invocation) {
  return std::ranges::any_of(invocation.parts,
                             [&](const Part* part) { return part->region->group == invocation.group; });
}

}  // namespace

Tasks::Tasks(Run& run) : run_(run) {}
Tasks::~Tasks() = default;

/// How many lanes a task gets; 0: the lanes are not shared out. With matrix products and sums, the last bits of results
/// depend on how waves are cut: there, this must not depend on who runs them. Lanes of free groups may be cut anywhere.
/// If the last run of the plan made many calls (or waves must be narrow), waves of scalars are cut as soon as there are
/// many lanes; else when the lanes done so far suggest that much work is left.
int64_t Tasks::width_of(const Invocation& invocation, const Progress& progress, bool& is_out) const {
  const RunOptions& options = run_.options;
  const GroupFields& group = run_.plan.groups[z(invocation.group)];
  if (options.is_traced || options.frames < kFewFrames || group.grain == 0 || invocation.depth == 0) return 0;
  const int64_t left = invocation.lanes() - progress.done;
  const bool is_free = group.is_free && invocation.visits == 1;
  const bool is_inner = is_inside(invocation);
  if (run_.link != nullptr && progress.done == 0 && is_free) {
    if (left > (is_inner && !run_.link->is_eager ? kManyLanes : 1) && pays(invocation, left)) {
      is_out = true;
      return free_width(invocation, left);
    }
  }
  if (group.is_scalar && invocation.visits == 1 && run_.plan.collects.empty()) {
    if (options.threads < 2 || run_.schedule_of(invocation.group) == Schedule::Agenda) return 0;
    if (progress.done == 0) {
      const bool is_eager = options.width < kManyLanes || run_.plan.calls_before >= 4 * kManyCalls;
      if (!is_eager || left <= std::min(kManyLanes, options.width)) return 0;
    } else if (run_.link != nullptr ||  // then lanes are given away
               (run_.stats.activations - progress.calls_before) / progress.done * left < kManyCalls) {
      return 0;
    }
    return std::min(options.width, (left + kScalarTasks - 1) / kScalarTasks);
  }
  if (progress.done > 0) return 0;
  if (is_inner) {
    is_out = run_.link != nullptr && left > options.width && pays(invocation, left);
    return left > options.width ? options.width : 0;
  }
  if (left < 2 * group.grain) return 0;
  is_out = run_.link != nullptr && pays(invocation, left);
  // Wider waves are quicker: so a third task begins where each has twice as many lanes as it must have.
  const int64_t tasks = std::clamp(left / (2 * group.grain), int64_t{2}, kMostTasks);
  return std::min((left + tasks - 1) / tasks, options.width);
}

/// Lanes for each worker: a few tasks, unless that makes waves too narrow.
int64_t Tasks::free_width(const Invocation& invocation, int64_t left) const {
  const int64_t workers = std::max<int64_t>(run_.link->idle(), 1);
  const bool is_narrow = run_.plan.groups[z(invocation.group)].is_narrow && left <= 16 * workers * kAhead;
  const int64_t fewest = is_narrow || run_.link->is_eager ? 1 : kWideLanes;
  const int64_t tasks = std::clamp(left / fewest, std::min(left, workers), workers * kAhead);
  return std::min(run_.options.width, (left + tasks - 1) / tasks);
}

/// Does it pay to send these lanes to workers? Whoever does not know yet how long they take tries it; what is short is
/// tried both ways, from time to time again.
bool Tasks::pays(const Invocation& invocation, int64_t left) const {
  if (run_.link->is_eager) return true;
  const int64_t bytes = bytes_of(run_.plan, invocation);
  if (is_inside(invocation)) return run_.plan.calls_before >= 4 * kManyCalls && bytes <= kUnknownBytes;
  const LaneCost& cost = run_.plan.lane_costs[z(invocation.group)];
  const int64_t here = cost.here, away = cost.away;
  if (here == 0 && away == 0) return bytes <= kUnknownBytes;
  const double nanos = static_cast<double>(here > 0 ? here : away) * static_cast<double>(left);
  if (nanos < static_cast<double>(kWorthSending) + static_cast<double>(2 * kNanosOfByte * bytes)) return false;
  if (here == 0) return nanos > static_cast<double>(kShort);
  if (away == 0) return true;
  const bool is_quicker = away < here || left >= 2 * cost.away_lanes;
  const bool is_trial = nanos <= static_cast<double>(kShort) && cost.times % kBetweenTrials == 0;
  return is_quicker != is_trial;
}

SharedLanes& Tasks::make(Invocation& invocation, const std::vector<Range>& ranges) {
  auto shared = std::make_unique<SharedLanes>(run_, invocation);
  shared->first_part = ranges[0].part;
  // Memory decides how wide waves are, and so bits: each task has its part, whatever the others take.
  const int64_t parts = static_cast<int64_t>(ranges.size());
  shared->options.memory = std::max<int64_t>(run_.tables.pool.room() / parts, 1);
  for (const Range& range : ranges)
    shared->tasks.emplace_back(*shared, range, static_cast<int64_t>(shared->tasks.size()));
  return *shared_.emplace_back(std::move(shared));
}

bool Tasks::share(Invocation& invocation, const Progress& progress) {
  bool is_out = false;
  const int64_t width = width_of(invocation, progress, is_out);
  if (width == 0) return false;
  SharedLanes& shared = make(invocation, cut(invocation, progress, width));
  shared.is_out = is_out;
  if (is_out) run_.goes_away(invocation);
  if (invocation.visits > 1) {
    shared.hold();
    invocation.runner = this;
    invocation.handle = &shared;
  }
  run_phase(shared);
  return true;
}

void Tasks::enter(Invocation&) { throw Stop{Stop::Kind::Internal}; }
void Tasks::step() { throw Stop{Stop::Kind::Internal}; }

void Tasks::resume(Invocation& invocation) {
  SharedLanes& shared = *static_cast<SharedLanes*>(invocation.handle);
  shared.first_part = 0;
  shared.hold();
  run_phase(shared);
  run_.leave(invocation);
}

Place Tasks::where(std::vector<Label>&) const {
  if (running_ == nullptr) return {};
  const std::vector<Part*>& parts = running_->invocation.parts;
  return {parts[std::min(running_->first_part, parts.size() - 1)], 0};
}

// ------------------------------------------------------------------------------------------------------------------
// Lanes that are given away

bool Tasks::may_give() { return run_.options.frames >= kFewFrames && !run_.options.is_traced && run_.link->idle() > 0; }

bool Tasks::give(Invocation& invocation, Progress& progress, bool is_begun) {
  const GroupFields& group = run_.plan.groups[z(invocation.group)];
  if (!group.is_free || group.grain == 0 || invocation.visits > 1 || invocation.phase > 0 || invocation.depth == 0)
    return false;
  const int64_t own = std::min(progress.own, invocation.lanes()) - progress.done;
  // What runs here keeps half of it, unless it has enough to do and others do not.
  const int64_t most = is_begun && !run_.is_part() ? own : own / 2;
  if (most < 1) return false;
  const int64_t workers = std::max<int64_t>(run_.link->idle(), 1);
  const int64_t bytes = bytes_of(run_.plan, invocation) / std::max<int64_t>(invocation.lanes(), 1);
  const int64_t lanes = std::min(most, std::max<int64_t>(workers * kMostBytes / std::max<int64_t>(bytes, 1), 1));
  const int64_t tasks = std::clamp(lanes / kWideLanes, std::min(lanes, workers), workers * kAhead);
  Progress from = progress;
  from.done = progress.done + own - lanes;
  for (int64_t skip = own - lanes; skip > 0;) {
    const int64_t here = std::min(invocation.parts[from.part]->lanes - from.lane, skip);
    skip -= here;
    from.lane += here;
    if (from.lane < invocation.parts[from.part]->lanes) continue;
    ++from.part;
    from.lane = 0;
  }
  std::vector<Range> ranges = cut(invocation, from, (lanes + tasks - 1) / tasks);
  // Others may have been given away before: these follow.
  int64_t left = lanes;
  for (Range& range : ranges) left -= range.count = std::min(range.count, left);
  std::erase_if(ranges, [](const Range& range) { return range.count == 0; });
  SharedLanes& shared = make(invocation, ranges);
  shared.is_out = true;
  shared.begin_phase();
  progress.own = from.done;
  send(shared);
  return true;
}

void Tasks::take_back(Invocation& invocation) {
  for (size_t k = shared_.size(); k-- > 0;) {  // the last were given away last, and are the first lanes
    SharedLanes& shared = *shared_[k];
    if (&shared.invocation != &invocation) continue;
    running_ = &shared;
    await(shared);
    shared.make_rooms();
    merge(shared, 1);
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Phases

void Tasks::run_phase(SharedLanes& shared) {
  shared.make_rooms();
  shared.begin_phase();
  running_ = &shared;
  run_.clock.stop(run_.stats);  // tasks have clocks of their own
  const size_t threads = shared.is_out ? 1 : std::min(shared.tasks.size(), z(run_.options.threads));
  if (shared.is_out) {
    send(shared);
    await(shared);
  } else {
    run_here(shared, threads);
  }
  run_.clock.start(run_.options.is_timed);
  merge(shared, threads);
}

void Tasks::run_here(SharedLanes& shared, size_t threads) {
  const size_t tasks = shared.tasks.size();
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failed(tasks);
  std::exception_ptr interrupted;
  const auto work = [&](Host* host) {
    for (size_t k; (k = next++) < tasks && static_cast<int64_t>(k) < shared.first_failed;) {
      try {
        Task& task = shared.tasks[k];
        task.run(host);
        calls_.fetch_add(task.stats.activations, std::memory_order_relaxed);
        waves_.fetch_add(task.stats.waves, std::memory_order_relaxed);
      } catch (const Cancelled&) {
      } catch (const Stop&) {
        failed[k] = std::current_exception();
        for (int64_t known = shared.first_failed; static_cast<int64_t>(k) < known;)
          if (shared.first_failed.compare_exchange_weak(known, static_cast<int64_t>(k))) break;
      } catch (...) {  // raised by the host, so in this thread
        interrupted = std::current_exception();
        shared.first_failed = -1;
      }
    }
  };
  std::vector<Helper> helpers;
  std::mutex mutex;
  std::condition_variable is_done;
  std::atomic<size_t> running = 0;  // written under the mutex
  for (size_t k = 1; k < threads; ++k) {
    try {
      const std::lock_guard lock(mutex);
      helpers.emplace_back([&] {
        work(nullptr);
        const std::lock_guard lock(mutex);
        if (--running == 0) is_done.notify_one();
      });
      ++running;
    } catch (const std::system_error&) {  // the system has no more threads
      break;
    }
  }
  work(&run_.host);
  spin([&] { return running == 0; });
  while (shared.first_failed >= 0) {
    {
      std::unique_lock lock(mutex);
      if (is_done.wait_for(lock, std::chrono::milliseconds(10), [&] { return running == 0; })) break;
    }
    try {
      run_.poll.look();
    } catch (const Stop&) {  // the timeout is over: tasks check it themselves
      break;
    } catch (...) {
      interrupted = std::current_exception();
      shared.first_failed = -1;
    }
  }
  helpers.clear();
  if (interrupted) std::rethrow_exception(interrupted);
  for (const std::exception_ptr& fault : failed)
    if (fault) std::rethrow_exception(fault);
}

/// All tasks have ended a phase: take what they have counted, collected and found.
void Tasks::merge(SharedLanes& shared, size_t at_once) {
  Invocation& invocation = shared.invocation;
  calls_ = waves_ = 0;  // they are counted from here on
  Uses frames, bytes;
  for (Task& task : shared.tasks) {
    if (shared.is_out) task.accept(run_);
    task.hand_over(run_);
    move_counts(task.stats, run_.stats);
    frames.add(task.frames);
    bytes.add(task.bytes);
    run_.adopt_deepest(task.stats);
  }
  run_.stats.tasks += static_cast<int64_t>(shared.tasks.size());
  run_.tables.reached(frames.most(at_once), bytes.most(at_once));
  running_ = nullptr;
  for (size_t part = shared.first_part; part < invocation.parts.size(); ++part)
    invocation.caller->taken(*invocation.parts[part]);
  const bool is_over = shared.is_last_phase();
  if (is_over) shared.tasks.clear();
  shared.end_phase();
  if (!is_over) return;
  shared.release();
  std::erase_if(shared_, [&](const auto& one) { return one.get() == &shared; });
}

}  // namespace undertow
