// The lockstep schedule: waves of lanes go through the stages of their regions together.
//
// A fiber runs the program of one phase for one table. All fibers of a wave run until each of them waits for calls;
// then all calls into one group of functions, from whatever table and site, become one invocation. If that runs in
// lockstep too, its lanes are the next wave, chunk by chunk if they are many. The stack of waves is on the heap, since
// depth is up to the user.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "memory/table.h"
#include "run/clock.h"
#include "run/deferred.h"
#include "run/door.h"
#include "run/entries.h"
#include "run/operators.h"
#include "run/poll.h"
#include "undertow/run.h"
#include "undertow/size.h"

namespace undertow {

class Run;

namespace lockstep {

struct Fiber {
  enum class Kind : uint8_t { Root, Branch, Loop, Map };
  Kind kind;
  Table* table;
  const Program* program;
  int32_t phase;
  size_t stage = 0;
  int64_t pending = 0;      ///< items that it entered and that have not returned
  Fiber* parent = nullptr;  ///< waits for it
  const LoopItem* loop = nullptr;
  bool is_past = false;  ///< the straight run of its stage has been done, in a joint run
};

/// A call that a fiber waits for.
struct Request : TablePart {
  Fiber* fiber;
};

/// Lanes of a part.
struct Span {
  Part* part;
  int64_t from, count;
};

/// The lanes that a part has in one chunk.
struct Piece : Span {
  Table* child;
  int64_t at;    ///< first lane of the child
  int64_t step;  ///< from one lane to the next: the number of siblings, whose lanes are interleaved

  /// The lane of the part that calls a lane of the child; -1: not of this piece.
  int64_t caller_of(const Table* table, int64_t lane) const {
    const int64_t behind = lane - at;
    return table == child && behind >= 0 && behind < count * step && behind % step == 0 ? from + behind / step : -1;
  }
};

}  // namespace lockstep

/// Activations that run together, from their call until their last phase has ended.
struct Chunk {
  const Invocation* invocation;
  std::vector<Table*> roots;            ///< one for each function
  std::vector<lockstep::Piece> pieces;  ///< in the order of the roots
  int64_t lanes = 0;
  Chunk* before = nullptr;  ///< of the same invocation; the last one is its handle
};

namespace lockstep {

/// An active invocation: its progress, and the state of the chunk that runs.
struct Wave {
  Invocation* invocation = nullptr;
  Progress progress;
  Chunk* resumed = nullptr;  ///< in a later phase: the next to be resumed
  Chunk* chunk = nullptr;    ///< the one that is running
  std::vector<Fiber*> ready;
  std::vector<Request*> calls;
  std::vector<Invocation*> entered;  ///< to be entered
  std::vector<Invocation*> asked;    ///< to be resumed: all their lanes have asked for it
  size_t waiting = 0;                ///< parts that have asked for a phase and not returned
};

/// What waves need besides tables; kept for the next run.
struct WaveSpace {
  Store<Chunk> chunks;
  Store<Fiber> fibers;
  Store<Request> requests;
  Store<Invocation> invocations;
  std::deque<Wave> waves;
  std::vector<Span> spans;
  std::vector<int32_t> index[2];
  std::vector<Item> collects;

  bool is_small() const {
    return std::max({chunks.size(), fibers.size(), requests.size(), invocations.size(), waves.size()}) <
           Idle<WaveSpace>::kFew;
  }
};

class Lockstep final : public TableRunner {
 public:
  explicit Lockstep(Run& run);

  // waves.cpp: invocations become waves
  void enter(Invocation& invocation) override;
  void resume(Invocation& invocation) override;
  void step() override;

  /// Deferred steps that nothing in this run waits for: what the owner of this part of a run needs is complete then.
  void run_kept() {
    if (has_deferred(DeferredKind::Kept)) run_deferred(DeferredKind::Kept);
    if (has_deferred(DeferredKind::Ahead)) run_deferred(DeferredKind::Ahead);
  }

  // run.cpp: tags
  Place where(std::vector<Label>& labels) const override;
  Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const override;

  // calls.cpp: results of calls
  void back(Invocation& invocation) override;

