#include "threads/tasks.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>

#include "run/entries.h"
#include "run/waves.h"
#include "threads/crew.h"
#include "threads/spin.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kFewFrames = int64_t{1} << 20;  // with a lower limit of frames, one thread runs all
constexpr int64_t kManyCalls = int64_t{1} << 21;  // two milliseconds or more: worth waking other threads
constexpr int64_t kManyLanes = 1024;              // lanes of a scalar group that are enough for all threads
constexpr int64_t kScalarTasks = 32;              // more than threads, so that these end at about the same time
constexpr int64_t kMostTasks = 16;                // each has sums of its own, which one thread adds

/// Thrown in a task when an earlier task has failed: its result is not needed.
struct Cancelled {};

/// The host of a task. Tasks run no operators of the host, and only the owner's thread may poll the owner's host.
class TaskHost : public Host {
 public:
  TaskHost(int64_t task, const std::atomic<int64_t>& first_failed) : task_(task), first_failed_(first_failed) {}

  /// From here on, this thread works on the task; null: it is not the owner's.
  void begin(Host* owner) { owner_ = owner; }

  void apply(int32_t node, std::span<const View>, std::span<Value>) override { throw Stop{Stop::Kind::Internal, node}; }
  void poll() override {
    if (first_failed_ < task_) throw Cancelled{};
    if (owner_ != nullptr) owner_->poll();
  }
  void progress(const RunProgress& progress) override {
    if (owner_ != nullptr) owner_->progress(progress);
  }

 private:
  Host* owner_ = nullptr;
  int64_t task_;
  const std::atomic<int64_t>& first_failed_;
};

/// A range of lanes of an invocation, for one task.
struct Range {
  size_t part;
  int64_t lane, count;
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

/// How much of something a task uses in a phase: frames, or bytes.
struct Use {
  int64_t kept = 0;  ///< from the phase before, or for the next
  int64_t most = 0;
};

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

/// Call `see` with each entry above some lanes of a part; equal ones in a row count once.
template <class See>
void each_entry(const Part& part, int64_t from, int64_t count, See&& see) {
  const Entry* last = nullptr;
  for (int64_t lane = from; lane < from + count; ++lane) {
    Entry* entry = part.entry_of(lane);
    if (entry != last && entry != nullptr) see(*entry);
    last = entry;
  }
}

/// Add what a task has counted since it was asked last. What it has reached at most stays.
void move_counts(RunStats& from, RunStats& to) {
  for (auto count : {&RunStats::activations, &RunStats::waves, &RunStats::lanes, &RunStats::packed, &RunStats::recalled,
                     &RunStats::changed, &RunStats::joint_runs, &RunStats::joint_tables})
    to.*count += std::exchange(from.*count, 0);
  to.peak_width = std::max(to.peak_width, from.peak_width);
  for (size_t k = 0; k < from.seconds.size(); ++k) to.seconds[k] += std::exchange(from.seconds[k], 0);
  for (size_t node = 0; node < from.fired.size(); ++node) to.fired[node] += std::exchange(from.fired[node], 0);
}

}  // namespace

/// Some lanes of an invocation as one of their own, in a run of its own. Arguments are borrowed, since reference counts
/// are not thread-safe; numbers are written to columns that the owner has made, boxes are handed over when all tasks
/// are done.
class Task final : public Caller {
 public:
  Task(SharedLanes& shared, Range range, int64_t number);

  /// Run the next phase, in this thread. `host` is that of the owner's run, if this is the owner's thread.
  void run(Host* host);

  /// What is left to do in the owner's thread when all tasks have ended a phase.
  void hand_over(Run& owner);

  RunStats stats;  ///< since the owner has asked for them
  Use frames, bytes;

  Column room(Part& part, size_t result) override;
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override;
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
    std::vector<std::vector<Box>> boxes;  ///< results whose shapes only the run knows
  };

  void lend_entries(Lanes& part);
  void lend_arguments(Lanes& part);

  SharedLanes& shared_;
  TaskHost host_;
  Invocation invocation_;
  std::deque<Lanes> parts_;
  std::deque<Entry> entries_;
  std::vector<Entry*> owners_;  ///< the original of each
  std::vector<Partial> partials_;
  std::optional<Run> run_;  ///< from the first phase to the last
};

/// An invocation whose lanes are shared out.
class SharedLanes {
 public:
  SharedLanes(Run& run, Invocation& invocation)
      : owner(run),
        invocation(invocation),
        share(run.tables.pool.room(), run.options.frames - run.tables.frames),
        options(run.options) {
    options.threads = 1;
  }

