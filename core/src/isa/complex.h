// Complex numbers: two floats side by side, with the arithmetic of NumPy's loops.
//
// Without the search for nan and infinity of std::complex, which Python and NumPy do not make either. For sources that
// are compiled once for each instruction set, and for others.
#pragma once

namespace undertow {
namespace {

template <class P>
struct Complex {
  P re, im;

  Complex() = default;
  constexpr Complex(P real, P imag = 0) : re(real), im(imag) {}

  friend constexpr Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
  friend constexpr Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
  friend constexpr Complex operator-(Complex x) { return {-x.re, -x.im}; }
  friend constexpr Complex operator*(Complex x, Complex y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
  /// Smith's division: the larger part of the divisor goes first, so that nothing overflows on the way.
  friend constexpr Complex operator/(Complex x, Complex y) {
    const P real = y.re < 0 ? -y.re : y.re, imag = y.im < 0 ? -y.im : y.im;
    if (real >= imag) {
      if (real == 0 && imag == 0) return {x.re / real, x.im / imag};
      const P ratio = y.im / y.re, scale = P(1) / (y.re + y.im * ratio);
      return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
    }
    const P ratio = y.re / y.im, scale = P(1) / (y.im + y.re * ratio);
    return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
  }
  friend constexpr bool operator==(Complex x, Complex y) { return x.re == y.re && x.im == y.im; }
  friend constexpr bool operator!=(Complex x, Complex y) { return !(x == y); }

  constexpr Complex& operator+=(Complex y) { return *this = *this + y; }
  constexpr Complex& operator*=(Complex y) { return *this = *this * y; }
};

}  // namespace
}  // namespace undertow
