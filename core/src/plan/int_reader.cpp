#include "plan/int_reader.h"

#include <algorithm>
#include <optional>

namespace undertow {

ValueType read_type(IntReader& in) {
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  ValueType type;
  type.dtype = static_cast<DType>(in.between(0, kDTypes));
  const int rank = in.between(0, kMostAxes - 4);
  type.count = 1;
  int64_t most = 1;  // lengths beside a 0 count too
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t length = in.next();
    if (length < kUnknown || length > kMostBytes) not_a_plan("a dimension is negative or too large");
    type.shape.push_back(length);
    if (length == kUnknown) type.is_dynamic = true;
    if (length > 0 && most > kMostBytes / length) not_a_plan("a value is too large");
    most *= std::max<int64_t>(length, 1);
    type.count *= length;
  }
  type.bytes = type.is_dynamic ? 0 : type.count * size_of(type.dtype);
  return type;
}

BoundKernel read_kernel(IntReader& in, std::span<const std::string> words) {
  const auto word = [&]() -> const std::string& {
    return words[static_cast<size_t>(in.between(0, static_cast<int64_t>(words.size())))];
  };
  BoundKernel bound;
  bound.op = word();
  bound.is_effect = in.flag();
  Attrs attrs;
  const int32_t attr_count = in.count();
  for (int32_t a = 0; a < attr_count; ++a) {
    const std::string& name = word();
    switch (in.between(0, 4)) {
      case 0: attrs.set(name, in.next()); break;
      case 1: attrs.set(name, word()); break;
      case 2: {
        OptionalInts items;
        const int32_t count = in.count();
        for (int32_t i = 0; i < count; ++i) {
          const bool has_value = in.flag();
          const int64_t value = in.next();
          items.push_back(has_value ? std::optional(value) : std::nullopt);
        }
        attrs.set(name, std::move(items));
        break;
      }
      default: in.next();
    }
  }
  for (auto* list : {&bound.inputs, &bound.outputs}) {
    const int32_t count = in.count();
    for (int32_t i = 0; i < count; ++i) {
      const auto dtype = static_cast<DType>(in.between(0, kDTypes));
      list->push_back({dtype, in.between(0, kMostAxes - 4)});
    }
  }
  if (bound.is_effect) return bound;
  try {
    bound.kernel = bind(bound.op, {attrs, bound.inputs, bound.outputs, functions()});
  } catch (const std::invalid_argument& wrong) {
    not_a_plan(wrong.what());
  }
  return bound;
}

}  // namespace undertow
