// Scans along one axis: cumsum, recurrence, prod_others, sort and argsort, argmax and argmin.
#include <algorithm>

#include "isa/complex.h"
#include "kernel/families.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

/// Scan one lane of x into out.
using Scanning = void (*)(const void* x, void* out, const Line& line, bool flag, Scratch& scratch);

template <class T>
void cumsum(const void* source, void* target, const Line& line, bool, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  T* out = static_cast<T*>(target);
  for (int64_t k = 0; k < line.outer; ++k) {
    scratch.in_steps(line.length * line.inner, 2 * sizeof(T), [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i, ++x, ++out) *out = i < line.inner ? *x : out[-line.inner] + *x;
    });
  }
}

/// Products from the front and from the back: without division, so zeros are handled.
template <class T>
void prod_others(const void* source, void* target, const Line& line, bool, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  T* out = static_cast<T*>(target);
  for (int64_t k = 0; k < line.outer; ++k, x += line.length * line.inner, out += line.length * line.inner) {
    for (int64_t column = 0; column < line.inner; ++column) {
      T before = 1, after = 1;
      scratch.in_steps(line.length, 2 * sizeof(T), [&](int64_t first, int64_t count) {
        for (int64_t r = first; r < first + count; ++r) {
          out[r * line.inner + column] = before;
          before *= x[r * line.inner + column];
        }
      });
      scratch.in_steps(line.length, 3 * sizeof(T), [&](int64_t first, int64_t count) {
        for (int64_t r = line.length - 1 - first; r > line.length - 1 - first - count; --r) {
          out[r * line.inner + column] *= after;
          after *= x[r * line.inner + column];
        }
      });
    }
  }
}

template <class T>
bool is_before(T a, T b) {
  return a < b || (b != b && a == a);  // nan counts as largest
}

/// Sort a row, with as much room beside it: short runs first, then two of them into one until one is left. Where they
/// are in the end, in the row or in the room.
template <class Element, class Less>
Element* merge_sort(Element* row, Element* room, int64_t length, Scratch& scratch, Less&& less) {
  constexpr int64_t kRun = 1024;
  scratch.in_steps((length + kRun - 1) / kRun, 16 * kRun * sizeof(Element), [&](int64_t first, int64_t count) {
    for (int64_t k = first * kRun; k < (first + count) * kRun; k += kRun)
      std::stable_sort(row + std::min(k, length), row + std::min(k + kRun, length), less);
  });
  for (int64_t run = kRun; run < length; run *= 2, std::swap(row, room)) {
    for (int64_t k = 0; k < length; k += 2 * run) {
      const Element *a = row + k, *b = row + std::min(k + run, length);
      const Element *const a_end = b, *const b_end = row + std::min(k + 2 * run, length);
      Element* out = room + k;
      while (a < a_end && b < b_end) {  // so many elements that neither run can end before
        const int64_t count = std::min({a_end - a, b_end - b, kRun});
        for (int64_t n = 0; n < count; ++n) {
          const bool takes_b = less(*b, *a);
          *out++ = takes_b ? *b : *a;
          a += !takes_b;
          b += takes_b;
        }
        scratch.worked(4 * count * sizeof(Element));
      }
      std::copy(b, b_end, std::copy(a, a_end, out));
    }
  }
  return row;
}

/// Sort each row along the axis: the elements that `first_order` names at first, put in order by their `key`.
/// Descending means from the back, before and after: so equal elements keep their order.
template <class Element, class Result, class FirstOrder, class Key>
void sort_rows(Result* out, const Line& line, bool descending, Scratch& scratch, FirstOrder&& first_order, Key&& key) {
  Element* row = static_cast<Element*>(scratch.get(2 * line.length * static_cast<int64_t>(sizeof(Element))));
  for (int64_t k = 0; k < line.outer * line.inner; ++k) {
    const int64_t start = line.start(k);
    const auto each = [&](auto&& work) {
      scratch.in_steps(line.length, 2 * sizeof(Element), [&](int64_t first, int64_t count) {
        for (int64_t r = first; r < first + count; ++r) work(r, descending ? line.length - 1 - r : r);
      });
    };
    each([&](int64_t r, int64_t from) { row[r] = first_order(start, from); });
    const Element* sorted = merge_sort(row, row + line.length, line.length, scratch,
                                       [&](Element a, Element b) { return is_before(key(start, a), key(start, b)); });
    each([&](int64_t r, int64_t to) { out[start + to * line.inner] = sorted[r]; });
  }
}

