// The plan: a static graph as rows of integers, ready to run. Immutable once it is decoded; shared by all runs.
//
// A body (main, function, loop, map) has regions: itself and its branches. A region has slots, one for each value that
// lives in it, and programs: one for each phase, and in a branch one for each visit in a phase. A program has stages,
// each a straight run of operators and then what is entered together (branches, calls, loops, maps). A stage begins
// when all that the stage before it entered has come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/attrs.h"
#include "undertow/fused.h"
#include "undertow/kernel.h"
#include "undertow/memory.h"
#include "undertow/size.h"

namespace undertow {

constexpr int64_t kUnknown = -1;  // a length that only the run knows

/// A place for one value of each lane.
struct Slot {
  DType dtype;
  std::vector<int64_t> shape;
  bool is_dynamic;         ///< some length is known only at run time: the column holds boxes
  int64_t count;           ///< elements, if not dynamic
  int64_t bytes;           ///< of one lane: of its elements, or of its box
  int64_t offset;          ///< of its column in the block of a table, in bytes per lane; -1: a block of its own
  int32_t place = 0;       ///< its number among the columns of that block
  bool is_inner = false;   ///< made and used up in one pass: it has no column, unless operators run one by one
  int32_t uses = 0;        ///< how often it is read, in all phases
  bool is_passed = false;  ///< only by calls, which copy it or take it as it is
  Home home = Home::Host;  ///< of its values; boxes themselves are the host's

  int rank() const { return static_cast<int>(shape.size()); }
  Home column_home() const { return is_dynamic ? Home::Host : home; }
  /// Are its values where the host cannot touch them?
  bool is_away() const { return home == Home::Lanes && memory_is_guarded; }
};

/// A constant: a column of one value.
struct Constant {
  Slot slot;
  std::unique_ptr<std::byte[]> memory;
  std::byte* data;  ///< aligned and padded
};

/// A slot of the region at hand, or, below zero, constant number ~index.
using Operand = int32_t;
constexpr int32_t kNoSlot = INT32_MIN;  // an output that nobody uses, or an order token

struct OpItem {
  int32_t node;
  int32_t kernel;  ///< number in Plan::kernels, or -1: the host runs it
  bool is_effect;  ///< the host runs it, lane by lane
  bool is_open;    ///< the shapes of its operands or results are known only while it runs
  std::vector<Operand> inputs;
  std::vector<int32_t> outputs;
  uint64_t shared = 0;   ///< bit k: all waves below an entry see the same operand k
  bool is_same = false;  ///< of all operands that holds, so the result is the same too
};

struct Transfer {
  Operand from;  ///< in the region outside
  int32_t to;    ///< slot inside
};

struct MergeRow {
  int32_t to;
  Operand sides[2];
};

/// One visit to the two sides of a branch.
struct BranchItem {
  int32_t branch;  ///< number among the branches of its region
  int32_t pred;    ///< slot
  bool is_first;   ///< lanes are divided now; else they were in an earlier visit
  bool is_last;    ///< of this phase
  int32_t regions[2];
  int32_t programs[2];  ///< which program of each side runs now
  std::vector<Transfer> transfers[2];
  std::vector<MergeRow> merges;
  std::vector<int32_t> drops;  ///< slots that nobody reads when the sides have them; see lifetimes.h
};

struct CallItem {
  int32_t site;   ///< label
  int32_t call;   ///< number among the calls of its region
  int32_t phase;  ///< 0: a call, else a resume
  int32_t body;   ///< region entered
  int32_t group;  ///< of bodies that are recursive together
  std::vector<Operand> arguments;
  std::vector<Operand> hoists;  ///< given to the entry that it makes
  bool makes_entry;
  int32_t asks;  ///< equal for calls that ask for later phases at the same points: their lanes may share chunks
  std::vector<int32_t> results;  ///< slots
  std::vector<int32_t> visits;   ///< of the callee, by the visits - 1 of the caller; phase 0 only
  int32_t family = -1;           ///< of calls whose lanes stand between each other; see siblings.h
  int32_t sibling = 0;           ///< its place in the family
  int32_t siblings = 1;          ///< how many there are
  std::vector<int32_t> drops;    ///< slots that nobody reads when the callee has them
};

struct LoopItem {
  int32_t site;
  int32_t loop;
  int32_t body;
  int32_t branch;  ///< of the loop's body: going on or leaving
  std::vector<Transfer> variables;
  std::vector<Transfer> outers;
  std::vector<Operand> next;  ///< of each variable, in the branch where the loop goes on
  struct Exit {
    Operand from;  ///< in the loop's body
    int32_t to;    ///< slot outside
  };
  std::vector<Exit> exits;
};

struct MapItem {
  int32_t site;
  int32_t map;
  int32_t phase;
  int32_t body;
  Operand counted;  ///< its leading length is the number of lanes; phase 0 only
  std::vector<Transfer> mapped;
  std::vector<Transfer> outers;
  std::vector<LoopItem::Exit> results;
  std::vector<int32_t> visits;
};

/// Reads what the entry was given, or what main shares.
struct ReadItem {
  int32_t to;
  int32_t index;   ///< of what the entry was given, or slot of main
  bool is_shared;  ///< by main
};

struct CollectItem {
  int32_t node;
  int32_t index;
  Operand values[2];  ///< one; or numbers of rows, and rows
  int32_t kind;       ///< 0: whole, 1: rows, 2: transposed x times g, of vectors or matrices, not made lane by lane
};

struct CollectedItem {
  int32_t call;
  int32_t index;
  Operand like;
  int32_t to[2];  ///< the sum; or numbers of rows, and rows
};

/// Operators of one stage that run together, in one pass over their lanes. Made by the core itself: see fuse.h.
struct FusedItem {
  struct Input {
    Operand from;
    int64_t offset;  ///< bytes: it may be a part of what stands there
  };
  struct Output {
    int32_t to;
    int64_t offset;    ///< bytes
    bool is_first;     ///< of those that go there
    uint64_t depends;  ///< on these inputs: what goes there, all of it
  };
  std::vector<int32_t> ops;       ///< all that it stands for, in order
  std::vector<uint64_t> depends;  ///< of each of them: on these inputs
  std::vector<int32_t> results;   ///< of each of them: which register is just its result; -1: none
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  Fused program;
  int64_t bytes;  ///< of a lane: what it reads and writes
};

struct Item {
  enum class Kind : uint8_t { Op, Branch, Call, Loop, Map, Read, Collect, Collected, Fused };
  Kind kind;
  int32_t number;  ///< in the table of its kind
};

enum class LateKind : uint8_t {
  None,
  Held,   // what comes behind them waits too
  Kept,   // nobody waits for them
  Ahead,  // nobody in this phase; they run only if there is a next one
};
constexpr size_t z(LateKind kind) { return static_cast<size_t>(kind); }

struct Stage {
  std::vector<Item> straight;
  std::vector<Item> fused;  ///< the same, some operators together: what runs, unless the result of each is looked at
  std::vector<Item> entered;
  int32_t late = -1;      ///< number in Plan::lates, where some of the straight run may wait for other tables
  size_t late_from = 0;   ///< the first of these
  size_t ahead_from = 0;  ///< the first of what belongs to the next phase
  size_t fused_late_from = 0;
  LateKind late_kind = LateKind::None;
  std::vector<int32_t> drops;  ///< slots that nobody reads behind the straight run
};

/// Operators that may wait, until those of many tables run as one. See late.h.
struct Late {
  int32_t region;
  std::vector<Item> items;
  std::vector<Item> fused;     ///< the same, some together
  std::vector<int32_t> takes;  ///< slots that they read
  std::vector<int32_t> gives;  ///< slots that they write and others read
  int32_t order = -1;          ///< one of `takes` that an earlier joint run gave: in its order rows lie side by side
  LateKind kind;
  int64_t bytes = 0;   ///< of a row: all that they write
  int64_t wide = 128;  ///< a table with so many lanes does not wait

