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

/// Products of small matrices; see matmul.h for the layouts.
struct GemmFunctions {
  int panel;  ///< columns of a packed panel
  void (*pack)(const void* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, void* panels);
  void (*multiply)(int64_t m, int64_t n, int64_t k, const void* a, int64_t row_stride, int64_t column_stride,
                   const void* panels, void* out, int64_t out_stride, bool add);
};

struct Functions {
  const char* name;
  const FlatRows* flat[3];  // arith, logic, math
  const RowFunctions* rows;
  const GemmFunctions* gemm[kDTypes];  // null but for F32 and F64
};

/// The best table that this machine can run, or the one that the environment variable UNDERTOW_ISA names.
const Functions& functions();

/// The table of that name, or null where this machine cannot run it: "baseline", "avx2", "avx512".
const Functions* functions(std::string_view name);

const Elementwise* find_elementwise(const Functions& isa, std::string_view op, std::span<const Type> inputs,
                                    DType output);

}  // namespace undertow
