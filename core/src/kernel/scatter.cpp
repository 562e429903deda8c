// Adding into places: what slices and look-ups become backwards. Places that are named twice get both, in order.
#include <cstring>

#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

/// An update for a whole row of the axis, or, where there is one for each, for an element.
template <class T, bool kRows>
class Adding final : public SameShape {
 public:
  explicit Adding(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) { in_place_ = 1; }

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    const Shape wanted = kRows ? taken_shape(x, indices, axis_) : Shape(indices);
    bool fits = std::ranges::equal(std::span(wanted.sizes, static_cast<size_t>(wanted.rank)), sizes_of(updates));
    for (int axis = 0; !kRows && axis < x.rank; ++axis)
      fits = fits && (axis == axis_ || indices.shape[axis] == x.shape[axis]);
    return fits ? SameShape::shape(inputs, outputs) : Fault{Fault::Code::ShapesDiffer, 0};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const override {
    const View &x = inputs[0], &updates = inputs[2], &out = outputs[0];
    copy_lanes(lanes, x, out);
    const int64_t row = kRows ? product(x.shape, axis_ + 1, x.rank) : 1;
    return each_place<kRows>(lanes, x, inputs[1], axis_, [&](int64_t lane, int64_t there, int64_t here) {
      T* target = out.lane<T>(lane) + there;
      const T* update = updates.lane<T>(lane) + here;
      for (int64_t i = 0; i < row; ++i) target[i] += update[i];
    });
  }

 private:
  int axis_;
};

template <bool kRows>
constexpr auto make_adding =
    make_by_dtype<Adding<int32_t, kRows>, Adding<int64_t, kRows>, Adding<float, kRows>, Adding<double, kRows>>;

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

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const override {
    const View &x = inputs[0], &out = outputs[0];
    for (int64_t lane = 0; lane < lanes; ++lane) std::memset(out.lane<void>(lane), 0, static_cast<size_t>(out.bytes()));
    if (x.count() == 0) return {};
    Strides to(out);
    for (int axis = 0; axis < x.rank; ++axis) {
      const Cut part = cuts_.of(axis, out.shape[axis]);
      to.offset += part.start * to.steps[axis];
      to.steps[axis] *= part.step;
    }
    copy_strided(lanes, x, Strides(x), out, to, sizes_of(x));
    return {};
  }

 private:
  Cuts cuts_;
};

constexpr KernelRow kRows[] = {
    {"scatter_add", make_adding<true>},
    {"add_along_axis", make_adding<false>},
    {"unslice", make_kernel<Unslice>},
};

}  // namespace

std::span<const KernelRow> scatter_rows() { return kRows; }

}  // namespace undertow
