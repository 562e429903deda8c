// Values copied out of a run: results, and operands for errors.
#pragma once

#include "undertow/run.h"

namespace undertow {

/// A value of one lane, copied out.
Value value_of(const View& view);

/// A Stop with operands or results of a node.
Stop stop_of(Stop::Kind kind, int32_t node, std::span<const View> values);

/// A Stop for a map over arrays of different lengths.
Stop unequal_lanes(int32_t phase, int64_t lanes, int64_t length);

/// Is every element finite? True if they are not floats.
bool is_finite(const View& view);

/// Has an array the lengths that its type states?
bool is_shaped(const ValueType& type, const int64_t* shape, int rank);

/// The bytes of an array; throws OverLimit where no machine has as many. A length counts beside one that is 0, too:
/// where an operator reduces along that axis, the others are left.
int64_t array_bytes(DType dtype, const int64_t* shape, int rank);

/// The bytes of so many arrays; throws OverLimit as well.
inline int64_t lanes_bytes(int64_t bytes, int64_t lanes) {
  if (__builtin_mul_overflow(bytes, lanes, &bytes)) throw OverLimit{OverLimit::Kind::OutOfMemory};
  return bytes;
}

/// The bytes of one row of an array.
inline int64_t row_bytes(DType dtype, const int64_t* shape, int rank) {
  int64_t bytes = size_of(dtype);
  for (int axis = 1; axis < rank; ++axis) bytes *= shape[axis];
  return bytes;
}

}  // namespace undertow
