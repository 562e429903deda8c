// Copies between arrays with any strides.
#include "kernel/strided.h"

#include <cstring>

#include "kernel/sizes.h"

namespace undertow {
namespace {

template <class T>
void copy_run(std::byte* source, int64_t source_stride, std::byte* target, int64_t target_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(target + i * target_stride, source + i * source_stride, sizeof(T));
}

template <class T>
void fill_run(const std::byte* source, std::byte* target, int64_t n) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  std::fill_n(reinterpret_cast<T*>(target), n, value);
}

template <class T>
void copy_all(const Walk<2>& walk, const void* source, void* target, Scratch& scratch) {
  std::byte* pointers[2] = {static_cast<std::byte*>(const_cast<void*>(source)), static_cast<std::byte*>(target)};
  walk.each_run(pointers, scratch, 2 * sizeof(T), [](std::byte* const* at, const int64_t* strides, int64_t n) {
    constexpr int64_t element = sizeof(T);
    if (strides[1] == element && strides[0] == element)
      std::memcpy(at[1], at[0], n * element);
    else if (strides[1] == element && strides[0] == 0)
      fill_run<T>(at[0], at[1], n);
    else
      copy_run<T>(at[0], strides[0], at[1], strides[1], n);
  });
}

}  // namespace

void copy_walk(const Walk<2>& walk, const void* source, void* target, int64_t element, Scratch& scratch) {
  by_size(element, [&](auto unit) { copy_all<decltype(unit)>(walk, source, target, scratch); });
}

void copy_long(void* to, const void* from, int64_t bytes, Scratch& scratch) {
  scratch.in_steps(bytes, 2, [&](int64_t first, int64_t count) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                static_cast<size_t>(count));
  });
}

void copy_lanes(int64_t lanes, const View& x, const View& out, Scratch& scratch) {
  if (x.data == out.data) return;
  const int64_t bytes = out.bytes();
  if (x.stride == bytes && out.stride == bytes && lanes * bytes <= Scratch::kStep) {
    std::memcpy(out.data, x.data, static_cast<size_t>(lanes * bytes));
    return scratch.worked(lanes * bytes);
  }
  Walk<2> walk;
  walk.axis(lanes, {x.stride, out.stride});
  walk.axis(bytes, {1, 1});
  copy_walk(walk, x.data, out.data, 1, scratch);
}

void copy_strided(int64_t lanes, const View& x, const Strides& from, const View& out, const Strides& to,
                  std::span<const int64_t> sizes, Scratch& scratch) {
  Walk<2> walk;
  walk.axis(lanes, {x.stride, out.stride});
  for (size_t axis = 0; axis < sizes.size(); ++axis) walk.axis(sizes[axis], {from.steps[axis], to.steps[axis]});
  copy_walk(walk, static_cast<const std::byte*>(x.data) + from.offset, static_cast<std::byte*>(out.data) + to.offset,
            size_of(x.dtype), scratch);
}

}  // namespace undertow
