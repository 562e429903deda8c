#include "guards.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "numpy.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// An error while something is read means that it is not there; others, as of Ctrl-C, are raised.
nb::object or_nothing(PyObject* found) {
  if (found == nullptr && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
    PyErr_Clear();
  }
  return nb::steal(found);
}

nb::object attribute_of(PyObject* object, const char* name) { return or_nothing(PyObject_GetAttrString(object, name)); }

// Cells, methods and functions have a faster interface that is not part of the stable one.

nb::object contents_of(PyObject* cell) {
#ifdef Py_LIMITED_API
  return attribute_of(cell, "cell_contents");
#else
  return nb::steal(PyCell_Get(cell));
#endif
}

bool is_method_of(PyObject* value, PyObject* function) {
#ifdef Py_LIMITED_API
  return attribute_of(value, "__func__").is(function);
#else
  return PyMethod_Check(value) && PyMethod_GET_FUNCTION(value) == function;
#endif
}

bool is_function_of(PyObject* function, PyObject* code, PyObject* defaults) {
#ifdef Py_LIMITED_API
  return attribute_of(function, "__code__").is(code) && attribute_of(function, "__defaults__").is(defaults);
#else
  PyObject* held = PyFunction_GetDefaults(function);
  return PyFunction_GetCode(function) == code && (held == nullptr ? Py_None : held) == defaults;
#endif
}

nb::object own_attribute(PyObject* object, PyObject* name) {
  const nb::object own = attribute_of(object, "__dict__");
  if (!own.is_valid() || !PyDict_Check(own.ptr())) return {};
  return or_nothing(Py_XNewRef(PyDict_GetItemWithError(own.ptr(), name)));
}

/// An item as the container stores it: capture passes by methods of subclasses, too.
nb::object item_of(PyObject* container, PyObject* key, Py_ssize_t number) {
  if (PyList_Check(container))
    return number < PyList_Size(container) ? nb::borrow(PyList_GetItem(container, number)) : nb::object();
  if (PyTuple_Check(container))
    return number < PyTuple_Size(container) ? nb::borrow(PyTuple_GetItem(container, number)) : nb::object();
  if (PyDict_Check(container)) return or_nothing(Py_XNewRef(PyDict_GetItemWithError(container, key)));
  return or_nothing(PyObject_GetItem(container, key));
}

Py_ssize_t length_of(PyObject* container) {
  if (PyList_Check(container)) return PyList_Size(container);
  return PyTuple_Check(container) ? PyTuple_Size(container) : PyObject_Size(container);
}

