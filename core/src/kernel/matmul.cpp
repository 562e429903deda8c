// matmul over lanes: lanes that share an operand are one wide product.
#include "undertow/matmul.h"

#include <algorithm>
#include <type_traits>

#include "isa/complex.h"
#include "kernel/families.h"
#include "kernel/gemm.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

/// The operands of one product: x is [batch..., m, k] and y [batch..., k, n]; vectors are a row and a column.
struct Form {
  int64_t m, k, n;
  int batches;  ///< number of batch axes of the result

  Form(const View& x, const View& y)
      : m(x.rank > 1 ? x.shape[x.rank - 2] : 1),
        k(x.shape[x.rank - 1]),
        n(y.rank > 1 ? y.shape[y.rank - 1] : 1),
        batches(std::max({x.rank - 2, y.rank - 2, 0})) {}
};

int64_t batch_size(const View& view, int batches, int axis) {
  const int own = axis - (batches - std::max(view.rank - 2, 0));
  return own >= 0 ? view.shape[own] : 1;
}

class Matmul : public Kernel {
 public:
  Fault shape(const View* inputs, Shape* outputs) const final {
    const View &x = inputs[0], &y = inputs[1];
    const Fault wrong{Fault::Code::ShapesDiffer, 0};
    const Form form(x, y);
    if (y.shape[y.rank > 1 ? y.rank - 2 : 0] != form.k) return wrong;
    Shape& out = outputs[0];
    out.rank = 0;
    for (int axis = 0; axis < form.batches; ++axis) {
      const int64_t a = batch_size(x, form.batches, axis), b = batch_size(y, form.batches, axis);
      if (a != b && a != 1 && b != 1) return wrong;
      out.append(a == 1 ? b : a);
    }
    if (x.rank > 1) out.append(form.m);
    if (y.rank > 1) out.append(form.n);
    return {};
  }

 protected:
  /// Call f for each lane and each index of the batch axes.
  template <class F>
  static void each_product(int64_t lanes, const View& x, const View& y, const View& out, const Form& form,
                           Scratch& scratch, F&& f) {
    const int64_t element = size_of(out.dtype);
    Walk<3> walk;
    walk.axis(lanes, {x.stride, y.stride, out.stride});
    int64_t steps[3][kMostAxes],
        next[3] = {form.m * form.k * element, form.k * form.n * element, form.m * form.n * element};
    for (int axis = form.batches - 1; axis >= 0; --axis) {
      const int64_t sizes[3] = {batch_size(x, form.batches, axis), batch_size(y, form.batches, axis), out.shape[axis]};
      for (int k = 0; k < 3; ++k) {
        steps[k][axis] = sizes[k] == 1 && out.shape[axis] != 1 ? 0 : next[k];
        next[k] *= sizes[k];
      }
    }
    for (int axis = 0; axis < form.batches; ++axis)
      walk.axis(out.shape[axis], {steps[0][axis], steps[1][axis], steps[2][axis]});
    std::byte* pointers[3] = {static_cast<std::byte*>(x.data), static_cast<std::byte*>(y.data),
                              static_cast<std::byte*>(out.data)};
    walk.each_run(pointers, scratch, Scratch::products(form.m * form.n * form.k),
                  [&](std::byte* const* at, const int64_t* step, int64_t count) {
                    for (int64_t i = 0; i < count; ++i)
                      f(at[0] + i * step[0], at[1] + i * step[1], at[2] + i * step[2]);
                  });
  }
};

class FloatMatmul final : public Matmul {
 public:
  explicit FloatMatmul(const Binding& binding)
      : isa_(binding.isa), gemm_(*binding.isa.gemm[static_cast<int>(binding.inputs[0].dtype)]) {
    is_product_ = true;
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    return run_with(lanes, inputs, outputs, scratch, nullptr);
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch, Keeper& keeper) const override {
    return run_with(lanes, inputs, outputs, scratch, &keeper);
  }