 private:
  static int32_t visits_of(const Table& table, const std::vector<int32_t>& visits) {
    return visits[z(table.visits - 1)];
  }
  bool has_deferred(DeferredKind kind) const { return deferred_lanes_[z(kind)] > 0; }

  // run.cpp
  Place out(const Table* table, int64_t lane, std::vector<Label>& labels) const;
  void tell(const Table& table, int32_t phase);

  // waves.cpp
  Wave& top() { return space_.waves[deep_ - 1]; }
  Wave& push(Invocation& invocation);
  void run_chunk(Wave& wave);
  void give_away();
  void start_chunk(Wave& wave);
  void cut(Wave& wave, Chunk& chunk);
  int64_t width_now(const Invocation& invocation) const;
  static size_t siblings_in(std::span<const Span> spans);
  Table* make_root(Chunk& chunk, std::span<const Span> spans);
  void start_root(Wave& wave, Table& table);
  void resume_chunk(Wave& wave);
  void finish_chunk(Wave& wave);

  // calls.cpp: arguments and results of calls, and the entries that they make
  void call(Wave& wave, Fiber* self, const CallItem& item);
  void ask(Wave& wave, Fiber* self, const CallItem& item);
  void make_invocations(Wave& wave);
  void enter_next(Wave& wave);
  void resume_next(Wave& wave);
  void hand_over(Table& table, std::span<const Piece> pieces, int32_t phase);
  void hand_over(Table& table, int32_t slot, std::span<const Piece> pieces, size_t argument);
  void give_entries(Table& table, std::span<const Piece> pieces);
  void lend_entries(Request& request);
  void make_entries(Table& table, const CallItem& item);
  Entry* made_entry(const Table& table, int32_t call, int64_t lane) const override {
    std::vector<Entry>& entries = const_cast<Table&>(table).calls[z(call)].entries;
    return z(lane) < entries.size() ? &entries[z(lane)] : nullptr;
  }
  void inherit(Table& table, const Table& from, const int32_t* index);
  void deliver(const Piece& piece, int32_t phase);

  // fibers.cpp: running the stages of a program
  Fiber* fiber(Fiber::Kind kind, Table* table, int32_t phase, Fiber* parent);
  void come_back(Wave& wave, Fiber* waiter);
  void advance(Wave& wave, Fiber* self);
  void over(Wave& wave, Fiber* self);
  using TableRunner::straight;
  void straight(Table& table, std::span<const Item> items);
  void enter(Wave& wave, Fiber* self, const Item& item);
  void complete(const Fiber& self);

  // deferred.cpp: deferred steps
  bool defer(Fiber* self, const Stage& stage);
  void run_deferred(DeferredKind kind);
  void run_together(const Deferral& deferral, DeferredRows& waiting);

  // branches.cpp: dividing lanes, and merging their results
  void enter_branch(Wave& wave, Fiber* self, const BranchItem& item);
  void divide(Table& table, const BranchItem& item, Sides& sides);
  void leave_branch(Table& table, const BranchItem& item);

  // loops.cpp: iterations
  void enter_loop(Wave& wave, Fiber* self, const LoopItem& item);
  bool go_round(Wave& wave, Fiber* self);

  // maps.cpp: elements of arrays as lanes, and results of lanes as arrays
  void enter_map(Wave& wave, Fiber* self, const MapItem& item);
  void spread(Table& table, Table& inner, const MapItem& item, const Transfer& transfer);
  void leave_map(Table& table, const MapItem& item);

  const Table* at_ = nullptr;  ///< the table that runs, for tags; null: lanes are being called
  Place calling_;              ///< the first of these lanes
  WaveSpace& space_;
  size_t deep_ = 0;                    ///< waves on the stack
  std::vector<DeferredRows> waiting_;  ///< by deferral of the plan
  int64_t deferred_lanes_[4] = {};     ///< waiting lanes, by kind
  bool is_full_ = false;               ///< are there too many held rows to wait for more?
  const Table* joint_ = nullptr;       ///< rows of several tables, while they run together
  const DeferredRows::Part* joint_parts_ = nullptr;
  int64_t base_frames_ = 0, base_bytes_ = 0;  ///< that were there when main called
};

}  // namespace lockstep
}  // namespace undertow
