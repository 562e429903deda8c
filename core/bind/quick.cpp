// The fast path of calls: arguments of known types select a program by one look, and the core runs it at once.
//
// It returns what the slow path, which flattens arguments and reports what is wrong with them, found before for
// arguments of the same types. Whatever is unusual, such as an integer that does not fit, is left to the slow path.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "arguments.h"
#include "direct.h"
#include "guards.h"
#include "host.h"
#include "numpy.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// The default number of threads of a run: the cores that this process may use now.
int64_t usable_cores() {
#ifdef __linux__
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

/// Arguments of known types, and the program that takes them.
struct Known {
  uint64_t hash;
  std::vector<uint64_t> words;
  std::vector<nb::object> objects;
  std::vector<DType> dtypes;  // by leaf: what the program takes
  // Of all axes of all arrays: a length, or ~2k or ~(2k + 1): all axes with this k have equal lengths; where the last
  // bit is set, two or more.
  std::vector<int64_t> sizes;
  int64_t groups = 0;  // how many k there are
  nb::object program;
  nb::object hidden;               // the guards, or None
  const Guards* guards = nullptr;  // the same

  /// Does it take these arguments?
  bool takes(const Arguments& arguments, uint64_t hashed) const {
    if (hash != hashed || words != arguments.words) return false;
    for (size_t k = 0; k < objects.size(); ++k) {
      const nb::handle a = objects[k], b = arguments.objects[k];
      if (a.is(b)) continue;
      if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
      const int is_equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
      if (is_equal < 0) forget_error();
      if (is_equal != 1) return false;
    }
    return has_sizes(arguments);
  }

 private:
  bool has_sizes(const Arguments& arguments) const {
    int64_t few[8];
    std::vector<int64_t> many;
    int64_t* lengths = few;
    if (groups > 8) {
      many.resize(static_cast<size_t>(groups));
      lengths = many.data();
    }
    std::fill_n(lengths, groups, int64_t{-1});
    const int64_t* wanted = sizes.data();
    for (const Leaf& leaf : arguments.leaves) {
      if (leaf.kind != ArgumentKind::Array) continue;
      const auto* array = reinterpret_cast<const numpy::ArrayObject*>(leaf.object.ptr());
      // Code of the user's may have run since its rank was compared, and have reshaped it in place.
      if (array->rank > sizes.data() + sizes.size() - wanted) return false;
      for (int axis = 0; axis < array->rank; ++axis, ++wanted) {
        const int64_t length = array->sizes[axis];
        if (*wanted >= 0) {
          if (*wanted != length) return false;
        } else if ((~*wanted & 1) != 0 && length < 2) {
          return false;
        } else if (int64_t& group = lengths[~*wanted >> 1]; group < 0) {
          group = length;
        } else if (group != length) {
          return false;
        }
      }
    }
    return true;
  }
};

/// The calls of a function seen so far. Used with the GIL held; only added to.
class Quick {
 public:
  Quick(nb::object parts, size_t most) : parts_(std::move(parts)), most_(most) {}

  /// Remember a call: what the leaves of its arguments become, and their lengths, as in `Known`. False if such a call
  /// cannot be remembered.
  bool add(const nb::tuple& args, const std::vector<int64_t>& dtypes, std::vector<int64_t> sizes, nb::object program,
           nb::object hidden) {
    Arguments arguments;
    if (known_.size() >= most_) return false;
    if (!take_apart(args, parts_, classes_, arguments) || arguments.leaves.size() != dtypes.size()) {
      forget_error();
      return false;
    }
    auto known = std::make_shared<Known>();
    size_t axes = 0;
    for (size_t k = 0; k < dtypes.size(); ++k) {
      if (dtypes[k] < 0 || dtypes[k] >= kDTypes) return false;
      const auto dtype = static_cast<DType>(dtypes[k]);
      const Leaf& leaf = arguments.leaves[k];
      if ((leaf.kind == ArgumentKind::Array || leaf.kind == ArgumentKind::Scalar) && leaf.dtype != dtype) return false;
      if (leaf.kind == ArgumentKind::Array) axes += static_cast<size_t>(numpy::as_array(leaf.object.ptr())->rank);
      known->dtypes.push_back(dtype);
    }
    for (int64_t size : sizes) known->groups = std::max(known->groups, size < 0 ? (~size >> 1) + 1 : 0);
    if (sizes.size() != axes || known->groups > static_cast<int64_t>(axes)) return false;
    known->hash = arguments.hash();
    known->words = std::move(arguments.words);
    known->objects = std::move(arguments.objects);
    known->sizes = std::move(sizes);
    known->program = std::move(program);
    known->hidden = std::move(hidden);
    if (!known->hidden.is_none()) known->guards = nb::cast<const Guards*>(known->hidden);
    known_.push_back(std::move(known));
    return true;
  }

  /// The program and its inputs, if a call like this was seen before; else None.
  nb::object find(const nb::tuple& args) const {
    Arguments arguments;
    const std::shared_ptr<const Known> known = look(args, arguments);
    if (known == nullptr) return nb::none();
    nb::list inputs;
    for (size_t k = 0; k < arguments.leaves.size(); ++k) {
      const Leaf& leaf = arguments.leaves[k];
      if (leaf.kind == ArgumentKind::Array || leaf.kind == ArgumentKind::Scalar) {
        inputs.append(leaf.object);
        continue;
      }
      alignas(kMostBytes) std::byte number[kMostBytes];
      const DType dtype = k < known->dtypes.size() ? known->dtypes[k] : leaf.dtype;
      if (!read_number(leaf, dtype, number)) {
        forget_error();
        return nb::none();
      }
      inputs.append(numpy::scalar_of(number, dtype));
    }
    return nb::make_tuple(known->program, inputs);
  }

  /// The result of a call, if one like this was seen before and its program runs without Python; else NotImplemented.
  nb::object call(const nb::tuple& args, RunOptions options) const {
    Arguments arguments;
    const std::shared_ptr<const Known> known = look(args, arguments);
    if (known == nullptr) return missed();
    const nb::object held = known->program.attr("direct");
    const Direct* direct = nullptr;
    if (held.is_none() || !nb::try_cast(held, direct)) return missed();
    Inputs inputs;
    if (!inputs.read(arguments, known->dtypes, *direct->plan)) return missed();
    options.width = direct->width;
    if (options.threads <= 0) options.threads = usable_cores();
    const Engine engine = [&](std::span<const View> views, Host& host, RunStats& stats) {
      return run_waves(*direct->plan, views, options, host, stats);
    };
    RunStats stats;
    std::vector<Value> values;
    try {
      values = run_unlocked(engine, inputs.views, stats, nb::none(), nb::list(), nb::none());
    } catch (nb::python_error& error) {
      if (error.matches(nb::module_::import_("undertow._core").attr("Stopped")))
        error.value().attr("plan") = direct->owner;
      throw;
    }
    return result_of(*direct, values);
  }

  size_t size() const { return known_.size(); }

  template <class Visit>
  int visit(Visit&& each) const {
    if (const int stopped = each(parts_)) return stopped;
    if (const int stopped = each(classes_)) return stopped;
    for (const auto& known : known_) {
      for (const nb::object& object : known->objects)
        if (const int stopped = each(object)) return stopped;
      if (const int stopped = each(known->program)) return stopped;
      if (const int stopped = each(known->hidden)) return stopped;
    }
    return 0;
  }
  void clear() {
    parts_.reset();
    const std::vector<std::shared_ptr<const Known>> gone = std::move(known_);
    known_.clear();
  }

 private:
  static nb::object missed() {
    forget_error();
    return nb::borrow(Py_NotImplemented);
  }

  /// The call that was like this one; hidden inputs are added to the leaves.
  std::shared_ptr<const Known> look(const nb::tuple& args, Arguments& arguments) const {
    if (known_.empty()) return nullptr;
    if (take_apart(args, parts_, classes_, arguments)) {
      const uint64_t hash = arguments.hash();
      for (size_t k = 0; k < known_.size(); ++k) {  // comparing may run Python code, which may add to it
        const std::shared_ptr<const Known> known = known_[k];
        if (known->takes(arguments, hash) && read_hidden(*known, arguments)) return known;
      }
    }
    forget_error();
    return nullptr;
  }

  /// Read the hidden inputs of a program, if it has any; false if it does not hold any more.
  static bool read_hidden(const Known& known, Arguments& arguments) {
    if (known.guards == nullptr) return true;
    std::vector<nb::object> values;
    if (!known.guards->read(arguments.statics, values)) return false;
    std::vector<Leaf> leaves;
    for (nb::object& value : values) {
      PyObject* at = value.ptr();
      if (PyFloat_CheckExact(at)) {
        leaves.push_back({std::move(value), ArgumentKind::Float, DType::F64});
      } else if (PyComplex_CheckExact(at)) {
        leaves.push_back({std::move(value), ArgumentKind::Complex, DType::C128});
      } else if (PyLong_CheckExact(at)) {
        leaves.push_back({std::move(value), ArgumentKind::Int, DType::I64});
      } else {
        const numpy::ArrayObject* array = numpy::as_array(at);
        const std::optional<DType> dtype = array != nullptr ? numpy::dtype_of(array) : numpy::dtype_of_scalar(at);
        if (!dtype || (array != nullptr && array->rank > static_cast<int>(kMostRank))) return false;
        leaves.push_back({std::move(value), array != nullptr ? ArgumentKind::Array : ArgumentKind::Scalar, *dtype});
      }
    }
    for (Leaf& leaf : leaves) arguments.leaves.push_back(std::move(leaf));
    return true;
  }

  nb::object classes_ = nb::steal(PySet_New(nullptr));  // of objects that count by their class
  nb::object parts_;  // the token and contents of an object of a class; None if it is not a container
  size_t most_;
  std::vector<std::shared_ptr<const Known>> known_;
};

// What they hold may hold them: the garbage collector needs to see it.

int traverse_quick(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<Quick>(self)->visit(
      [&](const nb::object& object) { return object.is_valid() ? visit(object.ptr(), arg) : 0; });
}

int clear_quick(PyObject* self) {
  nb::inst_ptr<Quick>(self)->clear();
  return 0;
}

int traverse_direct(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Direct& direct = *nb::inst_ptr<Direct>(self);
  Py_VISIT(direct.owner.ptr());
  Py_VISIT(direct.plan_object.ptr());
  Py_VISIT(direct.build.ptr());
  for (const Direct::Token& token : direct.tokens) Py_VISIT(token.object.ptr());
  return 0;
}

int clear_direct(PyObject* self) {
  const std::vector<Direct::Token> gone = std::move(nb::inst_ptr<Direct>(self)->tokens);
  return 0;
}

PyType_Slot quick_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_quick)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear_quick)},
                             {0, nullptr}};
