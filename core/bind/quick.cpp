// The fast path of calls: arguments of known types select a program by one look, and the core runs it at once.
//
// It returns what the slow path, which flattens arguments and reports what is wrong with them, found before for
// arguments of the same types. Whatever is unusual, such as an integer that does not fit, is left to the slow path.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "guards.h"
#include "host.h"
#include "numpy.h"
#include "parts.h"
#include "undertow/plan.h"

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

/// A Python error that stands for "take the slow path", which explains what is wrong; others, as of Ctrl-C, are raised.
void forget_error() {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
  PyErr_Clear();
}

// ------------------------------------------------------------------------------------------------------------------
// Arguments

enum class Kind : uint8_t { Array, Scalar, Bool, Int, Float, Tuple, List, Dict, Other, Object };

struct Leaf {
  nb::object object;  // held: without the GIL, another thread may take it out of its container
  Kind kind;
  DType dtype;  // of arrays and scalars
};

/// Arguments taken apart, in preorder: what selects a program, and leaves.
struct Flat {
  std::vector<uint64_t> words;      // kinds, dtypes, ranks, lengths; hashes of the objects
  std::vector<nb::object> objects;  // keys of dicts, tokens of classes
  std::vector<Leaf> leaves;
  std::vector<nb::object> statics;  // objects that count by their class: guards read them

  void add(Kind kind, uint64_t more = 0) { words.push_back(static_cast<uint64_t>(kind) | more << 8); }
  void add_leaf(nb::handle object, Kind kind, DType dtype = {}, uint64_t rank = 0) {
    add(kind, static_cast<uint64_t>(dtype) | rank << 8);
    leaves.push_back({nb::borrow(object), kind, dtype});
  }
  bool add_object(nb::handle object) {
    const Py_hash_t hash = PyObject_Hash(object.ptr());
    if (hash == -1) return false;
    words.push_back(static_cast<uint64_t>(hash));
    objects.push_back(nb::borrow(object));
    return true;
  }
  uint64_t hash() const {
    uint64_t found = words.size();
    for (uint64_t word : words) found = (found ^ word) * 0x9E3779B97F4A7C15u + (found >> 29);
    return found;
  }
};

/// Values of these types are equal only if they are the same, and differ from all values of the others.
bool is_plain_key(PyObject* key) { return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || key == Py_None; }

constexpr size_t kMostParts = size_t{1} << 24;  // of arguments: a list may contain itself

/// Take arguments apart; false if more than types matters. A Python error may be set then.
bool take_apart(nb::handle args, nb::handle parts, nb::handle classes, Flat& flat) {
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
    if (flat.words.size() > kMostParts) return false;
    PyObject* at = item.ptr();
    if (const numpy::ArrayObject* array = numpy::as_array(at)) {
      const std::optional<DType> dtype = numpy::dtype_of(array);
      if (!dtype || array->rank > static_cast<int>(kMostRank)) return false;
      flat.add_leaf(item, Kind::Array, *dtype, static_cast<uint64_t>(array->rank));
    } else if (PyLong_CheckExact(at)) {
      flat.add_leaf(item, Kind::Int);
    } else if (PyFloat_CheckExact(at)) {
      flat.add_leaf(item, Kind::Float);
    } else if (PyBool_Check(at)) {
      flat.add_leaf(item, Kind::Bool);
    } else if (PyTuple_CheckExact(at)) {
      flat.add(Kind::Tuple, push(item, true));
    } else if (PyList_CheckExact(at)) {
      flat.add(Kind::List, push(item, false));
    } else if (PyDict_CheckExact(at)) {
      flat.add(Kind::Dict, static_cast<uint64_t>(PyDict_Size(at)));
      const size_t first = stack.size();
      Py_ssize_t position = 0;
      PyObject *key = nullptr, *value = nullptr;
      while (PyDict_Next(at, &position, &key, &value) != 0) {  // no Python code runs in between: keys are plain
        if (!is_plain_key(key) || !flat.add_object(key)) return false;
        stack.push_back(nb::borrow(value));
      }
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
    } else if (const std::optional<DType> dtype = numpy::dtype_of_scalar(at)) {
      flat.add_leaf(item, Kind::Scalar, *dtype);
    } else if (PyObject* kind = reinterpret_cast<PyObject*>(Py_TYPE(at));
               const int is_known = PySet_Contains(classes.ptr(), kind)) {
      if (is_known < 0) return false;  // a metaclass defines `__hash__` or `__eq__`
      flat.add(Kind::Object);
      if (!flat.add_object(kind)) return false;
      flat.statics.push_back(item);
    } else {  // a dataclass, a forest, sparse rows
      const nb::object found = nb::steal(PyObject_CallFunctionObjArgs(parts.ptr(), at, nullptr));
      if (found.is_valid() && PyType_Check(found.ptr())) {
        if (!found.is(kind) || PySet_Add(classes.ptr(), kind) != 0) return false;
        stack.push_back(item);
        continue;
      }
      if (!found.is_valid() || !PyTuple_Check(found.ptr()) || PyTuple_Size(found.ptr()) != 2) return false;
      const nb::object contents = nb::borrow(PyTuple_GetItem(found.ptr(), 1));
      flat.add(Kind::Other);
      if (!PyList_Check(contents.ptr()) || !flat.add_object(PyTuple_GetItem(found.ptr(), 0))) return false;
      push(contents, false);
    }
  }
  return true;
}

