// Complex numbers, element by element. Exact arithmetic has NumPy's formulas; exp and its kind are the C library's.
#include "isa/complex.h"

#include <cmath>

#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

template <>
[[maybe_unused]] constexpr DType kDType<Complex<float>> = DType::C64;
template <>
[[maybe_unused]] constexpr DType kDType<Complex<double>> = DType::C128;

UNDERTOW_BINARY(Add, T, x + y)
UNDERTOW_BINARY(Subtract, T, x - y)
UNDERTOW_BINARY(Multiply, T, x* y)
UNDERTOW_BINARY(Divide, T, x / y)
UNDERTOW_BINARY(Equal, bool, x == y)
UNDERTOW_BINARY(NotEqual, bool, x != y)
UNDERTOW_UNARY(Negative, T, -x)
UNDERTOW_UNARY(Square, T, x* x)
UNDERTOW_UNARY(Reciprocal, T, T(1) / x)
UNDERTOW_UNARY(Conj, T, T(x.re, -x.im))
UNDERTOW_UNARY(IsNan, bool, x.re != x.re || x.im != x.im)
UNDERTOW_UNARY(IsInf, bool, std::fabs(x.re) == INFINITY || std::fabs(x.im) == INFINITY)
UNDERTOW_UNARY(IsFinite, bool, std::fabs(x.re) < INFINITY && std::fabs(x.im) < INFINITY)

struct Real {
  template <class P>
  static P apply(Complex<P> x) {
    return x.re;
  }
};
struct Imag {
  template <class P>
  static P apply(Complex<P> x) {
    return x.im;
  }
};
struct Abs {
  static float apply(Complex<float> x) { return ::hypotf(x.re, x.im); }
  static double apply(Complex<double> x) { return ::hypot(x.re, x.im); }
};
struct Make {
  template <class P>
  static Complex<P> apply(P x, P y) {
    return {x, y};
  }
};

template <class To>
struct Cast {
  template <class T>
  static To apply(T x) {
    using Part = decltype(To::re);
    return {static_cast<Part>(x)};
  }
  template <class P>
  static To apply(Complex<P> x) {
    using Part = decltype(To::re);
    return {static_cast<Part>(x.re), static_cast<Part>(x.im)};
  }
};
struct Truth {
  template <class P>
  static bool apply(Complex<P> x) {
    return x.re != 0 || x.im != 0;
  }
};

// The C library's functions of C's complex numbers, which the compiler has too.
#define UNDERTOW_LIBRARY(Name, function)              \
  struct Name {                                       \
    static Complex<float> apply(Complex<float> x) {   \
      __complex__ float z;                            \
      __real__ z = x.re;                              \
      __imag__ z = x.im;                              \
      z = __builtin_c##function##f(z);                \
      return {__real__ z, __imag__ z};                \
    }                                                 \
    static Complex<double> apply(Complex<double> x) { \
      __complex__ double z;                           \
      __real__ z = x.re;                              \
      __imag__ z = x.im;                              \
      z = __builtin_c##function(z);                   \
      return {__real__ z, __imag__ z};                \
    }                                                 \
  };
UNDERTOW_LIBRARY(Exp, exp)
UNDERTOW_LIBRARY(Log, log)
UNDERTOW_LIBRARY(Sqrt, sqrt)
UNDERTOW_LIBRARY(Sin, sin)
UNDERTOW_LIBRARY(Cos, cos)
UNDERTOW_LIBRARY(Tanh, tanh)

template <class T, bool OneCondition, bool OneX, bool OneY>
void choose(const void* condition, const void* a, const void* b, void* out, int64_t n) {
  const uint8_t* c = static_cast<const uint8_t*>(condition);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) z[i] = c[OneCondition ? 0 : i] ? x[OneX ? 0 : i] : y[OneY ? 0 : i];
}

template <class T>
constexpr FlatRow where() {
  return {"where",
          {3,
           {DType::Bool, kDType<T>, kDType<T>},
           kDType<T>,
           {&choose<T, false, false, false>, &choose<T, true, false, false>, &choose<T, false, true, false>,
            &choose<T, true, true, false>, &choose<T, false, false, true>, &choose<T, true, false, true>,
            &choose<T, false, true, true>},
           nullptr,
           Fault::Code::None}};
}

#define UNDERTOW_BOTH(kind, name, F) kind<F, Complex<float>>(name), kind<F, Complex<double>>(name)
#define UNDERTOW_PARTS(name, F) unary<F, Complex<float>, float>(name), unary<F, Complex<double>, double>(name)
#define UNDERTOW_TRUTHS(kind, name, F) kind<F, Complex<float>, uint8_t>(name), kind<F, Complex<double>, uint8_t>(name)
#define UNDERTOW_CASTS(T) \
  unary<Cast<Complex<float>>, T, Complex<float>>("cast"), unary<Cast<Complex<double>>, T, Complex<double>>("cast")

constexpr FlatRow kRows[] = {
    UNDERTOW_BOTH(binary, "add", Add),
    UNDERTOW_BOTH(binary, "subtract", Subtract),
    UNDERTOW_BOTH(binary, "multiply", Multiply),
    UNDERTOW_BOTH(binary, "divide", Divide),
    UNDERTOW_BOTH(unary, "negative", Negative),
    UNDERTOW_BOTH(unary, "square", Square),
    UNDERTOW_BOTH(unary, "reciprocal", Reciprocal),
    UNDERTOW_BOTH(unary, "conj", Conj),
    UNDERTOW_BOTH(unary, "exp", Exp),
    UNDERTOW_BOTH(unary, "log", Log),
    UNDERTOW_BOTH(unary, "sqrt", Sqrt),
    UNDERTOW_BOTH(unary, "sin", Sin),
    UNDERTOW_BOTH(unary, "cos", Cos),
    UNDERTOW_BOTH(unary, "tanh", Tanh),
    UNDERTOW_PARTS("real", Real),
    UNDERTOW_PARTS("imag", Imag),
    UNDERTOW_PARTS("abs", Abs),
    binary<Make, float, Complex<float>>("complex"),
    binary<Make, double, Complex<double>>("complex"),
    UNDERTOW_TRUTHS(binary, "equal", Equal),
    UNDERTOW_TRUTHS(binary, "not_equal", NotEqual),
    UNDERTOW_TRUTHS(unary, "isnan", IsNan),
    UNDERTOW_TRUTHS(unary, "isinf", IsInf),
    UNDERTOW_TRUTHS(unary, "isfinite", IsFinite),
    UNDERTOW_TRUTHS(unary, "cast", Truth),
    UNDERTOW_CASTS(uint8_t),
    UNDERTOW_CASTS(int32_t),
    UNDERTOW_CASTS(int64_t),
    UNDERTOW_CASTS(float),
    UNDERTOW_CASTS(double),
    UNDERTOW_CASTS(Complex<float>),
    UNDERTOW_CASTS(Complex<double>),
    where<Complex<float>>(),
    where<Complex<double>>(),
};

}  // namespace

extern const FlatRows kComplexRows = {kRows, std::size(kRows)};

}  // namespace undertow::UNDERTOW_ISA