  bool is_held() const { return kind == LateKind::Held; }
};

struct Program {
  std::vector<Stage> stages;
  int32_t phase = -1;  ///< of the body; -1: it never runs
};

struct Region {
  enum class Kind : uint8_t { Main, Function, Loop, Map, Branch };
  Kind kind;
  int32_t body;  ///< region of the body that it belongs to
  int32_t group;
  std::vector<Slot> slots;
  std::vector<int32_t> boxed;            ///< slots that are dynamic
  int64_t row;                           ///< bytes per lane of the slots that share a block
  int32_t small;                         ///< how many these are
  bool has_arrays = false;               ///< are there slots with a block of their own?
  int32_t branches, calls, loops, maps;  ///< how many of each it has
  int32_t hoisted;                       ///< values of its entry that it needs
  std::vector<Program> phases;
  std::vector<std::vector<int32_t>> params;   ///< slots by phase; -1: nobody uses it
  std::vector<std::vector<int32_t>> results;  ///< slots by phase; kNoSlot: an order token
};

/// How a group runs: waves go depth first, all lanes together; or every stage takes all lanes that have come to it,
/// whatever they wait for otherwise.
enum class Schedule : uint8_t { Lockstep, Agenda };

struct NarrowProgram;
namespace agenda {
struct Outline;
}

class Plan {
 public:
  /// Decode; throws std::invalid_argument where the rows make no sense. What kernels are bound with is taken as it is:
  /// it comes from the catalogue of operators, whose rules have checked it.
  Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> constants);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

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
  std::vector<Late> lates;
  CallItem start;                   // how main is entered
  std::vector<Schedule> schedules;  // of each group
  std::vector<bool> is_pure;        // of each group: no host, nothing collected, no boxes, in all that it can reach
  std::vector<bool> is_scalar;      // of each group: numbers only, likewise
  std::vector<int64_t> lane_bytes;  // of each group: what a lane of it takes, as far as the plan knows; see width.h
  std::unique_ptr<const NarrowProgram> narrow;     // what runs lanes one by one; see narrow/program.h
  std::unique_ptr<const agenda::Outline> outline;  // frames and stages; see agenda/outline.h
  ~Plan();
  int32_t nodes = 0;  // of the static graph
  int32_t groups = 0;
  mutable std::atomic<int64_t> calls_before = 0;  // that the last run made
};

}  // namespace undertow
