// clang-format off
// Generated from src/undertow/plan/plan.py by `python -m undertow.engines.waves.header`: do not edit.
//
// The records of a plan, with their fields in the order in which they stand in its rows; `each_field` hands them to a
// reader in that order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "undertow/memory.h"
#include "undertow/value_type.h"

namespace undertow {

struct Slot;
struct Program;
struct Stage;

/// A slot of the region at hand, or, below zero, constant number ~operand.
using Operand = int32_t;

constexpr int64_t kSmall = 64;  // bytes of a value that shares the memory of its table

enum class RegionKind : uint8_t { Main, Function, Loop, Map, Branch };
constexpr int64_t count_of(RegionKind) { return 5; }

enum class SlotKind : uint8_t { Value, EntryHandle, RunHandle, Order };
constexpr int64_t count_of(SlotKind) { return 4; }

constexpr int64_t count_of(Home) { return 2; }

enum class LateKind : uint8_t { None, Held, Kept, Ahead };
constexpr int64_t count_of(LateKind) { return 4; }

enum class CollectKind : uint8_t { Whole, Rows, Product };
constexpr int64_t count_of(CollectKind) { return 3; }

enum class InstructionKind : uint8_t { Each, Fold, Pick, Place };
constexpr int64_t count_of(InstructionKind) { return 4; }

enum class Schedule : uint8_t { Lockstep, Agenda };
constexpr int64_t count_of(Schedule) { return 2; }

/// An item of a plan.
struct Item {
  enum class Kind : uint8_t { Op, Branch, Call, Loop, Map, Read, Collect, Collected, Fused };
  Kind kind;
  int32_t number;  ///< in the table of its kind
};

constexpr int64_t count_of(Item::Kind) { return 9; }

/// A value that goes into a region that is entered.
struct Transfer {
  Operand from{};  ///< in the region outside
  int32_t to{};  ///< inside
};

template <class See>
void each_field(See&& see, Transfer& of) {
  see(of.from);
  see(of.to);
}

/// A value that comes out of a region that was entered.
struct Exit {
  Operand from{};  ///< inside
  int32_t to{};  ///< in the region outside
};

template <class See>
void each_field(See&& see, Exit& of) {
  see(of.from);
  see(of.to);
}

/// A value that comes out of either side of a branch.
struct Merge {
  int32_t to{};
  std::array<Operand, 2> sides{};
};

template <class See>
void each_field(See&& see, Merge& of) {
  see(of.to);
  see(of.sides);
}

/// A register that a fused pass reads: some elements of an operand, as they stand there.
struct FusedInput {
  Operand from{};
  int32_t offset{};  ///< elements that come before
  int32_t count{};  ///< elements
};

template <class See>
void each_field(See&& see, FusedInput& of) {
  see(of.from);
  see(of.offset);
  see(of.count);
}

/// One step of a fused pass. Registers are numbered: first the inputs, then the result of each instruction.
struct Instruction {
  InstructionKind kind{};
  int32_t kernel{};  ///< the operator on each element, or the one that adds up
  int32_t to{};  ///< what it computes: the result of an operator that the pass stands for
  std::vector<int32_t> inputs{};  ///< registers
};

template <class See>
void each_field(See&& see, Instruction& of) {
  see(of.kind);
  see(of.kernel);
  see(of.to);
  see(of.inputs);
}

/// A register that a fused pass writes.
struct FusedOutput {
  int32_t to{};
  int32_t offset{};  ///< elements that come before
  int32_t from{};  ///< register
};

template <class See>
void each_field(See&& see, FusedOutput& of) {
  see(of.to);
  see(of.offset);
  see(of.from);
}

/// One operator, over all lanes.
struct OpFields {
  int32_t node{};
  int32_t kernel{};
  std::vector<Operand> inputs{};
  std::vector<int32_t> outputs{};
  std::vector<int32_t> last{};  ///< inputs that are arrays with one owner, and read for the last time here
};

template <class See>
void each_field(See&& see, OpFields& of) {
  see(of.node);
  see(of.kernel);
  see(of.inputs);
  see(of.outputs);
  see(of.last);
}

/// One visit to the two sides of a branch.
struct BranchFields {
  int32_t branch{};  ///< number among the branches of its region
  int32_t pred{};
  int32_t visit{};  ///< lanes are divided in the first; later ones find them as they were. Also the program of each side
  bool is_last{};  ///< of this phase
  std::array<int32_t, 2> regions{};  ///< where the predicate is true, and where it is not
  std::array<std::vector<Transfer>, 2> transfers{};
  std::vector<Merge> merges{};
  std::vector<int32_t> drops{};  ///< slots that nobody reads when the sides have them
};

template <class See>
void each_field(See&& see, BranchFields& of) {
  see(of.branch);
  see(of.pred);
  see(of.visit);
  see(of.is_last);
  see(of.regions);
  see(of.transfers);
  see(of.merges);
  see(of.drops);
}

/// A call, or in later phases a resume.
struct CallFields {
  int32_t site{};  ///< label
  int32_t call{};  ///< number among the calls of its region
  int32_t phase{};
  std::vector<int32_t> callees{};  ///< one; of several, `selector` says which a lane calls
  Operand selector{};
  int32_t asks{};  ///< equal for calls that ask for later phases at the same points: their lanes may share chunks
  std::vector<Operand> arguments{};
  std::vector<Operand> hoists{};  ///< given to the entry that it makes, if any
  std::vector<int32_t> results{};
  std::vector<int32_t> visits{};  ///< of the callee, by the visits - 1 of the caller; first phase only
  int32_t family{};  ///< the site of the first of some sibling calls, whose lanes stand between each other
  int32_t sibling{};  ///< its place among these
  int32_t siblings{};  ///< how many there are
  std::vector<int32_t> drops{};  ///< slots that nobody reads when the callee has them
};

template <class See>
void each_field(See&& see, CallFields& of) {
  see(of.site);
  see(of.call);
  see(of.phase);
  see(of.callees);
  see(of.selector);
  see(of.asks);
  see(of.arguments);
  see(of.hoists);
  see(of.results);
  see(of.visits);
  see(of.family);
  see(of.sibling);
  see(of.siblings);
  see(of.drops);
}

/// A loop: lanes go round until they leave.
struct LoopFields {
  int32_t site{};
  int32_t loop{};  ///< number among the loops of its region
  int32_t body{};
  int32_t branch{};  ///< of the loop's body: going on or leaving
  std::vector<Transfer> variables{};
  std::vector<Transfer> outers{};
  std::vector<Operand> next{};  ///< of each variable, in the branch where the loop goes on
  std::vector<Exit> exits{};
};

template <class See>
void each_field(See&& see, LoopFields& of) {
  see(of.site);
  see(of.loop);
  see(of.body);
  see(of.branch);
  see(of.variables);
  see(of.outers);
  see(of.next);
  see(of.exits);
}

/// A map: the elements of arrays are lanes.
struct MapFields {
  int32_t site{};
  int32_t map{};  ///< number among the maps of its region
  int32_t phase{};
  int32_t body{};
  Operand counted{};  ///< its leading length is the number of lanes; first phase only
  std::vector<Transfer> mapped{};
  std::vector<Transfer> outers{};
  std::vector<Exit> results{};
  std::vector<int32_t> visits{};
};

template <class See>
void each_field(See&& see, MapFields& of) {
  see(of.site);
  see(of.map);
  see(of.phase);
  see(of.body);
  see(of.counted);
  see(of.mapped);
  see(of.outers);
  see(of.results);
  see(of.visits);
}

/// Reads what the entry was given, or what main shares.
struct ReadFields {
  int32_t to{};
  int32_t index{};  ///< of what the entry was given, or slot of main
  bool is_shared{};  ///< by main
};

template <class See>
void each_field(See&& see, ReadFields& of) {
  see(of.to);
  see(of.index);
  see(of.is_shared);
}

/// Adds a value of each lane to a sum that its entry keeps.
struct CollectFields {
  int32_t node{};
  int32_t index{};  ///< of what the entry was given
  CollectKind kind{};  ///< the value; rows with their numbers; or transposed x times g, which is not made lane by lane
  std::vector<Operand> values{};
};

template <class See>
void each_field(See&& see, CollectFields& of) {
  see(of.node);
  see(of.index);
  see(of.kind);
  see(of.values);
}

/// What was collected below the entry that a call made.
struct CollectedFields {
  int32_t call{};  ///< number among the calls of its region
  int32_t index{};
  Operand like{};
  std::vector<int32_t> to{};  ///< the sum; or numbers of rows, and rows
};

template <class See>
void each_field(See&& see, CollectedFields& of) {
  see(of.call);
  see(of.index);
  see(of.like);
  see(of.to);
}

/// Operators that run together, in one pass over their lanes.
struct FusedFields {
  std::vector<OpFields> ops{};  ///< all that it stands for, in order: these run where the result of each is looked at
  int32_t width{};  ///< elements of a row
  std::vector<FusedInput> inputs{};
  std::vector<Instruction> instructions{};
  std::vector<FusedOutput> outputs{};
};

template <class See>
void each_field(See&& see, FusedFields& of) {
  see(of.ops);
  see(of.width);
  see(of.inputs);
  see(of.instructions);
  see(of.outputs);
}

/// A place for one value of each lane.
struct SlotFields : ValueType {
  SlotKind kind{};  ///< or a handle into a table that grows, alive as long as an entry or the run
  Home home{};  ///< what feeds no predicate, index or shape may live with the lanes, on a device
  bool is_shared{};  ///< one value for all lanes of a table, in every wave below an entry
  bool is_passed{};  ///< only calls read it: its rows may stand apart
};

template <class See>
void each_field(See&& see, SlotFields& of) {
  see(static_cast<ValueType&>(of));
  see(of.kind);
  see(of.home);
  see(of.is_shared);
  see(of.is_passed);
}

/// Bodies that are recursive together, and how they run.
struct GroupFields {
  Schedule schedule{};
  bool is_narrow{};  ///< of numbers, one call at a time: where lanes are few, each goes its way alone
  bool is_parallel{};  ///< several threads may run parts of a wave
  bool is_scalar{};  ///< numbers only: waves may be cut anywhere
};

template <class See>
void each_field(See&& see, GroupFields& of) {
  see(of.schedule);
  see(of.is_narrow);
  see(of.is_parallel);
  see(of.is_scalar);
}

/// A straight run of operators, then what is entered together.
struct StageFields {
  std::vector<Item> straight{};
  std::vector<Item> late{};  ///< the end of the straight run, which may wait for those of other tables
  std::vector<int32_t> ahead{};  ///< of these, one by one, what belongs to the next phase, and runs only if that comes
  LateKind late_kind{};
  int32_t wide{};  ///< a table with so many lanes does not wait
  std::vector<int32_t> drops{};  ///< slots that nobody reads behind the straight run
  std::vector<Item> entered{};
};

template <class See>
void each_field(See&& see, StageFields& of) {
  see(of.straight);
  see(of.late);
  see(of.ahead);
  see(of.late_kind);
  see(of.wide);
  see(of.drops);
  see(of.entered);
}

/// What happens in a region in one phase; in a branch, in one visit.
struct ProgramFields {
  int32_t phase{};  ///< of the body
  std::vector<Stage> stages{};
};

template <class See>
void each_field(See&& see, ProgramFields& of) {
  see(of.phase);
  see(of.stages);
}

/// A body, or a side of a branch.
struct RegionFields {
  RegionKind kind{};
  int32_t body{};  ///< that it belongs to
  int32_t group{};  ///< of bodies that are recursive together
  int32_t hoisted{};  ///< values of its entry that it, or what it enters, needs
  std::vector<Slot> slots{};
  std::vector<Program> phases{};
  std::vector<std::vector<int32_t>> params{};  ///< by phase; of bodies only
  std::vector<std::vector<int32_t>> results{};
};

template <class See>
void each_field(See&& see, RegionFields& of) {
  see(of.kind);
  see(of.body);
  see(of.group);
  see(of.hoisted);
  see(of.slots);
  see(of.phases);
  see(of.params);
  see(of.results);
}

}  // namespace undertow
