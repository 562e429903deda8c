// Reductions along axes, and softmax, over lanes of any shape, by the row and flat functions of the instruction set.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "kernel/families.h"
#include "kernel/groups.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

/// The elementwise operator that a reduction folds with; none for logsumexp.
constexpr const char* kSteps[kReductions] = {"add",        "multiply",    "maximum", "minimum",
                                             "logical_or", "logical_and", nullptr};

constexpr int64_t kLong = int64_t{1} << 17;  // elements of a row that are reduced at once

/// Reduce a row; a long one part by part, and then the parts, as every reduction may be.
void reduce_row(ReduceRow reduce, const std::byte* x, std::byte* out, int64_t length, int64_t element,
                Scratch& scratch) {
  if (length <= kLong) {
    reduce(x, out, length);
    return scratch.worked(length * element);
  }
  std::vector<std::complex<double>> parts(static_cast<size_t>((length + kLong - 1) / kLong));  // of any dtype
  auto* part = reinterpret_cast<std::byte*>(parts.data());
  for (int64_t first = 0; first < length; first += kLong, part += element) {
    const int64_t count = std::min(kLong, length - first);
    reduce(x + first * element, part, count);
    scratch.worked(count * element);
  }
  reduce(parts.data(), out, static_cast<int64_t>(parts.size()));
}

/// One reduction of one dtype; its axes are given when it runs.
class Reducer {
 public:
  Reducer(Reduction kind, const Binding& binding) : kind_(kind) {
    const DType dtype = binding.inputs[0].dtype;
    row_ = binding.isa.rows->reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
    if (const char* step = kSteps[static_cast<int>(kind)]; step != nullptr && row_ != nullptr) {
      const Type pair[] = {{dtype, 0}, {dtype, 0}};
      const Elementwise* each = find_elementwise(binding.isa, step, pair, dtype);
      step_ = each->flat[0];
      if (kind == Reduction::Sum) first_ = each->flat[2];
    }
  }

  bool is_known() const { return row_ != nullptr; }
  bool needs_elements() const { return kind_ == Reduction::Max || kind_ == Reduction::Min; }

  /// `out` gets the kept elements in order; its shape does not matter.
  void run(int64_t lanes, const View& x, uint64_t axes, const View& out, Scratch& scratch) const {
    const Groups groups(x, axes);
    if (lanes * groups.kept == 0) return;
    const int64_t element = size_of(x.dtype), row = groups.reduced * element;
    if (!groups.is_single || (groups.inner > 1 && (step_ == nullptr || groups.reduced == 0))) {
      auto* rows = static_cast<std::byte*>(scratch.get(lanes * groups.kept * row));
      gather_reduced(lanes, x, axes, rows, scratch);
      for (int64_t lane = 0; lane < lanes; ++lane)
        reduce_rows(rows + lane * groups.kept * row, out.lane<std::byte>(lane), groups.kept, groups.reduced, element,
                    scratch);
    } else if (groups.inner == 1) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        reduce_rows(x.lane<std::byte>(lane), out.lane<std::byte>(lane), groups.kept, groups.reduced, element, scratch);
    } else {
      for (int64_t lane = 0; lane < lanes; ++lane)
        add_up(x.lane<std::byte>(lane), out.lane<std::byte>(lane), groups, groups.inner * element, scratch);
    }
  }

 private:
  void reduce_rows(const std::byte* x, std::byte* out, int64_t count, int64_t length, int64_t element,
                   Scratch& scratch) const {
    for (int64_t k = 0; k < count; ++k)
      reduce_row(row_, x + k * length * element, out + k * element, length, element, scratch);
  }

  static constexpr int64_t kRows = 64;  // between two looks up

  /// Fold row after row into the result, all columns at once.
  void add_up(const std::byte* x, std::byte* out, const Groups& groups, int64_t row, Scratch& scratch) const {
    static constexpr std::complex<double> zero = 0;  // of every dtype: all its bits are
    const int64_t element = row / groups.inner;
    const Flat step = step_;
    for (int64_t k = 0; k < groups.outer; ++k, x += groups.reduced * row, out += row) {
      scratch.in_steps(groups.inner, 2 * element, [&](int64_t first, int64_t count) {
        std::byte* to = out + first * element;
        const std::byte* from = x + first * element;
        if (first_ != nullptr)
          first_(from, &zero, nullptr, to, count);  // a sum begins with 0, so it never is -0
        else
          std::memcpy(to, from, static_cast<size_t>(count * element));
        for (int64_t r = 1; r < groups.reduced;) {
          const int64_t rows = std::min(kRows, groups.reduced - r);
          for (const int64_t end = r + rows; r < end; ++r) {
            from += row;
            step(to, from, nullptr, to, count);
          }
          scratch.worked(rows * count * element);
        }
      });
    }
  }

  Reduction kind_;
  ReduceRow row_ = nullptr;
  Flat step_ = nullptr;
  Flat first_ = nullptr;  ///< what adds one number to all, of a sum
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

