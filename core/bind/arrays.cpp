// NumPy arrays as columns and back.
#include "arrays.h"

#include <nanobind/stl/complex.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <new>

namespace nb = nanobind;

namespace undertow {
namespace {

constexpr DType kAll[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64, DType::C64, DType::C128};
constexpr const char* kNames[] = {"bool", "i32", "i64", "f32", "f64", "c64", "c128"};

}  // namespace

nb::dlpack::dtype dlpack_of(DType dtype) {
  const nb::dlpack::dtype all[] = {nb::dtype<bool>(),
                                   nb::dtype<int32_t>(),
                                   nb::dtype<int64_t>(),
                                   nb::dtype<float>(),
                                   nb::dtype<double>(),
                                   nb::dtype<std::complex<float>>(),
                                   nb::dtype<std::complex<double>>()};
  return all[static_cast<int>(dtype)];
}

DType dtype_of(const Array& array) {
  for (DType dtype : kAll)
    if (array.dtype() == dlpack_of(dtype)) return dtype;
  throw nb::type_error("an array of a dtype that the core does not have");
}

std::vector<int64_t> shape_of(const Array& array, size_t first) {
  if (array.ndim() > first + kMostRank) throw nb::value_error("an array has too many axes");
  std::vector<int64_t> shape;
  for (size_t axis = first; axis < array.ndim(); ++axis) shape.push_back(static_cast<int64_t>(array.shape(axis)));
  return shape;
}

DType dtype_named(const std::string& name) {
  for (DType dtype : kAll)
    if (name == kNames[static_cast<int>(dtype)]) return dtype;
  throw nb::type_error("there is no such dtype");
}

Attrs attrs_of(const nb::dict& dict) {
  Attrs attrs;
  for (auto [key, value] : dict) {
    std::string name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::str>(value)) {
      attrs.set(name, nb::cast<std::string>(value));
    } else if (nb::isinstance<nb::tuple>(value)) {
      OptionalInts items;
      for (nb::handle item : nb::cast<nb::tuple>(value))
        items.push_back(item.is_none() ? std::nullopt : std::optional(nb::cast<int64_t>(item)));
      attrs.set(name, std::move(items));
    } else {
      attrs.set(name, nb::cast<int64_t>(value));
    }
  }
  return attrs;
}

const Functions& isa_named(const std::string& name) {
  if (name.empty()) return functions();
  const Functions* found = functions(name);
  if (found == nullptr) throw nb::value_error("this machine does not have that instruction set");
  return *found;
}

int64_t bytes_of(const Shape& shape, DType dtype, int64_t lanes) {
  constexpr int64_t kMostBytes = int64_t{1} << 46;
  int64_t most = size_of(dtype);
  const auto times = [&](int64_t length) {
    if (length < 0 || __builtin_mul_overflow(most, std::max<int64_t>(length, 1), &most) || most > kMostBytes)
      throw nb::value_error("a result is too large");
  };
  times(lanes);
  for (int axis = 0; axis < shape.rank; ++axis) times(shape.sizes[axis]);
  return lanes * shape.count() * size_of(dtype);
}

constexpr std::align_val_t kAlignment{64};

Column::Column(int64_t bytes)
    : data(static_cast<std::byte*>(::operator new(static_cast<size_t>((bytes + 127) / 64 * 64), kAlignment))) {}

Column::~Column() { ::operator delete(data, kAlignment); }

Operands::Operands(const std::vector<Array>& arrays, const std::vector<bool>& shared) {
  if (arrays.size() != shared.size()) throw nb::value_error("say of each operand whether it is shared");
  bool counted = false;
  for (size_t k = 0; k < arrays.size(); ++k) {
    const Array& array = arrays[k];
    if (!shared[k]) {
      const int64_t own = array.ndim() == 0 ? -1 : static_cast<int64_t>(array.shape(0));
      if (own < 0 || (counted && own != lanes)) throw nb::value_error("operands have different numbers of lanes");
      lanes = own;
      counted = true;
    }
    const std::vector<int64_t>& shape = shapes.emplace_back(shape_of(array, shared[k] ? 0 : 1));
    const auto bytes = static_cast<int64_t>(array.nbytes());
    columns.push_back(std::make_unique<Column>(bytes));
    if (bytes > 0) std::memcpy(columns.back()->data, array.data(), static_cast<size_t>(bytes));
    View view{columns.back()->data, 0, shape.data(), static_cast<int>(shape.size()), dtype_of(array)};
    if (!shared[k]) view.stride = view.bytes();
    views.push_back(view);
    types.push_back({view.dtype, view.rank});
  }
}

Results::Results(int64_t lanes, std::vector<Shape> given, const std::vector<Type>& types) : shapes(std::move(given)) {
  for (size_t k = 0; k < types.size(); ++k) {
    columns.push_back(std::make_unique<Column>(bytes_of(shapes[k], types[k].dtype, lanes)));
    const int64_t bytes = shapes[k].count() * size_of(types[k].dtype);
    views.push_back({columns.back()->data, bytes, shapes[k].sizes, shapes[k].rank, types[k].dtype});
  }
}

std::vector<NumpyArray> Results::arrays(int64_t lanes) {
  std::vector<NumpyArray> made;
  for (size_t k = 0; k < views.size(); ++k) {
    std::vector<size_t> shape{static_cast<size_t>(lanes)};
    for (int axis = 0; axis < shapes[k].rank; ++axis) shape.push_back(static_cast<size_t>(shapes[k].sizes[axis]));
    Column* column = columns[k].release();
    nb::capsule owner(column, [](void* block) noexcept { delete static_cast<Column*>(block); });
    made.emplace_back(column->data, shape.size(), shape.data(), owner, nullptr, dlpack_of(views[k].dtype));
  }
  return made;
}

void raise_fault(const nb::tuple& args) {
  const nb::object type = nb::module_::import_("undertow._core").attr("KernelFault");
  PyErr_SetObject(type.ptr(), type(*args).ptr());
  throw nb::python_error();
}

}  // namespace undertow
