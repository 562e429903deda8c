#include "narrow/shortcut.h"

namespace undertow {
namespace {

using Code = NarrowCode;

struct Shortcut {
  std::string_view op;
  Code code;
  Code swapped;
  bool of_ints, of_floats;
};

constexpr Shortcut kShortcuts[] = {
    {"add", Code::Add, Code::Add, true, true},
    {"subtract", Code::Subtract, Code::Flat, true, true},
    {"multiply", Code::Multiply, Code::Multiply, true, true},
    {"minimum", Code::Minimum, Code::Minimum, true, false},  // of floats, nan decides: the kernel knows
    {"maximum", Code::Maximum, Code::Maximum, true, false},
    {"floor_divide", Code::FloorDivide, Code::Flat, true, false},
    {"remainder", Code::Remainder, Code::Flat, true, false},
    {"divide", Code::Divide, Code::Flat, false, true},
    {"negative", Code::Negative, Code::Flat, true, true},
    {"less", Code::Less, Code::Greater, true, true},
    {"less_equal", Code::LessEqual, Code::GreaterEqual, true, true},
    {"greater", Code::Greater, Code::Less, true, true},
    {"greater_equal", Code::GreaterEqual, Code::LessEqual, true, true},
    {"equal", Code::Equal, Code::Equal, true, true},
    {"not_equal", Code::NotEqual, Code::NotEqual, true, true},
};

struct Cast {
  DType from, to;
  Code code;
};

constexpr Cast kCasts[] = {
    {DType::I32, DType::I64, Code::IntToLong},     {DType::I32, DType::F64, Code::IntToDouble},
    {DType::I64, DType::F64, Code::LongToDouble},  {DType::F32, DType::F64, Code::FloatToDouble},
    {DType::F64, DType::F32, Code::DoubleToFloat},
};

}  // namespace

NarrowCode code_of(std::string_view op, const Elementwise& each) {
  if (each.inputs[0] == DType::Bool) {
    if (op == "logical_and") return Code::And;
    if (op == "logical_or") return Code::Or;
    return op == "logical_not" ? Code::Not : Code::Flat;
  }
  if (op == "cast") {
    for (const Cast& cast : kCasts)
      if (cast.from == each.inputs[0] && cast.to == each.output) return cast.code;
    return Code::Flat;
  }
  const bool is_int = each.inputs[0] == DType::I32 || each.inputs[0] == DType::I64;
  for (const Shortcut& row : kShortcuts)
    if (row.op == op && (is_int ? row.of_ints : row.of_floats))
      return of(row.code, static_cast<int>(each.inputs[0]) - static_cast<int>(DType::I32), 0);
  return Code::Flat;
}

NarrowCode swapped(NarrowCode code) {
  for (const Shortcut& row : kShortcuts) {
    const int offset = static_cast<int>(code) - static_cast<int>(row.code);
    if (offset >= 0 && offset < 8 && row.swapped != Code::Flat)
      return static_cast<Code>(static_cast<int>(row.swapped) + offset);
  }
  return Code::Flat;
}

}  // namespace undertow
