// NumPy's C interface, as far as it is used here: arrays and scalars, read and made without a detour by Python.
//
// Its headers are not needed to build: functions are entries of a table that NumPy exports, and their numbers, like the
// fields of an array, are its binary interface (numpy/__multiarray_api.h, ndarraytypes.h; pybind11 does the same).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "undertow/kernel.h"
#include "undertow/run.h"

namespace undertow::numpy {

/// The head of an array.
struct ArrayObject {
  PyObject head;
  char* data;
  int rank;
  Py_ssize_t* sizes;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;

  bool is_plain() const { return (flags & kPlain) == kPlain; }  ///< contiguous, row by row, and aligned?

 private:
  static constexpr int kPlain = 0x0001 | 0x0100;
};

/// Find the table. Raises an ImportError if NumPy is older or newer than what is known here.
void load();

/// The object as an array; null if it is none, or of a subclass.
ArrayObject* as_array(PyObject* object);

/// The dtype of an array in native byte order; nothing if it is none of ours.
std::optional<DType> dtype_of(const ArrayObject* array);

/// The dtype of a scalar of a class of NumPy's; nothing for objects of other classes.
std::optional<DType> dtype_of_scalar(PyObject* object);

/// Where such a scalar has its value.
inline const void* data_of_scalar(PyObject* scalar) { return scalar + 1; }

/// A copy of an array that is plain.
nanobind::object plain_copy(ArrayObject* array);

/// A scalar of NumPy's.
nanobind::object scalar_of(const void* data, DType dtype);

/// An array that holds a value: it takes the value's memory, or copies it if that is cheaper.
nanobind::object array_of(Value&& value, DType dtype);

}  // namespace undertow::numpy
