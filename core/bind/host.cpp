#include "host.h"

#include <cstring>
#include <memory>
#include <optional>

namespace nb = nanobind;

namespace undertow {
namespace {

constexpr DType kAll[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};

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

DType dtype_of(const Array& array) {
  for (DType dtype : kAll)
    if (array.dtype() == dlpack_of(dtype)) return dtype;
  throw nb::type_error("an array of a dtype that plans do not have");
}

/// A NumPy array with memory of its own.
nb::object numpy_of(const void* data, std::span<const int64_t> shape, DType dtype) {
  int64_t bytes = size_of(dtype);
  std::vector<size_t> sizes;
  for (int64_t length : shape) {
    bytes *= length;
    sizes.push_back(static_cast<size_t>(length));
  }
  auto* copy = new std::byte[static_cast<size_t>(bytes) + 1];
  if (bytes > 0) std::memcpy(copy, data, static_cast<size_t>(bytes));
  nb::capsule owner(copy, [](void* block) noexcept { delete[] static_cast<std::byte*>(block); });
  return nb::cast(nb::ndarray<nb::numpy>(copy, sizes.size(), sizes.data(), owner, nullptr, dlpack_of(dtype)));
}

Value value_from(nb::handle object) {
  const Array array = nb::cast<Array>(object);
  Value value;
  for (size_t axis = 0; axis < array.ndim(); ++axis) value.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  value.bytes.resize(array.nbytes());
  if (!value.bytes.empty()) std::memcpy(value.bytes.data(), array.data(), value.bytes.size());
  return value;
}

/// Python's side of a run.
class PythonHost : public Host {
 public:
  explicit PythonHost(nb::callable apply) : apply_(std::move(apply)) {}

  void apply(int32_t node, std::span<const View> inputs, std::span<Value> outputs) override {
    nb::gil_scoped_acquire lock;
    nb::list values;
    for (const View& view : inputs)
      values.append(numpy_of(view.data, {view.shape, static_cast<size_t>(view.rank)}, view.dtype));
    const nb::object found = apply_(node, values);
    size_t k = 0;
    for (nb::handle value : found)
      if (k < outputs.size()) outputs[k++] = value_from(value);
  }

  void poll() override {
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  nb::callable apply_;
};

const char* name_of_stop(Stop::Kind kind) {
  constexpr const char* names[] = {"fault",          "not_finite",    "unequal_lanes", "unequal_results",
                                   "unequal_visits", "memory",        "frames",        "depth",
                                   "timeout",        "out_of_memory", "internal"};
  return names[static_cast<int>(kind)];
}

nb::list tag_of(const std::vector<Label>& labels) {
  nb::list tag;
  for (const Label& label : labels) {
    if (label.index < 0)
      tag.append(label.site);
    else
      tag.append(nb::make_tuple(label.site, label.index));
  }
  return tag;
}

nb::object stats_of(const RunStats& stats) {
  nb::dict made;
  made["activations"] = stats.activations;
  made["waves"] = stats.waves;
  made["lanes"] = stats.lanes;
  made["peak_width"] = stats.peak_width;
  made["peak_frames"] = stats.peak_frames;
  made["peak_bytes"] = stats.peak_bytes;
  made["max_depth"] = stats.max_depth;
  made["deepest"] = tag_of(stats.deepest);
  nb::list fired;
  for (int64_t count : stats.fired) fired.append(count);
  made["fired"] = fired;
  return made;
}

std::vector<int64_t> shape_of(const Array& array) {
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(static_cast<int64_t>(array.shape(axis)));
  return shape;
}

bool fits(const Array& array, const std::vector<int64_t>& shape, const Slot& slot) {
  if (dtype_of(array) != slot.dtype || shape.size() != slot.shape.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (slot.shape[axis] != kUnknown && slot.shape[axis] != shape[axis]) return false;
  return true;
}

}  // namespace

std::vector<Constant> constants_of(const std::vector<Array>& arrays) {
  std::vector<Constant> constants;
  for (const Array& array : arrays) {
    Constant constant;
    constant.slot = {};
    constant.slot.dtype = dtype_of(array);
    constant.slot.count = 1;
    for (size_t axis = 0; axis < array.ndim(); ++axis) {
      constant.slot.shape.push_back(static_cast<int64_t>(array.shape(axis)));
      constant.slot.count *= static_cast<int64_t>(array.shape(axis));
    }
    constant.slot.bytes = static_cast<int64_t>(array.nbytes());
    constant.memory = std::make_unique<std::byte[]>(array.nbytes() + 192);
    const auto address = reinterpret_cast<uintptr_t>(constant.memory.get());
    constant.data = constant.memory.get() + ((64 - address % 64) % 64);
    if (array.nbytes() > 0) std::memcpy(constant.data, array.data(), array.nbytes());
    constants.push_back(std::move(constant));
  }
  return constants;
}

nb::tuple run_with_host(const Runner& runner, std::span<const Slot* const> inputs, std::span<const Slot* const> results,
                        const std::vector<Array>& arrays, nb::callable apply, nb::list where) {
  if (arrays.size() != inputs.size()) throw nb::value_error("a plan is run with too many or too few inputs");
  std::vector<std::vector<int64_t>> shapes;
  for (size_t k = 0; k < arrays.size(); ++k) {
    shapes.push_back(shape_of(arrays[k]));
    if (inputs[k] != nullptr && !fits(arrays[k], shapes[k], *inputs[k]))
      throw nb::value_error("an input is not of the type that the plan wants");
  }
  std::vector<View> views;
  for (size_t k = 0; k < arrays.size(); ++k)
    views.push_back({const_cast<void*>(arrays[k].data()), 0, shapes[k].data(), static_cast<int>(shapes[k].size()),
                     dtype_of(arrays[k])});
  PythonHost host(std::move(apply));
  RunStats stats;
  std::vector<Value> values;
  std::optional<Stop> stopped;
  try {
    nb::gil_scoped_release release;
    try {
      values = runner(views, host, stats);
    } catch (Stop& stop) {
      stopped = std::move(stop);
    }
  } catch (const nb::python_error&) {
    for (nb::handle label : tag_of(stats.stopped)) where.append(label);
    throw;
  }
  if (stopped) {
    nb::list operands;
    for (size_t k = 0; k < stopped->values.size(); ++k)
      operands.append(numpy_of(stopped->values[k].bytes.data(), stopped->values[k].shape, stopped->types[k].dtype));
    const nb::object type = nb::module_::import_("undertow._core").attr("Stopped");
    const nb::object error = type(name_of_stop(stopped->kind), stopped->node, tag_of(stopped->tag), operands,
                                  stopped->a, stopped->b, stopped->site);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
  }
  nb::list made;
  for (size_t k = 0; k < values.size(); ++k) {
    if (results[k] == nullptr)
      made.append(nb::none());
    else
      made.append(numpy_of(values[k].bytes.data(), values[k].shape, results[k]->dtype));
  }
  return nb::make_tuple(made, stats_of(stats));
}

}  // namespace undertow
