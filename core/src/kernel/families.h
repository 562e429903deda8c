// The kernel tables of all families: an operator's name, what it is given, and how to make its kernel.
#pragma once

#include <memory>
#include <span>

#include "kernel/forms.h"
#include "undertow/attrs.h"
#include "undertow/isa.h"
#include "undertow/kernel.h"

namespace undertow {

struct KernelRow {
  const char* name;
  forms::Form* form;
  std::unique_ptr<Kernel> (*make)(const Binding& binding);  // null if there is none for these dtypes
};

template <class K>
std::unique_ptr<Kernel> make_kernel(const Binding& binding) {
  return std::make_unique<K>(binding);
}

/// One class for each of I32, I64, F32, F64, and perhaps of C64 and C128.
template <class... Classes>
std::unique_ptr<Kernel> make_by_dtype(const Binding& binding) {
  constexpr std::unique_ptr<Kernel> (*all[])(const Binding&) = {make_kernel<Classes>...};
  const DType dtype = binding.inputs[0].dtype;
  if (dtype == DType::Bool || (is_complex(dtype) && sizeof...(Classes) == 4)) return nullptr;
  return all[static_cast<int>(dtype) - static_cast<int>(DType::I32)](binding);
}

// Elementwise operators are rows of the tables in isa/each, not here.
std::unique_ptr<Kernel> make_elementwise(std::string_view op, const Binding& binding);

using Family = std::span<const KernelRow>();
Family array_rows, index_rows, scatter_rows, put_rows, reduce_rows, scan_rows, create_rows, matmul_rows, factor_rows,
    fft_rows, debug_rows;

}  // namespace undertow
