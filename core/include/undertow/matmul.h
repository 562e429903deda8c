// Matrix products over lanes. Weights are packed once and multiplied often; wide products go to OpenBLAS.
//
// Strides count elements. Calls use one thread: engines share out lanes.
#pragma once

#include "undertow/isa.h"

namespace undertow {

/// A matrix of k rows and n columns, F32 or F64, laid out for the kernel of one instruction set. The matrix that it was
/// made from must stay where it is, unchanged, until the next `pack`: wide products read that one.
class PackedMatrix {
 public:
  /// With memory of its own; or with `room`, of at least as many bytes as `bytes_of` says.
  PackedMatrix(const Functions& isa, DType dtype, int64_t k, int64_t n, void* room = nullptr);

  static int64_t bytes_of(const Functions& isa, DType dtype, int64_t k, int64_t n);

  /// Take the values of a matrix; column_stride 1, or row_stride 1 for one that is stored transposed.
  void pack(const void* b, int64_t row_stride, int64_t column_stride);

  /// out (m x n) = A (m x k) times this, or += where `add`. The rows of A and of out stand side by side.
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

/// out (k x n) = the sum over lanes of outer(x, g), or += where `add`: the gradient of a shared matrix, as one product.
/// x has k and g has n elements in each lane, however they are shaped.
void accumulate_outer(const Functions& isa, int64_t lanes, const View& x, const View& g, void* out, bool add,
                      Scratch& scratch);

}  // namespace undertow
