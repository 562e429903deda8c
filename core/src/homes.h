// Where the values of slots live.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// The home of a slot's values. In ordinary memory all are the host's. In guarded memory floats are not: no predicate,
/// index or shape is one.
inline Home home_of(const Slot& slot) {
  return memory_is_guarded && (slot.dtype == DType::F32 || slot.dtype == DType::F64) ? Home::Lanes : Home::Host;
}

}  // namespace undertow
