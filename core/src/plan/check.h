// What a plan must be besides a list of integers, so that no run can go wrong. All of these throw
// std::invalid_argument.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Every number names something, and every value fits where it goes.
void check_items(const Plan& plan);

/// Check the order in which things happen: every slot is written once, and before it is read; branches, loops and maps
/// belong to one place each, and are entered as often as they have programs; phases come one after the other; entries
/// are given what those below them read. Numbers are in range already.
/// Notes for each program in which phase it runs.
void check_flow(Plan& plan);

/// What a kernel was made for.
struct KernelTypes {
  std::vector<Type> inputs, outputs;
};

/// Check that operators get what their kernels were made for; and, where all lengths are known, that what they give
/// fits where it goes; else note that a run must look.
void check_kernels(Plan& plan, std::span<const KernelTypes> types);

}  // namespace undertow
