// Sizes that are known only at run time: open shapes, Python's slices, indices.
#pragma once

#include <cstdint>
#include <optional>

#include "undertow/attrs.h"
#include "undertow/kernel.h"

namespace undertow {

/// An integer scalar, i32 or i64, of one lane.
inline int64_t integer_at(const View& view, int64_t lane) {
  return view.dtype == DType::I32 ? *view.lane<int32_t>(lane) : *view.lane<int64_t>(lane);
}

/// The n-th integer of an array in one lane.
inline int64_t integer_at(const View& view, int64_t lane, int64_t n) {
  return view.dtype == DType::I32 ? view.lane<int32_t>(lane)[n] : view.lane<int64_t>(lane)[n];
}

/// The shape that an attribute gives, with a size from the next of `sizes` for each None.
Fault open_shape(const OptionalInts& shape, const View* sizes, Shape& out);

/// Deciding operands of an operator whose open shape starts with operand `first`.
uint64_t open_operands(const OptionalInts& shape, int first);

/// A shape may not be too large for an array that is made at run time.
Fault check_size(const Shape& shape);

/// One axis of a slice: `count` elements from `start`, `step` apart.
struct Cut {
  int64_t start, step, count;
};

/// Python's slice(start, stop, step).indices(length).
Cut cut_of(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step, int64_t length);

/// A place counted from the front, or -1 where the axis has none of that number.
inline int64_t place_of(int64_t index, int64_t length) {
  const int64_t place = index < 0 ? index + length : index;
  return place >= 0 && place < length ? place : -1;
}

/// The product of sizes[first..last).
inline int64_t product(const int64_t* sizes, int first, int last) {
  int64_t out = 1;
  for (int axis = first; axis < last; ++axis) out *= sizes[axis];
  return out;
}

}  // namespace undertow
