#include "arguments.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <optional>
#include <utility>

#include "arrays.h"
#include "numpy.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// Values of these types are equal only if they are the same, and differ from all values of the others.
bool is_plain_key(PyObject* key) { return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || key == Py_None; }

constexpr size_t kMostParts = size_t{1} << 24;  // of arguments: a list may contain itself

}  // namespace

void Arguments::add_leaf(nb::handle object, ArgumentKind kind, DType dtype, uint64_t rank) {
  add(kind, static_cast<uint64_t>(dtype) | rank << 8);
  leaves.push_back({nb::borrow(object), kind, dtype});
}

bool Arguments::add_object(nb::handle object) {
  const Py_hash_t hash = PyObject_Hash(object.ptr());
  if (hash == -1) return false;
  words.push_back(static_cast<uint64_t>(hash));
  objects.push_back(nb::borrow(object));
  return true;
}

uint64_t Arguments::hash() const {
  uint64_t hash = words.size();
  for (uint64_t word : words) hash = (hash ^ word) * 0x9E3779B97F4A7C15u + (hash >> 29);
  return hash;
}

bool take_apart(nb::handle args, nb::handle parts, nb::handle classes, Arguments& arguments) {
  std::vector<nb::object> stack;
  const auto push = [&](nb::handle sequence, bool is_tuple) {
    const auto count = is_tuple ? PyTuple_Size(sequence.ptr()) : PyList_Size(sequence.ptr());
    for (Py_ssize_t k = count; k-- > 0;)
      stack.push_back(nb::borrow(is_tuple ? PyTuple_GetItem(sequence.ptr(), k) : PyList_GetItem(sequence.ptr(), k)));
    return static_cast<uint64_t>(count);
  };
  push(args, true);
  while (!stack.empty()) {
    const nb::object item = std::move(stack.back());
    stack.pop_back();
    if (arguments.words.size() > kMostParts) return false;
    PyObject* at = item.ptr();
    if (const numpy::ArrayObject* array = numpy::as_array(at)) {
      const std::optional<DType> dtype = numpy::dtype_of(array);
      if (!dtype || array->rank > static_cast<int>(kMostRank)) return false;
      arguments.add_leaf(item, ArgumentKind::Array, *dtype, static_cast<uint64_t>(array->rank));
    } else if (PyLong_CheckExact(at)) {
      arguments.add_leaf(item, ArgumentKind::Int);
    } else if (PyFloat_CheckExact(at)) {
      arguments.add_leaf(item, ArgumentKind::Float);
    } else if (PyComplex_CheckExact(at)) {
      arguments.add_leaf(item, ArgumentKind::Complex);
    } else if (PyBool_Check(at)) {
      arguments.add_leaf(item, ArgumentKind::Bool);
    } else if (PyTuple_CheckExact(at)) {
      arguments.add(ArgumentKind::Tuple, push(item, true));
    } else if (PyList_CheckExact(at)) {
      arguments.add(ArgumentKind::List, push(item, false));
    } else if (PyDict_CheckExact(at)) {
      arguments.add(ArgumentKind::Dict, static_cast<uint64_t>(PyDict_Size(at)));
      const size_t first = stack.size();
      Py_ssize_t position = 0;
      PyObject *key = nullptr, *value = nullptr;
      while (PyDict_Next(at, &position, &key, &value) != 0) {  // no Python code runs in between: keys are plain
        if (!is_plain_key(key) || !arguments.add_object(key)) return false;
        stack.push_back(nb::borrow(value));
      }
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
    } else if (const std::optional<DType> dtype = numpy::dtype_of_scalar(at)) {
      arguments.add_leaf(item, ArgumentKind::Scalar, *dtype);
    } else if (PyObject* kind = reinterpret_cast<PyObject*>(Py_TYPE(at));
               const int is_known = PySet_Contains(classes.ptr(), kind)) {
      if (is_known < 0) return false;  // a metaclass defines `__hash__` or `__eq__`
      arguments.add(ArgumentKind::Object);
      if (!arguments.add_object(kind)) return false;
      arguments.statics.push_back(item);
    } else {  // a dataclass, a forest, sparse rows
      const nb::object found = nb::steal(PyObject_CallFunctionObjArgs(parts.ptr(), at, nullptr));
      if (found.is_valid() && PyType_Check(found.ptr())) {
        if (!found.is(kind) || PySet_Add(classes.ptr(), kind) != 0) return false;
        stack.push_back(item);
        continue;
      }
      if (!found.is_valid() || !PyTuple_Check(found.ptr()) || PyTuple_Size(found.ptr()) != 2) return false;
      const nb::object contents = nb::borrow(PyTuple_GetItem(found.ptr(), 1));
      arguments.add(ArgumentKind::Other);
      if (!PyList_Check(contents.ptr()) || !arguments.add_object(PyTuple_GetItem(found.ptr(), 0))) return false;
      push(contents, false);
    }
  }
  return true;
}

bool read_number(const Leaf& leaf, DType dtype, std::byte* to) {
  const auto put = [to](auto value) {
    std::memcpy(to, &value, sizeof value);
    return true;
  };
  if (leaf.kind == ArgumentKind::Complex) {
    const std::complex<double> value{PyComplex_RealAsDouble(leaf.object.ptr()),
                                     PyComplex_ImagAsDouble(leaf.object.ptr())};
    if (dtype == DType::C64) return put(std::complex<float>(value));
    return dtype == DType::C128 && put(value);
  }
  if (is_complex(dtype)) {
    double value = 0;
    if (!read_number(leaf, DType::F64, reinterpret_cast<std::byte*>(&value))) return false;
    return dtype == DType::C64 ? put(std::complex<float>(static_cast<float>(value))) : put(std::complex<double>(value));
  }
  if (dtype == DType::F32 || dtype == DType::F64) {
    const double value =
        leaf.kind == ArgumentKind::Float ? PyFloat_AsDouble(leaf.object.ptr()) : PyLong_AsDouble(leaf.object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) return false;
    return dtype == DType::F64 ? put(value) : put(static_cast<float>(value));
  }
  if (leaf.kind == ArgumentKind::Float) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(leaf.object.ptr(), &overflow);
  if (overflow != 0 || (value == -1 && PyErr_Occurred() != nullptr)) return false;
  if (dtype == DType::Bool) return leaf.kind == ArgumentKind::Bool && put(static_cast<uint8_t>(value));
  if (dtype == DType::I64) return put(static_cast<int64_t>(value));
  return value == static_cast<int32_t>(value) && put(static_cast<int32_t>(value));
}

void forget_error() {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
  PyErr_Clear();
}

}  // namespace undertow
