// exp, log, tanh, sine and their kind without branches, so that loops over them become vector code.
//
// Every step is an IEEE operation or works on bits, and elements are independent: vector bodies and scalar tails give
// the same bits, for any number of elements. Errors are below 2 ulp (tests: 4 ulp against NumPy). Reductions and
// polynomials are those of FreeBSD's msun (fdlibm), or plain Taylor series where the argument is small.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace undertow::UNDERTOW_ISA {
namespace {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
inline float fma(float a, float b, float c) { return a * b + c; }
inline double fma(double a, double b, double c) { return a * b + c; }
#endif

template <class T>
struct Format;

template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kMagic = 0x1.8p23f;  // adding it rounds to an integer, in the low bits
  static constexpr float kLn2Hi = 0x1.62e400p-1f, kLn2Lo = 0x1.7f7d1cp-20f;  // high part: few bits, times k is exact
  static constexpr float kExpTop = 89.0f, kExpBottom = -104.0f;
  static constexpr float kTiny = 0x1p-126f, kGrow = 0x1p25f;
  static constexpr float kGrown = 25;
  static constexpr Bits kSqrtHalf = 0x3f3504f3;
};

template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kMagic = 0x1.8p52;
  static constexpr double kLn2Hi = 0x1.62e42fee00000p-1, kLn2Lo = 0x1.a39ef35793c76p-33;
  static constexpr double kExpTop = 710.0, kExpBottom = -746.0;
  static constexpr double kTiny = 0x1p-1022, kGrow = 0x1p54;
  static constexpr double kGrown = 54;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e00000000;
};

template <class T>
using Bits = typename Format<T>::Bits;

template <class T>
inline Bits<T> bits_of(T x) {
  return std::bit_cast<Bits<T>>(x);
}

template <class T>
inline T from_bits(Bits<T> bits) {
  return std::bit_cast<T>(bits);
}

/// 2 ** k for an integer k within the range of exponents.
template <class T>
inline T power_of_two(T k) {
  using F = Format<T>;
  return from_bits<T>(bits_of(k + (F::kMagic + T(F::kBias))) << F::kMantissa);
}

/// k and exp(r) - 1 with x = k ln 2 + r, |r| <= ln 2 / 2. |x| must be small enough for 2 ** k to be a number.
template <class T>
struct Reduced {
  T k, small;
};

/// A polynomial, by its coefficients from the highest power down.
template <class T, class... More>
inline T horner(T x, T first, More... more) {
  ((first = fma(first, x, more)), ...);
  return first;
}

// (exp(r) - 1 - r) / r ** 2
inline float exp_series(float r) {
  return horner(r, 0x1.a01a02p-16f, 0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f, 0x1.555556p-5f, 0x1.555556p-3f,
                0.5f);
}
inline double exp_series(double r) {
  return horner(r, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5);
}

template <class T>
inline Reduced<T> reduce_exp(T x) {
  using F = Format<T>;
  const T k = fma(x, T(0x1.71547652b82fep0), F::kMagic) - F::kMagic;
  const T high = x - k * F::kLn2Hi, low = k * F::kLn2Lo;
  const T r = high - low;
  const T lost = (high - r) - low;
  return {k, r + fma(r * r, exp_series(r), lost)};
}

/// y 2 ** k, in two steps: 2 ** k alone may be out of range though the product is not.
template <class T>
inline T scale(T y, T k) {
  using F = Format<T>;
  constexpr T shift = F::kMagic + T(F::kBias);
  const T half = fma(k, T(0.5), shift);
  return y * from_bits<T>(bits_of(half) << F::kMantissa) * power_of_two(k - (half - shift));
}

template <class T>
inline T clamp_exp(T x) {
  using F = Format<T>;
  x = x > F::kExpTop ? F::kExpTop : x;
  return x < F::kExpBottom ? F::kExpBottom : x;
}

template <class T>
inline T exp(T x) {
  using F = Format<T>;
  x = clamp_exp(x);
  const T k = fma(x, T(0x1.71547652b82fep0), F::kMagic) - F::kMagic;
  const T r = fma(k, -F::kLn2Lo, fma(k, -F::kLn2Hi, x));  // the rounding error is negligible next to 1
  return scale(T(1) + fma(r * r, exp_series(r), r), k);
}

template <class T>
inline T exp2(T x) {
  using F = Format<T>;
  constexpr T top = T(F::kBias + 2), bottom = -T(F::kBias + F::kMantissa + 2);
  x = x > top ? top : x;
  x = x < bottom ? bottom : x;
  const T k = (x + F::kMagic) - F::kMagic;
  const T r = (x - k) * T(0x1.62e42fefa39efp-1);
  return scale(T(1) + fma(r * r, exp_series(r), r), k);
}

/// exp(x) - 1 for x from -50 to kExpTop; 0 for -0.
template <class T>
inline T expm1_inside(T x) {
  const Reduced<T> reduced = reduce_exp(x);
  const T half = power_of_two(reduced.k - T(1));  // 2 ** k itself may be infinite
  return T(2) * fma(reduced.small, half, half - T(0.5));
}

template <class T>
inline T expm1(T x) {
  using F = Format<T>;
  T y = x < T(-50) ? T(-50) : x;  // below, the result is -1
  y = y > F::kExpTop ? F::kExpTop : y;
  return x == T(0) ? x : expm1_inside(y);
}

