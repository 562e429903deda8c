// Cells: what variables hold between runs; and transactions, which change several of them by one step.
//
// A signal handler runs between two instructions of Python, and so does another thread. Here there are none: with the
// lock of the interpreter held, a commit changes all its cells before anybody looks, and a transaction that ends,
// however it ends, has let go of them.
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "interpreter.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

// All of this file is read and written with the lock of the interpreter.

int64_t forks = 0;           // that this process is the child of
unsigned long survivor = 0;  // the only thread that came through the last of them

/// Who has a cell, or waits for it. Kept by value: after a fork the stacks of other threads are gone.
struct Owner {
  unsigned long thread;
  int64_t forks;

  static Owner here() { return {PyThread_get_thread_ident(), undertow::forks}; }
  bool is_here() const { return is_alive() && thread == PyThread_get_thread_ident(); }
  /// Will it come back? Not if it stayed behind in another process, or if the interpreter is ending elsewhere.
  bool is_alive() const {
    if (forks != undertow::forks && thread != survivor) return false;
    return !is_finalizing() || thread == PyThread_get_thread_ident();
  }
  bool operator==(const Owner&) const = default;
};

struct Cell {
  explicit Cell(nb::object held) : value(std::move(held)), number(made++) {}

  bool is_taken() const { return has_owner && owner.is_alive(); }

  nb::object value;
  const int64_t number;  // a transaction takes its cells in this order
  bool has_owner = false;
  Owner owner{};
  std::vector<Owner> queue;  // of those who wait for it, from the first
  static inline int64_t made = 0;
};

/// Threads that wait, and what for: a thread waits for one cell at a time.
std::vector<std::pair<Owner, Cell*>>& waiting() {
  static auto& all = *new std::vector<std::pair<Owner, Cell*>>;  // for ever: threads may wait while the process ends
  return all;
}

/// Would this thread wait for itself, by way of what others wait for?
bool is_circular(const Cell* cell) {
  for (size_t steps = 0; steps <= waiting().size(); ++steps) {
    if (cell == nullptr || !cell->is_taken()) return false;
    if (cell->owner.is_here()) return true;
    const Owner owner = cell->owner;
    cell = nullptr;
    for (const auto& [who, what] : waiting())
      if (who == owner) cell = what;
  }
  return false;
}

