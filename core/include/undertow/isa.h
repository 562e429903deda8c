// Functions that are compiled once for each instruction set, as tables; chosen at run time.
#pragma once

#include <string_view>

#include "undertow/elementwise.h"

namespace undertow {

struct FlatRow {
  const char* name;
  Elementwise op;
};

struct FlatRows {
  const FlatRow* rows;
  int count;
};

/// Reduce a row of n elements to one value.
using ReduceRow = void (*)(const void* x, void* out, int64_t n);

/// Map a row of n elements to another.
using MapRow = void (*)(const void* x, void* out, int64_t n);

enum class Reduction : uint8_t { Sum, Prod, Max, Min, Any, All, LogSumExp };
constexpr int kReductions = 7;

struct RowFunctions {
  ReduceRow reduce[kReductions][kDTypes];  // null if it is not defined for the dtype; n > 0 for max and min
  MapRow softmax[kDTypes];
  MapRow log_softmax[kDTypes];
};

/// Matrix products of one dtype. All strides are in elements.
struct GemmFunctions {
  int panel;   ///< columns of a panel
  int vector;  ///< columns of a vector: half a panel

  /// Pack B (k x n) into panels: each row-major and contiguous, the last one padded with zeros.
  void (*pack)(const void* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, void* panels);

  /// out = A B, or out += A B. Row i of panel p starts at b + p * panel_stride + i * row_step. Panels are read in full,
  /// but only n columns of the result are written.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column, const void* b,
                   int64_t row_step, int64_t panel_stride, void* out, int64_t out_row, bool add);

  /// out[i, c] = a[i * a_row] * b[c], or out += that: for a row of B past which nothing may be read.
  void (*outer)(int64_t m, int64_t n, const void* a, int64_t a_row, const void* b, void* out, int64_t out_row,
                bool add);

  /// out[v * out_row + i * out_step] = the sum of a[i * a_row + j] * x[v * x_row + j] over j < k, for i < m, v < many.
  void (*rows_times)(int64_t m, int64_t many, int64_t k, const void* a, int64_t a_row, const void* x, int64_t x_row,
                     void* out, int64_t out_row, int64_t out_step);
};

constexpr int kMostUpdated = 3;  // a parameter and its slots

/// An update rule of an optimizer. See optimize.h.
struct UpdateRule {
  const char* name;
  int slots;     ///< arrays of state that it keeps for a parameter
  int settings;  ///< numbers that it takes: learning rate, decay ...
  /// Update n elements of a parameter and its slots by a gradient; out may be in.
  void (*update)(int64_t n, const void* g, const void* const* in, void* const* out, const double* settings);
};

/// Dividing lanes at a branch, and merging them again. `pred` has a byte for each of n lanes; nonzero is the first
/// side.
struct LaneFunctions {
  /// List the lanes of each side, in order; returns how many take the first. May write 64 bytes past either list.
  int64_t (*divide)(const uint8_t* pred, int64_t n, int32_t* yes, int32_t* no);

  /// Compress: the values (4 or 8 bytes) of the lanes of one side, packed. May write 64 bytes past them.
  void (*part[2])(const uint8_t* pred, bool is_yes, int64_t n, const void* from, void* out);

  /// Expand: for each lane the next value of its side, or the side's only value.
  void (*meet[2])(const uint8_t* pred, int64_t n, const void* yes, bool one_yes, const void* no, bool one_no,
                  void* out);
};

struct Functions {
  const char* name;
  const FlatRows* flat[5];  // arith, logic, math, special, complex
  const RowFunctions* rows;
  const GemmFunctions* gemm[kDTypes];  // null except for F32 and F64
  const UpdateRule* updates[kDTypes];  // likewise; ends with one without a name
  const LaneFunctions* lanes;
};

/// The best table that this machine can run, or the one named by the environment variable UNDERTOW_ISA.
const Functions& functions();

/// The table "baseline", "avx2" or "avx512"; null if this machine cannot run it.
const Functions* functions(std::string_view name);

const Elementwise* find_elementwise(const Functions& isa, std::string_view op, std::span<const Type> inputs,
                                    DType output);

}  // namespace undertow