 private:
  Fault run_with(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch, Keeper* keeper) const {
    const View &x = inputs[0], &y = inputs[1], &out = outputs[0];
    if (lanes == 0 || out.count() == 0) return {};
    const Form form(x, y);
    const int64_t element = size_of(x.dtype);
    const auto is_dense = [lanes](const View& view) { return lanes == 1 || view.stride == view.bytes(); };
    if (y.rank == 1) {
      const int64_t rows = x.count() / std::max<int64_t>(form.k, 1);
      if (form.k > 0 && y.stride == 0 && is_dense(x) && is_dense(out)) {  // all rows of all lanes, one vector
        rows_times(lanes * rows, 1, form.k, x.data, y.data, 0, out.data, 0, element, scratch);
      } else if (x.rank == 2 && (x.stride == 0 || lanes == 1)) {  // one matrix, a vector for each lane
        turned(lanes, form, inputs, out, scratch, keeper);
      } else {
        const int64_t bytes = form.m * form.k * element;
        each_product(lanes, x, y, out, form, scratch, [&](std::byte* a, std::byte* b, std::byte* z) {
          for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(a + bytes + line, 0, 2);  // the next one
          rows_times(form.m, 1, form.k, a, b, 0, z, 0, element, scratch);
        });
      }
    } else if (y.rank == 2 && (y.stride == 0 || lanes == 1) && (x.rank == 1 || (is_dense(x) && is_dense(out)))) {
      // All rows of all lanes times one matrix. (Vectors need not be contiguous.)
      const bool is_vector = x.rank == 1;
      const int64_t rows = lanes * product(x.shape, 0, x.rank - 1);
      const int64_t x_row = is_vector ? x.stride / element : form.k,
                    out_row = is_vector ? out.stride / element : form.n;
      // Packing pays only for narrow matrices: a wide one is as fast unpacked, except for two rows.
      const PackedMatrix* packed =
          form.n < gemm_.vector && keeper != nullptr ? keeper->packed(1, y, form.k, form.n, form.n, 1) : nullptr;
      if (packed != nullptr)
        packed->multiply(rows, x.data, x_row, out.data, out_row, scratch);
      else
        multiply(isa_, x.dtype, rows, form.n, form.k, {x.data, x_row, 1}, {y.data, form.n, 1}, out.data, out_row, false,
                 scratch);
    } else {
      each_product(lanes, x, y, out, form, scratch, [&](std::byte* a, std::byte* b, std::byte* z) {
        multiply(isa_, x.dtype, form.m, form.n, form.k, {a, form.k, 1}, {b, form.n, 1}, z, form.n, false, scratch);
      });
    }
    return {};
  }

  /// One matrix times a vector of each lane: a matrix with the vectors as rows, times the transposed matrix. For few
  /// lanes this is dot products with the rows of the matrix; for more, or if rows are short, the matrix is packed.
  void turned(int64_t lanes, const Form& form, const View* inputs, const View& out, Scratch& scratch,
              Keeper* keeper) const {
    constexpr int64_t kFewLanes = 8;
    const View &x = inputs[0], &y = inputs[1];
    const int64_t element = size_of(x.dtype), y_row = y.stride / element, out_row = out.stride / element;
    const bool is_packed = lanes >= kFewLanes || form.k <= gemm_.vector;
    const PackedMatrix* packed =
        is_packed && keeper != nullptr ? keeper->packed(0, x, form.k, form.m, 1, form.k) : nullptr;
    if (packed != nullptr)
      packed->multiply(lanes, y.data, y_row, out.data, out_row, scratch);
    else if (is_packed)
      multiply(isa_, x.dtype, lanes, form.m, form.k, {y.data, y_row, 1}, {x.data, 1, form.k}, out.data, out_row, false,
               scratch);
    else
      rows_times(form.m, lanes, form.k, x.data, y.data, y_row, out.data, out_row, element, scratch);
  }

  /// Rows that stand side by side times some vectors.
  void rows_times(int64_t rows, int64_t many, int64_t k, const void* a, const void* x, int64_t x_row, void* out,
                  int64_t out_row, int64_t element, Scratch& scratch) const {
    scratch.in_steps(rows, Scratch::products(k * many), [&](int64_t first, int64_t count) {
      gemm_.rows_times(count, many, k, static_cast<const std::byte*>(a) + first * k * element, k, x, x_row,
                       static_cast<std::byte*>(out) + first * element, out_row, 1);
    });
  }

  const Functions& isa_;
  const GemmFunctions& gemm_;
};

/// Of integers and complex numbers.
template <class T>
class PlainMatmul final : public Matmul {
 public:
  explicit PlainMatmul(const Binding&) {}

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const Form form(inputs[0], inputs[1]);
    const DType dtype = inputs[0].dtype;
    const bool is_wide = is_complex(dtype) && form.m > 1 && form.n > 1 && form.m * form.n * form.k > kSmall;
    each_product(lanes, inputs[0], inputs[1], outputs[0], form, scratch, [&](std::byte* a, std::byte* b, std::byte* z) {
      if (is_wide)
        return multiply_wide(dtype, form.m, form.n, form.k, {a, form.k, 1}, {b, form.n, 1}, z, form.n, false, scratch);
      const T* x = reinterpret_cast<const T*>(a);
      T* out = reinterpret_cast<T*>(z);
      std::fill_n(out, form.m * form.n, T(0));
      for (int64_t i = 0; i < form.m; ++i, out += form.n) {
        const T* y = reinterpret_cast<const T*>(b);
        scratch.in_steps(form.k, Scratch::products(form.n), [=](int64_t first, int64_t count) {
          for (int64_t j = first; j < first + count; ++j)
            for (int64_t c = 0; c < form.n; ++c) out[c] += x[j] * y[j * form.n + c];
        });
        x += form.k;
      }
    });
    return {};
  }

 private:
  static constexpr int64_t kSmall = 1 << 12;  // multiplications: below that, calling OpenBLAS takes longer
};

constexpr KernelRow kRows[] = {{"matmul", forms::matmul,
                                make_by_dtype<PlainMatmul<int32_t>, PlainMatmul<int64_t>, FloatMatmul, FloatMatmul,
                                              PlainMatmul<Complex<float>>, PlainMatmul<Complex<double>>>}};

}  // namespace

std::span<const KernelRow> matmul_rows() { return kRows; }

}  // namespace undertow
