// Rarer functions on each element: of gamma and errors, of the bits of floats, common divisors.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

/// The n-th derivative of that of lgamma, as src/undertow/ops/special.py has it.
double polygamma(double order, double x) {
  constexpr double kFewest = 20, kLeast = -1e6, kMostOrder = 30;
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                  -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
  if (!(x >= kLeast) || (x <= 0 && x == std::floor(x)) || !(order >= 0 && order < kMostOrder)) return NAN;
  if (x == INFINITY) return order < 1 ? INFINITY : 0.0;
  const int n = static_cast<int>(order);
  double factorial = 1, before = 1;  // of n, and of n - 1
  for (int k = 2; k <= n; ++k) {
    before = factorial;
    factorial *= k;
  }
  const double sign = n % 2 == 0 ? 1 : -1;
  double shifted = 0;
  for (; x < kFewest + n; x += 1) shifted -= sign * factorial / std::pow(x, n + 1);
  double series = factorial / (2 * std::pow(x, n + 1)), term = factorial * (n + 1) / (2 * std::pow(x, n + 2));
  int k = 1;
  for (double number : bernoulli) {
    series += number * term;
    term *= double(2 * k + n) * (2 * k + n + 1) / (double(2 * k + 1) * (2 * k + 2) * x * x);
    ++k;
  }
  return shifted + (n == 0 ? std::log(x) : -sign * before / std::pow(x, n)) - sign * series;
}

/// Not `std::lgamma`: that writes a variable of the C library.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

struct Gcd {
  template <class T>
  static T apply(T x, T y) {
    using U = std::make_unsigned_t<T>;
    U a = x < 0 ? U(0) - U(x) : U(x), b = y < 0 ? U(0) - U(y) : U(y);
    while (b != 0) {
      const U rest = a % b;
      a = b;
      b = rest;
    }
    return static_cast<T>(a);
  }
};

UNDERTOW_UNARY(Cbrt, T, std::cbrt(x))
UNDERTOW_UNARY(Erfc, T, std::erfc(x))
UNDERTOW_UNARY(Gamma, T, static_cast<T>(tgamma(static_cast<double>(x))))
UNDERTOW_UNARY(LogGamma, T, static_cast<T>(log_gamma(static_cast<double>(x))))
UNDERTOW_BINARY(Polygamma, T, static_cast<T>(polygamma(static_cast<double>(x), static_cast<double>(y))))
UNDERTOW_BINARY(CopySign, T, std::copysign(x, y))
UNDERTOW_BINARY(NextAfter, T, std::nextafter(x, y))

#define UNDERTOW_FLOATS(kind, name, F) kind<F, float>(name), kind<F, double>(name)

constexpr FlatRow kRows[] = {
    UNDERTOW_FLOATS(unary, "cbrt", Cbrt),
    UNDERTOW_FLOATS(unary, "erfc", Erfc),
    UNDERTOW_FLOATS(unary, "gamma", Gamma),
    UNDERTOW_FLOATS(unary, "lgamma", LogGamma),
    UNDERTOW_FLOATS(binary, "polygamma", Polygamma),
    UNDERTOW_FLOATS(binary, "copysign", CopySign),
    UNDERTOW_FLOATS(binary, "nextafter", NextAfter),
    binary<Gcd, int32_t>("gcd"),
    binary<Gcd, int64_t>("gcd"),
};

}  // namespace

extern const FlatRows kSpecialRows = {kRows, std::size(kRows)};

}  // namespace undertow::UNDERTOW_ISA