  /// Later phases may read what the owner has dropped by then.
  void hold();
  void release() {
    for (Block* block : held_) owner.tables.pool.drop(block);
    held_.clear();
  }

  bool is_last_phase() const { return invocation.phase + 1 == invocation.visits; }

  /// Memory and frames that tasks take are missing in the owner's run.
  void begin_phase() {
    share.bytes.give(owner.tables.pool.room() - share.bytes.left());
    share.frames.give(owner.tables.most_frames - owner.tables.frames - share.frames.left());
    bytes_ = share.bytes.left();
    frames_ = share.frames.left();
  }
  void end_phase() {
    owner.tables.pool.lend(bytes_ - share.bytes.left());
    owner.tables.most_frames -= frames_ - share.frames.left();
  }

  Run& owner;
  Invocation& invocation;
  RunShare share;
  RunOptions options;                             ///< of each task
  std::atomic<int64_t> first_failed = INT64_MAX;  ///< later tasks stop; earlier ones go on, since they may fail too
  std::vector<std::vector<Column>> rooms;         ///< for results of this phase, by part
  std::deque<Task> tasks;

 private:
  void keep(Block* block) {
    if (block == nullptr) return;
    ++block->refs;
    held_.push_back(block);
  }
  void keep(const Slot& slot, const Column& column, int64_t lanes) {
    if (column.data == nullptr) return;
    keep(column.block);
    if (!slot.is_dynamic) return;
    for (int64_t k = 0; k < (column.stride == 0 ? 1 : lanes); ++k) keep(column.lane<Box>(k)->block);
  }

  std::vector<Block*> held_;
  int64_t bytes_ = 0, frames_ = 0;  ///< that were left when the phase began
};

void SharedLanes::hold() {
  for (const Part* part : invocation.parts) {
    const std::vector<Operand>& arguments = part->item->arguments;
    for (size_t k = 0; k < part->arguments.size(); ++k)
      if (arguments[k] != kNoSlot) keep(owner.plan.slot(*part->region, arguments[k]), part->arguments[k], part->lanes);
    if (invocation.phase > 0 || owner.plan.regions[z(part->item->body)].hoisted == 0) continue;
    each_entry(*part, 0, part->lanes, [&](const Entry& entry) {
      for (size_t k = 0; k < entry.values.size(); ++k)
        keep(owner.plan.slot(*entry.region, entry.item->hoists[k]), entry.values[k], 1);
    });
  }
  const std::vector<Slot>& slots = owner.plan.regions[0].slots;
  for (size_t k = 0; k < slots.size(); ++k) keep(slots[k], owner.shared(static_cast<int32_t>(k)), 1);
}

Task::Task(SharedLanes& shared, Range range, int64_t number)
    : shared_(shared),
      host_(number, shared.first_failed),
      invocation_{this,
                  shared.invocation.group,
                  shared.invocation.visits,
                  shared.invocation.resume_group,
                  0,
                  shared.invocation.depth,
                  {},
                  nullptr,
                  nullptr} {
  for (; range.count > 0; ++range.part, range.lane = 0) {
    const Part& owner = *shared.invocation.parts[range.part];
    Lanes& part = parts_.emplace_back();
    static_cast<Part&>(part) = owner;
    part.invocation = &invocation_;
    part.owner = &owner;
    part.number = range.part;
    part.from = range.lane;
    part.lanes = std::min(range.count, owner.lanes - range.lane);
    range.count -= part.lanes;
    invocation_.parts.push_back(&part);
  }
}

void Task::run(Host* host) {
  host_.begin(host);
  const bool is_first = !run_;
  if (is_first) {
    run_.emplace(shared_.owner.plan, shared_.options, host_, stats, &shared_.owner, &shared_.share);
    for (Lanes& part : parts_) lend_entries(part);
  }
  Tables& tables = run_->tables;
  frames.kept = tables.frames;
  bytes.kept = tables.pool.live();
  tables.measure();
  run_->lend_main();
  for (Lanes& part : parts_) lend_arguments(part);
  run_->run(invocation_, is_first);
  for (size_t k = 0; k < entries_.size(); ++k) take_partials(tables, entries_[k], *owners_[k], partials_);
  frames = {std::max(frames.kept, tables.frames), tables.peak_frames};
  bytes = {std::max(bytes.kept, tables.pool.live()), tables.pool.peak()};
  tables.give_back();
  const auto has_boxes = [](const Lanes& part) {
    return std::ranges::any_of(part.boxes, [](const auto& boxes) { return !boxes.empty(); });
  };
  // Its memory serves the next task; but values in boxes are still to be handed over.
  if (shared_.is_last_phase() && std::ranges::none_of(parts_, has_boxes)) run_.reset();
}

