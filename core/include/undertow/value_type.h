// The type of a value in a plan.
#pragma once

#include <vector>

#include "undertow/kernel.h"

namespace undertow {

constexpr int64_t kUnknown = -1;  // a dimension that is known only at run time

struct ValueType {
  DType dtype{};
  std::vector<int64_t> shape;
  bool is_dynamic = false;  ///< some dimension is unknown: the column holds boxes
  int64_t count = 1;        ///< elements, if not dynamic
  int64_t bytes = 0;        ///< of one lane: of its elements, or of its box

  int rank() const { return static_cast<int>(shape.size()); }
};

}  // namespace undertow
