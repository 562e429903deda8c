// Products of small matrices: A (m x k, any strides) times B (k x n), read in panels of a few columns.
//
// A register tile of rows x columns accumulates over k; each element of the result is one chain of multiply-adds in the
// order of k, whatever the tile: the same bits for any number of rows.
#include <array>
#include <cstring>
#include <utility>

#include "isa/tables.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace undertow::UNDERTOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 12;  // 24 of 32 registers are accumulators
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRows = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kBytes = 16, kRows = 12;
#else
constexpr int kBytes = 16, kRows = 4;
#endif
constexpr int kVectors = 2;  // of a panel

template <class T, int kSize>
using Loose [[gnu::vector_size(kSize), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;  // unaligned, in memory

template <class T>
constexpr int kLanes = kBytes / sizeof(T);
template <class T>
constexpr int kPanel = kVectors * kLanes<T>;
template <class T>
using Vector [[gnu::vector_size(kBytes)]] = T;

#if defined(__AVX2__) && !defined(__AVX512F__)
/// A mask of the first `count` elements of a vector.
template <class T>
inline __m256i first_of(int64_t count) {
  alignas(32) static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const int64_t first = 8 - count * static_cast<int64_t>(sizeof(T)) / 4;
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bits + first));
}
#endif

/// Load the first `count` elements of a vector, and zeros; nothing past them is read.
template <class T>
inline Vector<T> load_some(const T* from, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
  else
    return (Vector<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm256_maskload_ps(from, first_of<T>(count));
  else
    return (Vector<T>)_mm256_maskload_pd(from, first_of<T>(count));
#else
  T kept[kLanes<T>] = {};
  for (int64_t j = 0; j < count; ++j) kept[j] = from[j];
  Vector<T> out;
  std::memcpy(&out, kept, sizeof(out));
  return out;
#endif
}

/// Store the first `count` elements of a vector; nothing past them is written.
template <class T>
inline void store_some(T* to, Vector<T> value, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)value);
  else
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), (__m512d)value);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(to, first_of<T>(count), (__m256)value);
  else
    _mm256_maskstore_pd(to, first_of<T>(count), (__m256d)value);
#else
  for (int64_t j = 0; j < count; ++j) to[j] = value[j];
#endif
}

/// Store the first `count` elements of a vector of any size, or add them to the elements there.
template <class T, int Size, class V>
inline void put(T* to, V value, int64_t count, bool add) {
  constexpr int64_t kLong = Size / sizeof(T);
  if (count >= kLong) {
    auto* place = reinterpret_cast<Loose<T, Size>*>(to);
    *place = add ? *place + value : value;
    return;
  }
  Vector<T> wide{};
  std::memcpy(&wide, &value, Size);
  store_some<T>(to, add ? load_some(to, count) + wide : wide, count);
}

