// What a plan must be so that every number in it names something, and every value fits where it goes.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Throws std::invalid_argument.
void check_items(const Plan& plan);

}  // namespace undertow