bool has_bits_of(PyObject* value, PyObject* expected) {
  const double a = PyFloat_AsDouble(value), b = PyFloat_AsDouble(expected);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool is_simple(PyObject* value) {
  return PyLong_CheckExact(value) || PyBool_Check(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
         value == Py_None;
}

/// Are two plain arrays equal, bit by bit? Nothing if they are not plain.
std::optional<bool> are_arrays_equal(PyObject* value, PyObject* expected) {
  const numpy::ArrayObject *a = numpy::as_array(value), *b = numpy::as_array(expected);
  if (a == nullptr || b == nullptr || !a->is_plain() || !b->is_plain()) return {};
  const std::optional<DType> dtype = numpy::dtype_of(a);
  if (!dtype || numpy::dtype_of(b) != dtype) return {};
  if (a->rank != b->rank || !std::equal(a->sizes, a->sizes + a->rank, b->sizes)) return false;
  size_t bytes = static_cast<size_t>(size_of(*dtype));
  for (int axis = 0; axis < a->rank; ++axis) bytes *= static_cast<size_t>(a->sizes[axis]);
  return bytes == 0 || std::memcmp(a->data, b->data, bytes) == 0;
}

}  // namespace

Guards::Guards(const nb::list& rows, nb::object is_equal) : is_equal_(std::move(is_equal)) {
  for (nb::handle each : rows) {
    const auto fields = nb::cast<nb::tuple>(each);
    Row row;
    row.source = nb::cast<int32_t>(fields[0]);
    row.root = fields[1];
    row.read = static_cast<Read>(nb::cast<int>(fields[2]));
    row.key = fields[3];
    if (PyUnicode_CheckExact(row.key.ptr())) {  // Python remembers what it found under names that are interned
      PyObject* name = row.key.release().ptr();
      PyUnicode_InternInPlace(&name);
      row.key = nb::steal(name);
    }
    row.check = static_cast<Check>(nb::cast<int>(fields[4]));
    row.expected = fields[5];
    row.path = nb::cast<int64_t>(fields[6]);
    row.is_input = nb::cast<bool>(fields[7]);
    if (row.source >= static_cast<int32_t>(rows_.size())) throw nb::value_error("a row asks a later one");
    if (row.read == Read::Argument || (row.read == Read::Item && PyLong_CheckExact(row.key.ptr()))) {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(row.key.ptr(), &overflow);
      row.number = overflow != 0 || number < 0 ? PY_SSIZE_T_MAX : static_cast<Py_ssize_t>(number);
    }
    if (row.check == Check::Function) {
      const auto parts = nb::cast<nb::tuple>(row.expected);
      row.expected = parts[0], row.code = parts[1], row.defaults = parts[2];
    } else if (row.check == Check::Alias) {
      row.count = nb::cast<Py_ssize_t>(row.expected);
      if (row.count < 0 || row.count >= static_cast<Py_ssize_t>(rows_.size()))
        throw nb::value_error("a row is the same as a later one");
    } else if (row.check == Check::Length || row.check == Check::Keys) {
      const auto parts = nb::cast<nb::tuple>(row.expected);
      row.expected = parts[0];
      if (row.check == Check::Length)
        row.count = nb::cast<Py_ssize_t>(parts[1]);
      else
        row.code = parts[1];
    } else if (row.check == Check::Array) {
      const auto parts = nb::cast<nb::tuple>(row.expected);
      row.dtype = static_cast<DType>(nb::cast<int>(parts[0]));
      for (nb::handle size : nb::cast<nb::tuple>(parts[1])) row.shape.push_back(nb::cast<Py_ssize_t>(size));
    }
    rows_.push_back(std::move(row));
  }
}

bool Guards::are_equal(PyObject* value, PyObject* expected) const {
  if (value == expected && is_simple(expected)) return true;
  if (Py_TYPE(value) != Py_TYPE(expected)) return false;
  if (is_simple(expected)) return PyObject_RichCompareBool(value, expected, Py_EQ) == 1;
  if (PyFloat_CheckExact(expected)) return has_bits_of(value, expected);
  // Containers may be deep, and long.
  std::vector<std::pair<nb::object, nb::object>> pairs{{nb::borrow(value), nb::borrow(expected)}};
  while (!pairs.empty()) {
    const auto [first, second] = std::move(pairs.back());
    pairs.pop_back();
    PyObject *a = first.ptr(), *b = second.ptr();
    if (a == b && is_simple(b)) continue;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(b)) {
      if (!has_bits_of(a, b)) return false;
    } else if (is_simple(b)) {
      if (PyObject_RichCompareBool(a, b, Py_EQ) != 1) return false;
    } else if (PyList_CheckExact(b)) {
      const Py_ssize_t count = PyList_Size(b);
      if (PyList_Size(a) != count) return false;
      for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject *x = PyList_GetItem(a, k), *y = PyList_GetItem(b, k);
        if (PyFloat_CheckExact(x) && PyFloat_CheckExact(y)) {  // most of them, in a long one
          if (!has_bits_of(x, y)) return false;
        } else {
          pairs.emplace_back(nb::borrow(x), nb::borrow(y));
        }
      }
    } else if (PyTuple_CheckExact(b)) {
      const Py_ssize_t count = PyTuple_Size(b);
      if (PyTuple_Size(a) != count) return false;
      for (Py_ssize_t k = 0; k < count; ++k)
        pairs.emplace_back(nb::borrow(PyTuple_GetItem(a, k)), nb::borrow(PyTuple_GetItem(b, k)));
    } else if (PyDict_CheckExact(b)) {
      if (PyDict_Size(a) != PyDict_Size(b)) return false;
      Py_ssize_t here = 0, there = 0;
      PyObject *key = nullptr, *item = nullptr, *other_key = nullptr, *other = nullptr;
      while (PyDict_Next(a, &here, &key, &item) != 0 && PyDict_Next(b, &there, &other_key, &other) != 0) {
        pairs.emplace_back(nb::borrow(key), nb::borrow(other_key));
        pairs.emplace_back(nb::borrow(item), nb::borrow(other));
      }
    } else if (const std::optional<bool> known = are_arrays_equal(a, b)) {
      if (!*known) return false;
    } else if (!nb::cast<bool>(is_equal_(first, second))) {
      return false;
    }
  }
  return true;
}

