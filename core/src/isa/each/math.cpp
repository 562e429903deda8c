// Functions like exp on each element: vector code from isa/math.h, or the standard library element by element.
#include "isa/math.h"

#include "isa/flat.h"
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

#define UNDERTOW_OURS(Name, function) \
  struct Name {                       \
    template <class T>                \
    static T apply(T x) {             \
      return function(x);             \
    }                                 \
  };
UNDERTOW_OURS(Exp, exp)
UNDERTOW_OURS(Exp2, exp2)
UNDERTOW_OURS(Expm1, expm1)
UNDERTOW_OURS(Log, log)
UNDERTOW_OURS(Log2, log2)
UNDERTOW_OURS(Log1p, log1p)
UNDERTOW_OURS(Tanh, tanh)
UNDERTOW_OURS(Sigmoid, sigmoid)
UNDERTOW_OURS(Softplus, softplus)
// Seldom met in recursive networks, so these are the standard library's: exact to 1 ulp, and no vectors.
UNDERTOW_OURS(Log10, std::log10)
UNDERTOW_OURS(Tan, std::tan)
UNDERTOW_OURS(Asin, std::asin)
UNDERTOW_OURS(Acos, std::acos)
UNDERTOW_OURS(Atan, std::atan)
UNDERTOW_OURS(Sinh, std::sinh)
UNDERTOW_OURS(Cosh, std::cosh)
UNDERTOW_OURS(Asinh, std::asinh)
UNDERTOW_OURS(Acosh, std::acosh)
UNDERTOW_OURS(Atanh, std::atanh)
UNDERTOW_OURS(Erf, std::erf)

struct Atan2 {
  template <class T>
  static T apply(T y, T x) {
    return std::atan2(y, x);
  }
};

struct Power {
  template <class T>
  static T apply(T x, T y) {
    return std::pow(x, y);
  }
};

/// All elements as vectors; then, alone, those that are too large for that.
template <class T, uint64_t Quarter>
void sines(const void* a, const void*, const void*, void* out, int64_t n) {
  constexpr int64_t kPiece = 256;
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  T kept[kPiece];  // the output may be the operand
  for (int64_t start = 0; start < n; start += kPiece) {
    const int64_t count = n - start < kPiece ? n - start : kPiece;
    Bits<T> most = 0;  // of sizes, whose bits are ordered as they are; nan is largest
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
  return {name, {1, {kDType<T>, {}, {}}, kDType<T>, {&sines<T, Quarter>}, nullptr, Fault::Code::None}};
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
