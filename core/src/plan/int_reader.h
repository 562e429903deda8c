// Read the integers of an encoded plan, with range checks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "undertow/attrs.h"
#include "undertow/isa.h"
#include "undertow/kernel.h"
#include "undertow/plan.h"

namespace undertow {

[[noreturn]] inline void not_a_plan(const char* what) {
  throw std::invalid_argument(std::string("not a plan: ") + what);
}

class IntReader {
 public:
  static constexpr int64_t kMost = int64_t{1} << 24;  // the highest count of anything

  explicit IntReader(std::span<const int64_t> rows) : rows_(rows) {}

  int64_t next() {
    if (at_ >= rows_.size()) not_a_plan("it ends too early");
    return rows_[at_++];
  }
  int64_t peek() const { return at_ < rows_.size() ? rows_[at_] : 0; }
  int32_t between(int64_t low, int64_t high) {
    const int64_t value = next();
    if (value < low || value >= high) not_a_plan("a number is out of range");
    return static_cast<int32_t>(value);
  }
  int32_t count() {
    const int64_t value = next();
    if (value < 0 || value > kMost || static_cast<uint64_t>(value) > rows_.size() - at_ + 1)
      not_a_plan("a list is longer than what is left of the plan");
    return static_cast<int32_t>(value);
  }
  bool flag() { return between(0, 2) != 0; }
  int32_t any() { return between(INT32_MIN, int64_t{INT32_MAX} + 1); }
  bool at_end() const { return at_ == rows_.size(); }

 private:
  std::span<const int64_t> rows_;
  size_t at_ = 0;
};

struct BoundKernel {
  std::string op;
  bool is_effect = false;
  std::unique_ptr<Kernel> kernel;  ///< null: the core has none, so the host runs it
  std::vector<Type> inputs, outputs;
};

/// The type of a value; `bytes` is 0 if its shape is known only at run time.
ValueType read_type(IntReader& in);

/// A kernel: its operator, attributes and types.
BoundKernel read_kernel(IntReader& in, std::span<const std::string> words);

}  // namespace undertow
