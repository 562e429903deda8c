// Parameter updates: one pass over a parameter, its slots (the optimizer's state) and its gradient.
// Each element is computed by the operations of `undertow.api.update_rules`, in order, so that the bits are the same.
#pragma once

#include "undertow/isa.h"

namespace undertow {

/// Update rows of a table in place by a sparse gradient: `count` rows of `width` elements, for the rows `indices` of
/// the table, which are in range; negative ones count from the end. If the rule has slots, rows with the same index are
/// summed first, in order.
void update_rows(const UpdateRule& rule, DType dtype, int64_t count, int64_t width, int64_t length,
                 const int64_t* indices, const void* rows, void* const* tables, const double* settings);

}  // namespace undertow
