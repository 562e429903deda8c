#include "host.h"

#include <nanobind/stl/complex.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "interpreter.h"
#include "numpy.h"
#include "parts.h"
#include "run/values.h"

namespace nb = nanobind;

namespace undertow {
namespace {

Value value_from(nb::handle object) {
  const Array array = nb::cast<Array>(object);
  Value value;
  value.shape = shape_of(array);
  value.bytes.resize(array.nbytes());
  if (!value.bytes.empty()) std::memcpy(value.bytes.data(), array.data(), value.bytes.size());
  return value;
}

/// Python's side of a run.
class PythonHost : public Host {
 public:
  PythonHost(nb::object apply, nb::object trace) : apply_(std::move(apply)), trace_(std::move(trace)) {}

  void apply(int32_t node, std::span<const View> inputs, std::span<Value> outputs) override {
    const Locked lock(*unlocked);
    nb::list values;
    for (const View& view : inputs) values.append(numpy::array_of(value_of(view), view.dtype));
    const nb::object found = surviving([&] { return apply_(node, values); });
    size_t k = 0;
    for (nb::handle value : found)
      if (k < outputs.size()) outputs[k++] = value_from(value);
  }

  void poll() override {
    const Locked lock(*unlocked);
    if (surviving([] { return PyErr_CheckSignals(); }) == 0) return;
    raised.emplace();
    throw Interrupted{};
  }

  /// Python decides whether and how it is shown.
  void progress(const RunProgress& now) override {
    if (!shows_) return;
    const Locked lock(*unlocked);
    surviving([&] {
      try {
        shows_ = nb::cast<bool>(shown("show", now.seconds, now.activations, now.waves, now.depth, now.bytes));
      } catch (const nb::python_error& error) {
        if (error.matches(PyExc_Exception)) {  // a terminal that is gone must not end the run
          shows_ = false;
          return;
        }
        raised.emplace(error);
        throw Interrupted{};
      }
    });
    has_shown_ |= shows_;
  }

  /// Erase what was shown; needs the lock.
  void finish() noexcept {
    if (!has_shown_) return;
    const nb::error_scope pending;
    try {
      shown("end");
    } catch (...) {
    }
  }

  void wave(int32_t region, int64_t lanes, int64_t depth, int32_t phase, int32_t stage) override {
    const Locked lock(*unlocked);
    surviving([&] { trace_(region, lanes, depth, phase, stage); });
  }

  std::optional<nb::python_error> raised;  ///< by a signal
  Unlocked* unlocked = nullptr;            ///< the run: all calls come from the thread that started it

 private:
  template <class... Args>
  static nb::object shown(const char* name, Args... args) {
    return nb::module_::import_("undertow.engines.progress").attr(name)(args...);
  }

