#include "numpy.h"

#include <cstring>

namespace nb = nanobind;

namespace undertow::numpy {
namespace {

constexpr unsigned kVersion = 0x02000000;  // of the binary interface: NumPy 2
// NPY_BOOL, NPY_INT, NPY_LONG, NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE
constexpr int kTypeNumbers[kDTypes] = {0, 5, 7, 11, 12, 14, 15};
constexpr size_t kScalarTypes[kDTypes] = {8, 22, 23, 30, 31, 33, 34};  // in the table
constexpr int kWritable = 0x0001 | 0x0100 | 0x0400;                    // NPY_ARRAY_CARRAY
static_assert(sizeof(long) == 8 && sizeof(int) == 4);

PyTypeObject* array_type = nullptr;
PyTypeObject* scalar_types[kDTypes];
PyObject* dtypes[kDTypes];  // there is one object for each, for ever

PyObject* (*make_scalar)(void* data, PyObject* dtype, PyObject* base);
PyObject* (*new_copy)(ArrayObject* array, int order);
PyObject* (*new_array)(PyTypeObject* type, PyObject* dtype, int rank, const Py_ssize_t* sizes,
                       const Py_ssize_t* strides, void* data, int flags, PyObject* like);
int (*set_base)(PyObject* array, PyObject* base);

template <class Function>
void find(Function*& function, void** table, size_t number) {
  function = reinterpret_cast<Function*>(table[number]);
}

}  // namespace

void load() {
  const nb::object capsule = nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
  auto** table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (table == nullptr) throw nb::python_error();
  unsigned (*version)() = nullptr;
  find(version, table, 0);
  if (version() != kVersion)
    throw nb::import_error("undertow works with NumPy 2: install another version of one of them");
  PyObject* (*dtype_from)(int number) = nullptr;
  find(dtype_from, table, 45);
  find(make_scalar, table, 60);
  find(new_copy, table, 85);
  find(new_array, table, 94);
  find(set_base, table, 282);
  array_type = static_cast<PyTypeObject*>(table[2]);
  for (size_t k = 0; k < kDTypes; ++k) {
    dtypes[k] = dtype_from(kTypeNumbers[k]);
    scalar_types[k] = static_cast<PyTypeObject*>(table[kScalarTypes[k]]);
  }
}

ArrayObject* as_array(PyObject* object) {
  return Py_TYPE(object) == array_type ? reinterpret_cast<ArrayObject*>(object) : nullptr;
}

std::optional<DType> dtype_of(const ArrayObject* array) {
  for (size_t k = 0; k < kDTypes; ++k)
    if (array->dtype == dtypes[k]) return static_cast<DType>(k);
  // What np.load and pickle make has an equal dtype that is another object.
  for (size_t k = 0; k < kDTypes; ++k) {
    const int is_equal = PyObject_RichCompareBool(array->dtype, dtypes[k], Py_EQ);
    if (is_equal == 1) return static_cast<DType>(k);
    if (is_equal < 0) PyErr_Clear();
  }
  return {};
}

std::optional<DType> dtype_of_scalar(PyObject* object) {
  for (size_t k = 0; k < kDTypes; ++k)
    if (Py_TYPE(object) == scalar_types[k]) return static_cast<DType>(k);
  return {};
}

nb::object plain_copy(ArrayObject* array) {
  nb::object copy = nb::steal(new_copy(array, 0));
  if (!copy.is_valid()) throw nb::python_error();
  return copy;
}

nb::object scalar_of(const void* data, DType dtype) {
  nb::object scalar = nb::steal(make_scalar(const_cast<void*>(data), dtypes[static_cast<size_t>(dtype)], nullptr));
  if (!scalar.is_valid()) throw nb::python_error();
  return scalar;
}

nb::object array_of(Value&& value, DType dtype) {
  constexpr size_t kSmall = 1024;  // bytes, that are copied sooner than owned by another object
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  const auto* sizes = reinterpret_cast<const Py_ssize_t*>(value.shape.data());
  const bool is_small = value.bytes.size() <= kSmall;
  PyObject* type = dtypes[static_cast<size_t>(dtype)];
  Py_INCREF(type);  // the array steals it
  nb::object array = nb::steal(new_array(array_type, type, static_cast<int>(value.shape.size()), sizes, nullptr,
                                         is_small ? nullptr : value.bytes.data(), is_small ? 0 : kWritable, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  if (is_small) {
    if (!value.bytes.empty())
      std::memcpy(reinterpret_cast<ArrayObject*>(array.ptr())->data, value.bytes.data(), value.bytes.size());
    return array;
  }
  nb::capsule owner(value.bytes.leave(), [](void* block) noexcept { Buffer::give_back(static_cast<Block*>(block)); });
  if (set_base(array.ptr(), owner.release().ptr()) != 0) throw nb::python_error();
  return array;
}

}  // namespace undertow::numpy
