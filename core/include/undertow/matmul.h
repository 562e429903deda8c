// Matrix products over lanes. Weights are packed once and multiplied often; wide products go to OpenBLAS.
//
// Strides are in elements. Each call uses one thread: engines divide lanes among threads.
#pragma once

#include "undertow/isa.h"

namespace undertow {

/// A matrix of k rows and n columns, F32 or F64, packed for the kernel of one instruction set. Its source must not move
/// or change until the next `pack`: wide products read the source.
class PackedMatrix {
 public:
  /// With memory of its own, or in `room`, of at least `bytes_of` bytes.
  PackedMatrix(const Functions& isa, DType dtype, int64_t k, int64_t n, void* room = nullptr);

  static int64_t bytes_of(const Functions& isa, DType dtype, int64_t k, int64_t n);

  /// Pack a matrix; column_stride is 1, or row_stride is 1 if it is stored transposed.
  void pack(const void* b, int64_t row_stride, int64_t column_stride);

  /// out (m x n) = A (m x k) times this, or += if `add`. Rows of A and of out are contiguous.
  void multiply(int64_t m, const void* a, int64_t a_row, void* out, int64_t out_row, Scratch& scratch,
                bool add = false) const;

 private:
  const GemmFunctions* gemm_;
  DType dtype_;
  int64_t k_, n_;
  const void* source_ = nullptr;
  int64_t row_stride_ = 0, column_stride_ = 0;
  Scratch panels_;
  void* packed_ = nullptr;
};

/// out (k x n) = the sum over lanes of outer(x, g), or += if `add`: the gradient of a shared matrix, as one product.
/// x has k and g has n elements in each lane, of any shape.
void accumulate_outer(const Functions& isa, int64_t lanes, const View& x, const View& g, void* out, bool add,
                      Scratch& scratch);

}  // namespace undertow
