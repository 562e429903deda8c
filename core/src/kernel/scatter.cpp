// Scatter-add: the gradients of slices and look-ups. An index that occurs twice gets both updates, in order.
#include <cstring>

#include "isa/complex.h"
#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

template <class T>
Fault add_rows(int64_t lanes, const View* inputs, const View& out, int axis, Scratch& scratch) {
  const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const int64_t length = x.shape[axis], outer = product(x.shape, 0, axis), count = indices.count();
  const int64_t inner = product(x.shape, axis + 1, x.rank);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    T* to = out.lane<T>(lane);
    const T* from = updates.lane<T>(lane);
    for (int64_t row = 0; row < outer; ++row, to += length * inner, from += count * inner) {
      const auto add = [=](int64_t n, int64_t place) {
        T* target = to + place * inner;
        const T* source = from + n * inner;
        for (int64_t i = 0; i < inner; ++i) target[i] += source[i];
      };
      if (!each_place(scratch, count, inner * sizeof(T), indices, lane, 0, length, add))
        return {Fault::Code::IndexOutOfRange, lane};
    }
  }
  return {};
}

template <class T>
Fault add_elements(int64_t lanes, const View* inputs, const View& out, int axis, Scratch& scratch) {
  const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const int64_t length = x.shape[axis], count = indices.shape[axis];
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.rank);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    T* to = out.lane<T>(lane);
    const T* from = updates.lane<T>(lane);
    const int64_t all = count * inner;
    for (int64_t row = 0; row < outer; ++row, to += length * inner, from += all) {
      const int64_t first = row * all;
      const auto add = [=](int64_t n, int64_t place) { to[place * inner + n % inner] += from[n]; };
      if (!each_place(scratch, all, sizeof(T), indices, lane, first, length, add))
        return {Fault::Code::IndexOutOfRange, lane};
    }
  }
  return {};
}

/// Updates for whole rows along the axis (`kRows`), or for single elements.
template <class T, bool kRows>
class Adding final : public SameShape {
 public:
  explicit Adding(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    const Shape wanted = kRows ? taken_shape(x, indices, axis_) : Shape(indices);
    bool fits = std::ranges::equal(std::span(wanted.sizes, static_cast<size_t>(wanted.rank)), sizes_of(updates));
    for (int axis = 0; !kRows && axis < x.rank; ++axis)
      fits = fits && (axis == axis_ || indices.shape[axis] == x.shape[axis]);
    return fits ? SameShape::shape(inputs, outputs) : Fault{Fault::Code::ShapesDiffer, 0};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    copy_lanes(lanes, inputs[0], outputs[0], scratch);
    return (kRows ? add_rows<T> : add_elements<T>)(lanes, inputs, outputs[0], axis_, scratch);
  }

 private:
  int axis_;
};

template <bool kRows>
constexpr auto make_adding =
    make_by_dtype<Adding<int32_t, kRows>, Adding<int64_t, kRows>, Adding<float, kRows>, Adding<double, kRows>,
                  Adding<Complex<float>, kRows>, Adding<Complex<double>, kRows>>;

class Unslice final : public OpenShape {
 public:
  explicit Unslice(const Binding& binding) : OpenShape(binding), cuts_(binding.attrs) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    if (Fault fault = OpenShape::shape(inputs, outputs)) return fault;
    for (int axis = 0; axis < out.rank; ++axis)
      if (cuts_.of(axis, out.sizes[axis]).count != inputs[0].shape[axis]) return {Fault::Code::ShapesDiffer, 0};
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    for (int64_t lane = 0; lane < lanes; ++lane)
      scratch.in_steps(out.bytes(), 1, [&](int64_t first, int64_t count) {
        std::memset(out.lane<std::byte>(lane) + first, 0, static_cast<size_t>(count));
      });
    if (x.count() == 0) return {};
    Strides to(out);
    for (int axis = 0; axis < x.rank; ++axis) {
      const Cut part = cuts_.of(axis, out.shape[axis]);
      to.offset += part.start * to.steps[axis];
      to.steps[axis] *= part.step;
    }
    copy_strided(lanes, x, Strides(x), out, to, sizes_of(x), scratch);
    return {};
  }

 private:
  Cuts cuts_;
};

constexpr KernelRow kRows[] = {
    {"scatter_add", forms::scatter_add, make_adding<true>},
    {"add_along_axis", forms::add_along_axis, make_adding<false>},
    {"unslice", forms::unslice, make_kernel<Unslice>},
};

}  // namespace

std::span<const KernelRow> scatter_rows() { return kRows; }

}  // namespace undertow
