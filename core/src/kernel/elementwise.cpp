// Elementwise operators over lanes, with broadcasting.
#include "undertow/elementwise.h"

#include "kernel/families.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

class ElementwiseKernel final : public Kernel {
 public:
  explicit ElementwiseKernel(const Elementwise& op) : op_(op), bytes_(size_of(op.output)) {
    for (int k = 0; k < op.arity; ++k) bytes_ += size_of(op.inputs[k]);
  }

  const Elementwise* elementwise() const override { return &op_; }

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    out = Shape(inputs[0]);
    for (int k = 1; k < op_.arity; ++k) {
      const View& view = inputs[k];
      Shape wider;
      wider.rank = std::max(out.rank, view.rank);
      for (int back = 1; back <= wider.rank; ++back) {  // from the last axis
        const int64_t a = back <= out.rank ? out.sizes[out.rank - back] : 1;
        const int64_t b = back <= view.rank ? view.shape[view.rank - back] : 1;
        if (a != b && a != 1 && b != 1) return {Fault::Code::ShapesDiffer, 0};
        wider.sizes[wider.rank - back] = a == 1 ? b : a;
      }
      out = wider;
    }
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    if (lanes == 0) return {};
    if (op_.scan != nullptr)
      if (Fault fault = scan(lanes, inputs[1], scratch)) return fault;
    const View& out = outputs[0];
    const int64_t count = out.count();
    unsigned single = 0;
    if (!is_flat(lanes, out, count)) return run_strided(lanes, inputs, out, scratch);
    for (int k = 0; k < op_.arity; ++k) {
      const int64_t own = inputs[k].count();
      if (own == 1 && (lanes == 1 || inputs[k].stride == 0) && lanes * count != 1)
        single |= 1u << k;
      else if (own != count || !is_flat(lanes, inputs[k], count))
        return run_strided(lanes, inputs, out, scratch);
    }
    const Flat flat = op_.flat[single];
    if (flat == nullptr) return run_strided(lanes, inputs, out, scratch);
    if (lanes * count * bytes_ > Scratch::kStep) return run_in_steps(flat, single, lanes * count, inputs, out, scratch);
    flat(inputs[0].data, op_.arity > 1 ? inputs[1].data : nullptr, op_.arity > 2 ? inputs[2].data : nullptr, out.data,
         lanes * count);
    scratch.worked(lanes * count * bytes_);
    return {};
  }

 private:
  static bool is_flat(int64_t lanes, const View& view, int64_t count) {
    return lanes == 1 || view.stride == count * size_of(view.dtype);
  }

  /// Operands whose bit is set in `single` have one element.
  [[gnu::noinline]] Fault run_in_steps(Flat flat, unsigned single, int64_t count, const View* inputs, const View& out,
                                       Scratch& scratch) const {
    scratch.in_steps(count, bytes_, [&](int64_t first, int64_t some) {
      const void* at[3] = {};
      for (int k = 0; k < op_.arity; ++k)
        at[k] = static_cast<std::byte*>(inputs[k].data) + ((single >> k & 1) != 0 ? 0 : first * size_of(op_.inputs[k]));
      flat(at[0], at[1], at[2], static_cast<std::byte*>(out.data) + first * size_of(op_.output), some);
    });
    return {};
  }

  Fault scan(int64_t lanes, const View& view, Scratch& scratch) const {
    const int64_t count = view.count(), element = size_of(view.dtype);
    const auto first_bad = [&](const std::byte* data, int64_t n) {
      int64_t bad = -1;
      scratch.in_steps(n, element, [&](int64_t first, int64_t some) {
        if (bad >= 0) return;
        bad = op_.scan(data + first * element, some);
        if (bad >= 0) bad += first;
      });
      return bad;
    };
    if (view.stride == 0 || lanes == 1 || is_flat(lanes, view, count)) {
      const int64_t bad = first_bad(view.lane<std::byte>(0), view.stride == 0 ? count : lanes * count);
      return bad < 0 ? Fault{} : Fault{op_.code, bad / count};
    }
    for (int64_t lane = 0; lane < lanes; ++lane)
      if (first_bad(view.lane<std::byte>(lane), count) >= 0) return {op_.code, lane};
    return {};
  }

  Fault run_strided(int64_t lanes, const View* inputs, const View& out, Scratch& scratch) const {
    constexpr int kArrays = 4;  // three operands, the output last
    int64_t strides[kArrays][kMostAxes] = {};
    for (int k = 0; k < op_.arity; ++k) broadcast_strides(inputs[k], out.rank, strides[k]);
    dense_strides(out.shape, out.rank, size_of(out.dtype), strides[3]);
    Walk<kArrays> walk;
    std::byte* pointers[kArrays] = {};
    int64_t steps[kArrays] = {0, 0, 0, out.stride};
    for (int k = 0; k < op_.arity; ++k) {
      pointers[k] = static_cast<std::byte*>(inputs[k].data);
      steps[k] = inputs[k].stride;
    }
    pointers[3] = static_cast<std::byte*>(out.data);
    walk.axis(lanes, steps);
    for (int axis = 0; axis < out.rank; ++axis)
      walk.axis(out.shape[axis], {strides[0][axis], strides[1][axis], strides[2][axis], strides[3][axis]});
    const int64_t element = size_of(op_.output);
    walk.each_run(pointers, scratch, bytes_, [&](std::byte* const* at, const int64_t* step, int64_t n) {
      unsigned single = 0;
      bool runs = step[3] == element;
      for (int k = 0; k < op_.arity; ++k) {
        if (step[k] == 0)
          single |= 1u << k;
        else
          runs = runs && step[k] == size_of(op_.inputs[k]);
      }
      if (const Flat flat = op_.flat[single]; flat != nullptr && runs) {
        flat(at[0], at[1], at[2], at[3], n);
        return;
      }
      for (int64_t i = 0; i < n; ++i)
        op_.flat[0](at[0] + i * step[0], at[1] + i * step[1], at[2] + i * step[2], at[3] + i * step[3], 1);
    });
    return {};
  }

  const Elementwise& op_;  // in a static table
  int64_t bytes_;          // of an element of all operands and the result
};

template <class T>
void add(void* to, const void* from, int64_t count) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
  for (int64_t k = 0; k < count; ++k) out[k] += in[k];
}

}  // namespace

void add_floats(DType dtype, void* to, const void* from, int64_t count) {
  const DType part = part_of(dtype);
  count *= size_of(dtype) / size_of(part);
  part == DType::F32 ? add<float>(to, from, count) : add<double>(to, from, count);
}

std::unique_ptr<Kernel> make_elementwise(std::string_view op, const Binding& binding) {
  if (!forms::broadcast(binding)) return nullptr;
  const Elementwise* row = find_elementwise(binding.isa, op, binding.inputs, binding.outputs[0].dtype);
  return row == nullptr ? nullptr : std::make_unique<ElementwiseKernel>(*row);
}

}  // namespace undertow
