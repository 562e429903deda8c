// Where the values of slots live, as long as plans do not say so themselves.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// No predicate, index or shape is a float, so the host can do without them.
inline Home home_of(const Slot& slot) {
  return slot.dtype == DType::F32 || slot.dtype == DType::F64 ? Home::Lanes : Home::Host;
}

}  // namespace undertow
