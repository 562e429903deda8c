// Updates of parameters: one pass over a parameter, what is remembered of it, and its gradient.
//
// Each element is computed as `undertow.api.optim` writes it down, operation by operation, so that the bits are the
// same.
#pragma once

#include <span>

#include "undertow/isa.h"

namespace undertow {

/// What an update works on: the parameter, then what is remembered of it. Results may stand where operands stood.
struct Updated {
  const void* in[kMostUpdated];
  void* out[kMostUpdated];
};

/// An update; its number is its place among all of them.
struct UpdateRow {
  const char* name;
  int slots;     ///< how many values it remembers of a parameter
  int settings;  ///< and how many numbers it is given
};
std::span<const UpdateRow> update_rows();

/// Update some rows of a table in place: `rows` has `count` of them, of `width` elements, which belong to the rows
/// `indices`; negative ones count from the end. Those that are named several times are summed first, in their order, if
/// anything is remembered. Where a number is out of range nothing is done, and the answer is false.
bool update_table(const Functions& isa, int update, DType dtype, int64_t count, int64_t width, int64_t length,
                  const int64_t* indices, const void* rows, void* const* tables, const double* settings);

}  // namespace undertow
