// Narrow waves: where lanes are few and cannot become more, each goes its way alone, one scalar operation at a time.
//
// A group of functions is *linear* if no activation makes two calls at once, so that its waves never widen; and
// *scalar* if all its values are single numbers, but for arrays that its entry was given and that it only takes
// elements of. Of such groups the plan also has code in a simple form: a frame is a row of 8-byte cells, a branch is a
// jump, a Switch is nothing at all.
#pragma once

#include <memory>
#include <vector>

#include "undertow/plan.h"
#include "undertow/scalar.h"

namespace undertow {

/// A cell of the frame, or, below zero, constant number ~cell. An array has two: where it is, and its shape.
using Cell = int32_t;

struct NarrowMove {
  Cell from;
  int32_t to;
};

// clang-format off
// What instructions do besides operators on numbers, and what that is called. ROW(code, name)
#define UNDERTOW_NARROW_CODES(ROW)                                                                  \
  ROW(Move, "move") ROW(Flat, "flat") /* any elementwise operator, by its kernel */                 \
  ROW(Jump, "jump") ROW(Unless, "unless") ROW(Call, "call") ROW(Resume, "resume") ROW(Return, "return") \
  ROW(ReadEntry, "read entry") ROW(ReadShared, "read shared")                                       \
  ROW(ReadArray, "read array") ROW(ReadSharedArray, "read shared array") /* of the entry, of main */ \
  ROW(Pick, "pick") /* an element of an array */                                                    \
  ROW(Collect, "collect") ROW(CollectAt, "collect at") /* for an element of an array */             \
  ROW(Collected, "collected") ROW(Count, "count")
// clang-format on

/// What an instruction does. Operators on numbers have a code for each dtype (I32, I64, F32, F64, in this order), and
/// for each dtype two: the second operand is a cell, or it is a constant that stands in the instruction. See
/// undertow/scalar.h.
enum class NarrowCode : uint16_t {
#define UNDERTOW_CODE(name, word) name,
  UNDERTOW_NARROW_CODES(UNDERTOW_CODE)
#undef UNDERTOW_CODE
#define UNDERTOW_SINGLE(name, ...) name,
#define UNDERTOW_ROW(name, ...) name, Last##name = name + 7,
#define UNDERTOW_JUMP(name, ...) Unless##name, LastUnless##name = Unless##name + 7,
      UNDERTOW_SINGLES(UNDERTOW_SINGLE) UNDERTOW_ARITHMETIC(UNDERTOW_ROW) UNDERTOW_DIVISIONS(UNDERTOW_ROW)
          UNDERTOW_TESTS(UNDERTOW_ROW)
  // The same tests, and a jump if it is not so.
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
  int32_t extra = 0;      ///< what the code needs besides: target of a jump, number of a kernel or call
  uint64_t constant = 0;  ///< the second operand, where the code says so
};

/// What only some instructions need, and errors.
struct NarrowAside {
  int32_t loop;  ///< innermost loop that it stands in, or -1
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

/// An operator that takes an element of an array: its operands, and what they are.
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
  std::vector<NarrowAside> asides;   ///< of each instruction
  std::vector<int32_t> entry_cells;  ///< that hold entries which calls made
  std::vector<int32_t> entries;      ///< where each phase begins
  std::vector<NarrowLoop> loops;
  std::vector<std::vector<int32_t>> params;  ///< cells by phase, or -1
  std::vector<std::vector<Cell>> results;
};

struct NarrowProgram {
  std::vector<std::unique_ptr<NarrowBody>> bodies;  ///< by region; null where it is not for this
  std::vector<NarrowCall> calls;
  std::vector<NarrowPick> picks;
  std::vector<uint64_t> constants;
};

/// The code of the groups that the plan says are narrow; throws std::invalid_argument where one is not.
std::unique_ptr<const NarrowProgram> compile_narrow(const Plan& plan);

}  // namespace undertow
