// The plan: a static graph, ready to run. Immutable once decoded; shared by all runs.
//
// A body (main, function, loop, map) has regions: itself and its branches. A region has slots, one for each value that
// lives in it, and programs: one for each phase, and in a branch one for each visit in a phase. A program has stages,
// each a straight run of operators and then what is entered together (branches, calls, loops, maps). A stage begins
// when all that the stage before it entered has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/attrs.h"
#include "undertow/fields.h"
#include "undertow/fused.h"
#include "undertow/kernel.h"
#include "undertow/memory.h"
#include "undertow/size.h"

namespace undertow {

/// A place for one value of each lane.
struct Slot : SlotFields {
  int64_t offset = -1;    ///< of its column in the table's block, in bytes per lane; -1: the column has its own block
  int32_t place = 0;      ///< its number among the columns of that block
  bool is_inner = false;  ///< lives only inside a fused pass: it has no column, unless its operators run one by one
  int32_t uses = 0;       ///< number of reads, in all phases

  Home column_home() const { return is_dynamic ? Home::Host : home; }  ///< boxes themselves are in host memory
  /// Are its values in memory that the host must not touch?
  bool is_away() const { return home == Home::Lanes && memory_is_guarded; }
};

/// A constant: a column of one value.
struct Constant {
  Slot slot;
  std::unique_ptr<std::byte[]> memory;
  std::byte* data;  ///< aligned and padded
};

/// May a value of one type go to a slot of another? An unknown dimension of the slot accepts any.
inline bool is_fitting(const ValueType& to, const ValueType& from) {
  bool fits = to.dtype == from.dtype && to.rank() == from.rank();
  for (size_t axis = 0; fits && axis < to.shape.size(); ++axis)
    fits = to.shape[axis] == kUnknown || to.shape[axis] == from.shape[axis];
  return fits;
}

constexpr int32_t kNoSlot = INT32_MIN;  // an unused output, or an order token

// Items: their fields in the plan, and what is derived from them.

struct OpItem : OpFields {  // kernel -1: the host runs it
  bool is_effect = false;   ///< it has side effects: the host runs it, lane by lane
  bool is_check = false;    ///< it is an assert or a raise: nothing is to be done where its first operand is true
  bool is_open = false;     ///< shapes of its operands or results are known only when it runs
  uint64_t shared = 0;      ///< bit k: operand k is the same in all waves below an entry
  bool is_same = false;     ///< all operands are, so the result is too
  bool may_change = false;  ///< it may write into its first operand, if nobody else holds that
};

struct BranchItem : BranchFields {
  bool decides = false;  ///< whether lanes of a loop go on
  bool is_first() const { return visit == 0; }
};

struct CallItem : CallFields {
  int32_t body = 0;  ///< region entered
  int32_t group = 0;
  bool makes_entry = false;
};

struct LoopItem : LoopFields {
  using Exit = undertow::Exit;
};

struct MapItem : MapFields {};
struct ReadItem : ReadFields {};
struct CollectItem : CollectFields {};      // values: always two; a whole value is there twice
struct CollectedItem : CollectedFields {};  // to: always two; the second is kNoSlot if it is a whole value

struct SendItem : SendFields {};
struct RecvItem : RecvFields {};
struct ReplicaItem : ReplicaFields {};

/// Operators of one stage that run together, in one pass over their lanes.
struct FusedItem {
  struct Input {
    Operand from;
    int64_t offset;  ///< bytes from the start of the value
  };
  struct Output {
    int32_t to;
    int64_t offset;    ///< bytes
    bool is_first;     ///< is it the first output that goes to this slot?
    uint64_t depends;  ///< bit k: the slot's value depends on input k
  };
  std::vector<int32_t> ops;       ///< the operators, in order
  std::vector<uint64_t> depends;  ///< by operator: bit k if its result depends on input k
  std::vector<int32_t> results;   ///< by operator: the register that holds its whole result; -1: none
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  Fused program;
  int64_t bytes;  ///< read and written for each lane
};

constexpr size_t z(DeferredKind kind) { return static_cast<size_t>(kind); }

struct Stage : StageFields {
  std::vector<Item> run;  ///< the straight run, deferred items at its end
  std::vector<Item> now;  ///< the operators of the deferred items that belong to this phase, one by one
  int32_t deferral = -1;  ///< number in Plan::deferrals, if some of the straight run may be deferred
};

/// Operators that may be deferred, until those of many tables run as one. See deferred.h.
struct Deferral {
  int32_t region;
  std::vector<Item> items;
  std::vector<int32_t> takes;  ///< slots that they read from outside
  std::vector<int32_t> gives;  ///< slots that they write and other items read
  int32_t order = -1;          ///< one of `takes` that an earlier joint run wrote: in its order, rows are contiguous
  DeferredKind kind;
  int64_t bytes = 0;  ///< that they write for each lane
  int64_t wide = 0;   ///< tables with at least this many lanes do not wait

