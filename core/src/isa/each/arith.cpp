// Exact elementwise arithmetic: the same bits as NumPy's. Functions like exp are in math.cpp.
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "isa/extreme.h"
#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

UNDERTOW_BINARY(Add, T, x + y)
UNDERTOW_BINARY(Subtract, T, x - y)
UNDERTOW_BINARY(Multiply, T, x* y)
UNDERTOW_BINARY(Divide, T, x / y)

// Python's division: rounded down, with a remainder that has the sign of the divisor. The divisor is not 0.
struct FloorDivide {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == -1) return -x;  // the processor faults at min / -1
      const T quotient = x / y;
      return quotient - (quotient * y != x && (x < 0) != (y < 0));
    } else {
      if (y == 0) return x / y;
      const T rest = std::fmod(x, y);
      T quotient = (x - rest) / y;
      if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T(0), x / y);
      const T floor = std::floor(quotient);
      return quotient - floor > T(0.5) ? floor + 1 : floor;
    }
  }
};

struct Remainder {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == -1) return 0;
      const T rest = x % y;
      return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
      const T rest = std::fmod(x, y);
      if (y == 0) return rest;
      if (rest == 0) return std::copysign(T(0), y);
      return (y < 0) != (rest < 0) ? rest + y : rest;
    }
  }
};

/// Division by a power of two is a shift, and its remainder a mask: both are common in recursive functions (n // 2).
template <class F, class T, bool kRest>
void divide_by_one(const void* a, const void* b, const void* c, void* out, int64_t n) {
  const T divisor = *static_cast<const T*>(b);
  if (divisor <= 0 || (divisor & (divisor - 1)) != 0) return each_pair<F, T, T, false, true>(a, b, c, out, n);
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  const int bits = __builtin_ctzll(static_cast<uint64_t>(divisor));
  UNDERTOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = kRest ? x[i] & (divisor - 1) : x[i] >> bits;
}

struct Power {  // of integers, with an exponent that is not negative
  template <class T>
  static T apply(T x, T y) {
    T out = 1;
    for (; y != 0; y >>= 1) {
      if (y & 1) out *= x;
      x *= x;
    }
    return out;
  }
};

template <class T>
int64_t scan_zero(const void* operand, int64_t n) {
  const T* y = static_cast<const T*>(operand);
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= y[i] == 0;
  if (!found) return -1;
  int64_t i = 0;
  while (y[i] != 0) ++i;
  return i;
}

template <std::floating_point T>
int64_t scan_negative(const void* operand, int64_t n) {
  const T* y = static_cast<const T*>(operand);
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= y[i] < 0;
  if (!found) return -1;
  int64_t i = 0;
  while (!(y[i] < 0)) ++i;
  return i;
}

template <std::integral T>
int64_t scan_negative(const void* operand, int64_t n) {
  const T* y = static_cast<const T*>(operand);
  T all = 0;
  for (int64_t i = 0; i < n; ++i) all |= y[i];
  if (all >= 0) return -1;
  int64_t i = 0;
  while (y[i] >= 0) ++i;
  return i;
}

// -- shifts: by the width or more, the result is 0 or all sign bits
// ----------------------------------------------------------

struct LeftShift {
  template <class T>
  static T apply(T x, T y) {
    constexpr T width = 8 * sizeof(T);
    return y < width ? x << (y & (width - 1)) : T(0);
  }
};

struct RightShift {
  template <class T>
  static T apply(T x, T y) {
    constexpr T width = 8 * sizeof(T);
    return x >> (y < width ? y : width - 1);
  }
};

UNDERTOW_BINARY(Within, T, (static_cast<void>(y), x))

// -- one operand -----------------------------------------------------------------------------------------------

struct Abs {
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? -x : x;
    } else {
      return std::fabs(x);
    }
  }
};

struct Sign {
  template <class T>
  static T apply(T x) {
    const T sign = T(x > 0) - T(x < 0);
    return x == x ? sign : x;
  }
};

