// One matrix product, by our kernel or by OpenBLAS.
#pragma once

#include "undertow/isa.h"

namespace undertow {

/// An operand with strides in elements, one of which is 1 (or the matrix is a single row or column).
struct Matrix {
  const void* data;
  int64_t row, column;
};

/// Is OpenBLAS faster for this product?
bool is_wide(DType dtype, int64_t m, int64_t n, int64_t k);

/// out (m x n) = A B, or += if `add`, by OpenBLAS.
void multiply_wide(DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, void* out, int64_t out_row,
                   bool add, Scratch& scratch);

/// The same by whichever is faster. B is packed first unless it is row-major (b.column is 1).
void multiply(const Functions& isa, DType dtype, int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, void* out,
              int64_t out_row, bool add, Scratch& scratch);

}  // namespace undertow
