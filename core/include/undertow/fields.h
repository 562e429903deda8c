// clang-format off
// Generated from src/undertow/plan/plan.py by `python -m undertow.engines.waves.header`: do not edit.
//
// The records of a plan. Fields are in the order in which they are encoded; `each_field` visits them in that order.
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

/// A slot of the item's region or, if negative, constant number ~operand.
using Operand = int32_t;

constexpr int64_t kFieldsHash = 3560342416;  // of all records, fields and enums below
constexpr int64_t kSmall = 64;  // bytes up to which a value shares the memory of its table

enum class RegionKind : uint8_t { Main, Function, Loop, Map, Branch };
constexpr int64_t count_of(RegionKind) { return 5; }

enum class SlotKind : uint8_t { Value, EntryHandle, RunHandle, Order };
constexpr int64_t count_of(SlotKind) { return 4; }

constexpr int64_t count_of(Home) { return 2; }

enum class DeferredKind : uint8_t { None, Held, Kept, Ahead };
constexpr int64_t count_of(DeferredKind) { return 4; }

enum class CollectKind : uint8_t { Whole, Rows, Product };
constexpr int64_t count_of(CollectKind) { return 3; }

enum class InstructionKind : uint8_t { Each, Fold, Pick, Place };
constexpr int64_t count_of(InstructionKind) { return 4; }

enum class Schedule : uint8_t { Lockstep, Agenda };
constexpr int64_t count_of(Schedule) { return 2; }

/// An item of a plan.
struct Item {
  enum class Kind : uint8_t { Op, Branch, Call, Loop, Map, Read, Collect, Collected, Fused, Send, Recv, Replica };
  Kind kind;
  int32_t number;  ///< in the table of its kind
};

constexpr int64_t count_of(Item::Kind) { return 12; }

/// A value passed into a region.
struct Transfer {
  Operand from{};  ///< in the outer region
  int32_t to{};  ///< in the region entered
};
void each_field(auto&& see, Transfer& x) { see(x.from); see(x.to); }

/// A value returned from a region.
struct Exit {
  Operand from{};  ///< in the region entered
  int32_t to{};  ///< in the outer region
};
void each_field(auto&& see, Exit& x) { see(x.from); see(x.to); }

/// A value returned from either side of a branch.
struct Merge {
  int32_t to{};
  std::array<Operand, 2> sides{};
};
void each_field(auto&& see, Merge& x) { see(x.to); see(x.sides); }

/// A register that a fused pass reads: consecutive elements of an operand.
struct FusedInput {
  Operand from{};
  int32_t offset{};  ///< of the first element
  int32_t count{};  ///< of elements
};
void each_field(auto&& see, FusedInput& x) { see(x.from); see(x.offset); see(x.count); }

/// One step of a fused pass. Registers are numbered: first the inputs, then the result of each instruction.
struct Instruction {
  InstructionKind kind{};
  int32_t kernel{};  ///< the operator on elements, or the one that folds a row
  int32_t to{};  ///< the result that it computes, of one of the fused operators
  std::vector<int32_t> inputs{};  ///< registers
};
void each_field(auto&& see, Instruction& x) { see(x.kind); see(x.kernel); see(x.to); see(x.inputs); }

/// A register that a fused pass stores.
struct FusedOutput {
  int32_t to{};
  int32_t offset{};  ///< of the first element
  int32_t from{};  ///< register
};
void each_field(auto&& see, FusedOutput& x) { see(x.to); see(x.offset); see(x.from); }

/// One operator on all lanes.
struct OpFields {
  int32_t node{};
  int32_t kernel{};
  std::vector<Operand> inputs{};
  std::vector<int32_t> outputs{};
  std::vector<int32_t> last{};  ///< indices of inputs that nobody reads after it: it may overwrite one that it alone holds
};
void each_field(auto&& see, OpFields& x) { see(x.node); see(x.kernel); see(x.inputs); see(x.outputs); see(x.last); }

