// NumPy arrays as columns and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <vector>

#include "undertow/attrs.h"
#include "undertow/isa.h"
#include "undertow/kernel.h"

namespace undertow {

using Array = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;
using NumpyArray = nanobind::ndarray<nanobind::numpy>;

constexpr size_t kMostRank = kMostAxes - 5;  ///< of a value that comes from Python

DType dtype_named(const std::string& name);
DType dtype_of(const Array& array);
nanobind::dlpack::dtype dlpack_of(DType dtype);
std::vector<int64_t> shape_of(const Array& array, size_t first = 0);  ///< from axis `first` on
Attrs attrs_of(const nanobind::dict& dict);
const Functions& isa_named(const std::string& name);

/// The bytes of so many lanes of an array; a ValueError where a length is below zero, or no machine has as many.
int64_t bytes_of(const Shape& shape, DType dtype, int64_t lanes);

/// A padded, aligned column.
struct Column {
  std::byte* data;
  explicit Column(int64_t bytes);
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  ~Column();
};

/// Operands of a call: those that are not shared have a leading axis of lanes.
struct Operands {
  int64_t lanes = 1;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<View> views;
  std::vector<Type> types;

  Operands(const std::vector<Array>& arrays, const std::vector<bool>& shared);
};

/// Columns for results, which become arrays.
struct Results {
  std::vector<Shape> shapes;
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<View> views;

  Results(int64_t lanes, std::vector<Shape> shapes, const std::vector<Type>& types);
  std::vector<NumpyArray> arrays(int64_t lanes);
};

/// Raise undertow._core.KernelFault with these arguments.
[[noreturn]] void raise_fault(const nanobind::tuple& args);

}  // namespace undertow
