// Calls whose lanes stand between each other.
//
// concat([f(left), f(right)]) is rows of the results of both calls, in turn. So if lane 2k of the wave is the left call
// of lane k, and lane 2k + 1 the right one, that is the column of the results itself, in rows of twice the length; and
// on the way back, the parts of its cotangent are the column that both calls are given. Nothing is copied.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Find such families of calls, and values that only calls read. For plans that have been checked.
void find_siblings(Plan& plan);

}  // namespace undertow