/// One visit to the two sides of a branch.
struct BranchFields {
  int32_t branch{};  ///< number among the branches of its region
  int32_t pred{};
  int32_t visit{};  ///< the first divides the lanes, later ones keep that division; also the program of each side
  bool is_last{};  ///< of this phase
  std::array<int32_t, 2> regions{};  ///< where the predicate is true, where it is false
  std::array<std::vector<Transfer>, 2> transfers{};
  std::vector<Merge> merges{};
  std::vector<int32_t> drops{};
};
void each_field(auto&& see, BranchFields& x) { see(x.branch); see(x.pred); see(x.visit); see(x.is_last); see(x.regions); see(x.transfers); see(x.merges); see(x.drops); }

/// A call, or in later phases a resume.
struct CallFields {
  int32_t site{};  ///< the label that it pushes
  int32_t call{};  ///< number among the calls of its region
  int32_t phase{};
  std::vector<int32_t> callees{};  ///< if there are several, `selector` says which one a lane calls
  Operand selector{};
  int32_t resume_group{};  ///< equal for calls whose later phases are requested at the same points: they may share chunks
  std::vector<Operand> arguments{};
  std::vector<Operand> hoists{};  ///< given to the entry that it makes, if it makes one
  std::vector<int32_t> results{};
  std::vector<int32_t> visits{};  ///< of the callee, by the visits - 1 of the caller; first phase only
  int32_t family{};  ///< the site of the first of its sibling calls, whose lanes are interleaved
  int32_t sibling{};  ///< its place among them
  int32_t siblings{};  ///< how many there are
  std::vector<int32_t> drops{};  ///< slots that are not read again once the callee has them
};
void each_field(auto&& see, CallFields& x) { see(x.site); see(x.call); see(x.phase); see(x.callees); see(x.selector); see(x.resume_group); see(x.arguments); see(x.hoists); see(x.results); see(x.visits); see(x.family); see(x.sibling); see(x.siblings); see(x.drops); }

/// A loop: each lane iterates until its predicate is false.
struct LoopFields {
  int32_t site{};
  int32_t loop{};  ///< number among the loops of its region
  int32_t body{};
  int32_t branch{};  ///< the branch of the body that decides whether a lane continues
  std::vector<Transfer> variables{};
  std::vector<Transfer> outers{};
  std::vector<Operand> next{};  ///< of each variable, in the side of that branch where the loop continues
  std::vector<Exit> exits{};
  std::vector<int32_t> drops{};  ///< slots that are not read again once the body has them
};
void each_field(auto&& see, LoopFields& x) { see(x.site); see(x.loop); see(x.body); see(x.branch); see(x.variables); see(x.outers); see(x.next); see(x.exits); see(x.drops); }

/// A map: each element of its arrays is a lane.
struct MapFields {
  int32_t site{};
  int32_t map{};  ///< number among the maps of its region
  int32_t phase{};
  int32_t body{};
  Operand counted{};  ///< an array whose leading dimension is the number of lanes; first phase only
  std::vector<Transfer> mapped{};
  std::vector<Transfer> outers{};
  std::vector<Exit> results{};
  std::vector<int32_t> visits{};
};
void each_field(auto&& see, MapFields& x) { see(x.site); see(x.map); see(x.phase); see(x.body); see(x.counted); see(x.mapped); see(x.outers); see(x.results); see(x.visits); }

/// Reads an argument of the entry, or a value that main shares.
struct ReadFields {
  int32_t to{};
  int32_t index{};  ///< of the entry's argument, or slot of main
  bool is_shared{};  ///< by main
};
void each_field(auto&& see, ReadFields& x) { see(x.to); see(x.index); see(x.is_shared); }

/// Adds a value of each lane to a sum that its entry keeps.
struct CollectFields {
  int32_t node{};
  int32_t index{};  ///< of the entry's argument
  CollectKind kind{};  ///< a whole value; rows with their indices; or a product x.T @ g, computed for all lanes at once
  std::vector<Operand> values{};
};
void each_field(auto&& see, CollectFields& x) { see(x.node); see(x.index); see(x.kind); see(x.values); }

/// The sum that was collected below the entry that a call made.
struct CollectedFields {
  int32_t call{};  ///< number among the calls of its region
  int32_t index{};
  Operand like{};
  std::vector<int32_t> to{};  ///< the sum; or indices of rows, and rows
};
void each_field(auto&& see, CollectedFields& x) { see(x.call); see(x.index); see(x.like); see(x.to); }

