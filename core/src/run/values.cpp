#include "run/values.h"

#include <algorithm>
#include <cmath>

#include "memory/lanes.h"

namespace undertow {
namespace {

template <class T>
bool are_finite(const void* data, int64_t count) {
  return std::all_of(static_cast<const T*>(data), static_cast<const T*>(data) + count,
                     [](T value) { return std::isfinite(value); });
}

}  // namespace

Value value_of(const View& view) {
  Value value;
  value.shape.assign(view.shape, view.shape + view.rank);
  value.bytes.resize(z(view.bytes()));
  lanes::copy(value.bytes.data(), view.data, view.bytes());
  return value;
}

Stop stop_of(Stop::Kind kind, int32_t node, std::span<const View> values) {
  Stop stop{kind, node};
  for (const View& view : values) {
    stop.values.push_back(value_of(view));
    stop.types.push_back({view.dtype, view.rank});
  }
  return stop;
}

Stop unequal_lanes(int32_t phase, int64_t lanes, int64_t length) {
  Stop stop{phase == 0 ? Stop::Kind::UnequalLanes : Stop::Kind::UnequalVisits};
  stop.a = lanes;
  stop.b = length;
  return stop;
}

bool is_shaped(const ValueType& type, const int64_t* shape, int rank) {
  if (rank != type.rank()) return false;
  for (int axis = 0; axis < rank; ++axis)
    if (type.shape[z(axis)] != kUnknown && type.shape[z(axis)] != shape[axis]) return false;
  return true;
}

int64_t array_bytes(DType dtype, const int64_t* shape, int rank) {
  int64_t bytes = size_of(dtype), most = bytes;
  for (int axis = 0; axis < rank; ++axis) {
    bytes *= shape[axis];
    if (shape[axis] < 0 || __builtin_mul_overflow(most, std::max<int64_t>(shape[axis], 1), &most))
      throw OverLimit{OverLimit::Kind::OutOfMemory};
  }
  return bytes;
}

bool is_finite(const View& view) {
  const DType part = part_of(view.dtype);
  const int64_t count = view.bytes() / size_of(part);
  if (part == DType::F32) return are_finite<float>(view.data, count);
  return part != DType::F64 || are_finite<double>(view.data, count);
}

}  // namespace undertow
