// Plans for Python: decoded once, then run as often as one likes, without the lock of the interpreter.
#include "undertow/plan.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "parts.h"
#include "undertow/run.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

/// A NumPy array that takes over the memory of a value.
nb::object numpy_from(Value&& value, DType dtype) {
  if (value.bytes.empty()) return numpy_of(nullptr, value.shape, dtype);
  std::vector<size_t> sizes(value.shape.begin(), value.shape.end());
  void* data = value.bytes.data();
  const nb::capsule owner(value.bytes.leave(),
                          [](void* block) noexcept { Buffer::give_back(static_cast<Block*>(block)); });
  return nb::cast(nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner, nullptr, dlpack_of(dtype)));
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
  PythonHost(nb::callable apply, nb::object trace) : apply_(std::move(apply)), trace_(std::move(trace)) {}

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

  void wave(int32_t region, int64_t lanes, int64_t depth, int32_t phase, int32_t stage) override {
    nb::gil_scoped_acquire lock;
    trace_(region, lanes, depth, phase, stage);
  }

 private:
  nb::callable apply_;
  nb::object trace_;
};

std::unique_ptr<Plan> decode(const Ints& rows, const std::vector<std::string>& words,
                             const std::vector<Array>& arrays) {
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
  try {
    return std::make_unique<Plan>(std::span(rows.data(), rows.size()), words, std::move(constants));
  } catch (const std::invalid_argument& wrong) {
    throw nb::value_error(wrong.what());
  }
}

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

/// The nodes of the operators that run in one pass, for each such pass.
nb::list fused_of(const Plan& plan) {
  nb::list found;
  for (const FusedItem& item : plan.fuseds) {
    nb::list nodes;
    for (int32_t op : item.ops) nodes.append(plan.ops[static_cast<size_t>(op)].node);
    found.append(nodes);
  }
  return found;
}

/// Counts of lanes, by node.
nb::list fired_of(const RunStats& stats) {
  nb::list fired;
  for (int64_t count : stats.fired) fired.append(count);
  return fired;
}

int64_t firings_of(const RunStats& stats) {
  return std::accumulate(stats.fired.begin(), stats.fired.end(), int64_t{0});
}

/// A number as Python has it: much less work than an array without dimensions.
nb::object number_of(const std::byte* data, DType dtype) {
  const auto read = [data]<typename T>(T value) {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Bool:
      return nb::bool_(read(uint8_t{}) != 0);
    case DType::I32:
      return nb::int_(read(int32_t{}));
    case DType::I64:
      return nb::int_(read(int64_t{}));
    case DType::F32:
      return nb::float_(static_cast<double>(read(float{})));
    default:
      return nb::float_(read(double{}));
  }
}

/// Run a plan. Gives (results, stats), results being numbers, arrays, or None for order tokens; raises Stopped. Where
/// `apply` raises, the tag that it was called for is put into `where`.
nb::tuple run(const Plan& plan, const std::vector<Array>& arrays, nb::callable apply, nb::list where, int64_t width,
              int64_t frames, int64_t max_depth, int64_t memory, double timeout, bool check_finite, bool agenda,
              int64_t threads, nb::object trace) {
  const Region& main = plan.regions[0];
  if (arrays.size() != main.params[0].size()) throw nb::value_error("a plan is run with too many or too few inputs");
  std::vector<std::vector<int64_t>> shapes;
  std::vector<View> inputs;
  for (size_t k = 0; k < arrays.size(); ++k) {
    const Array& array = arrays[k];
    shapes.emplace_back();
    for (size_t axis = 0; axis < array.ndim(); ++axis) shapes[k].push_back(static_cast<int64_t>(array.shape(axis)));
    const int32_t number = main.params[0][k];
    if (number != kNoSlot) {
      const Slot& slot = main.slots[static_cast<size_t>(number)];
      bool fits = dtype_of(array) == slot.dtype && array.ndim() == slot.shape.size();
      for (size_t axis = 0; fits && axis < array.ndim(); ++axis)
        fits = slot.shape[axis] == kUnknown || slot.shape[axis] == shapes[k][axis];
      if (!fits) throw nb::value_error("an input is not of the type that the plan wants");
    }
  }
  for (size_t k = 0; k < arrays.size(); ++k)
    inputs.push_back({const_cast<void*>(arrays[k].data()), 0, shapes[k].data(), static_cast<int>(shapes[k].size()),
                      dtype_of(arrays[k])});
  RunOptions options;
  options.width = width;
  options.frames = frames;
  options.max_depth = max_depth;
  options.memory = memory;
  options.timeout = timeout;
  options.check_finite = check_finite;
  options.threads = threads;
  options.is_traced = !trace.is_none();
  PythonHost host(std::move(apply), std::move(trace));
  RunStats stats;
  std::vector<Value> values;
  std::optional<Stop> stopped;
  try {
    nb::gil_scoped_release release;
    try {
      values = (agenda ? run_agenda : run_lockstep)(plan, inputs, options, host, stats);
    } catch (Stop& stop) {
      stopped = std::move(stop);
    } catch (const std::bad_alloc&) {  // there was not even room to say where
      stopped = Stop{Stop::Kind::OutOfMemory};
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
  nb::list results;
  for (size_t k = 0; k < values.size(); ++k) {
    const int32_t number = main.results[0][k];
    if (number == kNoSlot)
      results.append(nb::none());
    else if (const DType dtype = main.slots[static_cast<size_t>(number)].dtype; values[k].shape.empty())
      results.append(number_of(values[k].bytes.data(), dtype));
    else
      results.append(numpy_from(std::move(values[k]), dtype));
  }
  return nb::make_tuple(results, std::move(stats));
}

}  // namespace

void bind_plan(nb::module_& module) {
  module.attr("Stopped") = nb::steal(PyErr_NewException("undertow._core.Stopped", PyExc_Exception, nullptr));
  nb::class_<RunStats>(module, "RunStats", "What a run counted. Lists are made when they are asked for.")
      .def_ro("activations", &RunStats::activations)
      .def_ro("waves", &RunStats::waves)
      .def_ro("lanes", &RunStats::lanes)
      .def_ro("peak_width", &RunStats::peak_width)
      .def_ro("peak_frames", &RunStats::peak_frames)
      .def_ro("peak_bytes", &RunStats::peak_bytes)
      .def_ro("max_depth", &RunStats::max_depth)
      .def_prop_ro("firings", &firings_of)
      .def_prop_ro("fired", &fired_of)
      .def_prop_ro("deepest", [](const RunStats& stats) { return tag_of(stats.deepest); });
  nb::class_<Plan>(module, "Plan", "A static graph, decoded and ready to run.")
      .def_prop_ro("fused", &fused_of)
      .def("run", &run, nb::arg("inputs"), nb::arg("apply"), nb::arg("where"), nb::arg("width"), nb::arg("frames"),
           nb::arg("max_depth"), nb::arg("memory"), nb::arg("timeout"), nb::arg("check_finite"),
           nb::arg("agenda") = false, nb::arg("threads") = 1, nb::arg("trace") = nb::none());
  module.def("decode", &decode, nb::arg("rows"), nb::arg("words"), nb::arg("constants"));
}

}  // namespace undertow
