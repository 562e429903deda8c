// Fused operators: several run on a few lanes at a time, so that values between them stay in the cache.
//
// Registers are numbered: first the inputs, then the result of each instruction in order. In each lane a register is a
// row of n elements, or one element. If all instructions return rows, lanes are processed row by row (fused_rows.cpp).
// If some return one element, n is small: then a block of lanes is transposed into planes, the first elements of all
// lanes, then the second ones, so that the short rows of many lanes make long vectors (fused_planes.cpp).
#pragma once

#include <span>
#include <vector>

#include "undertow/elementwise.h"

namespace undertow {

class Fused {
 public:
  static constexpr int64_t kMostPlanes = 16;
  static constexpr size_t kMostRegisters = 256;

  enum class Kind : uint8_t {
    Each,   // op on each element
    Fold,   // a row to one element: the first, then op(next, so far); if `adds`, it starts from zero
    Pick,   // row, index: the element at the index, counted from the end if negative
    Place,  // row, index, element: the row, with the element added at the index
  };

  struct Instruction {
    Kind kind;
    const Elementwise* op;  // from Kernel::elementwise; of a Place, the add
    int inputs[3];          // registers
    bool adds = false;

    int arity() const { return kind == Kind::Each ? op->arity : static_cast<int>(kind); }
  };

  struct Type {
    DType dtype;
    bool is_row;  // or one element
  };

  struct Output {
    int from;     // register
    bool is_row;  // a single element is broadcast to a row
  };

  /// A register for all lanes: lane k starts k * stride bytes after data. Stride 0: all lanes share it.
  struct Lanes {
    std::byte* data;
    int64_t stride;

    std::byte* lane(int64_t k) const { return data + k * stride; }
  };

  /// Which instruction stopped, and in which lane.
  struct Stop {
    Fault fault;
    int instruction = -1;
  };

  Fused() = default;
  Fused(int64_t n, std::span<const Type> inputs, std::span<const Instruction> instructions,
        std::span<const Output> outputs);

  /// May an input of this shape be used with results of that one? Other broadcasts need an operator of their own.
  static bool is_fitting(const View& input, const View& output) {
    const int64_t count = input.count();
    return count == 1 || (count == output.count() && input.rank <= output.rank);
  }

  /// `given` has an element for each register: inputs, results that are already known, and null for those to compute.
  /// An output without data is not written. Outputs do not overlap inputs; after a fault their contents are undefined.
  Stop run(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const;

  int inputs() const { return inputs_; }
  const std::vector<Type>& types() const { return types_; }

 private:
  struct Rows;
  struct Planes;
  Stop run_rows(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const;
  Stop run_planes(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const;
  void find_slots();
  int64_t size(int reg) const { return size_of(types_[static_cast<size_t>(reg)].dtype); }

  int64_t n_ = 0;
  int inputs_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<Output> outputs_;
  std::vector<Type> types_;     // of registers
  std::vector<int> output_of_;  // by register: the first output that stores it, or -1
  std::vector<int> slots_;      // by register: its temporary, if it has no other memory; numbered by kind
  int rows_ = 0, ones_ = 0;     // number of slots for rows, and for single elements
  int busy_rows_ = 0;           // slots for rows that hold results
  int64_t widest_ = 1;          // bytes of an element
  bool has_planes_ = false;
};

}  // namespace undertow
