// Runs of operators done piece by piece: what lies between them never leaves the cache.
//
// Values are registers, numbered: first the inputs, then the result of each instruction in order. In each lane a
// register is a row of n elements, or one element. Where all instructions give rows, they go over the lanes row by row
// (fused_rows.cpp). Where some give one element, n is small: then some lanes at a time are laid out as planes, the
// first elements of all of them, then the second ones, so that the short rows of many lanes make long vectors
// (fused_planes.cpp).
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
    Fold,   // a row to one element: the first, then op(next, so far); `adds` says that it starts from zero
    Pick,   // row, number: the element of that number, counted from the end if it is negative
    Place,  // row, number, element: the row, with the element added to the one of that number
  };

  struct Instruction {
    Kind kind;
    const Elementwise* op;  // a row of a table, as Kernel::elementwise gives it; of a Place that which adds
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
    bool is_row;  // one element fills a row
  };

  /// A register for all lanes: lane k starts k * stride bytes behind data. Stride 0: all lanes share it.
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

  /// May an input of this shape stand beside results of that one? Other broadcasts need an operator of their own.
  static bool is_fitting(const View& input, const View& output) {
    const int64_t count = input.count();
    return count == 1 || (count == output.count() && input.rank <= output.rank);
  }

  /// `given` are the registers, as many as there are: inputs, and results that are known already and are not computed
  /// again; null for those that are to be computed. An output without data is not written. Outputs do not overlap
  /// inputs; after a fault they hold anything.
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
  std::vector<int> output_of_;  // of registers: the first output that it is, or -1
  std::vector<int> slots_;      // of registers: where it stands if it has no better place; counted by kind
  int rows_ = 0, ones_ = 0;     // slots of each kind
  int busy_rows_ = 0;           // of results
  int64_t widest_ = 1;          // bytes of an element
  bool has_planes_ = false;
};

}  // namespace undertow