  bool is_held() const { return kind == DeferredKind::Held; }
};

struct Program : ProgramFields {};  // phase -1: it never runs

struct Region : RegionFields {
  using Kind = RegionKind;
  std::vector<int32_t> boxed;                            ///< slots that are dynamic
  int64_t row = 0;                                       ///< bytes per lane of the slots that share a block
  int32_t small = 0;                                     ///< how many these are
  bool has_arrays = false;                               ///< are there slots with a block of their own?
  int32_t branches = 0, calls = 0, loops = 0, maps = 0;  ///< how many of each it has
};

struct NarrowProgram;
namespace agenda {
struct Outline;
}
namespace remote {
struct Outline;
}

/// What a lane takes that enters a group, in nanoseconds: here, and if lanes are sent to workers. 0: nobody knows.
struct LaneCost {
  std::atomic<int64_t> here = 0, away = 0;
  std::atomic<int64_t> away_lanes = 0;  ///< so many were sent the last time
  std::atomic<int64_t> times = 0, times_away = 0;
};

class Plan {
 public:
  /// Decode; throws std::invalid_argument if the plan is not valid.
  Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> constant_values);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Slot& slot(const Region& region, Operand x) const {
    return x < 0 ? constants[static_cast<size_t>(~x)].slot : region.slots[static_cast<size_t>(x)];
  }

  std::vector<Region> regions;  // the first is main
  std::vector<Constant> constants;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::string> kernel_ops;  // their names
  std::vector<OpItem> ops;
  std::vector<BranchItem> branches;
  std::vector<CallItem> calls;
  std::vector<LoopItem> loops;
  std::vector<MapItem> maps;
  std::vector<ReadItem> reads;
  std::vector<CollectItem> collects;
  std::vector<CollectedItem> collecteds;
  std::vector<FusedItem> fuseds;
  std::vector<SendItem> sends;
  std::vector<RecvItem> recvs;
  std::vector<ReplicaItem> replicas;
  std::vector<Deferral> deferrals;
  CallItem start;  // how main is entered
  std::vector<GroupFields> groups;
  std::vector<int64_t> lane_bytes;                 // by group: bytes of one more lane, as far as the plan knows
  std::unique_ptr<const NarrowProgram> narrow;     // code of narrow groups; see narrow/program.h
  std::unique_ptr<const agenda::Outline> outline;  // frames and stages; see agenda/outline.h
  std::unique_ptr<const remote::Outline> remote;   // what workers need to run calls; see remote/outline.h
  ~Plan();
  int32_t nodes = 0;  // of the static graph
  /// Of a placed graph: does it have edges to other parts, or make choices by tags?
  bool is_part() const { return !sends.empty() || !recvs.empty() || !replicas.empty(); }
  mutable std::atomic<int64_t> calls_before = 0;  // made by the last run
  mutable std::vector<LaneCost> lane_costs;       // by group
};

}  // namespace undertow