bool Guards::holds(const Row& row, PyObject* value, const std::vector<nb::object>& values) const {
  PyObject* expected = row.expected.ptr();
  switch (row.check) {
    case Check::Same: return value == expected;
    case Check::Function: return value == expected && is_function_of(value, row.code.ptr(), row.defaults.ptr());
    case Check::Method: return is_method_of(value, expected);
    case Check::Kind: return reinterpret_cast<PyObject*>(Py_TYPE(value)) == expected;
    case Check::Alias: return value == values[static_cast<size_t>(row.count)].ptr();
    case Check::Equal: return are_equal(value, expected);
    case Check::Length: return reinterpret_cast<PyObject*>(Py_TYPE(value)) == expected && length_of(value) == row.count;
    case Check::Keys: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != expected || PyDict_Size(value) != PyTuple_Size(row.code.ptr()))
        return false;
      Py_ssize_t position = 0, number = 0;
      PyObject *key = nullptr, *item = nullptr;
      const Py_ssize_t count = PyTuple_Size(row.code.ptr());
      while (PyDict_Next(value, &position, &key, &item) != 0)  // comparing may run code that adds more
        if (number == count || !are_equal(key, PyTuple_GetItem(row.code.ptr(), number++))) return false;
      return number == count;
    }
    case Check::Number: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != expected) return false;
      if (!PyLong_CheckExact(value)) return true;
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(value, &overflow);
      return overflow == 0;
    }
    case Check::Array: {
      const numpy::ArrayObject* array = numpy::as_array(value);
      return array != nullptr && numpy::dtype_of(array) == row.dtype &&
             array->rank == static_cast<int>(row.shape.size()) &&
             std::equal(row.shape.begin(), row.shape.end(), array->sizes);
    }
    case Check::Missing: break;
  }
  return false;
}

bool Guards::read(std::span<const nb::object> arguments, std::vector<nb::object>& hidden) const {
  std::vector<nb::object> values;
  values.reserve(rows_.size());
  std::vector<PyObject*> kinds;  // objects that stand for themselves: no two rows may have found the same one
  for (size_t number = 0; number < rows_.size(); ++number) {  // reading may run code that clears them
    const Row& row = rows_[number];
    PyObject* source = row.source < 0 ? row.root.ptr() : values[static_cast<size_t>(row.source)].ptr();
    nb::object value;
    if (source != nullptr || row.read == Read::Argument) switch (row.read) {
        case Read::Itself: value = nb::borrow(source); break;
        case Read::Argument:
          if (static_cast<size_t>(row.number) < arguments.size()) value = arguments[static_cast<size_t>(row.number)];
          break;
        case Read::Global: value = or_nothing(Py_XNewRef(PyDict_GetItemWithError(source, row.key.ptr()))); break;
        case Read::Cell: value = contents_of(source); break;
        case Read::Attribute: value = or_nothing(PyObject_GetAttr(source, row.key.ptr())); break;
        case Read::Item: value = item_of(source, row.key.ptr(), row.number); break;
        case Read::Own: value = own_attribute(source, row.key.ptr());
      }
    const bool is_there = value.is_valid();
    const bool is_held = is_there ? holds(row, value.ptr(), values) : row.check == Check::Missing;
    if (is_held && row.check == Check::Kind) kinds.push_back(value.ptr());
    if (!is_held) {
      or_nothing(nullptr);
      changed_ = row.path;
      return false;
    }
    if (row.is_input) hidden.push_back(value);
    values.push_back(std::move(value));
  }
  if (kinds.size() > 1) {
    std::sort(kinds.begin(), kinds.end());
    if (std::adjacent_find(kinds.begin(), kinds.end()) != kinds.end()) {
      changed_ = -1;
      return false;
    }
  }
  return true;
}

namespace {

/// The hidden arguments of a call, as NumPy values; None if something has changed.
nb::object read_values(const Guards& guards, nb::handle arguments) {
  std::vector<nb::object> given, hidden;
  for (nb::handle each : arguments) given.push_back(nb::borrow(each));
  if (!guards.read(given, hidden)) return nb::none();
  nb::list values;
  for (const nb::object& value : hidden) {
    if (PyFloat_CheckExact(value.ptr())) {
      const double number = PyFloat_AsDouble(value.ptr());
      values.append(numpy::scalar_of(&number, DType::F64));
    } else if (PyLong_CheckExact(value.ptr())) {
      const int64_t number = PyLong_AsLongLong(value.ptr());
      values.append(numpy::scalar_of(&number, DType::I64));
    } else {
      values.append(value);
    }
  }
  return values;
}

// What they hold may hold them: the garbage collector needs to see it.

int traverse_guards(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<Guards>(self)->visit(
      [&](const nb::object& object) { return object.is_valid() ? visit(object.ptr(), arg) : 0; });
}

int clear_guards(PyObject* self) {
  nb::inst_ptr<Guards>(self)->clear();
  return 0;
}

PyType_Slot guards_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_guards)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_guards)},
                              {0, nullptr}};

}  // namespace

void bind_guards(nb::module_& module) {
  nb::class_<Guards>(module, "Guards", "What a program has read outside.", nb::type_slots(guards_slots))
      .def(nb::init<nb::list, nb::object>(), nb::arg("rows"), nb::arg("is_equal"))
      .def("read", &read_values, nb::arg("arguments"))
      .def_prop_ro("changed", &Guards::changed)
      .def("__len__", &Guards::size);
}

}  // namespace undertow
