// Assignment to a part of an array: x is copied, unless it is the result already, and values are written into it.
#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

constexpr Fault kMisfit{Fault::Code::ShapesDiffer, 0};

bool is_shape(const View& view, const Shape& wanted) {
  return std::ranges::equal(sizes_of(view), std::span(wanted.sizes, static_cast<size_t>(wanted.rank)));
}

class Change : public SameShape {
 public:
  Change() { is_change_ = true; }
};

class Put final : public Change {
 public:
  explicit Put(const Binding& binding)
      : axes_(binding.attrs.axes("axes")),
        picked_(axes_of(binding)),
        leading_(picked_ == (uint64_t{1} << axes_.size()) - 1) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape part;
    for (int axis = 0; axis < inputs[0].rank; ++axis)
      if (((picked_ >> axis) & 1) == 0) part.append(inputs[0].shape[axis]);
    return is_shape(inputs[1], part) ? SameShape::shape(inputs, outputs) : kMisfit;
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &value = inputs[1], &out = outputs[0];
    copy_lanes(lanes, inputs[0], out, scratch);
    const int64_t element = size_of(out.dtype), bytes = value.bytes();
    int64_t strides[kMostAxes];
    dense_strides(out.shape, out.rank, element, strides);
    Walk<2> walk;  // over the elements of one lane's value
    if (!leading_) {
      int64_t from[kMostAxes];
      dense_strides(value.shape, value.rank, element, from);
      for (int axis = 0, kept = 0; axis < out.rank; ++axis)
        if (((picked_ >> axis) & 1) == 0) walk.axis(out.shape[axis], {from[kept++], strides[axis]});
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      std::byte* to = out.lane<std::byte>(lane);
      for (size_t k = 0; k < axes_.size(); ++k) {
        const int64_t place = place_of(integer_at(inputs[2 + k], lane), out.shape[axes_[k]]);
        if (place < 0) return {Fault::Code::IndexOutOfRange, lane};
        to += place * strides[axes_[k]];
      }
      if (leading_)
        copy_block(to, value.lane<void>(lane), bytes, scratch);
      else if (bytes > 0)
        copy_walk(walk, value.lane<void>(lane), to, element, scratch);
    }
    return {};
  }

 private:
  std::vector<int> axes_;
  uint64_t picked_;
  bool leading_;  // only leading axes are indexed, so the place is contiguous
};

class PutSlice final : public Change {
 public:
  explicit PutSlice(const Binding& binding) : cuts_(binding.attrs) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape part;
    for (int axis = 0; axis < inputs[0].rank; ++axis) part.append(cuts_.of(axis, inputs[0].shape[axis]).count);
    return is_shape(inputs[1], part) ? SameShape::shape(inputs, outputs) : kMisfit;
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &value = inputs[1], &out = outputs[0];
    copy_lanes(lanes, inputs[0], out, scratch);
    if (value.count() == 0) return {};
    Strides to(out);
    for (int axis = 0; axis < out.rank; ++axis) {
      const Cut part = cuts_.of(axis, out.shape[axis]);
      to.offset += part.start * to.steps[axis];
      to.steps[axis] *= part.step;
    }
    copy_strided(lanes, value, Strides(value), out, to, sizes_of(value), scratch);
    return {};
  }

 private:
  Cuts cuts_;
};

class PutBetween final : public Change {
 public:
  explicit PutBetween(const Binding& binding)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))), step_(binding.attrs.integer("step")) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    for (int axis = 0; axis < inputs[0].rank; ++axis)
      if (axis != axis_ && inputs[0].shape[axis] != inputs[1].shape[axis]) return kMisfit;
    return SameShape::shape(inputs, outputs);
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &value = inputs[1], &out = outputs[0];
    copy_lanes(lanes, inputs[0], out, scratch);
    const Line line(out, axis_);
    const int64_t element = size_of(out.dtype), row = line.inner * element, count = value.shape[axis_];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const Cut cut = cut_of(integer_at(inputs[2], lane), integer_at(inputs[3], lane), step_, line.length);
      if (cut.count != count) return {Fault::Code::ShapesDiffer, lane};
      if (value.count() == 0) continue;
      Walk<2> walk;
      walk.axis(line.outer, {count * row, line.length * row});
      walk.axis(count, {row, cut.step * row});
      walk.axis(line.inner, {element, element});
      copy_walk(walk, value.lane<void>(lane), out.lane<std::byte>(lane) + cut.start * row, element, scratch);
    }
    return {};
  }

 private:
  int axis_;
  int64_t step_;
};

class PutRows final : public Change {
 public:
  explicit PutRows(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    return is_shape(inputs[1], taken_shape(inputs[0], inputs[2], axis_)) ? SameShape::shape(inputs, outputs) : kMisfit;
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &rows = inputs[1], &indices = inputs[2], &out = outputs[0];
    copy_lanes(lanes, inputs[0], out, scratch);
    const Line line(out, axis_);
    const int64_t block = line.inner * size_of(out.dtype), count = indices.count();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const std::byte* from = rows.lane<std::byte>(lane);
      std::byte* to = out.lane<std::byte>(lane);
      for (int64_t k = 0; k < line.outer; ++k, from += count * block, to += line.length * block) {
        const auto write = [=, &scratch](int64_t n, int64_t place) {
          copy_block(to + place * block, from + n * block, block, scratch);
        };
        if (!each_place(scratch, count, block, indices, lane, 0, line.length, write))
          return {Fault::Code::IndexOutOfRange, lane};
      }
    }
    return {};
  }

 private:
  int axis_;
};

constexpr KernelRow kRows[] = {
    {"put", forms::put, make_kernel<Put>},
    {"put_slice", forms::put_slice, make_kernel<PutSlice>},
    {"put_between", forms::put_between, make_kernel<PutBetween>},
    {"put_rows", forms::put_rows, make_kernel<PutRows>},
};

}  // namespace

std::span<const KernelRow> put_rows() { return kRows; }

}  // namespace undertow
