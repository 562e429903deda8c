// One matrix product, by our kernel or by OpenBLAS.
#include "kernel/gemm.h"

#include <algorithm>

#include "cblas.h"
#include "undertow/matmul.h"

namespace undertow {
namespace {

/// The engine has its own threads, so this copy of OpenBLAS is limited to one as it is loaded: its other threads would
/// wake for wide products and then spin, waiting for the next. (NumPy's copy is left alone.)
[[maybe_unused]] const bool kIsSingle = (scipy_openblas_set_num_threads(1), true);

const GemmFunctions& gemm_of(const Functions& isa, DType dtype) { return *isa.gemm[static_cast<int>(dtype)]; }

std::byte* at(void* data, int64_t elements, DType dtype) {
  return static_cast<std::byte*>(data) + elements * size_of(dtype);
}

const std::byte* at(const void* data, int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * size_of(dtype);
}

/// Has every element its own address? BLAS does not take stride 0.
bool is_stored(const Matrix& x) { return x.row > 0 && x.column > 0; }

/// A matrix as BLAS describes it: row-major or transposed, and its leading dimension.
struct Stored {
  CBLAS_TRANSPOSE how;
  blasint distance;
};

Stored stored(const Matrix& x, int64_t rows, int64_t columns) {
  if (x.column == 1 || columns == 1)
    return {CblasNoTrans, static_cast<blasint>(std::max({x.row, columns, int64_t{1}}))};
  return {CblasTrans, static_cast<blasint>(std::max({x.column, rows, int64_t{1}}))};
}

/// A product that takes longer than a few milliseconds, in blocks: block(m, n, k, a, b, out, add), with a look up after
/// each. Their sizes depend on those of the product alone. Columns of B are parted at multiples of `panel`.
template <class Block>
void in_blocks(DType dtype, int64_t m, int64_t n, int64_t k, int64_t panel, Matrix a, Matrix b, void* out,
               int64_t out_row, bool add, Scratch& scratch, Block&& block) {
  // Some twenty to forty milliseconds: with smaller blocks, or others than of rows, the same would be packed too often.
  constexpr int64_t kFewRows = 256, kFewColumns = 512;
  const int64_t kMost = int64_t{1} << (is_complex(dtype) ? 28 : 30);
  if (m * n * k <= kMost) {
    block(m, n, k, a, b, out, add);
    return scratch.worked(Scratch::products(m * n * k));
  }
  int64_t rows = m, columns = n, inner = k;
  while (rows * columns * inner > kMost) {
    int64_t& largest = rows > kFewRows ? rows : columns > kFewColumns ? columns : inner;
    largest = (largest + 1) / 2;
  }
  if (columns < n) columns = (columns + panel - 1) / panel * panel;
  for (int64_t i = 0; i < m; i += rows)
    for (int64_t j = 0; j < n; j += columns)
      for (int64_t l = 0; l < k || l == 0; l += inner) {
        const int64_t now[3] = {std::min(rows, m - i), std::min(columns, n - j), std::min(inner, k - l)};
        block(now[0], now[1], now[2], Matrix{at(a.data, i * a.row + l * a.column, dtype), a.row, a.column},
              Matrix{at(b.data, l * b.row + j * b.column, dtype), b.row, b.column}, at(out, i * out_row + j, dtype),
              add || l > 0);
        scratch.worked(Scratch::products(now[0] * now[1] * now[2]));
        if (inner == 0) break;
      }
}

void multiply_blas(DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, void* out, int64_t out_row,
                   bool add) {
  const Stored left = stored(a, m, k), right = stored(b, k, n);
  const auto rows = static_cast<blasint>(m), columns = static_cast<blasint>(n), inner = static_cast<blasint>(k);
  const auto step = static_cast<blasint>(std::max<int64_t>(out_row, 1));
  if (dtype == DType::F32)
    scipy_cblas_sgemm(CblasRowMajor, left.how, right.how, rows, columns, inner, 1.0f, static_cast<const float*>(a.data),
                      left.distance, static_cast<const float*>(b.data), right.distance, add ? 1.0f : 0.0f,
                      static_cast<float*>(out), step);
  else if (dtype == DType::F64)
    scipy_cblas_dgemm(CblasRowMajor, left.how, right.how, rows, columns, inner, 1.0, static_cast<const double*>(a.data),
                      left.distance, static_cast<const double*>(b.data), right.distance, add ? 1.0 : 0.0,
                      static_cast<double*>(out), step);
  else {
    static constexpr float kSingle[2][2] = {{0, 0}, {1, 0}};
    static constexpr double kDouble[2][2] = {{0, 0}, {1, 0}};
    const bool is_single = dtype == DType::C64;
    const void* numbers[2] = {is_single ? static_cast<const void*>(kSingle[0]) : kDouble[0],
                              is_single ? static_cast<const void*>(kSingle[1]) : kDouble[1]};
    (is_single ? scipy_cblas_cgemm : scipy_cblas_zgemm)(CblasRowMajor, left.how, right.how, rows, columns, inner,
                                                        numbers[1], a.data, left.distance, b.data, right.distance,
                                                        numbers[add ? 1 : 0], out, step);
  }
}

/// By our kernel.
void multiply_panels(const GemmFunctions& gemm, DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b,
                     void* out, int64_t out_row, bool add, Scratch& scratch) {
  // Whole panels of a row-major B are read without packing.
  const int64_t ready = b.column == 1 ? n / gemm.panel * gemm.panel : 0, rest = n - ready;
  if (ready > 0) gemm.multiply(m, ready, k, a.data, a.row, a.column, b.data, b.row, gemm.panel, out, out_row, add);
  if (rest == 0) return;
  const void* columns = at(b.data, ready * b.column, dtype);
  void* place = at(out, ready, dtype);
  if (b.column == 1 && n >= gemm.vector && k > 0 && !add) {
    // So are the remaining columns: a panel reads past the end of a row into the next, so the last row is separate.
    if (k > 1)
      gemm.multiply(m, rest, k - 1, a.data, a.row, a.column, columns, b.row, gemm.panel, place, out_row, false);
    gemm.outer(m, rest, at(a.data, (k - 1) * a.column, dtype), a.row, at(columns, (k - 1) * b.row, dtype), place,
               out_row, k > 1);
    return;
  }
  const int64_t panels = (rest + gemm.panel - 1) / gemm.panel * gemm.panel;
  void* packed = scratch.get(panels * std::max<int64_t>(k, 1) * size_of(dtype));
  gemm.pack(columns, b.row, b.column, k, rest, packed);
  gemm.multiply(m, rest, k, a.data, a.row, a.column, packed, gemm.panel, k * gemm.panel, place, out_row, add);
}

}  // namespace

// Measured with benchmarks/kernels.py: our kernel, which does not block for caches, is ahead while all three matrices
// fit.
bool is_wide(DType dtype, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kFewRows = 128, kFits = 5 << 20;
  return m >= kFewRows && (m * k + k * n + m * n) * size_of(dtype) > kFits;
}

void multiply_wide(DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, void* out, int64_t out_row,
                   bool add, Scratch& scratch) {
  in_blocks(dtype, m, n, k, 1, a, b, out, out_row, add, scratch,
            [&](int64_t rows, int64_t columns, int64_t inner, Matrix left, Matrix right, void* to, bool adds) {
              multiply_blas(dtype, rows, columns, inner, left, right, to, out_row, adds);
            });
}

void multiply(const Functions& isa, DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, void* out,
              int64_t out_row, bool add, Scratch& scratch) {
  if (m == 0 || n == 0) return;
  if (is_wide(dtype, m, n, k) && is_stored(a) && is_stored(b))
    return multiply_wide(dtype, m, n, k, a, b, out, out_row, add, scratch);
  const GemmFunctions& gemm = gemm_of(isa, dtype);
  in_blocks(dtype, m, n, k, gemm.panel, a, b, out, out_row, add, scratch,
            [&](int64_t rows, int64_t columns, int64_t inner, Matrix left, Matrix right, void* to, bool adds) {
              multiply_panels(gemm, dtype, rows, columns, inner, left, right, to, out_row, adds, scratch);
            });
}

int64_t PackedMatrix::bytes_of(const Functions& isa, DType dtype, int64_t k, int64_t n) {
  const int64_t panel = gemm_of(isa, dtype).panel;
  return (n + panel - 1) / panel * panel * std::max<int64_t>(k, 1) * size_of(dtype);
}

PackedMatrix::PackedMatrix(const Functions& isa, DType dtype, int64_t k, int64_t n, void* room)
    : gemm_(&gemm_of(isa, dtype)), dtype_(dtype), k_(k), n_(n) {
  packed_ = room != nullptr ? room : panels_.get(bytes_of(isa, dtype, k, n));
}

void PackedMatrix::pack(const void* b, int64_t row_stride, int64_t column_stride) {
  source_ = b;
  row_stride_ = row_stride;
  column_stride_ = column_stride;
  gemm_->pack(b, row_stride, column_stride, k_, n_, packed_);
}

void PackedMatrix::multiply(int64_t m, const void* a, int64_t a_row, void* out, int64_t out_row, Scratch& scratch,
                            bool add) const {
  if (is_wide(dtype_, m, n_, k_) && a_row > 0)
    return multiply_wide(dtype_, m, n_, k_, {a, a_row, 1}, {source_, row_stride_, column_stride_}, out, out_row, add,
                         scratch);
  // Its rows stand `panel` elements apart, and its panels k rows: column j, the first of one, k * j elements behind.
  const int64_t panel = gemm_->panel;
  in_blocks(dtype_, m, n_, k_, panel, {a, a_row, 1}, {packed_, panel, k_}, out, out_row, add, scratch,
            [&](int64_t rows, int64_t columns, int64_t inner, Matrix left, Matrix right, void* to, bool adds) {
              gemm_->multiply(rows, columns, inner, left.data, a_row, 1, right.data, panel, k_ * panel, to, out_row,
                              adds);
            });
}

void accumulate_outer(const Functions& isa, int64_t lanes, const View& x, const View& g, void* out, bool add,
                      Scratch& scratch) {
  constexpr int64_t kFewLanes = 16;  // below that, loading and storing a register tile is most of our kernel's time
  const int64_t element = size_of(x.dtype), k = x.count(), n = g.count();
  const bool is_thin = lanes < kFewLanes || n < gemm_of(isa, x.dtype).panel;
  const Matrix left{x.data, 1, x.stride / element}, right{g.data, g.stride / element, 1};
  if (lanes > 0 && is_thin && k * n > 0 && is_stored(left) && is_stored(right))
    multiply_wide(x.dtype, k, n, lanes, left, right, out, n, add, scratch);
  else
    multiply(isa, x.dtype, k, n, lanes, left, right, out, n, add, scratch);
}

}  // namespace undertow