PyType_Slot direct_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_direct)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_direct)},
                              {0, nullptr}};

}  // namespace

void bind_quick(nb::module_& module) {
  module.def("usable_cores", &usable_cores);
  nb::class_<RunOptions>(module, "RunOptions", "The limits of runs on the fast path.")
      .def(
          "__init__",
          [](RunOptions* self, int64_t frames, int64_t max_depth, int64_t memory, double timeout, bool check_finite,
             bool shows_progress, bool goes_deep, int64_t threads) {
            new (self) RunOptions{1,     frames,  max_depth, memory,    timeout,       check_finite,
                                  false, threads, false,     goes_deep, shows_progress};
          },
          nb::arg("frames"), nb::arg("max_depth"), nb::arg("memory"), nb::arg("timeout"), nb::arg("check_finite"),
          nb::arg("shows_progress"), nb::arg("goes_deep"), nb::arg("threads"));
  nb::class_<Direct>(module, "Direct", "A program that runs without Python.", nb::type_slots(direct_slots))
      .def(nb::init<nb::object, nb::object, int64_t, nb::tuple, nb::object>(), nb::arg("owner"), nb::arg("plan"),
           nb::arg("width"), nb::arg("structure"), nb::arg("build"))
      .def_static("is_possible", &Direct::is_possible, nb::arg("plan"));
  nb::class_<Quick>(module, "Quick", "The calls of a function seen so far.", nb::type_slots(quick_slots))
      .def(nb::init<nb::object, size_t>(), nb::arg("parts"), nb::arg("most"))
      .def("add", &Quick::add, nb::arg("args"), nb::arg("dtypes"), nb::arg("sizes"), nb::arg("program"),
           nb::arg("hidden") = nb::none())
      .def("find", &Quick::find, nb::arg("args"))
      .def("call", &Quick::call, nb::arg("args"), nb::arg("options"))
      .def("__len__", &Quick::size);
}

}  // namespace undertow
