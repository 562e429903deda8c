// The axes of lanes in groups of reduced and kept ones.
#include "kernel/groups.h"

namespace undertow {

Groups::Groups(const View& x, uint64_t axes) {
  bool begun = false;  // was there a reduced axis?
  bool ended = false;  // and a kept one after it?
  for (int axis = 0; axis < x.rank; ++axis) {
    const int64_t size = x.shape[axis];
    if (((axes >> axis) & 1) != 0) {
      reduced *= size;
      if (size == 1) continue;
      begun = true;
      is_single = is_single && !ended;
    } else {
      kept *= size;
      (begun ? inner : outer) *= size;
      ended = ended || (begun && size != 1);
    }
  }
}

namespace {

/// Strides of an array whose reduced axes are moved to the end; returns its size in bytes.
int64_t row_strides(const View& x, uint64_t axes, int64_t* strides) {
  int64_t next = size_of(x.dtype);
  for (const bool reduced : {true, false}) {
    for (int axis = x.rank - 1; axis >= 0; --axis) {
      if ((((axes >> axis) & 1) != 0) != reduced) continue;
      strides[axis] = next;
      next *= x.shape[axis];
    }
  }
  return next;
}

}  // namespace

void gather_reduced(int64_t lanes, const View& x, uint64_t axes, void* rows, Scratch& scratch) {
  Strides to;
  View out = x;
  out.data = rows;
  out.stride = row_strides(x, axes, to.steps);
  copy_strided(lanes, x, Strides(x), out, to, sizes_of(x), scratch);
}

void spread_reduced(int64_t lanes, void* rows, uint64_t axes, const View& out, Scratch& scratch) {
  Strides from;
  View x = out;
  x.data = rows;
  x.stride = row_strides(out, axes, from.steps);
  copy_strided(lanes, x, from, out, Strides(out), sizes_of(out), scratch);
}

}  // namespace undertow
