// The axes of lanes as groups: neighbours that are all reduced, or all kept, are one axis.
#pragma once

#include "kernel/strided.h"
#include "undertow/kernel.h"

namespace undertow {

/// Lanes of shape [kept..., reduced..., kept...]: `outer` x `reduced` x `inner`, if there is one group of reduced axes.
struct Groups {
  int64_t kept = 1;       ///< elements of a lane that are kept
  int64_t reduced = 1;    ///< that become one
  int64_t outer = 1;      ///< kept, before the reduced ones
  int64_t inner = 1;      ///< kept, behind the reduced ones
  bool is_single = true;  ///< do all reduced axes stand side by side (but for axes of length 1)?

  Groups(const View& x, uint64_t axes);
};

/// Copy lanes so that the reduced axes are the last ones; or back.
void gather_reduced(int64_t lanes, const View& x, uint64_t axes, void* rows, Scratch& scratch);
void spread_reduced(int64_t lanes, void* rows, uint64_t axes, const View& out, Scratch& scratch);

}  // namespace undertow