  nb::object apply_;
  nb::object trace_;
  bool shows_ = true;
  bool has_shown_ = false;
};

/// Whatever the outcome of a run, nothing stays on the screen.
struct Finally {
  PythonHost& host;
  ~Finally() { host.finish(); }
};

const char* name_of_stop(Stop::Kind kind) {
  constexpr const char* names[] = {"fault",          "not_finite",    "unequal_lanes", "unequal_results",
                                   "unequal_visits", "memory",        "frames",        "depth",
                                   "timeout",        "out_of_memory", "missing",       "internal"};
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

/// A tag as an array [labels, 2] of sites and indices, since it may have millions of labels.
nb::object labels_of(std::vector<Label>&& labels) {
  static_assert(sizeof(Label) == 2 * sizeof(int64_t));
  auto* all = new std::vector<Label>(std::move(labels));
  const nb::capsule owner(all, [](void* kept) noexcept { delete static_cast<std::vector<Label>*>(kept); });
  const size_t sizes[] = {all->size(), 2};
  return nb::cast(nb::ndarray<nb::numpy>(all->data(), 2, sizes, owner, nullptr, nb::dtype<int64_t>()));
}

int64_t firings_of(const RunStats& stats) {
  return std::accumulate(stats.fired.begin(), stats.fired.end(), int64_t{0});
}

double mean_width_of(const RunStats& stats) {
  return stats.waves == 0 ? 0.0 : static_cast<double>(stats.lanes) / static_cast<double>(stats.waves);
}

/// Seconds by kind of step, without those that took none.
nb::dict seconds_of(const RunStats& stats) {
  constexpr const char* names[] = {"operators", "branches", "calls",    "loops", "maps",
                                   "entries",   "narrow",   "crossing", "rest"};
  nb::dict seconds;
  for (size_t k = 0; k < stats.seconds.size(); ++k)
    if (stats.seconds[k] > 0) seconds[names[k]] = stats.seconds[k];
  return seconds;
}

/// A Python number: much cheaper than an array of rank 0.
nb::object number_of(const std::byte* data, DType dtype) {
  const auto read = [data]<typename T>(T value) {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Bool: return nb::bool_(read(uint8_t{}) != 0);
    case DType::I32: return nb::int_(read(int32_t{}));
    case DType::I64: return nb::int_(read(int64_t{}));
    case DType::F32: return nb::float_(static_cast<double>(read(float{})));
    case DType::F64: return nb::float_(read(double{}));
    case DType::C64: return nb::cast(std::complex<double>(read(std::complex<float>{})));
    case DType::C128: break;
  }
  return nb::cast(read(std::complex<double>{}));
}

bool fits(const Array& array, const std::vector<int64_t>& shape, const ValueType& slot) {
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
    constant.slot.shape = shape_of(array);
    constant.slot.count = static_cast<int64_t>(array.size());
    constant.slot.bytes = static_cast<int64_t>(array.nbytes());
    constant.memory = std::make_unique<std::byte[]>(array.nbytes() + 192);
    const auto address = reinterpret_cast<uintptr_t>(constant.memory.get());
    constant.data = constant.memory.get() + ((64 - address % 64) % 64);
    if (array.nbytes() > 0) std::memcpy(constant.data, array.data(), array.nbytes());
    constants.push_back(std::move(constant));
  }
  return constants;
}

std::vector<Value> run_unlocked(const Engine& engine, std::span<const View> views, RunStats& stats, nb::object apply,
                                nb::list where, nb::object trace) {
  PythonHost host(std::move(apply), std::move(trace));
  const Finally erase{host};
  std::vector<Value> values;
  std::optional<Stop> stopped;
  try {
    Unlocked unlocked;
    host.unlocked = &unlocked;
    try {
      values = engine(views, host, stats);
    } catch (Stop& stop) {
      stopped = std::move(stop);
    } catch (const std::bad_alloc&) {  // no memory even to record where
      stopped = Stop{Stop::Kind::OutOfMemory};
    }
  } catch (const Interrupted&) {
    throw nb::python_error(std::move(*host.raised));
  } catch (const nb::python_error&) {
    where.append(labels_of(std::move(stats.stopped)));
    throw;
  }
  if (stopped) {
    nb::list operands;
    for (size_t k = 0; k < stopped->values.size(); ++k)
      operands.append(numpy::array_of(std::move(stopped->values[k]), stopped->types[k].dtype));
    const nb::object type = nb::module_::import_("undertow._core").attr("Stopped");
    const nb::object error = type(name_of_stop(stopped->kind), stopped->node, labels_of(std::move(stopped->tag)),
                                  operands, stopped->a, stopped->b, stopped->site);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
  }
  return values;
}

nb::tuple run_with_host(const Engine& engine, std::span<const ValueType* const> inputs,
                        std::span<const ValueType* const> results, const std::vector<Array>& arrays, nb::callable apply,
                        nb::list where, nb::object trace) {
  if (arrays.size() != inputs.size()) throw nb::value_error("a plan is run with too many or too few inputs");
  std::vector<std::vector<int64_t>> shapes;
  for (size_t k = 0; k < arrays.size(); ++k) {
    shapes.push_back(shape_of(arrays[k]));
    if (inputs[k] != nullptr && !fits(arrays[k], shapes[k], *inputs[k]))
      throw nb::value_error("an input is not of the type that the plan wants");
  }
  std::vector<View> views;
  std::vector<std::unique_ptr<Column>> copies;
  for (size_t k = 0; k < arrays.size(); ++k) {
    void* data = const_cast<void*>(arrays[k].data());
    if (reinterpret_cast<uintptr_t>(data) % arrays[k].itemsize() != 0) [[unlikely]] {  // a part of a buffer of bytes
      copies.push_back(std::make_unique<Column>(static_cast<int64_t>(arrays[k].nbytes())));
      std::memcpy(copies.back()->data, data, arrays[k].nbytes());
      data = copies.back()->data;
    }
    views.push_back({data, 0, shapes[k].data(), static_cast<int>(shapes[k].size()), dtype_of(arrays[k])});
  }
  RunStats stats;
  std::vector<Value> values = run_unlocked(engine, views, stats, std::move(apply), std::move(where), std::move(trace));
  nb::list made;
  for (size_t k = 0; k < values.size(); ++k) {
    if (results[k] == nullptr)
      made.append(nb::none());
    else if (values[k].shape.empty())
      made.append(number_of(values[k].bytes.data(), results[k]->dtype));
    else
      made.append(numpy::array_of(std::move(values[k]), results[k]->dtype));
  }
  return nb::make_tuple(made, std::move(stats));
}

void bind_host(nb::module_& module) {
  module.attr("Stopped") = nb::steal(PyErr_NewException("undertow._core.Stopped", PyExc_Exception, nullptr));
  nb::class_<RunStats>(module, "RunStats", "What a run counted. Lists are made when they are asked for.")
      .def_ro("activations", &RunStats::activations)
      .def_ro("waves", &RunStats::waves)
      .def_ro("lanes", &RunStats::lanes)
      .def_ro("peak_width", &RunStats::peak_width)
      .def_ro("packed", &RunStats::packed)
      .def_ro("recalled", &RunStats::recalled)
      .def_ro("changed", &RunStats::changed)
      .def_ro("shared_steps", &RunStats::shared_steps)
      .def_ro("tasks", &RunStats::tasks)
      .def_ro("joint_runs", &RunStats::joint_runs)
      .def_ro("joint_tables", &RunStats::joint_tables)
      .def_ro("peak_frames", &RunStats::peak_frames)
      .def_ro("peak_bytes", &RunStats::peak_bytes)
      .def_ro("max_depth", &RunStats::max_depth)
      .def_prop_ro("mean_width", &mean_width_of)
      .def_prop_ro("step_seconds", &seconds_of)
      .def_prop_ro("firings", &firings_of)
      .def_ro("fired", &RunStats::fired)
      .def_prop_ro("deepest", [](const RunStats& stats) { return tag_of(stats.deepest); });
}

}  // namespace undertow