/// Sums x to a shape that broadcasts to that of x. Which axes are summed is known only at run time.
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

/// softmax or log_softmax of a row. One that is too long for a single step is done by operators on each element.
template <bool kLog>
class SoftmaxRow {
 public:
  explicit SoftmaxRow(const Binding& binding) {
    const DType dtype = binding.inputs[0].dtype;
    const Type pair[] = {{dtype, 0}, {dtype, 0}};
    const RowFunctions& rows = *binding.isa.rows;
    const auto reduction = [&](Reduction kind) { return rows.reduce[static_cast<int>(kind)][static_cast<int>(dtype)]; };
    row_ = (kLog ? rows.log_softmax : rows.softmax)[static_cast<int>(dtype)];
    if (row_ == nullptr) return;
    element_ = size_of(dtype);
    top_ = reduction(Reduction::Max);
    total_ = reduction(kLog ? Reduction::LogSumExp : Reduction::Sum);
    subtract_ = find_elementwise(binding.isa, "subtract", pair, dtype)->flat[0b10];
    exp_ = find_elementwise(binding.isa, "exp", {pair, 1}, dtype)->flat[0];
    scale_ = kLog ? subtract_ : find_elementwise(binding.isa, "divide", pair, dtype)->flat[0b10];
  }

  bool is_known() const { return row_ != nullptr; }

  void run(const std::byte* x, std::byte* out, int64_t n, Scratch& scratch) const {
    if (n <= kLong) {
      row_(x, out, n);
      return scratch.worked(2 * n * element_);
    }
    alignas(double) std::byte one[sizeof(double)];
    const auto each = [&](Flat flat, const std::byte* from) {
      scratch.in_steps(n, 2 * element_, [&](int64_t first, int64_t count) {
        flat(from + first * element_, one, nullptr, out + first * element_, count);
      });
    };
    reduce_row(top_, x, one, n, element_, scratch);
    each(subtract_, x);
    if (!kLog) each(exp_, out);
    reduce_row(total_, out, one, n, element_, scratch);
    each(scale_, out);
  }

 private:
  MapRow row_;
  int64_t element_ = 0;
  ReduceRow top_ = nullptr, total_ = nullptr;
  Flat subtract_ = nullptr, exp_ = nullptr, scale_ = nullptr;
};

template <bool kLog>
class Softmax final : public SameShape {
 public:
  Softmax(const Binding& binding, const SoftmaxRow<kLog>& row) : row_(row), axes_(axes_of(binding)) {}

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    const Groups groups(x, axes_);
    const int64_t row = groups.reduced * size_of(x.dtype);
    if (row * groups.kept * lanes == 0) return {};
    if (groups.is_single && groups.inner == 1) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t k = 0; k < groups.kept; ++k)
          row_.run(x.lane<std::byte>(lane) + k * row, out.lane<std::byte>(lane) + k * row, groups.reduced, scratch);
      return {};
    }
    auto* rows = static_cast<std::byte*>(scratch.get(lanes * groups.kept * row));
    gather_reduced(lanes, x, axes_, rows, scratch);
    for (int64_t k = 0; k < lanes * groups.kept; ++k) row_.run(rows + k * row, rows + k * row, groups.reduced, scratch);
    spread_reduced(lanes, rows, axes_, out, scratch);
    return {};
  }

 private:
  SoftmaxRow<kLog> row_;
  uint64_t axes_;
};

std::unique_ptr<Kernel> make_sum_to(const Binding& binding) {
  return Reducer(Reduction::Sum, binding).is_known() ? std::make_unique<SumTo>(binding) : nullptr;
}

template <bool kLog>
std::unique_ptr<Kernel> make_softmax(const Binding& binding) {
  const SoftmaxRow<kLog> row(binding);
  return row.is_known() ? std::make_unique<Softmax<kLog>>(binding, row) : nullptr;
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
    {"softmax", forms::softmax, make_softmax<false>},
    {"log_softmax", forms::softmax, make_softmax<true>},
};

}  // namespace

std::span<const KernelRow> reduce_rows() { return kRows; }

}  // namespace undertow
