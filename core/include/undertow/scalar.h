// Scalars in cells of 8 bytes, and the scalar operators that interpreters have codes for.
//
// Two interpreters run scalars one at a time: narrow code (narrow/run.cpp) and the graph-expanding engine
// (expand/run.cpp). The operators that they have codes for, with dtypes and results, are listed here once: a new
// operator is one line. One without a code runs by its kernel, code Flat.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "undertow/elementwise.h"

namespace undertow {

/// The low bytes of a cell hold the number, the others are zero.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;

template <class T>
T as(uint64_t cell) {
  if constexpr (std::is_same_v<T, bool>) return (cell & 1) != 0;
  return std::bit_cast<T>(static_cast<Bits<T>>(cell));
}

template <class T>
uint64_t cell_of(T value) {
  return std::bit_cast<Bits<T>>(value);
}

/// Floor division; y is not zero. Dividing the least number by -1 wraps.
template <class T>
T floor_divide(T x, T y) {
  if (y == -1) return -x;
  const T quotient = x / y, rest = x % y;
  return rest != 0 && ((rest < 0) != (y < 0)) ? quotient - 1 : quotient;
}

/// Its remainder, which has the sign of y.
template <class T>
T remainder(T x, T y) {
  if (y == -1) return 0;
  const T rest = x % y;
  return rest != 0 && ((rest < 0) != (y < 0)) ? rest + y : rest;
}

// clang-format off

// The tables. ROW(code, operator, code with the operands in the other order or Flat, dtypes, result). Minimum,
// maximum and floor division of floats are left to kernels: they need care with nan, and are no single instruction.
#define UNDERTOW_ARITHMETIC(ROW)                                           \
  ROW(Add, "add", Add, NUMBERS, x + y)                                     \
  ROW(Subtract, "subtract", Flat, NUMBERS, x - y)                          \
  ROW(Multiply, "multiply", Multiply, NUMBERS, x * y)                      \
  ROW(Minimum, "minimum", Minimum, INTS, y < x ? y : x)                    \
  ROW(Maximum, "maximum", Maximum, INTS, x < y ? y : x)                    \
  ROW(Divide, "divide", Flat, FLOATS, x / y)                               \
  ROW(Negative, "negative", Flat, NUMBERS, -x)

// They fault if y is zero.
#define UNDERTOW_DIVISIONS(ROW)                                            \
  ROW(FloorDivide, "floor_divide", Flat, INTS, floor_divide(x, y))         \
  ROW(Remainder, "remainder", Flat, INTS, remainder(x, y))

// The result is a bool.
#define UNDERTOW_TESTS(ROW)                                                \
  ROW(Less, "less", Greater, NUMBERS, x < y)                               \
  ROW(LessEqual, "less_equal", GreaterEqual, NUMBERS, x <= y)              \
  ROW(Greater, "greater", Less, NUMBERS, x > y)                            \
  ROW(GreaterEqual, "greater_equal", LessEqual, NUMBERS, x >= y)           \
  ROW(Equal, "equal", Equal, NUMBERS, x == y)                              \
  ROW(NotEqual, "not_equal", NotEqual, NUMBERS, x != y)

// With one dtype each. ROW(code, operator, dtype, type, dtype of the result, its type, result)
#define UNDERTOW_SINGLES(ROW)                                              \
  ROW(And, "logical_and", Bool, bool, Bool, bool, x & y)                   \
  ROW(Or, "logical_or", Bool, bool, Bool, bool, x | y)                     \
  ROW(Not, "logical_not", Bool, bool, Bool, bool, !x)                      \
  ROW(IntToLong, "cast", I32, int32_t, I64, int64_t, x)                    \
  ROW(IntToDouble, "cast", I32, int32_t, F64, double, x)                   \
  ROW(LongToDouble, "cast", I64, int64_t, F64, double, x)                  \
  ROW(FloatToDouble, "cast", F32, float, F64, double, x)                   \
  ROW(DoubleToFloat, "cast", F64, double, F32, float, x)

// One CASE for each of several dtypes: CASE(number of the dtype, type, ...).
#define UNDERTOW_OF_INTS(CASE, ...) CASE(0, int32_t, __VA_ARGS__) CASE(1, int64_t, __VA_ARGS__)
#define UNDERTOW_OF_FLOATS(CASE, ...) CASE(2, float, __VA_ARGS__) CASE(3, double, __VA_ARGS__)
#define UNDERTOW_OF_NUMBERS(CASE, ...) UNDERTOW_OF_INTS(CASE, __VA_ARGS__) UNDERTOW_OF_FLOATS(CASE, __VA_ARGS__)
// clang-format on

/// The number of codes that an interpreter has for each of the four dtypes of an operator.
template <class Code>
constexpr int kForms = (static_cast<int>(Code::Subtract) - static_cast<int>(Code::Add)) / 4;

/// The code of an operator for a dtype: 0 to 3 are I32, I64, F32, F64.
template <class Code>
constexpr Code of(Code family, int dtype, int form = 0) {
  return static_cast<Code>(static_cast<int>(family) + kForms<Code> * dtype + form);
}

/// The code of a scalar operator; Flat if it has none.
template <class Code>
Code code_of(std::string_view op, const Elementwise& each) {
  constexpr int INTS = 0b0011, FLOATS = 0b1100, NUMBERS = 0b1111;
  const int dtype = static_cast<int>(each.inputs[0]) - static_cast<int>(DType::I32);
  const auto is_one = [&](std::string_view word, int dtypes) {
    return op == word && dtype >= 0 && (dtypes >> dtype & 1) != 0;
  };
#define UNDERTOW_ROW(name, word, mirrored, dtypes, result) \
  if (is_one(word, dtypes)) return of(Code::name, dtype);
#define UNDERTOW_SINGLE(name, word, from, type, to, to_type, result) \
  if (op == word && each.inputs[0] == DType::from && each.output == DType::to) return Code::name;
  UNDERTOW_ARITHMETIC(UNDERTOW_ROW)
  UNDERTOW_DIVISIONS(UNDERTOW_ROW)
  UNDERTOW_TESTS(UNDERTOW_ROW)
  UNDERTOW_SINGLES(UNDERTOW_SINGLE)
#undef UNDERTOW_SINGLE
#undef UNDERTOW_ROW
  return Code::Flat;
}

/// The code for the same operator with its operands swapped; Flat if there is none.
template <class Code>
Code mirrored(Code code) {
#define UNDERTOW_ROW(name, word, other, dtypes, result)                                                             \
  if (const int form = static_cast<int>(code) - static_cast<int>(Code::name); form >= 0 && form < 4 * kForms<Code>) \
    return Code::other == Code::Flat ? Code::Flat : static_cast<Code>(static_cast<int>(Code::other) + form);
  UNDERTOW_ARITHMETIC(UNDERTOW_ROW)
  UNDERTOW_DIVISIONS(UNDERTOW_ROW)
  UNDERTOW_TESTS(UNDERTOW_ROW)
#undef UNDERTOW_ROW
  return Code::Flat;
}

}  // namespace undertow
