// What a decoded plan must satisfy, so that no run can access memory wrongly. All checks throw std::invalid_argument.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Check that every number is in range, and that values have the types of the columns they go to.
void check_items(const Plan& plan);

/// Check the order of execution: every slot is written once, before it is read; a branch, loop or map is entered from
/// one place, once for each of its programs; phases are in order; entries have the hoisted values that are read below
/// them. Requires `check_items`. Sets the phase of each program, or -1 if it never runs.
void check_flow(Plan& plan);

/// The types that a kernel was bound with.
struct KernelTypes {
  std::vector<Type> inputs, outputs;
};

/// Check that operators have the types of their kernels and, if all dimensions are known, that results have the shapes
/// of their columns; otherwise mark the operator as open: shapes are then checked when it runs.
void check_kernels(Plan& plan, std::span<const KernelTypes> types);

}  // namespace undertow
