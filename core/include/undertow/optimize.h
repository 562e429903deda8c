// Updates of parameters: one pass over a parameter, what is remembered of it, and its gradient.
// Each element is computed as `undertow.api.update_rules` says, operation by operation, so that the bits are the same.
#pragma once

#include "undertow/isa.h"

namespace undertow {

/// Update some rows of a table in place: `rows` has `count` of them, of `width` elements, which belong to the rows
/// `indices`, which are in range; negative ones count from the end. Those that are named several times are summed
/// first, in their order, if anything is remembered.
void update_rows(const UpdateRule& rule, DType dtype, int64_t count, int64_t width, int64_t length,
                 const int64_t* indices, const void* rows, void* const* tables, const double* settings);

}  // namespace undertow
