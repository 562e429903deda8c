// Kernels for Python: for tests and benchmarks, one operator at a time over lanes.
#include "undertow/kernel.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <tuple>

#include "parts.h"
#include "undertow/attrs.h"
#include "undertow/isa.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Made = nb::ndarray<nb::numpy>;

nb::dlpack::dtype dlpack_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return nb::dtype<bool>();
    case DType::I32:
      return nb::dtype<int32_t>();
    case DType::I64:
      return nb::dtype<int64_t>();
    case DType::F32:
      return nb::dtype<float>();
    default:
      return nb::dtype<double>();
  }
}

constexpr DType kAll[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
constexpr const char* kNames[] = {"bool", "i32", "i64", "f32", "f64"};

DType dtype_of(const Array& array) {
  for (DType dtype : kAll)
    if (array.dtype() == dlpack_of(dtype)) return dtype;
  throw nb::type_error("an array of a dtype that kernels do not have");
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

/// A padded, aligned column.
struct Column {
  std::byte* data;
  explicit Column(int64_t bytes)
      : data(static_cast<std::byte*>(
            ::operator new(static_cast<size_t>((bytes + 127) / 64 * 64), std::align_val_t{64}))) {}
  Column(const Column&) = delete;
  ~Column() { ::operator delete(data, std::align_val_t{64}); }
};

struct Stop {  // a fault on its way to Python
  Fault fault;
};

/// Operands of a call: a leading axis of lanes on those that are not shared.
struct Operands {
  int64_t lanes = 1;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<View> views;

  Operands(const std::vector<Array>& arrays, const std::vector<bool>& shared) {
    if (arrays.size() != shared.size()) throw nb::value_error("say of each operand whether it is shared");
    for (size_t k = 0; k < arrays.size(); ++k)
      if (!shared[k]) lanes = static_cast<int64_t>(arrays[k].ndim() == 0 ? 0 : arrays[k].shape(0));
    for (size_t k = 0; k < arrays.size(); ++k) {
      const Array& array = arrays[k];
      const size_t first = shared[k] ? 0 : 1;
      if (!shared[k] && (array.ndim() == 0 || static_cast<int64_t>(array.shape(0)) != lanes))
        throw nb::value_error("operands have different numbers of lanes");
      std::vector<int64_t> shape;
      for (size_t axis = first; axis < array.ndim(); ++axis) shape.push_back(static_cast<int64_t>(array.shape(axis)));
      shapes.push_back(std::move(shape));
      const DType dtype = dtype_of(array);
      const int64_t bytes = static_cast<int64_t>(array.nbytes());
      columns.push_back(std::make_unique<Column>(bytes));
      if (bytes > 0) std::memcpy(columns.back()->data, array.data(), static_cast<size_t>(bytes));
      View view{columns.back()->data, 0, shapes.back().data(), static_cast<int>(shapes.back().size()), dtype};
      if (!shared[k]) view.stride = view.bytes();
      views.push_back(view);
    }
  }
};

const Functions& isa_named(const std::string& name) {
  if (name.empty()) return functions();
  const Functions* found = functions(name);
  if (found == nullptr) throw nb::value_error("this machine does not have that instruction set");
  return *found;
}

std::vector<Shape> shapes_of(const Kernel& kernel, const Operands& operands, size_t outputs) {
  std::vector<Shape> shapes(outputs);
  const auto ask = [&](int64_t lane, std::vector<Shape>& found) {
    std::vector<View> views = operands.views;
    for (View& view : views) view.data = view.lane<void>(lane);
    if (Fault fault = kernel.shape(views.data(), found.data())) throw Stop{{fault.code, lane}};
  };
  bool each = false;
  for (size_t k = 0; k < operands.views.size(); ++k)
    each = each || (operands.views[k].stride != 0 && ((kernel.deciding() >> k) & 1) != 0);
  if (operands.lanes == 0 && each) throw nb::value_error("without lanes, nothing decides the size");
  ask(0, shapes);
  for (int64_t lane = 1; each && lane < operands.lanes; ++lane) {
    std::vector<Shape> others(outputs);
    ask(lane, others);
    for (size_t k = 0; k < outputs; ++k)
      if (!std::equal(shapes[k].sizes, shapes[k].sizes + shapes[k].rank, others[k].sizes))
        throw nb::value_error("lanes of different shapes do not run together");
  }
  return shapes;
}

std::vector<Made> run_kernel(const std::string& op, const nb::dict& attributes, const std::vector<Array>& arrays,
                             const std::vector<bool>& shared,
                             const std::vector<std::tuple<std::string, int>>& out_types, const std::string& isa) {
  const Attrs attrs = attrs_of(attributes);
  const Operands operands(arrays, shared);
  std::vector<Type> inputs, outputs;
  for (const View& view : operands.views) inputs.push_back({view.dtype, view.rank});
  for (const auto& [name, rank] : out_types) outputs.push_back({dtype_named(name), rank});
  const std::unique_ptr<Kernel> kernel = bind(op, {attrs, inputs, outputs, isa_named(isa)});
  if (!kernel) throw nb::value_error(("no kernel for " + op + " of these dtypes").c_str());

  try {
    const std::vector<Shape> shapes = shapes_of(*kernel, operands, outputs.size());
    std::vector<std::unique_ptr<Column>> columns;
    std::vector<View> views;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (shapes[k].rank != outputs[k].rank) throw nb::value_error("the kernel gives another rank");
      const int64_t bytes = shapes[k].count() * size_of(outputs[k].dtype);
      columns.push_back(std::make_unique<Column>(operands.lanes * bytes));
      views.push_back({columns.back()->data, bytes, shapes[k].sizes, shapes[k].rank, outputs[k].dtype});
    }
    Scratch scratch;
    Fault fault;
    {
      nb::gil_scoped_release release;
      fault = kernel->run(operands.lanes, operands.views.data(), views.data(), scratch);
    }
    if (fault) throw Stop{fault};
    std::vector<Made> made;
    for (size_t k = 0; k < outputs.size(); ++k) {
      std::vector<size_t> shape{static_cast<size_t>(operands.lanes)};
      for (int axis = 0; axis < shapes[k].rank; ++axis) shape.push_back(static_cast<size_t>(shapes[k].sizes[axis]));
      Column* column = columns[k].release();
      nb::capsule owner(column, [](void* block) noexcept { delete static_cast<Column*>(block); });
      made.emplace_back(column->data, shape.size(), shape.data(), owner, nullptr, dlpack_of(outputs[k].dtype));
    }
    return made;
  } catch (const Stop& stop) {
    const nb::object type = nb::module_::import_("undertow._core").attr("KernelFault");
    PyErr_SetObject(type.ptr(), type(name_of(stop.fault.code), stop.fault.lane).ptr());
    throw nb::python_error();
  }
}

}  // namespace

void bind_kernel(nb::module_& module) {
  module.attr("KernelFault") = nb::steal(PyErr_NewException("undertow._core.KernelFault", PyExc_Exception, nullptr));
  module.def("run_kernel", &run_kernel, nb::arg("op"), nb::arg("attrs"), nb::arg("inputs"), nb::arg("shared"),
             nb::arg("out_types"), nb::arg("isa") = "");
  module.def("kernel_names", [] {
    nb::list names;
    for (std::string_view name : kernel_names()) names.append(nb::str(name.data(), name.size()));
    return names;
  });
  module.def("isa", [] { return std::string(functions().name); });
  module.def("isas", [] {
    nb::list names;
    for (const char* name : {"baseline", "avx2", "avx512"})
      if (functions(name) != nullptr) names.append(nb::str(name));
    return names;
  });
}

}  // namespace undertow