UNDERTOW_UNARY(Negative, T, -x)
UNDERTOW_UNARY(Square, T, x* x)
UNDERTOW_UNARY(Relu, T, x > 0 || x != x ? x : T(0))
UNDERTOW_UNARY(Reciprocal, T, T(1) / x)
UNDERTOW_UNARY(Floor, T, std::floor(x))
UNDERTOW_UNARY(Ceil, T, std::ceil(x))
UNDERTOW_UNARY(Trunc, T, std::trunc(x))
UNDERTOW_UNARY(Round, T, std::nearbyint(x))  // halves to even: the default rounding mode
UNDERTOW_UNARY(Sqrt, T, std::sqrt(x))

/// Floats that do not fit into an integer saturate, and nan becomes 0; integers wrap.
template <class R>
struct Cast {
  template <class T>
  static R apply(T x) {
    if constexpr (std::is_same_v<R, bool>) {
      return x != 0;
    } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<R>) {
      constexpr T limit = -static_cast<T>(std::numeric_limits<R>::min());
      const bool fits = x < limit && x >= -limit;
      const R whole = static_cast<R>(fits ? x : T(0));
      return x >= limit ? std::numeric_limits<R>::max() : x < -limit ? std::numeric_limits<R>::min() : whole;
    } else {
      return static_cast<R>(x);
    }
  }
};

/// x as an integer. Its second operand is x again: that is the one which is scanned for what does not fit.
struct ToInteger {
  template <class T>
  static int64_t apply(T x, T) {
    return Cast<int64_t>::apply(x);
  }
};

template <class T>
int64_t scan_no_integer(const void* operand, int64_t n) {
  constexpr T limit = -static_cast<T>(std::numeric_limits<int64_t>::min());
  const T* x = static_cast<const T*>(operand);
  bool fits = true;
  for (int64_t i = 0; i < n; ++i) fits &= x[i] < limit && x[i] >= -limit;
  if (fits) return -1;
  int64_t i = 0;
  while (x[i] < limit && x[i] >= -limit) ++i;
  return i;
}

/// Python's round(x, digits): the float nearest to the decimal number nearest to x, halves to even. The C library
/// prints and reads decimal numbers exactly.
double round_decimal(double x, double digits) {
  constexpr double kMost = 323;   // decimal places: beyond them is nothing to round
  constexpr double kLeast = 308;  // zeros before the point: beyond them is only 0
  if (!std::isfinite(x) || x == 0 || !(digits <= kMost)) return x;
  if (digits < -kLeast) return std::copysign(0.0, x);
  const int places = static_cast<int>(digits);
  char text[700];  // 309 digits before the point, 323 after it
  if (places >= 0) {
    std::snprintf(text, sizeof text, "%.*f", places, x);
    return std::strtod(text, nullptr);
  }
  std::snprintf(text, sizeof text, "%.30e", std::fabs(x));
  char* exponent = text;
  while (*exponent != 'e') ++exponent;
  const int significant = std::atoi(exponent + 1) + places;  // digits after the first one that stay
  if (significant >= 0) {
    std::snprintf(text, sizeof text, "%.*e", significant, x);
    return std::strtod(text, nullptr);
  }
  std::snprintf(text, sizeof text, "5e%d", -places - 1);
  if (std::fabs(x) <= std::strtod(text, nullptr)) return std::copysign(0.0, x);
  std::snprintf(text, sizeof text, "1e%d", -places);
  return std::copysign(std::strtod(text, nullptr), x);
}

UNDERTOW_BINARY(RoundDecimal, T, static_cast<T>(round_decimal(x, y)))

template <class F, class T>
constexpr FlatRow division(const char* name) {
  FlatRow row = binary<F, T>(name);
  if constexpr (std::is_integral_v<T>) {
    row.op.scan = &scan_zero<T>;
    row.op.code = Fault::Code::DivisionByZero;
    row.op.flat[2] = &divide_by_one<F, T, std::is_same_v<F, Remainder>>;
  }
  return row;
}

