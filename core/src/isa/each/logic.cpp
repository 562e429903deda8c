// Comparisons, truth, bits, choice, and the hash of random keys, on each element.
#include <bit>
#include <cmath>

#include "isa/flat.h"
#include "isa/hash.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

UNDERTOW_BINARY(Equal, bool, x == y)
UNDERTOW_BINARY(NotEqual, bool, x != y)
UNDERTOW_BINARY(Less, bool, x < y)
UNDERTOW_BINARY(LessEqual, bool, x <= y)
UNDERTOW_BINARY(Greater, bool, x > y)
UNDERTOW_BINARY(GreaterEqual, bool, x >= y)
UNDERTOW_BINARY(And, T, T(x& y))
UNDERTOW_BINARY(Or, T, x | y)
UNDERTOW_BINARY(Xor, T, x ^ y)

struct Not {  // of a bool: a byte that is 0 or 1
  static uint8_t apply(uint8_t x) { return x ^ 1; }
};

UNDERTOW_UNARY(Invert, T, ~x)
UNDERTOW_UNARY(IsNan, bool, x != x)
UNDERTOW_UNARY(IsInf, bool, std::fabs(x) == T(INFINITY))
UNDERTOW_UNARY(IsFinite, bool, std::fabs(x) < T(INFINITY))

struct FoldIn {
  static int64_t apply(int64_t key, int64_t data) { return std::bit_cast<int64_t>(fold_in(key, data)); }
};

template <class T, bool OneCondition, bool OneX, bool OneY>
void choose(const void* condition, const void* a, const void* b, void* out, int64_t n) {
  const uint8_t* c = static_cast<const uint8_t*>(condition);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  const uint8_t c0 = c[0];
  const T x0 = x[0], y0 = y[0];
  UNDERTOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T chosen_x = OneX ? x0 : x[i], chosen_y = OneY ? y0 : y[i];
    z[i] = (OneCondition ? c0 : c[i]) ? chosen_x : chosen_y;
  }
}

/// Only bits are moved, so floats are handled as integers of their size.
template <class T>
constexpr FlatRow where(DType dtype) {
  return {"where",
          {3,
           {DType::Bool, dtype, dtype},
           dtype,
           {&choose<T, false, false, false>, &choose<T, true, false, false>, &choose<T, false, true, false>,
            &choose<T, true, true, false>, &choose<T, false, false, true>, &choose<T, true, false, true>,
            &choose<T, false, true, true>},
           nullptr,
           Fault::Code::None}};
}

#define UNDERTOW_COMPARISONS(name, F)                                                                      \
  binary<F, uint8_t, uint8_t>(name), binary<F, int32_t, uint8_t>(name), binary<F, int64_t, uint8_t>(name), \
      binary<F, float, uint8_t>(name), binary<F, double, uint8_t>(name)
#define UNDERTOW_BIT_ROWS(name, F) binary<F, uint8_t>(name), binary<F, int32_t>(name), binary<F, int64_t>(name)

constexpr FlatRow kRows[] = {
    UNDERTOW_COMPARISONS("equal", Equal),
    UNDERTOW_COMPARISONS("not_equal", NotEqual),
    UNDERTOW_COMPARISONS("less", Less),
    UNDERTOW_COMPARISONS("less_equal", LessEqual),
    UNDERTOW_COMPARISONS("greater", Greater),
    UNDERTOW_COMPARISONS("greater_equal", GreaterEqual),
    unary<IsNan, float, uint8_t>("isnan"),
    unary<IsNan, double, uint8_t>("isnan"),
    unary<IsInf, float, uint8_t>("isinf"),
    unary<IsInf, double, uint8_t>("isinf"),
    unary<IsFinite, float, uint8_t>("isfinite"),
    unary<IsFinite, double, uint8_t>("isfinite"),
    binary<And, uint8_t>("logical_and"),
    binary<Or, uint8_t>("logical_or"),
    binary<Xor, uint8_t>("logical_xor"),
    unary<Not, uint8_t>("logical_not"),
    UNDERTOW_BIT_ROWS("bitwise_and", And),
    UNDERTOW_BIT_ROWS("bitwise_or", Or),
    UNDERTOW_BIT_ROWS("bitwise_xor", Xor),
    unary<Not, uint8_t>("bitwise_invert"),
    unary<Invert, int32_t>("bitwise_invert"),
    unary<Invert, int64_t>("bitwise_invert"),
    where<uint8_t>(DType::Bool),
    where<int32_t>(DType::I32),
    where<int64_t>(DType::I64),
    where<int32_t>(DType::F32),
    where<int64_t>(DType::F64),
    binary<FoldIn, int64_t>("fold_in"),
};

}  // namespace

extern const FlatRows kLogicRows = {kRows, std::size(kRows)};

}  // namespace undertow::UNDERTOW_ISA
