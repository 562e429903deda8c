// Reductions and softmax of rows: n contiguous elements.
//
// Float sums have a fixed number of partial sums, whatever the instruction set: the same bits for a row everywhere, and
// errors like those of pairwise summation.
#include <type_traits>

#include "isa/complex.h"
#include "isa/extreme.h"
#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

constexpr int64_t kStrands = 32;
constexpr int64_t kPiece = 4096;  // elements that one set of partial sums covers

/// Reduce W values to one, as a tree.
template <class F, int64_t W, class T>
inline T join(T* values) {
  if constexpr (W == 1) {
    return values[0];
  } else {
    for (int64_t j = 0; j < W / 2; ++j) values[j] = F::apply(values[j], values[j + W / 2]);
    return join<F, W / 2>(values);
  }
}

template <class F, class T>
T strands(const T* x, int64_t n, T start) {
  T out = start;
  int64_t i = 0;
  if (n >= kStrands) {
    T sums[kStrands];
    for (int64_t j = 0; j < kStrands; ++j) sums[j] = start;
    for (; i + kStrands <= n; i += kStrands)
      for (int64_t j = 0; j < kStrands; ++j) sums[j] = F::apply(sums[j], x[i + j]);
    out = join<F, kStrands>(sums);
  }
  for (; i < n; ++i) out = F::apply(out, x[i]);
  return out;
}

UNDERTOW_BINARY(Sum, T, x + y)
UNDERTOW_BINARY(Prod, T, x* y)
UNDERTOW_BINARY(Max, T, y > x || y != y ? y : x)  // nan if any is; of equal zeros either
UNDERTOW_BINARY(Min, T, y < x || y != y ? y : x)

template <class T>
T sum_of(const T* x, int64_t n) {
  T out = 0;
  for (int64_t i = 0; i < n; i += kPiece) out += strands<Sum, T>(x + i, n - i < kPiece ? n - i : kPiece, T(0));
  return out;
}

template <class T>
void sum(const void* x, void* out, int64_t n) {
  *static_cast<T*>(out) = sum_of(static_cast<const T*>(x), n);
}

template <class T>
void prod(const void* x, void* out, int64_t n) {
  *static_cast<T*>(out) = strands<Prod, T>(static_cast<const T*>(x), n, T(1));
}

/// Few are zero: only then is it worth asking for the sign, which `Exact` knows.
template <class F, class Exact, class T>
void extreme(const void* x, void* out, int64_t n) {
  const T* row = static_cast<const T*>(x);
  T found = strands<F, T>(row, n, row[0]);
  if constexpr (std::is_floating_point_v<T>)
    if (found == 0)
      for (int64_t i = 0; i < n; ++i) found = Exact::apply(found, row[i]);
  *static_cast<T*>(out) = found;
}
template <class T>
constexpr ReduceRow max = &extreme<Max, Maximum, T>;
template <class T>
constexpr ReduceRow min = &extreme<Min, Minimum, T>;

template <bool kAll>
void truth(const void* x, void* out, int64_t n) {
  const uint8_t* row = static_cast<const uint8_t*>(x);
  uint8_t found = kAll;
  for (int64_t i = 0; i < n; ++i) found = kAll ? found & row[i] : found | row[i];
  *static_cast<uint8_t*>(out) = found;
}

// -- softmax and its kind ----------------------------------------------------------------------------------------

/// -inf for no elements.
template <class T>
T top_of(const T* x, int64_t n) {
  return strands<Max, T>(x, n, -T(INFINITY));
}

/// The sum of exp(x - top); stores each term to `out`, if there is one.
template <class T, bool kKeep>
T sum_of_exp(const T* x, T* out, int64_t n, T top) {
  constexpr int64_t kBlock = 64 / sizeof(T);
  T total = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t end = n - i < kPiece ? n : i + kPiece;
    T sums[kBlock] = {};
    for (; i + kBlock <= end; i += kBlock) {
      UNDERTOW_INDEPENDENT
      for (int64_t j = 0; j < kBlock; ++j) {
        const T weight = exp(x[i + j] - top);
        sums[j] += weight;
        if constexpr (kKeep) out[i + j] = weight;
      }
    }
    const int64_t rest = end - i;
    if (rest > 0) {  // the last block is padded with -inf: exp(-inf) is 0
      T last[kBlock];
      UNDERTOW_INDEPENDENT
      for (int64_t j = 0; j < kBlock; ++j) {
        T moved = -T(INFINITY);
        if (j < rest) moved = x[i + j] - top;
        last[j] = exp(moved);
        sums[j] += last[j];
      }
      if constexpr (kKeep)
        for (int64_t j = 0; j < rest; ++j) out[i + j] = last[j];
    }
    i = end;
    total += join<Sum, kBlock>(sums);
  }
  return total;
}

template <class T>
void softmax(const void* x, void* out, int64_t n) {
  const T* row = static_cast<const T*>(x);
  T* z = static_cast<T*>(out);
  const T total = sum_of_exp<T, true>(row, z, n, top_of(row, n));
  for (int64_t i = 0; i < n; ++i) z[i] = z[i] / total;
}

template <class T>
void log_softmax(const void* x, void* out, int64_t n) {
  const T* row = static_cast<const T*>(x);
  T* z = static_cast<T*>(out);
  const T top = top_of(row, n);
  const T total = log(sum_of_exp<T, false>(row, nullptr, n, top));
  for (int64_t i = 0; i < n; ++i) z[i] = (row[i] - top) - total;
}

template <class T>
void logsumexp(const void* x, void* out, int64_t n) {
  const T* row = static_cast<const T*>(x);
  T top = top_of(row, n);
  top = std::fabs(top) < T(INFINITY) ? top : T(0);
  *static_cast<T*>(out) = log(sum_of_exp<T, false>(row, nullptr, n, top)) + top;
}

#define UNDERTOW_NUMBERS(f) {nullptr, f<int32_t>, f<int64_t>, f<float>, f<double>}
#define UNDERTOW_ALL(f) {nullptr, f<int32_t>, f<int64_t>, f<float>, f<double>, f<Complex<float>>, f<Complex<double>>}
#define UNDERTOW_FLOATS(f) {nullptr, nullptr, nullptr, &f<float>, &f<double>}

}  // namespace

extern const RowFunctions kRowFunctions = {
    {UNDERTOW_ALL(sum),
     UNDERTOW_ALL(prod),
     UNDERTOW_NUMBERS(max),
     UNDERTOW_NUMBERS(min),
     {&truth<false>},
     {&truth<true>},
     UNDERTOW_FLOATS(logsumexp)},
    UNDERTOW_FLOATS(softmax),
    UNDERTOW_FLOATS(log_softmax),
};

}  // namespace undertow::UNDERTOW_ISA
