// The type of a value, as a plan knows it.
#pragma once

#include <vector>

#include "undertow/kernel.h"

namespace undertow {

constexpr int64_t kUnknown = -1;  // a length that only the run knows

struct ValueType {
  DType dtype{};
  std::vector<int64_t> shape;
  bool is_dynamic = false;  ///< some length is known only at run time: the column holds boxes
  int64_t count = 1;        ///< elements, if not dynamic
  int64_t bytes = 0;        ///< of one lane: of its elements, or of its box

  int rank() const { return static_cast<int>(shape.size()); }
};

}  // namespace undertow
