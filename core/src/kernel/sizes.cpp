// Sizes that are known only at run time.
#include "kernel/sizes.h"

#include <algorithm>

namespace undertow {

Fault open_shape(const OptionalInts& shape, const View* sizes, Shape& out) {
  out.rank = 0;
  for (const auto& asked : shape) {
    const int64_t size = asked ? *asked : integer_at(*sizes++, 0);
    if (!asked && size < 0) return {Fault::Code::NegativeSize, 0};
    out.append(size);
  }
  return {};
}

uint64_t open_operands(const OptionalInts& shape, int first) {
  uint64_t bits = 0;
  for (const auto& asked : shape)
    if (!asked) bits |= uint64_t{1} << first++;
  return bits;
}

Fault check_size(const Shape& shape) {
  int64_t total = 1;
  for (int axis = 0; axis < shape.rank; ++axis)
    if (__builtin_mul_overflow(total, std::max<int64_t>(shape.sizes[axis], 1), &total) || total > kMostElements)
      return {Fault::Code::TooLarge, 0};
  return {};
}

Cut cut_of(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step, int64_t length) {
  const int64_t by = step.value_or(1);
  const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
  const auto clamp = [&](std::optional<int64_t> bound, int64_t otherwise) {
    if (!bound) return otherwise;
    return *bound < 0 ? std::max(*bound + length, low) : std::min(*bound, high);
  };
  const int64_t first = clamp(start, by < 0 ? high : low), last = clamp(stop, by < 0 ? low : high);
  int64_t count = 0;
  if (by > 0 && first < last) count = (last - first - 1) / by + 1;
  if (by < 0 && last < first)
    count = static_cast<int64_t>(static_cast<uint64_t>(first - last - 1) / -static_cast<uint64_t>(by)) + 1;
  return {first, by, count};
}

}  // namespace undertow