/// The number as 8 bytes or fewer of a dtype; false if it does not fit. A Python error may be set then.
bool read_number(const Leaf& leaf, DType dtype, std::byte* to) {
  const auto put = [to](auto value) {
    std::memcpy(to, &value, sizeof value);
    return true;
  };
  if (dtype == DType::F32 || dtype == DType::F64) {
    const double value =
        leaf.kind == Kind::Float ? PyFloat_AsDouble(leaf.object.ptr()) : PyLong_AsDouble(leaf.object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) return false;
    return dtype == DType::F64 ? put(value) : put(static_cast<float>(value));
  }
  if (leaf.kind == Kind::Float) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(leaf.object.ptr(), &overflow);
  if (overflow != 0 || (value == -1 && PyErr_Occurred() != nullptr)) return false;
  if (dtype == DType::Bool) return leaf.kind == Kind::Bool && put(static_cast<uint8_t>(value));
  if (dtype == DType::I64) return put(static_cast<int64_t>(value));
  return value == static_cast<int32_t>(value) && put(static_cast<int32_t>(value));
}

// ------------------------------------------------------------------------------------------------------------------
// Programs

/// A program that runs without Python: its plan, and how results become a container.
struct Direct {
  enum class Make : uint8_t { Leaf, Static, Tuple, List, Dict, Other };
  struct Token {
    Make make;
    Py_ssize_t count;   // of what it contains
    nb::object object;  // a static value, the keys of a dict, the token of another container
  };

  Direct(nb::object owner_, nb::object core, int64_t width_, const nb::tuple& structure, nb::object build_)
      : owner(std::move(owner_)), plan_object(std::move(core)), build(std::move(build_)), width(width_) {
    plan = &nb::cast<const Plan&>(plan_object);
    for (nb::handle each : structure) {
      const auto token = nb::cast<nb::tuple>(each);
      const auto kind = nb::cast<std::string_view>(token[0]);
      if (kind == "leaf") {
        tokens.push_back({Make::Leaf, 0, {}});
        ++leaves;
      } else if (kind == "static") {
        tokens.push_back({Make::Static, 0, token[1].attr("value")});
      } else {
        const auto count = nb::cast<Py_ssize_t>(token[1]);
        if (kind == "tuple")
          tokens.push_back({Make::Tuple, count, {}});
        else if (kind == "list")
          tokens.push_back({Make::List, count, {}});
        else if (kind == "dict")
          tokens.push_back({Make::Dict, count, nb::tuple(token[2])});
        else
          tokens.push_back({Make::Other, count, token});
      }
    }
  }

  /// Does the host never run an operator of it? Only then it needs nothing of Python.
  static bool is_possible(const Plan& plan) {
    for (const OpItem& op : plan.ops)
      if (op.is_effect || op.kernel < 0) return false;
    for (int32_t number : plan.regions[0].results[0])
      if (number == kNoSlot) return false;  // an order token
    return true;
  }

  nb::object owner;        // of the plan: it explains errors
  nb::object plan_object;  // keeps the plan
  nb::object build;        // builds containers of classes
  const Plan* plan;
  int64_t width;
  std::vector<Token> tokens;
  size_t leaves = 0;
};

nb::object make_container(const Direct& direct, const Direct::Token& token, std::vector<nb::object>& contents,
                          size_t at) {
  nb::object made;
  const auto each = [&](auto&& put) {
    for (Py_ssize_t k = 0; k < token.count; ++k) put(k, contents[at + static_cast<size_t>(k)]);
  };
  switch (token.make) {
    case Direct::Make::Tuple:
      made = nb::steal(PyTuple_New(token.count));
      if (!made.is_valid()) throw nb::python_error();
      each([&](Py_ssize_t k, nb::object& value) { PyTuple_SetItem(made.ptr(), k, value.release().ptr()); });
      break;
    case Direct::Make::Dict:
      made = nb::dict();
      each([&](Py_ssize_t k, nb::object& value) {
        if (PyDict_SetItem(made.ptr(), PyTuple_GetItem(token.object.ptr(), k), value.ptr()) != 0)
          throw nb::python_error();
      });
      break;
    default:
      made = nb::steal(PyList_New(token.count));
      if (!made.is_valid()) throw nb::python_error();
      each([&](Py_ssize_t k, nb::object& value) { PyList_SetItem(made.ptr(), k, value.release().ptr()); });
      if (token.make == Direct::Make::Other) made = direct.build(token.object, made);
  }
  contents.resize(at);
  return made;
}

