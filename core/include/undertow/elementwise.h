// Elementwise operators: flat functions over n elements, with variants for operands that are one value.
#pragma once

#include "undertow/kernel.h"

namespace undertow {

/// out[i] = f(a[i], b[i], c[i]) for i < n. Missing operands are null. `out` may be an operand that is not a single
/// value, if their elements have the same size.
using Flat = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n);

/// The first of n elements on which the operator faults, or -1.
using Scan = int64_t (*)(const void* operand, int64_t n);

struct Elementwise {
  int arity;
  DType inputs[3];
  DType output;
  Flat flat[8];  ///< index: bit k if operand k is one value instead of n; null if all operands would be
  Scan scan;     ///< run on the second operand before `flat`; null if the operator never faults
  Fault::Code code;
};

/// to[k] += from[k], of floats or complex numbers.
void add_floats(DType dtype, void* to, const void* from, int64_t count);

}  // namespace undertow
