// Guards: what a captured program has read outside, and how each call reads it again (frontend/trace/guards.py).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

#include "undertow/kernel.h"

namespace undertow {

/// How a row reads its value, and what it demands of it: the enumerations of guards.py.
enum class Read : uint8_t { Itself, Argument, Global, Cell, Attribute, Item, Own };
enum class Check : uint8_t { Same, Function, Method, Kind, Alias, Equal, Missing, Length, Keys, Number, Array };

/// The rows of one program. Used with the GIL held; they never change.
class Guards {
 public:
  Guards(const nanobind::list& rows, nanobind::object is_equal);

  /// Read all places again: hidden arguments are added to `hidden`. False if something has changed.
  bool read(std::span<const nanobind::object> arguments, std::vector<nanobind::object>& hidden) const;

  int64_t changed() const { return changed_; }
  size_t size() const { return rows_.size(); }

  template <class Visit>
  int visit(Visit&& each) const {
    if (const int stopped = each(is_equal_)) return stopped;
    for (const Row& row : rows_)
      for (const nanobind::object* held : {&row.root, &row.key, &row.expected, &row.code, &row.defaults})
        if (const int stopped = each(*held)) return stopped;
    return 0;
  }
  void clear() {
    const std::vector<Row> gone = std::move(rows_);
    rows_.clear();
    is_equal_.reset();
  }

 private:
  struct Row {
    int32_t source = -1;  // the row whose value is asked; below zero, `root` is
    Read read{};
    Check check{};
    bool is_input = false;
    nanobind::object root, key, expected;
    nanobind::object code, defaults;  // of a function
    Py_ssize_t number = 0;            // of an argument or an item
    Py_ssize_t count = 0;             // the length of a list, the number of an earlier row
    std::vector<Py_ssize_t> shape;    // of an array
    DType dtype{};
    int64_t path = 0;
  };

  bool holds(const Row& row, PyObject* value, const std::vector<nanobind::object>& values) const;
  bool are_equal(PyObject* value, PyObject* expected) const;

  std::vector<Row> rows_;
  nanobind::object is_equal_;     // compares what is neither a plain constant nor a container of these
  mutable int64_t changed_ = -1;  // the path of the row that failed last
};

}  // namespace undertow