/// A register tile of Rows rows and Panels panels, each with Vectors vectors of Size bytes.
template <class T, int Rows, int Panels, int Vectors, int Size>
void tile(int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* panels, int64_t row_step,
          int64_t panel_stride, T* out, int64_t out_row, int64_t columns, bool add) {
  constexpr int kWide = Panels * Vectors, kLong = Size / static_cast<int>(sizeof(T));
  typedef T V [[gnu::vector_size(Size)]];
  V sums[Rows][kWide] = {};
  if constexpr (Rows * kWide >= 16) {  // prefetch what is written at the end
    for (int r = 0; r < Rows; ++r) {
      const T* row = out + r * out_row;
      for (int at = 0; at < kWide * kLong; at += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(row + at, 1);
      __builtin_prefetch(row + kWide * kLong - 1, 1);
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    V b[kWide];
#pragma GCC unroll 16
    for (int c = 0; c < kWide; ++c)
      b[c] = *reinterpret_cast<const Loose<T, Size>*>(panels + c / Vectors * panel_stride + i * row_step +
                                                      c % Vectors * kLong);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const T x = a[r * a_row + i * a_column];
#pragma GCC unroll 16
      for (int c = 0; c < kWide; ++c) sums[r][c] += x * b[c];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int c = 0; c < kWide; ++c)
      if (columns > c * kLong) put<T, Size>(out + r * out_row + c * kLong, sums[r][c], columns - c * kLong, add);
}

template <class T>
using Tile = void (*)(int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, T*, int64_t, int64_t, bool);

/// Tiles of 1 to kRows rows.
template <class T, int Panels, int Vectors, int Size, int... Rows>
constexpr std::array<Tile<T>, sizeof...(Rows)> tiles(std::integer_sequence<int, Rows...>) {
  return {&tile<T, Rows + 1, Panels, Vectors, Size>...};
}

/// With few rows a tile takes several panels at once, for enough independent accumulators to hide the latency of
/// multiply-adds (and so that a matrix that is not packed is read in long runs).
constexpr int kFew = 3;
constexpr bool kHasMany = kRows >= 12;  // are there 32 registers?
constexpr int most_panels(int64_t rows) {
  if (rows <= kFew && kHasMany) return rows <= 2 ? 4 : 3;
  return rows == 1 ? 4 : rows <= kFew ? 2 : 1;
}

/// The tiles of `panels` whole panels, or of the last few columns.
template <class T>
const Tile<T>* tiles_for(int64_t panels, int64_t columns) {
  using Few = std::make_integer_sequence<int, kFew>;
  using All = std::make_integer_sequence<int, kRows>;
  static constexpr auto four = tiles<T, 4, kVectors, kBytes>(std::make_integer_sequence<int, kHasMany ? 2 : 1>());
  static constexpr auto three = tiles<T, 3, kVectors, kBytes>(std::make_integer_sequence<int, kHasMany ? 3 : 1>());
  static constexpr auto two = tiles<T, 2, kVectors, kBytes>(Few());
  static constexpr auto one = tiles<T, 1, kVectors, kBytes>(All());
  static constexpr auto vector = tiles<T, 1, 1, kBytes>(All());
  if (panels == 4) return four.data();
  if (panels == 3) return three.data();
  if (panels == 2) return two.data();
  if (columns > kLanes<T>) return one.data();
  if constexpr (kBytes >= 64) {
    static constexpr auto half = tiles<T, 1, 1, kBytes / 2>(All());
    static constexpr auto quarter = tiles<T, 1, 1, kBytes / 4>(All());
    if (columns <= kLanes<T> / 4) return quarter.data();
    if (columns <= kLanes<T> / 2) return half.data();
  } else if constexpr (kBytes >= 32) {
    static constexpr auto half = tiles<T, 1, 1, kBytes / 2>(All());
    if (columns <= kLanes<T> / 2) return half.data();
  }
  return vector.data();
}

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column, const void* b,
              int64_t row_step, int64_t panel_stride, void* out, int64_t out_row, bool add) {
  if (m == 0) return;
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  const int64_t blocks = (m + kRows - 1) / kRows;
  const int64_t most = most_panels(m);
  for (int64_t column = 0; column < n;) {
    const int64_t whole = (n - column) / kPanel<T>, panels = whole < most ? whole : most;
    const int64_t columns = panels == 0 ? n - column : panels * kPanel<T>;
    const T* panel = static_cast<const T*>(b) + column / kPanel<T> * panel_stride;
    const Tile<T>* tile_of = tiles_for<T>(panels, columns);
    int64_t row = 0;
    for (int64_t left = blocks; left > 0; --left) {  // evenly: 13 rows are 7 and 6, not 12 and 1
      const int64_t rows = (m - row + left - 1) / left;
      tile_of[rows - 1](k, x + row * a_row, a_row, a_column, panel, row_step, panel_stride, z + row * out_row + column,
                        out_row, columns, add);
      row += rows;
    }
    column += columns;
  }
}

/// One step of the chains of multiply-adds: the last one, where B has no room behind its last row, or the only one. (A
/// chain begins with 0, so that its end never is -0.)
template <class T>
void outer(int64_t m, int64_t n, const void* a, int64_t a_row, const void* b, void* out, int64_t out_row, bool add) {
  const T* x = static_cast<const T*>(a);
  for (int64_t c = 0; c < n; c += kLanes<T>) {
    const T* y = static_cast<const T*>(b) + c;
    T* z = static_cast<T*>(out) + c;
    if (const int64_t count = n - c; count < kLanes<T>) {
      const Vector<T> row = load_some(y, count);
      for (int64_t i = 0; i < m; ++i, z += out_row)
        store_some<T>(z, (add ? load_some(z, count) : Vector<T>{}) + x[i * a_row] * row, count);
    } else {
      const Vector<T> row = *reinterpret_cast<const Loose<T, kBytes>*>(y);
      for (int64_t i = 0; i < m; ++i, z += out_row) {
        auto* place = reinterpret_cast<Loose<T, kBytes>*>(z);
        *place = (add ? Vector<T>(*place) : Vector<T>{}) + x[i * a_row] * row;
      }
    }
  }
}

/// The sum of a vector: its halves are added until one element is left.
template <class T, class V>
inline T sum_of(V x) {
  constexpr int kCount = sizeof(V) / sizeof(T);
  if constexpr (kCount == 2) {
    return x[0] + x[1];
  } else {
    typedef T Half [[gnu::vector_size(sizeof(V) / 2)]];
    Half low, high;
    std::memcpy(&low, &x, sizeof(Half));
    std::memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof(Half), sizeof(Half));
    return sum_of<T, Half>(low + high);
  }
}

