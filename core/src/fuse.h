// Find operators that can run together in one pass over their lanes.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Fill in what runs of each stage, and which slots are then needed by nobody. For plans that have been checked.
void fuse(Plan& plan);

/// How often each slot of each region is read, by whatever stands anywhere in a plan.
std::vector<std::vector<int32_t>> count_uses(const Plan& plan);

}  // namespace undertow
