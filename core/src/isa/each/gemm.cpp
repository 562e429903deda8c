// Products of small matrices: A (m x k, any strides) times B (k x n), read in panels of a few columns.
//
// A tile of rows x columns is kept in registers while k runs; each element of the result is one chain of multiply-adds
// in the order of k, whatever the tile: the same bits for any number of rows.
#include <array>
#include <cstring>
#include <utility>

#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 12;  // 24 of 32 registers hold sums
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRows = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kBytes = 16, kRows = 12;
#else
constexpr int kBytes = 16, kRows = 4;
#endif
constexpr int kVectors = 2;  // of a panel

template <class T>
using Vector [[gnu::vector_size(kBytes), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;

template <class T>
constexpr int kLanes = kBytes / sizeof(T);
template <class T>
constexpr int kPanel = kVectors * kLanes<T>;

/// A tile of Rows rows and Panels panels.
template <class T, int Rows, int Panels>
inline void tile(int64_t k, const T* a, int64_t row_stride, int64_t column_stride, const T* panels, int64_t row_step,
                 int64_t panel_stride, T* out, int64_t out_stride, int64_t columns, bool add) {
  constexpr int kWide = Panels * kVectors;
  typedef T V [[gnu::vector_size(kBytes)]];
  V sums[Rows][kWide] = {};
  for (int64_t i = 0; i < k; ++i) {
    V b[kWide];
#pragma GCC unroll 16
    for (int p = 0; p < Panels; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        b[p * kVectors + v] =
            *reinterpret_cast<const Vector<T>*>(panels + p * panel_stride + i * row_step + v * kLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const T x = a[r * row_stride + i * column_stride];
#pragma GCC unroll 16
      for (int c = 0; c < kWide; ++c) sums[r][c] += x * b[c];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    T* row = out + r * out_stride;
    if (columns == kWide * kLanes<T>) {
      for (int c = 0; c < kWide; ++c) {
        Vector<T>* place = reinterpret_cast<Vector<T>*>(row + c * kLanes<T>);
        *place = add ? *place + sums[r][c] : sums[r][c];
      }
    } else {
      T kept[kWide * kLanes<T>];
      std::memcpy(kept, sums[r], sizeof(kept));
      for (int64_t c = 0; c < columns; ++c) row[c] = add ? row[c] + kept[c] : kept[c];
    }
  }
}

template <class T>
using Tile = void (*)(int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, T*, int64_t, int64_t, bool);

/// How many panels a tile of few rows takes at once, so that there are enough sums to hide the latency of one.
constexpr int panels_for(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

template <class T, int... Rows>
constexpr std::array<Tile<T>, sizeof...(Rows)> wide_tiles(std::integer_sequence<int, Rows...>) {
  return {&tile<T, Rows + 1, panels_for(Rows + 1)>...};
}
template <class T, int... Rows>
constexpr std::array<Tile<T>, sizeof...(Rows)> narrow_tiles(std::integer_sequence<int, Rows...>) {
  return {&tile<T, Rows + 1, 1>...};
}

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column, const void* b,
              int64_t row_step, int64_t panel_stride, void* out, int64_t out_row, bool add) {
  static constexpr auto wide = wide_tiles<T>(std::make_integer_sequence<int, kRows>());
  static constexpr auto narrow = narrow_tiles<T>(std::make_integer_sequence<int, kRows>());
  if (m == 0) return;
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  const int64_t blocks = (m + kRows - 1) / kRows;
  const int few = m <= kRows ? panels_for(static_cast<int>(m)) : 1;
  for (int64_t column = 0; column < n;) {
    const T* panel = static_cast<const T*>(b) + column / kPanel<T> * panel_stride;
    if (few > 1 && n - column >= few * kPanel<T>) {
      wide[m - 1](k, x, a_row, a_column, panel, row_step, panel_stride, z + column, out_row, few * kPanel<T>, add);
      column += few * kPanel<T>;
      continue;
    }
    const int64_t columns = n - column < kPanel<T> ? n - column : kPanel<T>;
    int64_t row = 0;
    for (int64_t left = blocks; left > 0; --left) {  // shared out evenly: 13 rows are 7 and 6, not 12 and 1
      const int64_t rows = (m - row + left - 1) / left;
      narrow[rows - 1](k, x + row * a_row, a_row, a_column, panel, row_step, panel_stride, z + row * out_row + column,
                       out_row, columns, add);
      row += rows;
    }
    column += kPanel<T>;
  }
}

/// Rows rows at once, so that x is read once for all of them.
template <class T, int Rows>
inline void dots(int64_t k, const T* a, int64_t a_row, const T* x, T* out, int64_t out_step) {
  typedef T V [[gnu::vector_size(kBytes)]];
  V sums[Rows] = {};
  int64_t i = 0;
  for (; i + kLanes<T> <= k; i += kLanes<T>) {
    const V piece = *reinterpret_cast<const Vector<T>*>(x + i);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sums[r] += *reinterpret_cast<const Vector<T>*>(a + r * a_row + i) * piece;
  }
  for (int r = 0; r < Rows; ++r) {
    T kept[kLanes<T>];
    std::memcpy(kept, &sums[r], sizeof(kept));
    for (int width = kLanes<T> / 2; width > 0; width /= 2)
      for (int j = 0; j < width; ++j) kept[j] += kept[j + width];
    T total = kept[0];
    for (int64_t j = i; j < k; ++j) total += a[r * a_row + j] * x[j];
    out[r * out_step] = total;
  }
}

template <class T>
void rows_times(int64_t m, int64_t k, const void* a, int64_t a_row, const void* vector, void* out, int64_t out_step) {
  const T* rows = static_cast<const T*>(a);
  const T* x = static_cast<const T*>(vector);
  T* z = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + 8 <= m; i += 8) dots<T, 8>(k, rows + i * a_row, a_row, x, z + i * out_step, out_step);
  for (; i < m; ++i) dots<T, 1>(k, rows + i * a_row, a_row, x, z + i * out_step, out_step);
}

/// B into panels: for each panel, for each row of B, its columns side by side, zeros behind the last.
template <class T>
void pack(const void* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, void* packed) {
  const T* source = static_cast<const T*>(b);
  T* place = static_cast<T*>(packed);
  for (int64_t column = 0; column < n; column += kPanel<T>) {
    const int64_t columns = n - column < kPanel<T> ? n - column : kPanel<T>;
    for (int64_t i = 0; i < k; ++i, place += kPanel<T>) {
      const T* from = source + i * row_stride + column * column_stride;
      int64_t c = 0;
      if (column_stride == 1)
        for (; c < columns; ++c) place[c] = from[c];
      else
        for (; c < columns; ++c) place[c] = from[c * column_stride];
      for (; c < kPanel<T>; ++c) place[c] = 0;
    }
  }
}

}  // namespace

extern const GemmFunctions kGemmF32 = {kPanel<float>, &pack<float>, &multiply<float>, &rows_times<float>};
extern const GemmFunctions kGemmF64 = {kPanel<double>, &pack<double>, &multiply<double>, &rows_times<double>};

}  // namespace undertow::UNDERTOW_ISA
