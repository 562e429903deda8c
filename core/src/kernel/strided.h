// Walks over several arrays at once, each with strides of its own in bytes: broadcasts, slices, transposes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernel/sizes.h"
#include "undertow/kernel.h"

namespace undertow {

/// N arrays walked together; axis 0 is the outermost. Axes that are contiguous in every array are merged.
template <int N>
class Walk {
 public:
  /// Add an axis inside the existing ones.
  void axis(int64_t size, const int64_t (&strides)[N]) {
    if (size == 1) return;
    if (rank_ > 0) {
      bool one = true;
      for (int k = 0; k < N; ++k) one = one && strides_[rank_ - 1][k] == strides[k] * size;
      if (one) {
        sizes_[rank_ - 1] *= size;
        std::copy_n(strides, N, strides_[rank_ - 1]);
        return;
      }
    }
    sizes_[rank_] = size;
    std::copy_n(strides, N, strides_[rank_]);
    ++rank_;
  }

  /// Call f(pointers, strides, size) for each run along the innermost axis. `bytes` are those of an element, in all
  /// arrays. A long walk is done in parts, with a look up after each.
  template <class F>
  void each_run(std::byte* (&pointers)[N], Scratch& scratch, int64_t bytes, F&& f) const {
    const int64_t work = product(sizes_, 0, rank_) * bytes;
    if (work > Scratch::kLook && rank_ > 0) return in_parts(pointers, scratch, bytes, f);
    walk(pointers, f);
    scratch.worked(work);
  }

 private:
  template <class F>
  [[gnu::noinline]] void walk(std::byte* (&pointers)[N], F& f) const {
    static constexpr int64_t still[N] = {};
    if (rank_ == 0) {
      f(pointers, still, int64_t{1});
      return;
    }
    const int inner = rank_ - 1;
    int64_t at[kMostAxes + 1] = {};
    for (int axis = 0; axis < rank_; ++axis)
      if (sizes_[axis] == 0) return;
    for (;;) {
      f(pointers, strides_[inner], sizes_[inner]);
      int axis = inner - 1;
      for (; axis >= 0; --axis) {
        for (int k = 0; k < N; ++k) pointers[k] += strides_[axis][k];
        if (++at[axis] < sizes_[axis]) break;
        for (int k = 0; k < N; ++k) pointers[k] -= strides_[axis][k] * sizes_[axis];
        at[axis] = 0;
      }
      if (axis < 0) return;
    }
  }

  /// Parts of the outermost axis that has few enough elements below each place, for each place of the axes around it.
  template <class F>
  [[gnu::noinline]] void in_parts(std::byte* (&pointers)[N], Scratch& scratch, int64_t bytes, F& f) const {
    int cut = 0;
    while (cut < rank_ - 1 && product(sizes_, cut + 1, rank_) * bytes > Scratch::kLook) ++cut;
    Walk outer = *this, part = *this;
    outer.rank_ = cut;
    part.rank_ = rank_ - cut;
    std::copy_n(sizes_ + cut, part.rank_, part.sizes_);
    std::copy_n(&strides_[cut][0], part.rank_ * N, &part.strides_[0][0]);
    const auto parts = [&](std::byte* const* from, const int64_t* strides, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        scratch.in_steps(sizes_[cut], product(sizes_, cut + 1, rank_) * bytes, [&](int64_t first, int64_t some) {
          std::byte* at[N];
          for (int k = 0; k < N; ++k) at[k] = from[k] + i * strides[k] + first * strides_[cut][k];
          part.sizes_[0] = some;
          part.walk(at, f);
        });
    };
    outer.walk(pointers, parts);
  }

  int rank_ = 0;
  int64_t sizes_[kMostAxes + 1];
  int64_t strides_[kMostAxes + 1][N];
};

/// Strides in bytes of a contiguous, row-major array.
inline void dense_strides(const int64_t* shape, int rank, int64_t element, int64_t* strides) {
  for (int axis = rank - 1; axis >= 0; --axis) {
    strides[axis] = element;
    element *= shape[axis];
  }
}

/// Strides of an operand along the axes of the shape that it is broadcast to.
inline void broadcast_strides(const View& view, int rank, int64_t* strides) {
  int64_t step = size_of(view.dtype);
  const int front = rank - view.rank;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const int64_t size = axis >= front ? view.shape[axis - front] : 1;
    strides[axis] = size == 1 ? 0 : step;
    step *= size;
  }
}

/// Copy along a walk over (source, target), elements of `element` bytes.
void copy_walk(const Walk<2>& walk, const void* source, void* target, int64_t element, Scratch& scratch);

/// Copy a long block, with a look up now and then.
void copy_long(void* to, const void* from, int64_t bytes, Scratch& scratch);

/// Copy a block: where it is small, a well-predicted switch is cheaper than a call of memcpy.
inline void copy_block(void* to, const void* from, int64_t bytes, Scratch& scratch) {
  constexpr int64_t kShort = 4096;  // one step
  if (bytes == 4)
    std::memcpy(to, from, 4);
  else if (bytes == 8)
    std::memcpy(to, from, 8);
  else if (bytes <= kShort)
    std::memcpy(to, from, static_cast<size_t>(bytes));
  else
    copy_long(to, from, bytes, scratch);
}

/// Copy lanes, unless source and target are the same.
void copy_lanes(int64_t lanes, const View& x, const View& out, Scratch& scratch);

/// Offset and stride in bytes along each axis; contiguous and row-major, unless changed.
struct Strides {
  int64_t offset = 0, steps[kMostAxes];

  Strides() = default;
  explicit Strides(const View& view) { dense_strides(view.shape, view.rank, size_of(view.dtype), steps); }
};

inline std::span<const int64_t> sizes_of(const View& view) { return {view.shape, static_cast<size_t>(view.rank)}; }

/// Copy a block of each lane of x to a block of out, of the given size along each axis.
void copy_strided(int64_t lanes, const View& x, const Strides& from, const View& out, const Strides& to,
                  std::span<const int64_t> sizes, Scratch& scratch);

}  // namespace undertow
