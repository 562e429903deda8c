// Elementwise functions like exp: vector code from isa/math.h, or the standard library.
#include "isa/math.h"

#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

UNDERTOW_UNARY(Exp, T, exp(x))
UNDERTOW_UNARY(Exp2, T, exp2(x))
UNDERTOW_UNARY(Expm1, T, expm1(x))
UNDERTOW_UNARY(Log, T, log(x))
UNDERTOW_UNARY(Log2, T, log2(x))
UNDERTOW_UNARY(Log1p, T, log1p(x))
UNDERTOW_UNARY(Tanh, T, tanh(x))
UNDERTOW_UNARY(Sigmoid, T, sigmoid(x))
UNDERTOW_UNARY(Softplus, T, softplus(x))
// Rare in recursive networks, so these come from the standard library: exact to 1 ulp, but not vectorised.
UNDERTOW_UNARY(Log10, T, std::log10(x))
UNDERTOW_UNARY(Tan, T, std::tan(x))
UNDERTOW_UNARY(Asin, T, std::asin(x))
UNDERTOW_UNARY(Acos, T, std::acos(x))
UNDERTOW_UNARY(Atan, T, std::atan(x))
UNDERTOW_UNARY(Sinh, T, std::sinh(x))
UNDERTOW_UNARY(Cosh, T, std::cosh(x))
UNDERTOW_UNARY(Asinh, T, std::asinh(x))
UNDERTOW_UNARY(Acosh, T, std::acosh(x))
UNDERTOW_UNARY(Atanh, T, std::atanh(x))
UNDERTOW_UNARY(Erf, T, std::erf(x))
UNDERTOW_BINARY(Atan2, T, std::atan2(x, y))
UNDERTOW_BINARY(Power, T, std::pow(x, y))

/// All elements as vectors; then, one by one, those that are too large for that.
template <class T, uint64_t Quarter>
void sines(const void* a, const void*, const void*, void* out, int64_t n) {
  constexpr int64_t kPiece = 256;
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  T kept[kPiece];  // a copy of the operand, which may be the output
  for (int64_t start = 0; start < n; start += kPiece) {
    const int64_t count = n - start < kPiece ? n - start : kPiece;
    Bits<T> most = 0;  // the largest magnitude: bits of magnitudes order like integers, with nan largest
    for (int64_t i = 0; i < count; ++i) {
      kept[i] = x[start + i];
      const Bits<T> size = bits_of(std::fabs(kept[i]));
      most = most > size ? most : size;
    }
    for (int64_t i = 0; i < count; ++i) z[start + i] = static_cast<T>(trig(static_cast<double>(kept[i]), Quarter));
    if (most <= bits_of(T(kTrigTop))) continue;
    for (int64_t i = 0; i < count; ++i)
      if (std::fabs(kept[i]) > T(kTrigTop)) z[start + i] = Quarter == 0 ? std::sin(kept[i]) : std::cos(kept[i]);
  }
}

template <class T, uint64_t Quarter>
constexpr FlatRow trigonometric(const char* name) {
  return one_operand<T>(name, &sines<T, Quarter>);
}

#define UNDERTOW_FLOATS(kind, name, F) kind<F, float>(name), kind<F, double>(name)

constexpr FlatRow kRows[] = {
    UNDERTOW_FLOATS(whole_unary, "exp", Exp),
    UNDERTOW_FLOATS(whole_unary, "exp2", Exp2),
    UNDERTOW_FLOATS(whole_unary, "expm1", Expm1),
    UNDERTOW_FLOATS(whole_unary, "log", Log),
    UNDERTOW_FLOATS(whole_unary, "log2", Log2),
    UNDERTOW_FLOATS(unary, "log10", Log10),
    UNDERTOW_FLOATS(whole_unary, "log1p", Log1p),
    trigonometric<float, 0>("sin"),
    trigonometric<double, 0>("sin"),
    trigonometric<float, 1>("cos"),
    trigonometric<double, 1>("cos"),
    UNDERTOW_FLOATS(unary, "tan", Tan),
    UNDERTOW_FLOATS(unary, "asin", Asin),
    UNDERTOW_FLOATS(unary, "acos", Acos),
    UNDERTOW_FLOATS(unary, "atan", Atan),
    UNDERTOW_FLOATS(unary, "sinh", Sinh),
    UNDERTOW_FLOATS(unary, "cosh", Cosh),
    UNDERTOW_FLOATS(whole_unary, "tanh", Tanh),
    UNDERTOW_FLOATS(unary, "asinh", Asinh),
    UNDERTOW_FLOATS(unary, "acosh", Acosh),
    UNDERTOW_FLOATS(unary, "atanh", Atanh),
    UNDERTOW_FLOATS(unary, "erf", Erf),
    UNDERTOW_FLOATS(whole_unary, "sigmoid", Sigmoid),
    UNDERTOW_FLOATS(whole_unary, "softplus", Softplus),
    UNDERTOW_FLOATS(binary, "power", Power),
    UNDERTOW_FLOATS(binary, "atan2", Atan2),
};

}  // namespace

extern const FlatRows kMathRows = {kRows, std::size(kRows)};

}  // namespace undertow::UNDERTOW_ISA
