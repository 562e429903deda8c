// Adding into places: what slices and look-ups become backwards. Places that are named twice get both, in order.
#include <cstring>

#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

void start_from(int64_t lanes, const View& x, const View& out) {
  if (x.data == out.data) return;
  const auto bytes = static_cast<size_t>(x.bytes());
  for (int64_t lane = 0; lane < lanes; ++lane) std::memcpy(out.lane<void>(lane), x.lane<void>(lane), bytes);
}

template <class T>
Fault add_rows(int64_t lanes, const View* inputs, const View& out, int axis) {
  const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const int64_t length = x.shape[axis], outer = product(x.shape, 0, axis), count = indices.count();
  const int64_t inner = product(x.shape, axis + 1, x.rank);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    T* to = out.lane<T>(lane);
    const T* from = updates.lane<T>(lane);
    for (int64_t row = 0; row < outer; ++row, to += length * inner) {
      for (int64_t n = 0; n < count; ++n, from += inner) {
        const int64_t place = place_of(integer_at(indices, lane, n), length);
        if (place < 0) return {Fault::Code::IndexOutOfRange, lane};
        T* target = to + place * inner;
        for (int64_t i = 0; i < inner; ++i) target[i] += from[i];
      }
    }
  }
  return {};
}

template <class T>
Fault add_elements(int64_t lanes, const View* inputs, const View& out, int axis) {
  const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const int64_t length = x.shape[axis], count = indices.shape[axis];
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.rank);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    T* to = out.lane<T>(lane);
    const T* from = updates.lane<T>(lane);
    for (int64_t row = 0; row < outer; ++row, to += length * inner) {
      for (int64_t n = 0; n < count * inner; ++n) {
        const int64_t place = place_of(integer_at(indices, lane, row * count * inner + n), length);
        if (place < 0) return {Fault::Code::IndexOutOfRange, lane};
        to[place * inner + n % inner] += *from++;
      }
    }
  }
  return {};
}

using Add = Fault (*)(int64_t, const View*, const View&, int);

class Adding : public Kernel {
 public:
  Adding(const Binding& binding, Add i32, Add i64, Add f32, Add f64)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))) {
    const Add all[kDTypes] = {nullptr, i32, i64, f32, f64};
    add_ = all[static_cast<int>(binding.inputs[0].dtype)];
    in_place_ = 1;
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const final {
    start_from(lanes, inputs[0], outputs[0]);
    return add_(lanes, inputs, outputs[0], axis_);
  }

 protected:
  int axis_;

 private:
  Add add_;
};

class ScatterAdd final : public Adding {
 public:
  explicit ScatterAdd(const Binding& binding)
      : Adding(binding, add_rows<int32_t>, add_rows<int64_t>, add_rows<float>, add_rows<double>) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    Shape wanted;
    for (int axis = 0; axis < axis_; ++axis) wanted.append(x.shape[axis]);
    for (int axis = 0; axis < indices.rank; ++axis) wanted.append(indices.shape[axis]);
    for (int axis = axis_ + 1; axis < x.rank; ++axis) wanted.append(x.shape[axis]);
    if (!std::equal(wanted.sizes, wanted.sizes + wanted.rank, updates.shape, updates.shape + updates.rank))
      return {Fault::Code::ShapesDiffer, 0};
    outputs[0] = Shape(x);
    return {};
  }
};

class AddAlongAxis final : public Adding {
 public:
  explicit AddAlongAxis(const Binding& binding)
      : Adding(binding, add_elements<int32_t>, add_elements<int64_t>, add_elements<float>, add_elements<double>) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    for (int axis = 0; axis < x.rank; ++axis)
      if (indices.shape[axis] != updates.shape[axis] || (axis != axis_ && indices.shape[axis] != x.shape[axis]))
        return {Fault::Code::ShapesDiffer, 0};
    outputs[0] = Shape(x);
    return {};
  }
};

class Unslice final : public Kernel {
 public:
  explicit Unslice(const Binding& binding)
      : starts_(binding.attrs.optionals("starts")),
        stops_(binding.attrs.optionals("stops")),
        steps_(binding.attrs.optionals("steps")),
        shape_(binding.attrs.optionals("shape")) {
    deciding_ = open_operands(shape_, 1);
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    if (Fault fault = open_shape(shape_, inputs + 1, out)) return fault;
    if (Fault fault = check_size(out)) return fault;
    for (int axis = 0; axis < out.rank; ++axis)
      if (cut(axis, out.sizes[axis]).count != inputs[0].shape[axis]) return {Fault::Code::ShapesDiffer, 0};
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const override {
    const View &x = inputs[0], &out = outputs[0];
    for (int64_t lane = 0; lane < lanes; ++lane) std::memset(out.lane<void>(lane), 0, static_cast<size_t>(out.bytes()));
    if (x.count() == 0) return {};
    int64_t from[kMostAxes], to[kMostAxes], offset = 0;
    dense_strides(x.shape, x.rank, size_of(x.dtype), from);
    dense_strides(out.shape, out.rank, size_of(x.dtype), to);
    Walk<2> walk;
    walk.axis(lanes, {x.stride, out.stride});
    for (int axis = 0; axis < x.rank; ++axis) {
      const Cut part = cut(axis, out.shape[axis]);
      offset += part.start * to[axis];
      walk.axis(part.count, {from[axis], part.step * to[axis]});
    }
    copy_walk(walk, x.data, static_cast<std::byte*>(out.data) + offset, size_of(x.dtype));
    return {};
  }

 private:
  Cut cut(int axis, int64_t length) const { return cut_of(starts_[axis], stops_[axis], steps_[axis], length); }

  OptionalInts starts_, stops_, steps_, shape_;
};

constexpr KernelRow kRows[] = {
    {"scatter_add", make_kernel<ScatterAdd>},
    {"add_along_axis", make_kernel<AddAlongAxis>},
    {"unslice", make_kernel<Unslice>},
};

}  // namespace

std::span<const KernelRow> scatter_rows() { return kRows; }

}  // namespace undertow
