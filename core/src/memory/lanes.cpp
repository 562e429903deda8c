#include "memory/lanes.h"

#include <algorithm>

#include "undertow/isa.h"

namespace undertow::lanes {
namespace {

template <class T>
void gather(T* to, const std::byte* from, int64_t stride, const int32_t* index, int64_t count) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    const T* in = reinterpret_cast<const T*>(from);
    for (int64_t k = 0; k < count; ++k) to[k] = in[index[k]];
  } else {
    for (int64_t k = 0; k < count; ++k) to[k] = *reinterpret_cast<const T*>(from + index[k] * stride);
  }
}

template <class T>
void scatter(T* to, const int32_t* places, const std::byte* from, int64_t stride, int64_t count) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    const T* in = reinterpret_cast<const T*>(from);
    for (int64_t k = 0; k < count; ++k) to[places[k]] = in[k];
  } else {
    for (int64_t k = 0; k < count; ++k) to[places[k]] = *reinterpret_cast<const T*>(from + k * stride);
  }
}

template <class T>
void move(T* to, int64_t to_stride, const std::byte* from, int64_t stride, int64_t count) {
  if (stride == 0 && to_stride == static_cast<int64_t>(sizeof(T))) {
    std::fill_n(to, count, *reinterpret_cast<const T*>(from));
  } else {
    auto* out = reinterpret_cast<std::byte*>(to);
    for (int64_t k = 0; k < count; ++k)
      *reinterpret_cast<T*>(out + k * to_stride) = *reinterpret_cast<const T*>(from + k * stride);
  }
}

/// Call `work` with values of 1, 4 or 8 bytes as unsigned integers; false for other sizes.
template <class Work>
bool as_numbers(std::byte* to, int64_t bytes, Work&& work) {
  if (bytes == 1)
    work(reinterpret_cast<uint8_t*>(to));
  else if (bytes == 4)
    work(reinterpret_cast<uint32_t*>(to));
  else if (bytes == 8)
    work(reinterpret_cast<uint64_t*>(to));
  else
    return false;
  return true;
}

}  // namespace

void gather(std::byte* to, const std::byte* from, int64_t stride, const int32_t* index, int64_t count, int64_t bytes) {
  const Access access;
  if (!as_numbers(to, bytes, [&](auto* out) { gather(out, from, stride, index, count); }))
    join(to, count, bytes, [=](int64_t k) { return from + index[k] * stride; });
}

void scatter(std::byte* to, const int32_t* places, const std::byte* from, int64_t stride, int64_t count,
             int64_t bytes) {
  const Access access;
  if (!as_numbers(to, bytes, [&](auto* out) { scatter(out, places, from, stride, count); }))
    each(count, bytes, [=](int64_t k) { return to + places[k] * bytes; }, [=](int64_t k) { return from + k * stride; });
}

void move(std::byte* to, int64_t to_stride, const std::byte* from, int64_t stride, int64_t count, int64_t bytes) {
  if (count == 1 || (stride == bytes && to_stride == bytes)) return copy(to, from, count * bytes);
  const Access access;
  if (!as_numbers(to, bytes, [&](auto* out) { move(out, to_stride, from, stride, count); }))
    each(count, bytes, [=](int64_t k) { return to + k * to_stride; }, [=](int64_t k) { return from + k * stride; });
}

void part(std::byte* to, const uint8_t* pred, bool is_yes, int64_t count, const std::byte* from, int64_t bytes) {
  const Access access;
  functions().lanes->part[bytes == 8](pred, is_yes, count, from, to);
}

void meet(std::byte* to, const uint8_t* pred, int64_t count, const std::byte* yes, int64_t yes_stride,
          const std::byte* no, int64_t no_stride, int64_t bytes) {
  const Access access;
  functions().lanes->meet[bytes == 8](pred, count, yes, yes_stride == 0, no, no_stride == 0, to);
}

}  // namespace undertow::lanes