/// The result of a program, from the values of its plan.
nb::object result_of(const Direct& direct, std::vector<Value>& values) {
  const auto leaf = [&](size_t k) {
    const auto slot = static_cast<size_t>(direct.plan->regions[0].results[0][k]);
    const ValueType& type = direct.plan->regions[0].slots[slot];
    return type.rank() == 0 ? numpy::scalar_of(values[k].bytes.data(), type.dtype)
                            : numpy::array_of(std::move(values[k]), type.dtype);
  };
  if (direct.tokens.size() == 1 && direct.leaves == 1) return leaf(0);
  struct Open {
    const Direct::Token* token;
    size_t at;  // in `contents`
  };
  std::vector<nb::object> contents;
  std::vector<Open> open;
  size_t next = 0;
  for (const Direct::Token& token : direct.tokens) {
    if (token.make == Direct::Make::Leaf)
      contents.push_back(leaf(next++));
    else if (token.make == Direct::Make::Static)
      contents.push_back(token.object);
    else
      open.push_back({&token, contents.size()});
    while (!open.empty() && contents.size() - open.back().at == static_cast<size_t>(open.back().token->count)) {
      const Open done = open.back();
      open.pop_back();
      nb::object made = make_container(direct, *done.token, contents, done.at);
      contents.push_back(std::move(made));
    }
  }
  return std::move(contents.at(0));
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
  bool takes(const Flat& flat, uint64_t hashed) const {
    if (hash != hashed || words != flat.words) return false;
    for (size_t k = 0; k < objects.size(); ++k) {
      const nb::handle a = objects[k], b = flat.objects[k];
      if (a.is(b)) continue;
      if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
      const int is_equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
      if (is_equal < 0) forget_error();
      if (is_equal != 1) return false;
    }
    return has_sizes(flat);
  }

 private:
  bool has_sizes(const Flat& flat) const {
    int64_t few[8];
    std::vector<int64_t> many;
    int64_t* lengths = few;
    if (groups > 8) {
      many.resize(static_cast<size_t>(groups));
      lengths = many.data();
    }
    std::fill_n(lengths, groups, int64_t{-1});
    const int64_t* wanted = sizes.data();
    for (const Leaf& leaf : flat.leaves) {
      if (leaf.kind != Kind::Array) continue;
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

/// The inputs of a plan, as it reads them.
struct Inputs {
  std::vector<View> views;
  std::vector<std::byte> numbers;
  std::vector<int64_t> sizes;  // copied: another thread may change the shape of an array

  /// Read leaves; false if they are not what the plan takes. Arrays that are not plain are replaced by copies.
  bool read(Flat& flat, const std::vector<DType>& dtypes, const Plan& plan) {
    const Region& main = plan.regions[0];
    const std::vector<int32_t>& params = main.params[0];
    const size_t count = flat.leaves.size();
    if (params.size() != count) return false;
    // Copying may release the GIL: it comes before anything is read that another thread may change.
    for (Leaf& leaf : flat.leaves)
      if (leaf.kind == Kind::Array && !numpy::as_array(leaf.object.ptr())->is_plain())
        leaf.object = numpy::plain_copy(numpy::as_array(leaf.object.ptr()));
    views.resize(count);
    numbers.resize(8 * count);
    size_t axes = 0;
    for (const Leaf& leaf : flat.leaves)
      if (leaf.kind == Kind::Array) axes += static_cast<size_t>(numpy::as_array(leaf.object.ptr())->rank);
    sizes.reserve(axes);
    for (size_t k = 0; k < count; ++k) {
      const Leaf& leaf = flat.leaves[k];
      View& view = views[k];
      view.dtype = k < dtypes.size() ? dtypes[k] : leaf.dtype;
      if (leaf.kind == Kind::Array) {
        const numpy::ArrayObject& array = *numpy::as_array(leaf.object.ptr());
        if (!array.is_plain() || numpy::dtype_of(&array) != view.dtype) return false;  // changed in place meanwhile
        view.data = array.data;
        view.shape = sizes.data() + sizes.size();
        view.rank = array.rank;
        sizes.insert(sizes.end(), array.sizes, array.sizes + array.rank);
      } else {
        view.data = numbers.data() + 8 * k;
        if (leaf.kind == Kind::Scalar)
          std::memcpy(view.data, numpy::data_of_scalar(leaf.object.ptr()), static_cast<size_t>(size_of(leaf.dtype)));
        else if (!read_number(leaf, view.dtype, static_cast<std::byte*>(view.data)))
          return false;
      }
      if (params[k] != kNoSlot && !fits(view, main.slots[static_cast<size_t>(params[k])])) return false;
    }
    return true;
  }

 private:
  static bool fits(const View& view, const ValueType& wanted) {
    bool fits = wanted.dtype == view.dtype && wanted.rank() == view.rank;
    for (int axis = 0; fits && axis < view.rank; ++axis) {
      const int64_t length = wanted.shape[static_cast<size_t>(axis)];
      fits = length == kUnknown || length == view.shape[axis];
    }
    return fits;
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
    Flat flat;
    if (known_.size() >= most_) return false;
    if (!take_apart(args, parts_, classes_, flat) || flat.leaves.size() != dtypes.size()) {
      forget_error();
      return false;
    }
    auto known = std::make_shared<Known>();
    size_t axes = 0;
    for (size_t k = 0; k < dtypes.size(); ++k) {
      if (dtypes[k] < 0 || dtypes[k] >= kDTypes) return false;
      const auto dtype = static_cast<DType>(dtypes[k]);
      const Leaf& leaf = flat.leaves[k];
      if ((leaf.kind == Kind::Array || leaf.kind == Kind::Scalar) && leaf.dtype != dtype) return false;
      if (leaf.kind == Kind::Array) axes += static_cast<size_t>(numpy::as_array(leaf.object.ptr())->rank);
      known->dtypes.push_back(dtype);
    }
    for (int64_t size : sizes) known->groups = std::max(known->groups, size < 0 ? (~size >> 1) + 1 : 0);
    if (sizes.size() != axes || known->groups > static_cast<int64_t>(axes)) return false;
    known->hash = flat.hash();
    known->words = std::move(flat.words);
    known->objects = std::move(flat.objects);
    known->sizes = std::move(sizes);
    known->program = std::move(program);
    known->hidden = std::move(hidden);
    if (!known->hidden.is_none()) known->guards = nb::cast<const Guards*>(known->hidden);
    known_.push_back(std::move(known));
    return true;
  }

  /// The program and its inputs, if a call like this was seen before; else None.
  nb::object find(const nb::tuple& args) const {
    Flat flat;
    const std::shared_ptr<const Known> known = look(args, flat);
    if (known == nullptr) return nb::none();
    nb::list inputs;
    for (size_t k = 0; k < flat.leaves.size(); ++k) {
      const Leaf& leaf = flat.leaves[k];
      if (leaf.kind == Kind::Array || leaf.kind == Kind::Scalar) {
        inputs.append(leaf.object);
        continue;
      }
      std::byte number[8];
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
    Flat flat;
    const std::shared_ptr<const Known> known = look(args, flat);
    if (known == nullptr) return missed();
    const nb::object held = known->program.attr("direct");
    const Direct* direct = nullptr;
    if (held.is_none() || !nb::try_cast(held, direct)) return missed();
    Inputs inputs;
    if (!inputs.read(flat, known->dtypes, *direct->plan)) return missed();
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
  std::shared_ptr<const Known> look(const nb::tuple& args, Flat& flat) const {
    if (known_.empty()) return nullptr;
    if (take_apart(args, parts_, classes_, flat)) {
      const uint64_t hash = flat.hash();
      for (size_t k = 0; k < known_.size(); ++k) {  // comparing may run Python code, which may add to it
        const std::shared_ptr<const Known> known = known_[k];
        if (known->takes(flat, hash) && read_hidden(*known, flat)) return known;
      }
    }
    forget_error();
    return nullptr;
  }

  /// Read the hidden inputs of a program, if it has any; false if it does not hold any more.
  static bool read_hidden(const Known& known, Flat& flat) {
    if (known.guards == nullptr) return true;
    std::vector<nb::object> values;
    if (!known.guards->read(flat.statics, values)) return false;
    std::vector<Leaf> leaves;
    for (nb::object& value : values) {
      PyObject* at = value.ptr();
      if (PyFloat_CheckExact(at)) {
        leaves.push_back({std::move(value), Kind::Float, DType::F64});
      } else if (PyLong_CheckExact(at)) {
        leaves.push_back({std::move(value), Kind::Int, DType::I64});
      } else {
        const numpy::ArrayObject* array = numpy::as_array(at);
        const std::optional<DType> dtype = array != nullptr ? numpy::dtype_of(array) : numpy::dtype_of_scalar(at);
        if (!dtype || (array != nullptr && array->rank > static_cast<int>(kMostRank))) return false;
        leaves.push_back({std::move(value), array != nullptr ? Kind::Array : Kind::Scalar, *dtype});
      }
    }
    for (Leaf& leaf : leaves) flat.leaves.push_back(std::move(leaf));
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