void Task::lend_arguments(Lanes& part) {
  const Part& owner = *part.owner;
  part.item = owner.item;
  part.arguments = owner.arguments;
  for (size_t k = 0; k < part.arguments.size(); ++k) {
    if (part.item->arguments[k] == kNoSlot) continue;
    const Slot& slot = shared_.owner.plan.slot(*part.region, part.item->arguments[k]);
    part.arguments[k] = run_->lend(slot, part.arguments[k].from(part.from), part.lanes);
  }
  const std::vector<int32_t>& results = part.item->results;
  part.boxes.assign(results.size(), {});
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k] != kNoSlot && part.region->slots[z(results[k])].is_dynamic)
      part.boxes[k].assign(z(part.lanes), Box{nullptr, nullptr, nullptr});
}

/// Entries of its own, with the owner's values: what is collected in them is added to the owner's.
void Task::lend_entries(Lanes& part) {
  const Plan& plan = shared_.owner.plan;
  if (plan.regions[z(part.item->body)].hoisted == 0) return;
  const Part& owner = *part.owner;
  const Entry* last = nullptr;
  for (int64_t lane = part.from; lane < part.from + part.lanes; ++lane) {
    Entry* entry = owner.entry_of(lane);
    if (entry != last) {
      entries_.push_back({entry->region, entry->item, entry->values, std::vector<Sum>(entry->sums.size())});
      owners_.push_back(entry);
      for (size_t k = 0; k < entry->values.size(); ++k)
        entries_.back().values[k] = run_->lend(plan.slot(*entry->region, entry->item->hoists[k]), entry->values[k], 1);
    }
    last = entry;
    part.below.push_back(&entries_.back());
  }
  part.row = nullptr;
  part.entries = part.below.data();
  if (owner.row != nullptr || owner.entries != nullptr) return;
  part.entries = nullptr;
  part.entry = &entries_.back();
}

Column Task::room(Part& part, size_t result) {
  Lanes& lanes = static_cast<Lanes&>(part);
  if (std::vector<Box>& boxes = lanes.boxes[result]; !boxes.empty())
    return {nullptr, reinterpret_cast<std::byte*>(boxes.data()), sizeof(Box)};
  return shared_.rooms[lanes.number][result].from(lanes.from);
}

void Task::take(Part& part, size_t result, const Slot& slot, const Column& column) {
  const Slot& to = part.region->slots[z(part.item->results[result])];
  run_->tables.put(to, room(part, result), nullptr, slot, column, part.lanes);
}

void Task::hand_over(Run& owner) {
  for (Partial& partial : partials_) add_partial(owner.tables, partial);
  partials_.clear();
  for (Lanes& part : parts_)
    for (size_t k = 0; k < part.boxes.size(); ++k) {
      if (part.boxes[k].empty()) continue;
      const Slot& slot = part.region->slots[z(part.item->results[k])];
      const Column to = shared_.rooms[part.number][k].from(part.from);
      for (int64_t lane = 0; lane < part.lanes; ++lane)
        owner.tables.adopt(slot, *to.lane<Box>(lane), part.boxes[k][z(lane)], run_->tables.pool);
      part.boxes[k].clear();
    }
}

// ------------------------------------------------------------------------------------------------------------------

Tasks::Tasks(Run& run) : run_(run) {}
Tasks::~Tasks() = default;