constexpr Fault::Code kShift = Fault::Code::NegativeShift;

#define UNDERTOW_NUMBERS(kind, name, F) \
  kind<F, int32_t>(name), kind<F, int64_t>(name), kind<F, float>(name), kind<F, double>(name)
#define UNDERTOW_FLOATS(kind, name, F) kind<F, float>(name), kind<F, double>(name)
#define UNDERTOW_CASTS(T)                                                             \
  unary<Cast<bool>, T, uint8_t>("cast"), unary<Cast<int32_t>, T, int32_t>("cast"),    \
      unary<Cast<int64_t>, T, int64_t>("cast"), unary<Cast<float>, T, float>("cast"), \
      unary<Cast<double>, T, double>("cast")

constexpr FlatRow kRows[] = {
    UNDERTOW_NUMBERS(binary, "add", Add),
    UNDERTOW_NUMBERS(binary, "subtract", Subtract),
    UNDERTOW_NUMBERS(binary, "multiply", Multiply),
    UNDERTOW_FLOATS(binary, "divide", Divide),
    UNDERTOW_NUMBERS(division, "floor_divide", FloorDivide),
    UNDERTOW_NUMBERS(division, "remainder", Remainder),
    binary<Power, int32_t>("power", &scan_negative<int32_t>, Fault::Code::NegativePower),
    binary<Power, int64_t>("power", &scan_negative<int64_t>, Fault::Code::NegativePower),
    UNDERTOW_NUMBERS(binary, "minimum", Minimum),
    UNDERTOW_NUMBERS(binary, "maximum", Maximum),
    binary<LeftShift, int32_t>("bitwise_left_shift", &scan_negative<int32_t>, kShift),
    binary<LeftShift, int64_t>("bitwise_left_shift", &scan_negative<int64_t>, kShift),
    binary<RightShift, int32_t>("bitwise_right_shift", &scan_negative<int32_t>, kShift),
    binary<RightShift, int64_t>("bitwise_right_shift", &scan_negative<int64_t>, kShift),
    binary<Within, int32_t>("within", &scan_negative<int32_t>, Fault::Code::Overflow),
    binary<Within, int64_t>("within", &scan_negative<int64_t>, Fault::Code::Overflow),
    binary<Within, float>("within", &scan_negative<float>, Fault::Code::Overflow),
    binary<Within, double>("within", &scan_negative<double>, Fault::Code::Overflow),
    UNDERTOW_NUMBERS(unary, "negative", Negative),
    UNDERTOW_NUMBERS(unary, "abs", Abs),
    UNDERTOW_NUMBERS(unary, "sign", Sign),
    UNDERTOW_NUMBERS(unary, "square", Square),
    UNDERTOW_NUMBERS(unary, "relu", Relu),
    UNDERTOW_FLOATS(unary, "reciprocal", Reciprocal),
    UNDERTOW_FLOATS(unary, "floor", Floor),
    UNDERTOW_FLOATS(unary, "ceil", Ceil),
    UNDERTOW_FLOATS(unary, "trunc", Trunc),
    UNDERTOW_FLOATS(unary, "round", Round),
    UNDERTOW_FLOATS(unary, "sqrt", Sqrt),
    UNDERTOW_FLOATS(binary, "round_decimal", RoundDecimal),
    binary<ToInteger, float, int64_t>("to_integer", &scan_no_integer<float>, Fault::Code::NoInteger),
    binary<ToInteger, double, int64_t>("to_integer", &scan_no_integer<double>, Fault::Code::NoInteger),
    UNDERTOW_CASTS(uint8_t),
    UNDERTOW_CASTS(int32_t),
    UNDERTOW_CASTS(int64_t),
    UNDERTOW_CASTS(float),
    UNDERTOW_CASTS(double),
};

}  // namespace

extern const FlatRows kArithRows = {kRows, std::size(kRows)};

}  // namespace undertow::UNDERTOW_ISA
