// Copying and filling the bytes of columns. Besides kernels, nothing else touches them, so that they may live outside
// the host's memory. All functions work on batches: access is acquired once, however many lanes there are.
#pragma once

#include <cstring>

#include "undertow/memory.h"
#include "undertow/size.h"

namespace undertow::lanes {

/// Copy value k from `from(k)` to `to(k)`. Most values fit a register, so these sizes have loops of their own.
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

/// Copy values from anywhere, packed.
template <class From>
void join(std::byte* to, int64_t count, int64_t bytes, From&& from) {
  each(count, bytes, [=](int64_t k) { return to + k * bytes; }, from);
}

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

/// Copy the values at `index`, packed.
void gather(std::byte* to, const std::byte* from, int64_t stride, const int32_t* index, int64_t count, int64_t bytes);

/// Copy values to the places in `places` of a packed array.
void scatter(std::byte* to, const int32_t* places, const std::byte* from, int64_t stride, int64_t count, int64_t bytes);

/// Copy from one stride to another; source stride 0 fills with one value.
void move(std::byte* to, int64_t to_stride, const std::byte* from, int64_t stride, int64_t count, int64_t bytes);

/// Compress: copy the values (4 or 8 bytes) of the lanes that take one side of a branch; `pred` is in host memory.
void part(std::byte* to, const uint8_t* pred, bool is_yes, int64_t count, const std::byte* from, int64_t bytes);

/// Merge the packed values of both sides of a branch into lane order; a side with stride 0 has one value for all.
void meet(std::byte* to, const uint8_t* pred, int64_t count, const std::byte* yes, int64_t yes_stride,
          const std::byte* no, int64_t no_stride, int64_t bytes);

// Single values. The caller holds an Access, or the memory is the host's.

/// A scalar of `bytes` bytes as a cell of 8, and back.
inline uint64_t cell_at(const void* from, int64_t bytes) {
  uint64_t cell = 0;
  std::memcpy(&cell, from, z(bytes));
  return cell;
}

inline void put_cell(void* to, uint64_t cell, int64_t bytes) { std::memcpy(to, &cell, z(bytes)); }

/// A small value.
inline void copy_few(std::byte* to, const std::byte* from, int64_t bytes) {
  switch (bytes) {
    case 1: std::memcpy(to, from, 1); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, z(bytes));
  }
}

}  // namespace undertow::lanes
