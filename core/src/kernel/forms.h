// What operators are given: how many operands and results, their dtypes and ranks, and attributes that fit them.
//
// The catalogue's type rules say the same of graphs. Kernels rely on it, so no kernel is made for anything else,
// wherever the rows of a plan come from.
#pragma once

#include "undertow/attrs.h"
#include "undertow/kernel.h"

namespace undertow::forms {

using Form = bool(const Binding& binding);

Form alike;                                  // x -> the same dtype and rank
Form dim;                                    // x -> the length of an axis
Form reshape, broadcast_to, sum_to, fill;    // x, a size for each that `shape` leaves open
Form random_bits, random_floats;             // a key, a size for each that `shape` leaves open
Form transpose, expand_dims, squeeze, flip;  // x, along `axes`
Form concat, stack;                          // arrays, along `axis`
Form slice, unslice;                         // x, from `starts` to `stops` by `steps`
Form slice_at, slice_between, index;         // x, and integers
Form take, take_along_axis;                  // x, indices
Form compress;                               // x, a mask, along `axis`
Form scatter_add, add_along_axis;            // x, indices, updates
Form put, put_slice, put_between, put_rows;  // x, values for a part of it, where that is
Form reduction, softmax;                     // x, over `axes`
Form recurrence;                             // a, b, along `axis`
Form scan, sort, argsort, position, fft;     // x, along `axis`
Form arange;                                 // start, stop, step
Form matmul;                                 // x, y
Form solve, slogdet, matrix, eigh, pinv;     // a matrix, or each of a batch; a right side, or a number
Form assertion;                              // a condition, and values to print

/// Operators on each element: the rank of the result is the largest.
Form broadcast;

}  // namespace undertow::forms
