// Reductions along axes, and softmax: the functions of rows and of flat pieces, brought to lanes of any shape.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/families.h"
#include "kernel/groups.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

/// The operator on each element that a reduction repeats; none for logsumexp.
constexpr const char* kSteps[kReductions] = {"add",        "multiply",    "maximum", "minimum",
                                             "logical_or", "logical_and", nullptr};

/// What there is to say about one reduction of one dtype, and how to run it once the axes are known.
class Reducer {
 public:
  Reducer(Reduction kind, const Binding& binding) : kind_(kind) {
    const DType dtype = binding.inputs[0].dtype;
    row_ = binding.isa.rows->reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
    if (const char* step = kSteps[static_cast<int>(kind)]; step != nullptr && row_ != nullptr) {
      const Type pair[] = {{dtype, 0}, {dtype, 0}};
      step_ = find_elementwise(binding.isa, step, pair, dtype)->flat[0];
    }
  }

  bool is_known() const { return row_ != nullptr; }
  bool needs_elements() const { return kind_ == Reduction::Max || kind_ == Reduction::Min; }

  /// `out` has the elements that are kept, in order, whatever its shape.
  void run(int64_t lanes, const View& x, uint64_t axes, const View& out, Scratch& scratch) const {
    const Groups groups(x, axes);
    if (lanes * groups.kept == 0) return;
    const int64_t element = size_of(x.dtype), row = groups.reduced * element;
    if (!groups.is_single || (groups.inner > 1 && (step_ == nullptr || groups.reduced == 0))) {
      auto* rows = static_cast<std::byte*>(scratch.get(lanes * groups.kept * row));
      gather_reduced(lanes, x, axes, rows);
      for (int64_t lane = 0; lane < lanes; ++lane)
        reduce_rows(rows + lane * groups.kept * row, out.lane<std::byte>(lane), groups.kept, groups.reduced, element);
    } else if (groups.inner == 1) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        reduce_rows(x.lane<std::byte>(lane), out.lane<std::byte>(lane), groups.kept, groups.reduced, element);
    } else {
      for (int64_t lane = 0; lane < lanes; ++lane)
        add_up(x.lane<std::byte>(lane), out.lane<std::byte>(lane), groups, groups.inner * element);
    }
  }

 private:
  void reduce_rows(const std::byte* x, std::byte* out, int64_t count, int64_t length, int64_t element) const {
    for (int64_t k = 0; k < count; ++k) row_(x + k * length * element, out + k * element, length);
  }

  /// Row after row into the result, all columns at once.
  void add_up(const std::byte* x, std::byte* out, const Groups& groups, int64_t row) const {
    for (int64_t k = 0; k < groups.outer; ++k, out += row) {
      std::memcpy(out, x, static_cast<size_t>(row));
      x += row;
      for (int64_t r = 1; r < groups.reduced; ++r, x += row) step_(out, x, nullptr, out, groups.inner);
    }
  }

  Reduction kind_;
  ReduceRow row_ = nullptr;
  Flat step_ = nullptr;
};

class Reduce final : public Kernel {
 public:
  Reduce(const Binding& binding, const Reducer& reducer)
      : reducer_(reducer), axes_(axes_of(binding)), keepdims_(binding.attrs.flag("keepdims")) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    Shape& out = outputs[0];
    out.rank = 0;
    int64_t reduced = 1;
    for (int axis = 0; axis < inputs[0].rank; ++axis) {
      const int64_t size = inputs[0].shape[axis];
      if (((axes_ >> axis) & 1) == 0) {
        out.append(size);
      } else {
        reduced *= size;
        if (keepdims_) out.append(1);
      }
    }
    if (reduced == 0 && reducer_.needs_elements() && out.count() != 0) return {Fault::Code::NoElements, 0};
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    reducer_.run(lanes, inputs[0], axes_, outputs[0], scratch);
    return {};
  }

 private:
  Reducer reducer_;
  uint64_t axes_;
  bool keepdims_;
};

template <Reduction kKind>
std::unique_ptr<Kernel> make_reduction(const Binding& binding) {
  const Reducer reducer(kKind, binding);
  return reducer.is_known() ? std::make_unique<Reduce>(binding, reducer) : nullptr;
}

/// The sum down to a shape that would be broadcast to that of x: which axes that takes shows at run time.
class SumTo final : public OpenShape {
 public:
  explicit SumTo(const Binding& binding) : OpenShape(binding), reducer_(Reduction::Sum, binding) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View& x = inputs[0];
    Shape& out = outputs[0];
    if (Fault fault = open_shape(shape_, inputs + 1, out)) return fault;
    for (int axis = 0; axis < out.rank; ++axis)
      if (out.sizes[axis] != 1 && out.sizes[axis] != x.shape[x.rank - out.rank + axis])
        return {Fault::Code::ShapesDiffer, 0};
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    const int front = x.rank - out.rank;
    uint64_t axes = (uint64_t{1} << front) - 1;
    for (int axis = 0; axis < out.rank; ++axis)
      if (out.shape[axis] != x.shape[front + axis]) axes |= uint64_t{1} << (front + axis);
    reducer_.run(lanes, x, axes, out, scratch);
    return {};
  }

 private:
  Reducer reducer_;
};

class Softmax final : public SameShape {
 public:
  Softmax(const Binding& binding, MapRow row) : row_(row), axes_(axes_of(binding)) { in_place_ = 1; }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    const Groups groups(x, axes_);
    const int64_t row = groups.reduced * size_of(x.dtype);
    if (row * groups.kept * lanes == 0) return {};
    if (groups.is_single && groups.inner == 1) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t k = 0; k < groups.kept; ++k)
          row_(x.lane<std::byte>(lane) + k * row, out.lane<std::byte>(lane) + k * row, groups.reduced);
      return {};
    }
    auto* rows = static_cast<std::byte*>(scratch.get(lanes * groups.kept * row));
    gather_reduced(lanes, x, axes_, rows);
    for (int64_t k = 0; k < lanes * groups.kept; ++k) row_(rows + k * row, rows + k * row, groups.reduced);
    spread_reduced(lanes, rows, axes_, out);
    return {};
  }

 private:
  MapRow row_;
  uint64_t axes_;
};

std::unique_ptr<Kernel> make_sum_to(const Binding& binding) {
  return Reducer(Reduction::Sum, binding).is_known() ? std::make_unique<SumTo>(binding) : nullptr;
}

template <MapRow (RowFunctions::*kTable)[kDTypes]>
std::unique_ptr<Kernel> make_softmax(const Binding& binding) {
  const MapRow row = (binding.isa.rows->*kTable)[static_cast<int>(binding.inputs[0].dtype)];
  return row == nullptr ? nullptr : std::make_unique<Softmax>(binding, row);
}

constexpr KernelRow kRows[] = {
    {"sum", forms::reduction, make_reduction<Reduction::Sum>},
    {"prod", forms::reduction, make_reduction<Reduction::Prod>},
    {"max", forms::reduction, make_reduction<Reduction::Max>},
    {"min", forms::reduction, make_reduction<Reduction::Min>},
    {"any", forms::reduction, make_reduction<Reduction::Any>},
    {"all", forms::reduction, make_reduction<Reduction::All>},
    {"logsumexp", forms::reduction, make_reduction<Reduction::LogSumExp>},
    {"sum_to", forms::sum_to, make_sum_to},
    {"softmax", forms::softmax, make_softmax<&RowFunctions::softmax>},
    {"log_softmax", forms::softmax, make_softmax<&RowFunctions::log_softmax>},
};

}  // namespace

std::span<const KernelRow> reduce_rows() { return kRows; }

}  // namespace undertow