template <class T>
void sort(const void* source, void* target, const Line& line, bool descending, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  sort_rows<T>(
      static_cast<T*>(target), line, descending, scratch,
      [&](int64_t start, int64_t r) { return x[start + r * line.inner]; }, [](int64_t, T value) { return value; });
}

template <class T>
void argsort(const void* source, void* target, const Line& line, bool descending, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  sort_rows<int64_t>(
      static_cast<int64_t*>(target), line, descending, scratch, [](int64_t, int64_t r) { return r; },
      [&](int64_t start, int64_t r) { return x[start + r * line.inner]; });
}

/// The index of the first largest (or smallest) element; of the first nan, if there is one.
template <class T, bool kLargest>
void position(const void* source, void* target, const Line& line, bool, Scratch& scratch) {
  const T* x = static_cast<const T*>(source);
  int64_t* out = static_cast<int64_t*>(target);
  for (int64_t k = 0; k < line.outer * line.inner; ++k) {
    const T* row = x + line.start(k);
    T best = row[0];
    int64_t at = 0;
    scratch.in_steps(line.length, sizeof(T), [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count && best == best; ++r) {
        const T value = row[r * line.inner];
        if (kLargest ? value > best || value != value : value < best || value != value) {
          best = value;
          at = r;
        }
      }
    });
    out[k] = at;
  }
}

/// Which further attribute the operator has, and what becomes of the axis.
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

/// y[k] = a[k] * y[k - 1] + b[k] along an axis.
template <class T>
class Recurrence final : public Kernel {
 public:
  explicit Recurrence(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View &a = inputs[0], &b = inputs[1];
    if (!std::equal(a.shape, a.shape + a.rank, b.shape)) return {Fault::Code::ShapesDiffer, 0};
    outputs[0] = Shape(b);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const Line line(inputs[0], axis_);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const T *a = inputs[0].lane<T>(lane), *b = inputs[1].lane<T>(lane);
      T* out = outputs[0].lane<T>(lane);
      for (int64_t k = 0; k < line.outer; ++k)
        scratch.in_steps(line.length * line.inner, 3 * sizeof(T), [&](int64_t first, int64_t count) {
          for (int64_t i = first; i < first + count; ++i, ++a, ++b, ++out)
            *out = i < line.inner ? *b : *b + *a * out[-line.inner];
        });
    }
    return {};
  }

 private:
  int axis_;
};

template <Kind kKind, Scanning kI32, Scanning kI64, Scanning kF32, Scanning kF64, Scanning kC64 = nullptr,
          Scanning kC128 = nullptr>
std::unique_ptr<Kernel> make_scan(const Binding& binding) {
  constexpr Scanning all[kDTypes] = {nullptr, kI32, kI64, kF32, kF64, kC64, kC128};
  const Scanning scan = all[static_cast<int>(binding.inputs[0].dtype)];
  return scan == nullptr ? nullptr : std::make_unique<AlongAxis>(binding, scan, kKind);
}

#define UNDERTOW_SCAN(kind, f, ...)                                                                   \
  make_scan<Kind::kind, f<int32_t __VA_OPT__(, ) __VA_ARGS__>, f<int64_t __VA_OPT__(, ) __VA_ARGS__>, \
            f<float __VA_OPT__(, ) __VA_ARGS__>, f<double __VA_OPT__(, ) __VA_ARGS__>>

#define UNDERTOW_SCAN_ALL(f) \
  make_scan<Kind::Plain, f<int32_t>, f<int64_t>, f<float>, f<double>, f<Complex<float>>, f<Complex<double>>>

constexpr KernelRow kRows[] = {
    {"cumsum", forms::scan, UNDERTOW_SCAN_ALL(cumsum)},
    {"prod_others", forms::scan, UNDERTOW_SCAN_ALL(prod_others)},
    {"recurrence", forms::recurrence,
     make_by_dtype<Recurrence<int32_t>, Recurrence<int64_t>, Recurrence<float>, Recurrence<double>,
                   Recurrence<Complex<float>>, Recurrence<Complex<double>>>},
    {"sort", forms::sort, UNDERTOW_SCAN(Sorted, sort)},
    {"argsort", forms::argsort, UNDERTOW_SCAN(Sorted, argsort)},
    {"argmax", forms::position, UNDERTOW_SCAN(Position, position, true)},
    {"argmin", forms::position, UNDERTOW_SCAN(Position, position, false)},
};

}  // namespace

std::span<const KernelRow> scan_rows() { return kRows; }

}  // namespace undertow
