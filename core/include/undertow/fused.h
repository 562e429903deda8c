// Runs of operators on each element, done piece by piece: what lies between them never leaves the cache.
//
// Values are registers, numbered: first the inputs, then the result of each instruction in order. All results of one
// lane have the same number of elements, n. An input has n elements, or one, for each lane or shared by all lanes.
#pragma once

#include <span>
#include <vector>

#include "undertow/elementwise.h"

namespace undertow {

class Fused {
 public:
  struct Instruction {
    const Elementwise* op;  // a row of a table, as Kernel::elementwise gives it
    int inputs[3];          // registers
  };

  /// Which instruction stopped, and in which lane.
  struct Stop {
    Fault fault;
    int instruction = -1;
  };

  Fused(std::span<const Type> inputs, std::span<const Instruction> instructions, std::span<const int> outputs);

  /// May an input of this shape stand beside results of that one? Other broadcasts need an operator of their own.
  static bool is_fitting(const View& input, const View& output) {
    const int64_t count = input.count();
    return count == 1 || (count == output.count() && input.rank <= output.rank);
  }

  /// Outputs do not overlap inputs. After a fault they hold anything.
  Stop run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const;

 private:
  struct Run;

  int inputs_;
  std::vector<Instruction> instructions_;
  std::vector<int> outputs_;
  std::vector<DType> dtypes_;   // of registers
  std::vector<int> output_of_;  // of registers: which output it is, or -1
  std::vector<int> slots_;      // of registers: where it stands if it is made here and is no output
  int slot_count_ = 0;          // of results; inputs that must be laid out take more
  int64_t widest_ = 1;          // bytes of an element
};

}  // namespace undertow
