// Sizes that are known only at run time: open shapes, Python's slices, indices.
#pragma once

#include <cstdint>
#include <optional>

#include "undertow/attrs.h"
#include "undertow/kernel.h"

namespace undertow {

struct TwoWords {  // a c128
  uint64_t words[2];
};

/// Call `work` with something of this size, to move values of any dtype: work(uint32_t{}).
template <class Work>
auto by_size(int64_t size, Work&& work) {
  return size == 1 ? work(uint8_t{}) : size == 4 ? work(uint32_t{}) : size == 8 ? work(uint64_t{}) : work(TwoWords{});
}

/// The n-th integer, i32 or i64, of one lane.
inline int64_t integer_at(const View& view, int64_t lane, int64_t n = 0) {
  return view.dtype == DType::I32 ? view.lane<int32_t>(lane)[n] : view.lane<int64_t>(lane)[n];
}

/// The axes in an attribute, as bits.
inline uint64_t axes_of(const Binding& binding) {
  uint64_t axes = 0;
  for (int axis : binding.attrs.axes("axes")) axes |= uint64_t{1} << axis;
  return axes;
}

/// The shape in an attribute, with the next of `sizes` in place of each None.
Fault open_shape(const OptionalInts& shape, const View* sizes, Shape& out);

/// Deciding operands of an operator whose open shape starts with operand `first`.
uint64_t open_operands(const OptionalInts& shape, int first);

/// Fault if a shape is too large for an array made at run time.
Fault check_size(const Shape& shape);

/// One axis of a slice: `count` elements from `start`, `step` apart.
struct Cut {
  int64_t start, step, count;
};

/// Python's slice(start, stop, step).indices(length).
Cut cut_of(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step, int64_t length);

/// The slices of all axes, from attributes.
struct Cuts {
  OptionalInts starts, stops, steps;

  explicit Cuts(const Attrs& attrs)
      : starts(attrs.optionals("starts")), stops(attrs.optionals("stops")), steps(attrs.optionals("steps")) {}
  Cut of(int axis, int64_t length) const { return cut_of(starts[axis], stops[axis], steps[axis], length); }
};

/// The shape of x with one axis replaced by the shape of the indices.
inline Shape taken_shape(const View& x, const View& indices, int axis) {
  Shape out;
  for (int k = 0; k < axis; ++k) out.append(x.shape[k]);
  for (int k = 0; k < indices.rank; ++k) out.append(indices.shape[k]);
  for (int k = axis + 1; k < x.rank; ++k) out.append(x.shape[k]);
  return out;
}

/// A lane as `outer` x `length` x `inner` elements; the axis is the middle one.
struct Line {
  int64_t outer, length, inner;
  Line(const View& x, int axis);

  /// Where the k-th line along the axis begins; its elements are `inner` apart.
  int64_t start(int64_t k) const { return k / inner * length * inner + k % inner; }
};

/// A kernel whose result has the shape of its first operand.
class SameShape : public Kernel {
 public:
  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0] = Shape(inputs[0]);
    return {};
  }
};

/// A kernel whose result shape is an attribute; its open sizes are the operands after the first.
class OpenShape : public Kernel {
 public:
  explicit OpenShape(const Binding& binding) : shape_(binding.attrs.optionals("shape")) {
    deciding_ = open_operands(shape_, 1);
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    if (Fault fault = open_shape(shape_, inputs + 1, outputs[0])) return fault;
    return check_size(outputs[0]);
  }

 protected:
  OptionalInts shape_;
};

/// An index counted from the front; -1 if it is out of range.
inline int64_t place_of(int64_t index, int64_t length) {
  const int64_t place = index < 0 ? index + length : index;
  return place >= 0 && place < length ? place : -1;
}

/// For each of `count` indices, from one on: work(n, place on an axis of that length), each with so many bytes. False
/// where there is no such place.
template <class Work>
[[gnu::always_inline]] inline bool each_place(Scratch& scratch, int64_t count, int64_t bytes, const View& indices,
                                              int64_t lane, int64_t from, int64_t length, Work&& work) {
  bool are_there = true;
  scratch.in_steps(count, 2 * bytes + 8, [&](int64_t first, int64_t some) {
    for (int64_t n = first; n < first + some; ++n) {
      const int64_t place = place_of(integer_at(indices, lane, from + n), length);
      if (place < 0) {
        are_there = false;
        return;
      }
      work(n, place);
    }
  });
  return are_there;
}

/// The product of sizes[first..last).
inline int64_t product(const int64_t* sizes, int first, int last) {
  int64_t out = 1;
  for (int axis = first; axis < last; ++axis) out *= sizes[axis];
  return out;
}

inline Line::Line(const View& x, int axis)
    : outer(product(x.shape, 0, axis)), length(x.shape[axis]), inner(product(x.shape, axis + 1, x.rank)) {}

}  // namespace undertow
