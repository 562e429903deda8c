// Narrow code: if lanes are few and cannot become more, each runs alone, one scalar operation at a time.
//
// A group of functions is *linear* if no activation makes two calls at once, so that its waves never widen; and
// *scalar* if all its values are scalars, except for hoisted arrays of which it only reads elements. Such groups are
// also compiled to register code: a frame is an array of 8-byte cells, a branch is a jump, a Switch is nothing at all.
#pragma once

#include <memory>
#include <vector>

#include "undertow/plan.h"
#include "undertow/scalar.h"

namespace undertow {

/// A cell of the frame or, if negative, constant number ~cell. An array has two: a pointer to its data, and its shape.
using Cell = int32_t;

struct NarrowMove {
  Cell from;
  int32_t to;
};

// clang-format off
// Instructions besides scalar operators. ROW(code, name)
#define UNDERTOW_NARROW_CODES(ROW)                                                                  \
  ROW(Move, "move") ROW(Flat, "flat") /* any elementwise operator, by its kernel */                 \
  ROW(Jump, "jump") ROW(Unless, "unless") ROW(Call, "call") ROW(Resume, "resume") ROW(Return, "return") \
  ROW(ReadEntry, "read entry") ROW(ReadShared, "read shared")                                       \
  ROW(ReadArray, "read array") ROW(ReadSharedArray, "read shared array") /* of the entry, of main */ \
  ROW(Pick, "pick") /* an element of an array */                                                    \
  ROW(Check, "check") /* an assert or a raise */                                                    \
  ROW(Collect, "collect") ROW(CollectAt, "collect at") /* for an element of an array */             \
  ROW(Collected, "collected") ROW(Count, "count")
// clang-format on

/// The code of an instruction. A scalar operator has two codes for each dtype (I32, I64, F32, F64, in this order): its
/// second operand is a cell, or a constant in the instruction. See undertow/scalar.h.
enum class NarrowCode : uint16_t {
#define UNDERTOW_CODE(name, word) name,
  UNDERTOW_NARROW_CODES(UNDERTOW_CODE)
#undef UNDERTOW_CODE
#define UNDERTOW_SINGLE(name, ...) name,
#define UNDERTOW_ROW(name, ...) name, Last##name = name + 7,
#define UNDERTOW_JUMP(name, ...) Unless##name, LastUnless##name = Unless##name + 7,
      UNDERTOW_SINGLES(UNDERTOW_SINGLE) UNDERTOW_ARITHMETIC(UNDERTOW_ROW) UNDERTOW_DIVISIONS(UNDERTOW_ROW)
          UNDERTOW_TESTS(UNDERTOW_ROW)
  // The same tests with a jump if they fail.
  UNDERTOW_TESTS(UNDERTOW_JUMP)
#undef UNDERTOW_JUMP
#undef UNDERTOW_ROW
#undef UNDERTOW_SINGLE
};

struct NarrowInstr {
  NarrowCode code;
  int32_t node = -1;
  Cell a = 0, b = 0;
  int32_t to = 0;
  int32_t extra = 0;      ///< depends on the code: target of a jump, number of a kernel or call
  uint64_t constant = 0;  ///< the second operand, if the code has a constant
};

/// Rarely used parts of an instruction: for errors, and for third operands.
struct NarrowAside {
  int32_t loop;  ///< innermost loop around it, or -1
  Cell c = 0;    ///< the third operand
};

struct NarrowBody;

struct NarrowCall {
  int32_t site;
  int32_t region;
  const NarrowBody* body;
  int32_t phase;
  int32_t frame;                      ///< cell that holds the callee's frame between phases, or -1
  int32_t entry;                      ///< cell that holds the entry that it makes, or -1
  std::vector<NarrowMove> arguments;  ///< from the caller's cells to the callee's
  std::vector<Cell> hoists;
  std::vector<NarrowMove> results;  ///< from the callee's cells to the caller's
  std::vector<int32_t> visits;
};

/// An operator that takes an element of an array, or a check, which has no kernel: its operands and their types.
struct NarrowPick {
  const Kernel* kernel;
  struct Input {
    Cell cell;
    const Slot* slot;
  };
  std::vector<Input> inputs;
};

struct NarrowLoop {
  int32_t site;
  int32_t counter;  ///< cell
  int32_t outer;
};

struct NarrowBody {
  int32_t cells = 0;
  int64_t bytes = 0;  ///< of a frame
  std::vector<NarrowInstr> code;
  std::vector<NarrowAside> asides;   ///< by instruction
  std::vector<int32_t> entry_cells;  ///< that hold entries made by calls
  std::vector<int32_t> entries;      ///< where each phase begins
  std::vector<NarrowLoop> loops;
  std::vector<std::vector<int32_t>> params;  ///< cells by phase, or -1
  std::vector<std::vector<Cell>> results;
};

struct NarrowProgram {
  std::vector<std::unique_ptr<NarrowBody>> bodies;  ///< by region; null if its group is not narrow
  std::vector<NarrowCall> calls;
  std::vector<NarrowPick> picks;
  std::vector<uint64_t> constants;
};

/// Compile the groups that the plan marks as narrow; throws std::invalid_argument if one cannot be.
std::unique_ptr<const NarrowProgram> compile_narrow(const Plan& plan);

}  // namespace undertow
