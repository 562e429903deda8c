// Passes of several operators, as a plan says them.
#pragma once

#include <utility>

#include "undertow/plan.h"

namespace undertow {

/// Make the passes of a plan whose operators have been checked; throws std::invalid_argument where instructions,
/// registers and slots do not fit together.
void make_fused(Plan& plan, std::span<const std::pair<size_t, FusedFields>> fused);

}  // namespace undertow
