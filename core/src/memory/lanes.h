// What is done with the bytes of columns outside of kernels. Nothing else copies or fills them, so that they may live
// elsewhere than in memory of the host. All works on batches: access is asked for once, however many lanes there are.
#pragma once

#include <cstring>

#include "undertow/memory.h"
#include "undertow/size.h"

namespace undertow::lanes {

/// Value k goes from `from(k)` to `to(k)`. Of most values there are as many bytes as a register has.
template <class To, class From>
void each(int64_t count, int64_t bytes, To&& to, From&& from) {
  const Access access;
  switch (bytes) {
    case 0: return;
    case 1:
      for (int64_t k = 0; k < count; ++k) std::memcpy(to(k), from(k), 1);
      return;
    case 4:
      for (int64_t k = 0; k < count; ++k) std::memcpy(to(k), from(k), 4);
      return;
    case 8:
      for (int64_t k = 0; k < count; ++k) std::memcpy(to(k), from(k), 8);
      return;
    default:
      for (int64_t k = 0; k < count; ++k) std::memcpy(to(k), from(k), z(bytes));
  }
}

/// Values that stand anywhere, side by side.
template <class From>
void join(std::byte* to, int64_t count, int64_t bytes, From&& from) {
  each(count, bytes, [=](int64_t k) { return to + k * bytes; }, from);
}

/// A run of bytes.
inline void copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const Access access;
  std::memcpy(to, from, z(bytes));
}

inline void zero(void* to, int64_t bytes) {
  if (bytes == 0) return;
  const Access access;
  std::memset(to, 0, z(bytes));
}

/// Those that `index` names, side by side.
void gather(std::byte* to, const std::byte* from, int64_t stride, const int32_t* index, int64_t count, int64_t bytes);

/// Each to its place of what stands side by side.
void scatter(std::byte* to, const int32_t* places, const std::byte* from, int64_t stride, int64_t count, int64_t bytes);

/// From one stride to another; where the first is 0, one value fills them.
void move(std::byte* to, int64_t to_stride, const std::byte* from, int64_t stride, int64_t count, int64_t bytes);

/// The values of 4 or 8 bytes of the lanes that take one side of a branch; `pred` is the host's.
void part(std::byte* to, const uint8_t* pred, bool is_yes, int64_t count, const std::byte* from, int64_t bytes);

/// The values of both sides, each for its lanes: side by side, or one for all where the stride is 0.
void meet(std::byte* to, const uint8_t* pred, int64_t count, const std::byte* yes, int64_t yes_stride,
          const std::byte* no, int64_t no_stride, int64_t bytes);

// Single values. Who calls these has access, or they are the host's.

/// A number of a lane in a cell of 8 bytes, and back.
inline uint64_t cell_at(const void* from, int64_t bytes) {
  uint64_t cell = 0;
  std::memcpy(&cell, from, z(bytes));
  return cell;
}

inline void put_cell(void* to, uint64_t cell, int64_t bytes) { std::memcpy(to, &cell, z(bytes)); }

/// A value of a few bytes.
inline void copy_few(std::byte* to, const std::byte* from, int64_t bytes) {
  switch (bytes) {
    case 1: std::memcpy(to, from, 1); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, z(bytes));
  }
}

}  // namespace undertow::lanes
