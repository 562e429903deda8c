// What is compiled once for each instruction set, as a table of functions; chosen at run time.
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

/// One row of n elements to one value.
using ReduceRow = void (*)(const void* x, void* out, int64_t n);

/// One row of n elements to another.
using MapRow = void (*)(const void* x, void* out, int64_t n);

enum class Reduction : uint8_t { Sum, Prod, Max, Min, Any, All, LogSumExp };
constexpr int kReductions = 7;

struct RowFunctions {
  ReduceRow reduce[kReductions][kDTypes];  // null where the dtype is not for it; n > 0 for max and min
  MapRow softmax[kDTypes];
  MapRow log_softmax[kDTypes];
};

/// Products of matrices of one dtype. All strides count elements.
struct GemmFunctions {
  int panel;   ///< columns of a panel
  int vector;  ///< and of a vector: half a panel

  /// B (k x n) into panels: for each panel, row after row, its columns side by side, zeros behind the last.
  void (*pack)(const void* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, void* panels);

  /// out = A B, or out += A B. Row i of panel p starts at b + p * panel_stride + i * row_step; each panel can be read
  /// in full, but only n columns of the result are written.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column, const void* b,
                   int64_t row_step, int64_t panel_stride, void* out, int64_t out_row, bool add);

  /// out[i, c] = a[i * a_row] * b[c], or out += that: a row of B that ends where memory does.
  void (*outer)(int64_t m, int64_t n, const void* a, int64_t a_row, const void* b, void* out, int64_t out_row,
                bool add);

  /// out[v * out_row + i * out_step] = the sum of a[i * a_row + j] * x[v * x_row + j] over j < k, for i < m, v < many.
  void (*rows_times)(int64_t m, int64_t many, int64_t k, const void* a, int64_t a_row, const void* x, int64_t x_row,
                     void* out, int64_t out_row, int64_t out_step);
};

constexpr int kMostUpdated = 3;  // a parameter, and what is remembered of it

/// An update rule of an optimizer. See optimize.h.
struct UpdateRule {
  const char* name;
  int slots;     ///< how many values it remembers of a parameter
  int settings;  ///< how many numbers it is given
  /// n elements of a parameter and its slots, by a gradient: out may be in.
  void (*update)(int64_t n, const void* g, const void* const* in, void* const* out, const double* settings);
};

/// Lanes that part at a branch and meet again behind it. `pred` has a byte for each of n lanes: not 0 is the first
/// side.
struct LaneFunctions {
  /// The numbers of the lanes of each side, in order; how many take the first. 64 bytes behind either may be written.
  int64_t (*divide)(const uint8_t* pred, int64_t n, int32_t* yes, int32_t* no);

  /// The values of 4 or 8 bytes of the lanes of one side, side by side; 64 bytes behind them may be written.
  void (*part[2])(const uint8_t* pred, bool is_yes, int64_t n, const void* from, void* out);

  /// For each lane the next value of its side, or the one that there is.
  void (*meet[2])(const uint8_t* pred, int64_t n, const void* yes, bool one_yes, const void* no, bool one_no,
                  void* out);
};

struct Functions {
  const char* name;
  const FlatRows* flat[3];  // arith, logic, math
  const RowFunctions* rows;
  const GemmFunctions* gemm[kDTypes];  // null but for F32 and F64
  const UpdateRule* updates[kDTypes];  // the same; behind the last is one without a name
  const LaneFunctions* lanes;
};

/// The best table that this machine can run, or the one that the environment variable UNDERTOW_ISA names.
const Functions& functions();

/// The table of that name, or null where this machine cannot run it: "baseline", "avx2", "avx512".
const Functions* functions(std::string_view name);

const Elementwise* find_elementwise(const Functions& isa, std::string_view op, std::span<const Type> inputs,
                                    DType output);

}  // namespace undertow
