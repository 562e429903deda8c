// Along one axis, a result for each element or for each row of them: running sums, positions, orders.
#include <algorithm>
#include <numeric>

#include "kernel/families.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

/// A scan of x into out, all of one lane.
using Scanning = void (*)(const void* x, void* out, const Line& line, bool flag, Scratch& scratch);

template <class T>
void cumsum(const void* source, void* target, const Line& line, bool, Scratch&) {
  const T* x = static_cast<const T*>(source);
  T* out = static_cast<T*>(target);
  for (int64_t k = 0; k < line.outer; ++k) {
    for (int64_t i = 0; i < line.length * line.inner; ++i, ++x, ++out)
      *out = i < line.inner ? *x : out[-line.inner] + *x;
  }
}

/// Products from the front and from the back: no division, so zeros are right.
template <class T>
void prod_others(const void* source, void* target, const Line& line, bool, Scratch&) {
  const T* x = static_cast<const T*>(source);
  T* out = static_cast<T*>(target);
  for (int64_t k = 0; k < line.outer; ++k, x += line.length * line.inner, out += line.length * line.inner) {
    for (int64_t column = 0; column < line.inner; ++column) {
      T before = 1, after = 1;
      for (int64_t r = 0; r < line.length; ++r) {
        out[r * line.inner + column] = before;
        before *= x[r * line.inner + column];
      }
      for (int64_t r = line.length - 1; r >= 0; --r) {
        out[r * line.inner + column] *= after;
        after *= x[r * line.inner + column];
      }
    }
  }
}

template <class T>
bool is_before(T a, T b) {
  return a < b || (b != b && a == a);  // nan counts as largest
}

template <class T>
void sort(const void* source, void* target, const Line& line, bool descending, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  T* out = static_cast<T*>(target);
  T* row = static_cast<T*>(scratch.get(line.length * static_cast<int64_t>(sizeof(T))));
  for (int64_t k = 0; k < line.outer * line.inner; ++k) {
    const int64_t start = k / line.inner * line.length * line.inner + k % line.inner;
    for (int64_t r = 0; r < line.length; ++r) row[r] = x[start + r * line.inner];
    std::stable_sort(row, row + line.length, is_before<T>);
    if (descending) std::reverse(row, row + line.length);
    for (int64_t r = 0; r < line.length; ++r) out[start + r * line.inner] = row[r];
  }
}

template <class T>
void argsort(const void* source, void* target, const Line& line, bool descending, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  int64_t* out = static_cast<int64_t*>(target);
  int64_t* order = static_cast<int64_t*>(scratch.get(line.length * static_cast<int64_t>(sizeof(int64_t))));
  for (int64_t k = 0; k < line.outer * line.inner; ++k) {
    const int64_t start = k / line.inner * line.length * line.inner + k % line.inner;
    std::iota(order, order + line.length, 0);
    if (descending) std::reverse(order, order + line.length);  // and again below: equal elements keep their order
    std::stable_sort(order, order + line.length, [&](int64_t a, int64_t b) {
      return is_before(x[start + a * line.inner], x[start + b * line.inner]);
    });
    if (descending) std::reverse(order, order + line.length);
    for (int64_t r = 0; r < line.length; ++r) out[start + r * line.inner] = order[r];
  }
}

/// The first place of the largest (or smallest) element; the first nan, where there is one.
template <class T, bool kLargest>
void position(const void* source, void* target, const Line& line, bool, Scratch&) {
  const T* x = static_cast<const T*>(source);
  int64_t* out = static_cast<int64_t*>(target);
  for (int64_t k = 0; k < line.outer * line.inner; ++k) {
    const T* row = x + k / line.inner * line.length * line.inner + k % line.inner;
    T best = row[0];
    int64_t at = 0;
    for (int64_t r = 1; r < line.length && best == best; ++r) {
      const T value = row[r * line.inner];
      if (kLargest ? value > best || value != value : value < best || value != value) {
        best = value;
        at = r;
      }
    }
    out[k] = at;
  }
}

/// Which attribute says more than the axis, and what becomes of the axis.
enum class Kind : uint8_t { Plain, Sorted, Position };

class AlongAxis final : public Kernel {
 public:
  AlongAxis(const Binding& binding, Scanning scan, Kind kind)
      : scan_(scan), kind_(kind), axis_(static_cast<int>(binding.attrs.integer("axis"))) {
    if (kind == Kind::Sorted) flag_ = binding.attrs.flag("descending");
    if (kind == Kind::Position) flag_ = binding.attrs.flag("keepdims");
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View& x = inputs[0];
    Shape& out = outputs[0];
    if (kind_ != Kind::Position) {
      out = Shape(x);
      return {};
    }
    if (x.shape[axis_] == 0) return {Fault::Code::NoElements, 0};
    out.rank = 0;
    for (int axis = 0; axis < x.rank; ++axis) {
      if (axis != axis_)
        out.append(x.shape[axis]);
      else if (flag_)
        out.append(1);
    }
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const Line line(inputs[0], axis_);
    for (int64_t lane = 0; lane < lanes; ++lane)
      scan_(inputs[0].lane<void>(lane), outputs[0].lane<void>(lane), line, flag_, scratch);
    return {};
  }

 private:
  Scanning scan_;
  Kind kind_;
  int axis_;
  bool flag_ = false;
};

template <Kind kKind, Scanning kI32, Scanning kI64, Scanning kF32, Scanning kF64>
std::unique_ptr<Kernel> make_scan(const Binding& binding) {
  constexpr Scanning all[kDTypes] = {nullptr, kI32, kI64, kF32, kF64};
  const Scanning scan = all[static_cast<int>(binding.inputs[0].dtype)];
  return scan == nullptr ? nullptr : std::make_unique<AlongAxis>(binding, scan, kKind);
}

#define UNDERTOW_SCAN(kind, f) make_scan<Kind::kind, f<int32_t>, f<int64_t>, f<float>, f<double>>
#define UNDERTOW_POSITION(largest)                                                                            \
  make_scan<Kind::Position, position<int32_t, largest>, position<int64_t, largest>, position<float, largest>, \
            position<double, largest>>

constexpr KernelRow kRows[] = {
    {"cumsum", forms::scan, UNDERTOW_SCAN(Plain, cumsum)},
    {"prod_others", forms::scan, UNDERTOW_SCAN(Plain, prod_others)},
    {"sort", forms::sort, UNDERTOW_SCAN(Sorted, sort)},
    {"argsort", forms::argsort, UNDERTOW_SCAN(Sorted, argsort)},
    {"argmax", forms::position, UNDERTOW_POSITION(true)},
    {"argmin", forms::position, UNDERTOW_POSITION(false)},
};

}  // namespace

std::span<const KernelRow> scan_rows() { return kRows; }

}  // namespace undertow
