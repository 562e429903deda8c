// Builds the fused passes of a plan.
#pragma once

#include <utility>

#include "undertow/plan.h"

namespace undertow {

/// Build the fused passes of a plan whose operators have been checked; throws std::invalid_argument if instructions,
/// registers and slots do not fit together.
void make_fused(Plan& plan, std::span<const std::pair<size_t, FusedFields>> fused);

}  // namespace undertow