/// Rows rows of A times Many vectors at once: each row and each vector is read once for all of the others.
template <class T, int Rows, int Many>
void dots(int64_t k, const T* a, int64_t a_row, const T* x, int64_t x_row, T* out, int64_t out_row, int64_t out_step) {
  Vector<T> sums[Rows][Many] = {};
  const auto add = [&](auto&& load, int64_t i) {
    Vector<T> pieces[Many];
#pragma GCC unroll 8
    for (int v = 0; v < Many; ++v) pieces[v] = load(x + v * x_row + i);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vector<T> row = load(a + r * a_row + i);
#pragma GCC unroll 8
      for (int v = 0; v < Many; ++v) sums[r][v] += row * pieces[v];
    }
  };
  int64_t i = 0;
  for (; i + kLanes<T> <= k; i += kLanes<T>)
    add([](const T* from) -> Vector<T> { return *reinterpret_cast<const Loose<T, kBytes>*>(from); }, i);
  if (i < k) add([&](const T* from) { return load_some(from, k - i); }, i);
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Many; ++v) out[v * out_row + r * out_step] = sum_of<T, Vector<T>>(sums[r][v]);
}

/// All rows of A times Many vectors.
template <class T, int Many>
void rows_times_some(int64_t m, int64_t k, const T* a, int64_t a_row, const T* x, int64_t x_row, T* out,
                     int64_t out_row, int64_t out_step) {
  constexpr int kTogether = Many == 1 ? 8 : kRows >= 12 ? (Many == 2 ? 8 : 4) : Many == 2 ? 4 : 2;
  int64_t i = 0;
  for (; i + kTogether <= m; i += kTogether)
    dots<T, kTogether, Many>(k, a + i * a_row, a_row, x, x_row, out + i * out_step, out_row, out_step);
  for (; i < m; ++i) dots<T, 1, Many>(k, a + i * a_row, a_row, x, x_row, out + i * out_step, out_row, out_step);
}

template <class T>
void rows_times(int64_t m, int64_t many, int64_t k, const void* a, int64_t a_row, const void* vectors, int64_t x_row,
                void* out, int64_t out_row, int64_t out_step) {
  const T* rows = static_cast<const T*>(a);
  const T* x = static_cast<const T*>(vectors);
  T* z = static_cast<T*>(out);
  constexpr decltype(&rows_times_some<T, 1>) some[] = {rows_times_some<T, 1>, rows_times_some<T, 2>,
                                                       rows_times_some<T, 3>, rows_times_some<T, 4>};
  for (int64_t left = (many + 3) / 4; left > 0; --left) {  // evenly: 5 vectors are 3 and 2
    const int64_t now = (many + left - 1) / left;
    some[now - 1](m, k, rows, a_row, x, x_row, z, out_row, out_step);
    many -= now;
    x += now * x_row;
    z += now * out_row;
  }
}

/// Pack B into panels: each row-major and contiguous, the last one padded with zeros.
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

extern const GemmFunctions kGemmF32 = {kPanel<float>,    kLanes<float>, &pack<float>,
                                       &multiply<float>, &outer<float>, &rows_times<float>};
extern const GemmFunctions kGemmF64 = {kPanel<double>,    kLanes<double>, &pack<double>,
                                       &multiply<double>, &outer<double>, &rows_times<double>};

}  // namespace undertow::UNDERTOW_ISA