/// A place in the queue of a cell, until it is left.
class Place {
 public:
  explicit Place(Cell& cell) : cell_(cell) {
    cell_.queue.push_back(own_);
    waiting().emplace_back(own_, &cell_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {  // the last of both: a signal handler of this thread may wait for a cell meanwhile
    remove_last(cell_.queue, own_);
    remove_last(waiting(), std::pair(own_, &cell_));
  }

  bool is_first() const {
    for (const Owner& owner : cell_.queue)
      if (owner.is_alive()) return owner == own_;
    return true;
  }

 private:
  template <class Item>
  static void remove_last(std::vector<Item>& items, const Item& item) {
    const auto found = std::find(items.rbegin(), items.rend(), item);
    if (found != items.rend()) items.erase(std::next(found).base());
  }

  Cell& cell_;
  const Owner own_ = Owner::here();
};

[[noreturn]] void refuse(nb::handle name) {
  const nb::object type = nb::module_::import_("undertow._core").attr("Taken");
  PyErr_SetObject(type.ptr(), name.ptr());
  throw nb::python_error();
}

/// Sleep without the lock; a signal wakes this thread, and its handler may raise.
void sleep_a_while(long nanoseconds) {
  {
    const Unlocked unlocked;
    const timespec time{0, nanoseconds};
    nanosleep(&time, nullptr);
  }
  if (surviving([] { return PyErr_CheckSignals(); }) != 0) throw nb::python_error();
}

using Named = std::pair<Cell*, nb::handle>;  // a cell, and what the transaction calls it

/// The cells that a transaction writes: its own until it is over.
class Claim {
 public:
  /// Waits while others have one of them. Looking again now and then needs nobody who wakes this thread: that one
  /// may be in another process, or never come back.
  explicit Claim(std::vector<Named> cells) : cells_(std::move(cells)) {
    std::sort(cells_.begin(), cells_.end(),
              [](const Named& a, const Named& b) { return a.first->number < b.first->number; });
    cells_.erase(
        std::unique(cells_.begin(), cells_.end(), [](const Named& a, const Named& b) { return a.first == b.first; }),
        cells_.end());
    try {
      for (; count_ < cells_.size(); ++count_) take(*cells_[count_].first, cells_[count_].second);
    } catch (...) {
      end();
      throw;
    }
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() { end(); }

  void end() {
    while (count_ > 0) cells_[--count_].first->has_owner = false;
  }

 private:
  static void take(Cell& cell, nb::handle name) {
    const auto nobody_waits = [&] {
      return std::none_of(cell.queue.begin(), cell.queue.end(), [](const Owner& owner) { return owner.is_alive(); });
    };
    if (cell.is_taken() || !nobody_waits()) {
      constexpr long kShortest = 20'000, kLongest = 1'000'000;  // nanoseconds between two looks
      const Place place(cell);
      for (long pause = kShortest; cell.is_taken() || !place.is_first(); pause = std::min(2 * pause, kLongest)) {
        if (is_circular(&cell)) refuse(name);
        sleep_a_while(pause);
      }
    }
    cell.has_owner = true;
    cell.owner = Owner::here();
  }

  std::vector<Named> cells_;
  size_t count_ = 0;  // that it has
};

nb::dict snapshot(const nb::dict& cells) {
  nb::dict values;  // the only thing made here that might set off a collection of garbage, and so run Python code
  for (auto [name, cell] : cells)
    if (PyDict_SetItem(values.ptr(), name.ptr(), nb::cast<Cell&>(cell).value.ptr()) != 0) throw nb::python_error();
  return values;
}

nb::object transact(const nb::dict& cells, const nb::list& written, const nb::callable& work) {
  std::vector<Named> named;
  for (nb::handle name : written) named.emplace_back(nb::cast<Cell*>(cells[name]), name);
  Claim claim(named);
  const nb::dict state = snapshot(cells);
  PyObject* made = surviving([&] { return PyObject_CallFunctionObjArgs(work.ptr(), state.ptr(), nullptr); });
  if (made == nullptr) throw nb::python_error();
  const nb::tuple pair = nb::cast<nb::tuple>(nb::steal(made));
  std::vector<nb::object> values;
  for (nb::handle value : nb::cast<nb::list>(pair[1])) values.push_back(nb::borrow(value));
  if (values.size() != named.size()) throw nb::value_error("a value for each name that is written");
  for (size_t k = 0; k < named.size(); ++k) std::swap(named[k].first->value, values[k]);
  claim.end();
  return pair[0];  // now what they held before may go, and with it whoever waits for that
}

}  // namespace

void bind_cell(nb::module_& module) {
  pthread_atfork(nullptr, nullptr, [] {
    ++forks;
    survivor = PyThread_get_thread_ident();
  });
  module.attr("Taken") = nb::steal(PyErr_NewException("undertow._core.Taken", PyExc_Exception, nullptr));
  nb::class_<Cell>(module, "Cell", "What a variable holds. Only a transaction changes it.")
      .def(nb::init<nb::object>(), nb::arg("value"))
      .def_ro("value", &Cell::value);
  module.def("snapshot", &snapshot, nb::arg("cells"), "The values of cells, of one moment.");
  module.def(
      "transact", &transact, nb::arg("cells"), nb::arg("written"), nb::arg("work"),
      "Call `work` with the values of the cells, by name. It gives a result and a list of values, one for each name "
      "in\n"
      "`written`: these are committed together. Raises Taken where this thread is writing one of them already, or\n"
      "would wait for itself.");
}

}  // namespace undertow
