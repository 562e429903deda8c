// The axes of lanes in groups: adjacent axes that are all reduced, or all kept, are one axis.
#pragma once

#include "kernel/strided.h"
#include "undertow/kernel.h"

namespace undertow {

/// Lanes of shape [kept..., reduced..., kept...]: `outer` x `reduced` x `inner`, if there is one group of reduced axes.
struct Groups {
  int64_t kept = 1;       ///< results of a lane
  int64_t reduced = 1;    ///< elements that become one
  int64_t outer = 1;      ///< kept, before the reduced axes
  int64_t inner = 1;      ///< kept, after the reduced axes
  bool is_single = true;  ///< are all reduced axes adjacent (ignoring axes of length 1)?

  Groups(const View& x, uint64_t axes);
};

/// Copy lanes so that the reduced axes are last; or back.
void gather_reduced(int64_t lanes, const View& x, uint64_t axes, void* rows, Scratch& scratch);
void spread_reduced(int64_t lanes, void* rows, uint64_t axes, const View& out, Scratch& scratch);

}  // namespace undertow