/// Operators that run together, in one pass over their lanes.
struct FusedFields {
  std::vector<OpFields> ops{};  ///< the fused operators, in order: they run one by one where each result is inspected
  int32_t width{};  ///< elements of a row
  std::vector<FusedInput> inputs{};
  std::vector<Instruction> instructions{};
  std::vector<FusedOutput> outputs{};
};
void each_field(auto&& see, FusedFields& x) { see(x.ops); see(x.width); see(x.inputs); see(x.instructions); see(x.outputs); }

/// Sends a value of each lane, under its tag, to another part of a placed graph.
struct SendFields {
  int32_t edge{};
  int32_t part{};  ///< that it goes to
  Operand from{};  ///< NO_SLOT: an order token
};
void each_field(auto&& see, SendFields& x) { see(x.edge); see(x.part); see(x.from); }

/// Waits for what another part sends under the tag of each lane.
struct RecvFields {
  int32_t edge{};
  int32_t part{};  ///< that it comes from
  int32_t to{};
};
void each_field(auto&& see, RecvFields& x) { see(x.edge); see(x.part); see(x.to); }

/// Chooses a number by the tag of each lane.
struct ReplicaFields {
  int32_t to{};
  int32_t count{};  ///< of numbers, from 0 on
  int32_t salt{};  ///< with another one, another choice
};
void each_field(auto&& see, ReplicaFields& x) { see(x.to); see(x.count); see(x.salt); }

/// A place for one value of each lane.
struct SlotFields : ValueType {
  SlotKind kind{};  ///< or a handle into a table that grows, alive as long as an entry or the run
  Home home{};  ///< a value that feeds no predicate, index or shape may live with the lanes, on a device
  bool is_shared{};  ///< one value for all lanes of a table, in every wave below an entry
  bool is_passed{};  ///< only calls read it: its rows need not be contiguous
};
void each_field(auto&& see, SlotFields& x) { see(static_cast<ValueType&>(x)); see(x.kind); see(x.home); see(x.is_shared); see(x.is_passed); }

/// Bodies that are mutually recursive, and how they run.
struct GroupFields {
  Schedule schedule{};
  bool is_narrow{};  ///< numbers only, one call at a time: where lanes are few, each runs alone
  int32_t grain{};  ///< lanes of a task, at least: so many are worth a thread of their own; 0: one thread runs all
  bool is_scalar{};  ///< all values are scalars: waves may be cut anywhere
  bool is_free{};  ///< no lane's bits depend on lanes beside it: lanes may be cut anywhere, and given away later
};
void each_field(auto&& see, GroupFields& x) { see(x.schedule); see(x.is_narrow); see(x.grain); see(x.is_scalar); see(x.is_free); }

/// A straight run of operators, then what is entered together.
struct StageFields {
  std::vector<Item> straight{};
  std::vector<Item> deferred{};  ///< the end of the straight run, which may wait for that of other tables
  std::vector<int32_t> ahead{};  ///< which of these, counted singly, belong to the next phase and run only if it comes
  DeferredKind deferred_kind{};
  int32_t wide{};  ///< a table with at least so many lanes does not wait
  std::vector<int32_t> drops{};  ///< slots that are not read after the straight run
  std::vector<Item> entered{};
};
void each_field(auto&& see, StageFields& x) { see(x.straight); see(x.deferred); see(x.ahead); see(x.deferred_kind); see(x.wide); see(x.drops); see(x.entered); }

/// What a region does in one phase or, if it is a branch, in one visit.
struct ProgramFields {
  int32_t phase{};  ///< of the body
  std::vector<Stage> stages{};
};
void each_field(auto&& see, ProgramFields& x) { see(x.phase); see(x.stages); }

/// A body, or a side of a branch.
struct RegionFields {
  RegionKind kind{};
  int32_t body{};  ///< that it belongs to
  int32_t group{};  ///< of bodies that are recursive together
  int32_t hoisted{};  ///< number of values of its entry that it, or what it enters, needs
  std::vector<Slot> slots{};
  std::vector<Program> programs{};
  std::vector<std::vector<int32_t>> params{};  ///< by phase; bodies only
  std::vector<std::vector<int32_t>> results{};
};
void each_field(auto&& see, RegionFields& x) { see(x.kind); see(x.body); see(x.group); see(x.hoisted); see(x.slots); see(x.programs); see(x.params); see(x.results); }

}  // namespace undertow
