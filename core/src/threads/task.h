// A task: some lanes of an invocation as one of their own, here or elsewhere.
#pragma once

#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "remote/message.h"
#include "run/entries.h"
#include "run/waves.h"

namespace undertow {

class SharedLanes;

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

/// How much of something a task uses in a phase: frames, or bytes.
struct Use {
  int64_t kept = 0;  ///< from the phase before, or for the next
  int64_t most = 0;
};

/// Some lanes of an invocation as one of their own, in a run of its own. Arguments are borrowed, since reference counts
/// are not thread-safe; numbers are written to columns that the owner has made, boxes are handed over when all tasks
/// are done. Or it is a guest of a worker: then it goes as messages, and what it gives is handed over likewise.
class Task final : public Caller {
 public:
  Task(SharedLanes& shared, Range range, int64_t order);

  /// Run the next phase, in this thread. `host` is that of the owner's run, if this is the owner's thread.
  void run(Host* host);

  /// What a worker needs for the next phase (remote/sending.cpp).
  std::string message(remote::Publisher& publisher);
  /// A worker has run the phase: its reply is kept until `accept`. Returns how many activations there were.
  int64_t arrived(std::string reply);
  bool has_arrived() const { return !reply_.empty(); }
  /// Take counts and results from the reply; throws the Stop that it has instead of these.
  void accept(Run& owner);

  /// What is left to do in the owner's thread when all tasks have ended a phase.
  void hand_over(Run& owner);

  const int64_t order;  ///< among the tasks of its invocation
  RunStats stats;       ///< since the owner has asked for them; of a guest, since it has been accepted
  Use frames, bytes;
  int64_t sent = -1;  ///< its number on the link

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
    size_t number;                ///< of the owner's part
    int64_t from;                 ///< lane of it
    std::vector<int32_t> places;  ///< of their entries among those of the task: one for each lane, or for all
    std::vector<Entry*> below;
    std::vector<std::vector<Box>> boxes;  ///< results whose shapes only the run knows
  };

  void find_entries(Lanes& part);
  void lend_entries(Lanes& part);
  void lend_arguments(Lanes& part);
  void put_invocation(remote::Writer& to, remote::Publisher& publisher) const;
  void put_results(remote::Reader& from, Run& owner);
  void complete(std::vector<Label>& labels) const;

  SharedLanes& shared_;
  TaskHost host_;
  Invocation invocation_;
  std::deque<Lanes> parts_;
  std::deque<Entry> entries_;
  std::vector<Entry*> owners_;  ///< the original of each
  std::vector<Partial> partials_;
  std::optional<Run> run_;  ///< from the first phase to the last
  std::string reply_;
};

/// An invocation whose lanes are shared out.
class SharedLanes {
 public:
  SharedLanes(Run& run, Invocation& invocation)
      : owner(run),
        invocation(invocation),
        share(run.tables.pool.room(), run.tables.frames_room()),
        options(run.options) {
    options.threads = 1;
  }
  SharedLanes(const SharedLanes&) = delete;
  SharedLanes& operator=(const SharedLanes&) = delete;

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
    share.frames.give(owner.tables.frames_room() - share.frames.left());
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
  size_t first_part = 0;  ///< of whose lanes some are shared out: the results of those before it are there
  bool is_out = false;    ///< on workers, not on threads

  void make_rooms();

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

}  // namespace undertow
