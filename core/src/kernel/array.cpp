// Reshaping, transposing and joining arrays.
#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

class Copy : public SameShape {
 public:
  explicit Copy(const Binding&) {}

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const final {
    copy_lanes(lanes, inputs[0], outputs[0], scratch);
    return {};
  }

  int64_t part_at(const View&) const final { return 0; }
};

class Reshape final : public Copy {
 public:
  explicit Reshape(const Binding& binding) : Copy(binding), shape_(binding.attrs.optionals("shape")) {
    deciding_ = open_operands(shape_, 1);
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    if (Fault fault = open_shape(shape_, inputs + 1, out)) return fault;
    const Fault wrong{Fault::Code::ShapesDiffer, 0};
    int open = -1;  // the axis whose size is inferred
    int64_t known = 1;
    for (int axis = 0; axis < out.rank; ++axis) {
      if (out.sizes[axis] == -1)
        open = axis;
      else if (__builtin_mul_overflow(known, out.sizes[axis], &known))
        return wrong;
    }
    const int64_t total = inputs[0].count();
    if (open < 0) return known == total ? Fault{} : wrong;
    if (known == 0 || total % known != 0) return wrong;
    out.sizes[open] = total / known;
    return {};
  }

 private:
  OptionalInts shape_;
};

class ExpandDims final : public Copy {
 public:
  explicit ExpandDims(const Binding& binding)
      : Copy(binding), rank_(binding.outputs[0].rank), fresh_(axes_of(binding)) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0].rank = 0;
    const int64_t* rest = inputs[0].shape;
    for (int axis = 0; axis < rank_; ++axis) outputs[0].append((fresh_ >> axis) & 1 ? 1 : *rest++);
    return {};
  }

 private:
  int rank_;
  uint64_t fresh_;
};

class Squeeze final : public Copy {
 public:
  explicit Squeeze(const Binding& binding) : Copy(binding), gone_(axes_of(binding)) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0].rank = 0;
    for (int axis = 0; axis < inputs[0].rank; ++axis) {
      const int64_t size = inputs[0].shape[axis];
      if (((gone_ >> axis) & 1) == 0)
        outputs[0].append(size);
      else if (size != 1)
        return {Fault::Code::ShapesDiffer, 0};
    }
    return {};
  }

 private:
  uint64_t gone_;
};

class BroadcastTo final : public OpenShape {
 public:
  using OpenShape::OpenShape;

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View& x = inputs[0];
    Shape& out = outputs[0];
    if (Fault fault = OpenShape::shape(inputs, outputs)) return fault;
    const int front = out.rank - x.rank;
    for (int axis = 0; axis < x.rank; ++axis)
      if (x.shape[axis] != 1 && x.shape[axis] != out.sizes[front + axis]) return {Fault::Code::ShapesDiffer, 0};
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    Strides from;
    broadcast_strides(x, out.rank, from.steps);
    copy_strided(lanes, x, from, out, Strides(out), sizes_of(out), scratch);
    return {};
  }
};

class Transpose final : public Kernel {
 public:
  explicit Transpose(const Binding& binding) : axes_(binding.attrs.axes("axes")) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0].rank = 0;
    for (int axis : axes_) outputs[0].append(inputs[0].shape[axis]);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    const Strides of_x(x);
    Strides from;
    for (int axis = 0; axis < out.rank; ++axis) from.steps[axis] = of_x.steps[axes_[axis]];
    copy_strided(lanes, x, from, out, Strides(out), sizes_of(out), scratch);
    return {};
  }

 private:
  std::vector<int> axes_;
};

class Flip final : public SameShape {
 public:
  explicit Flip(const Binding& binding) : turned_(axes_of(binding)) {}

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    if (x.count() == 0) return {};
    Strides from(x);
    for (int axis = 0; axis < x.rank; ++axis)
      if ((turned_ >> axis) & 1) {
        from.offset += (x.shape[axis] - 1) * from.steps[axis];
        from.steps[axis] = -from.steps[axis];
      }
    copy_strided(lanes, x, from, out, Strides(out), sizes_of(out), scratch);
    return {};
  }

 private:
  uint64_t turned_;
};

class Dim final : public Kernel {
 public:
  explicit Dim(const Binding& binding) : axis_(binding.attrs.integer("axis")) {}

  Fault shape(const View*, Shape* outputs) const override {
    outputs[0].rank = 0;
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const override {
    for (int64_t lane = 0; lane < lanes; ++lane) *outputs[0].lane<int64_t>(lane) = inputs[0].shape[axis_];
    return {};
  }

 private:
  int64_t axis_;
};

/// concat along an existing axis, or stack along a new one.
template <bool kStack>
class Join final : public Kernel {
 public:
  explicit Join(const Binding& binding)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))), count_(binding.inputs.size()) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    const View& first = inputs[0];
    int64_t length = 0;
    for (size_t k = 0; k < count_; ++k) {
      for (int axis = 0; axis < first.rank; ++axis)
        if ((kStack || axis != axis_) && inputs[k].shape[axis] != first.shape[axis])
          return {Fault::Code::ShapesDiffer, 0};
      length += kStack ? 1 : inputs[k].shape[axis_];
    }
    out.rank = 0;
    for (int axis = 0; axis < axis_; ++axis) out.append(first.shape[axis]);
    out.append(length);
    for (int axis = kStack ? axis_ : axis_ + 1; axis < first.rank; ++axis) out.append(first.shape[axis]);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View& out = outputs[0];
    const int64_t element = size_of(out.dtype), outer = product(out.shape, 0, axis_);
    const int64_t row = product(out.shape, axis_, out.rank) * element;
    std::byte* place = static_cast<std::byte*>(out.data);
    for (size_t k = 0; k < count_; ++k) {
      const View& x = inputs[k];
      const int64_t piece = product(x.shape, axis_, x.rank);
      Walk<2> walk;
      walk.axis(lanes, {x.stride, out.stride});
      walk.axis(outer, {piece * element, row});
      walk.axis(piece, {element, element});
      copy_walk(walk, x.data, place, element, scratch);
      place += piece * element;
    }
    return {};
  }

  bool is_row(const View& result) const override { return product(result.shape, 0, axis_) == 1; }

 private:
  int axis_;
  size_t count_;
};

constexpr KernelRow kRows[] = {
    {"identity", forms::alike, make_kernel<Copy>},
    {"stop_gradient", forms::alike, make_kernel<Copy>},
    {"dim", forms::dim, make_kernel<Dim>},
    {"reshape", forms::reshape, make_kernel<Reshape>},
    {"broadcast_to", forms::broadcast_to, make_kernel<BroadcastTo>},
    {"transpose", forms::transpose, make_kernel<Transpose>},
    {"expand_dims", forms::expand_dims, make_kernel<ExpandDims>},
    {"squeeze", forms::squeeze, make_kernel<Squeeze>},
    {"flip", forms::flip, make_kernel<Flip>},
    {"concat", forms::concat, make_kernel<Join<false>>},
    {"stack", forms::stack, make_kernel<Join<true>>},
};

}  // namespace

std::span<const KernelRow> array_rows() { return kRows; }

}  // namespace undertow