/// How many lanes a task gets; 0: the lanes are not shared out. With matrix products and sums, the last bits of results
/// depend on how waves are cut: there, this must not depend on the number of threads. Waves of scalars may be cut
/// anywhere. If the last run of the plan made many calls (or waves must be narrow), they are cut as soon as there are
/// many lanes; else when the lanes done so far suggest that much work is left.
int64_t Tasks::width_of(const Invocation& invocation, const Progress& progress) const {
  const RunOptions& options = run_.options;
  const GroupFields& group = run_.plan.groups[z(invocation.group)];
  if (options.is_traced || options.frames < kFewFrames || group.grain == 0 || invocation.depth == 0) return 0;
  const int64_t left = invocation.lanes() - progress.done;
  if (group.is_scalar && invocation.visits == 1 && run_.plan.collects.empty()) {
    if (options.threads < 2) return 0;
    if (progress.done == 0) {
      const bool is_eager = options.width < kManyLanes || run_.plan.calls_before >= 4 * kManyCalls;
      if (!is_eager || left <= std::min(kManyLanes, options.width)) return 0;
    } else if ((run_.stats.activations - progress.calls_before) / progress.done * left < kManyCalls) {
      return 0;
    }
    return std::min(options.width, (left + kScalarTasks - 1) / kScalarTasks);
  }
  if (progress.done > 0) return 0;
  const auto is_inside = [&](const Part* part) { return part->region->group == invocation.group; };
  if (std::ranges::any_of(invocation.parts, is_inside)) return left > options.width ? options.width : 0;
  if (left < 2 * group.grain) return 0;
  // Wider waves are quicker: so a third task begins where each has twice as many lanes as it must have.
  const int64_t tasks = std::clamp(left / (2 * group.grain), int64_t{2}, kMostTasks);
  return std::min((left + tasks - 1) / tasks, options.width);
}

bool Tasks::share(Invocation& invocation, const Progress& progress) {
  const int64_t width = width_of(invocation, progress);
  if (width == 0) return false;
  auto shared = std::make_unique<SharedLanes>(run_, invocation);
  const std::vector<Range> ranges = cut(invocation, progress, width);
  // Memory decides how wide waves are, and so bits: each task has its part, whatever the others take.
  const int64_t parts = static_cast<int64_t>(ranges.size());
  shared->options.memory = std::max<int64_t>(run_.tables.pool.room() / parts, 1);
  for (const Range& range : ranges)
    shared->tasks.emplace_back(*shared, range, static_cast<int64_t>(shared->tasks.size()));
  if (invocation.visits > 1) {
    shared->hold();
    invocation.runner = this;
    invocation.handle = shared.get();
  }
  SharedLanes& all = *shared_.emplace_back(std::move(shared));
  run_phase(all);
  return true;
}

void Tasks::enter(Invocation&) { throw Stop{Stop::Kind::Internal}; }
void Tasks::step() { throw Stop{Stop::Kind::Internal}; }

void Tasks::resume(Invocation& invocation) {
  SharedLanes& shared = *static_cast<SharedLanes*>(invocation.handle);
  shared.hold();
  run_phase(shared);
  run_.leave(invocation);
}

Place Tasks::where(std::vector<Label>&) const { return {running_->invocation.parts[0], 0}; }

void Tasks::run_phase(SharedLanes& shared) {
  Invocation& invocation = shared.invocation;
  RunStats& stats = run_.stats;
  shared.rooms.assign(invocation.parts.size(), {});
  for (size_t part = 0; part < shared.rooms.size(); ++part)
    for (size_t k = 0; k < invocation.parts[part]->item->results.size(); ++k) {
      const bool is_order = invocation.parts[part]->item->results[k] == kNoSlot;
      shared.rooms[part].push_back(is_order ? Column{} : invocation.caller->room(*invocation.parts[part], k));
    }
  shared.begin_phase();
  running_ = &shared;
  const size_t tasks = shared.tasks.size(), threads = std::min(tasks, z(run_.options.threads));
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failed(tasks);
  std::exception_ptr interrupted;
  run_.clock.stop(stats);  // tasks have clocks of their own
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
  run_.clock.start(run_.options.is_timed);
  if (interrupted) std::rethrow_exception(interrupted);
  for (const std::exception_ptr& fault : failed)
    if (fault) std::rethrow_exception(fault);
  calls_ = waves_ = 0;  // they are counted from here on
  Uses frames, bytes;
  for (Task& task : shared.tasks) {
    task.hand_over(run_);
    move_counts(task.stats, stats);
    frames.add(task.frames);
    bytes.add(task.bytes);
    run_.adopt_deepest(task.stats);
  }
  stats.tasks += static_cast<int64_t>(tasks);
  run_.tables.reached(frames.most(threads), bytes.most(threads));
  running_ = nullptr;
  for (Part* part : invocation.parts) invocation.caller->taken(*part);
  const bool is_over = shared.is_last_phase();
  if (is_over) shared.tasks.clear();
  shared.end_phase();
  if (!is_over) return;
  shared.release();
  std::erase_if(shared_, [&](const auto& one) { return one.get() == &shared; });
}

}  // namespace undertow