// t / (t + 2) with t = exp(2 |x|) - 1, which reduces the relative error of t.
template <class T>
inline T tanh(T x) {
  T size = std::fabs(x);
  size = size > T(20) ? T(20) : size;  // 1 from here on
  const T t = expm1_inside(size + size);
  return std::copysign(t / (t + T(2)), x);
}

template <class T>
inline T sigmoid(T x) {
  const T small = exp(-std::fabs(x));  // at most 1: nothing overflows
  return (x >= T(0) ? T(1) : small) / (T(1) + small);
}

// -- logarithms: x = 2 ** k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) -------------------------------------------------

template <class T>
struct Split {
  T k, f;
};

template <class T>
inline Split<T> split(T x) {
  using F = Format<T>;
  constexpr Bits<T> one = F::kBias << F::kMantissa, mask = (Bits<T>(1) << F::kMantissa) - 1;
  const bool tiny = x < F::kTiny;
  const Bits<T> bits = bits_of(tiny ? x * F::kGrow : x) + (one - F::kSqrtHalf);
  // The exponent as a float: put into the low bits of a large number.
  const T exponent = from_bits<T>(bits_of(F::kMagic) + (bits >> F::kMantissa)) - (F::kMagic + T(F::kBias));
  const T m = from_bits<T>((bits & mask) + F::kSqrtHalf);
  return {exponent - (tiny ? F::kGrown : T(0)), m - T(1)};
}

/// A term of the series: with s = f / (2 + f), log(1 + f) = f - f * f / 2 + s * (f * f / 2 + log_series).
inline float log_series(float z) {
  const float w = z * z;
  const float even = w * fma(w, 0xf89e26.0p-26f, 0xccce13.0p-25f);
  const float odd = z * fma(w, 0x91e9ee.0p-25f, 0xaaaaaa.0p-24f);
  return even + odd;
}

inline double log_series(double z) {
  const double w = z * z;
  const double even = w * fma(w, fma(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
  const double odd =
      z * fma(w, fma(w, fma(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01),
              6.666666666666735130e-01);
  return even + odd;
}

/// k ln 2 + log(1 + f) + lost, where lost is small.
template <class T>
inline T log_of(T k, T f, T lost) {
  using F = Format<T>;
  const T s = f / (T(2) + f);
  const T square = T(0.5) * f * f;
  const T tail = fma(s, square + log_series(s * s), fma(k, F::kLn2Lo, lost));
  return ((tail - square) + f) + k * F::kLn2Hi;
}

/// The special values of a logarithm of `x`.
template <class T>
inline T log_borders(T x, T out) {
  out = x == T(INFINITY) ? x : out;
  out = x == T(0) ? -T(INFINITY) : out;
  return x >= T(0) ? out : T(NAN);
}

template <class T>
inline T log(T x) {
  const Split<T> parts = split(x);
  return log_borders(x, log_of(parts.k, parts.f, T(0)));
}

template <class T>
inline T log2(T x) {  // powers of two are exact
  const Split<T> parts = split(x);
  return log_borders(x, fma(log_of(T(0), parts.f, T(0)), T(0x1.71547652b82fep0), parts.k));
}

template <class T>
inline T log1p(T x) {
  const T u = T(1) + x;
  const Split<T> parts = split(u);
  const T lost = (x < T(1) ? x - (u - T(1)) : T(1) - (u - x)) / u;  // the rounding error of 1 + x
  const T out = log_borders(u, log_of(parts.k, parts.f, lost));
  return x == T(0) ? x : out;  // -0
}

template <class T>
inline T softplus(T x) {
  return (x > T(0) ? x : T(0)) + log1p(exp(-std::fabs(x)));
}

// -- sine and cosine, for |x| <= kTrigTop; larger arguments go to the standard library --------------------------------

constexpr double kTrigTop = 1e5;

inline double sine_series(double x, double y) {
  const double z = x * x, w = z * z;
  const double r = fma(z, fma(z, 2.75573137070700676789e-06, -1.98412698298579493134e-04), 8.33333333332248946124e-03) +
                   z * w * fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
  const double v = z * x;
  return x - ((z * (0.5 * y - v * r) - y) - v * -1.66666666666666324348e-01);
}

inline double cosine_series(double x, double y) {
  const double z = x * x, w = z * z;
  const double r =
      z * fma(z, fma(z, 2.48015872894767294178e-05, -1.38888888888741095749e-03), 4.16666666666666019037e-02) +
      w * w * fma(z, fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09), -2.75573143513906633035e-07);
  const double half = 0.5 * z, rest = 1.0 - half;
  return rest + (((1.0 - rest) - half) + (z * r - x * y));
}

/// The sine of x + quarter pi / 2.
inline double trig(double x, uint64_t quarter) {
  const double shifted = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
  const double k = shifted - 0x1.8p52;
  const double first = x - k * 1.57079632673412561417e+00;  // 33 bits of pi / 2: exact
  const double second = k * 6.07710050630396597660e-11;     // and 33 more
  const double r = first - second;
  const double third = fma(k, 2.02226624879595063154e-21, -((first - r) - second));
  const double high = r - third, low = (r - high) - third;
  const uint64_t turn = bits_of(shifted) + quarter;
  const double out = (turn & 1) != 0 ? cosine_series(high, low) : sine_series(high, low);
  return from_bits<double>(bits_of(out) ^ ((turn & 2) << 62));
}

}  // namespace
}  // namespace undertow::UNDERTOW_ISA
