// Programs that run without Python: their inputs, read from the leaves of arguments, and their results.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arguments.h"
#include "undertow/plan.h"
#include "undertow/run.h"

namespace undertow {

/// A program that runs without Python: its plan, and how results become a container.
struct Direct {
  enum class Make : uint8_t { Leaf, Static, Tuple, List, Dict, Other };
  struct Token {
    Make make;
    Py_ssize_t count;         // of what it contains
    nanobind::object object;  // a static value, the keys of a dict, the token of another container
  };

  Direct(nanobind::object owner_, nanobind::object core, int64_t width_, const nanobind::tuple& structure,
         nanobind::object build_);

  /// Does the host never run an operator of it? Only then it needs nothing of Python.
  static bool is_possible(const Plan& plan);

  nanobind::object owner;        // of the plan: it explains errors
  nanobind::object plan_object;  // keeps the plan
  nanobind::object build;        // builds containers of classes
  const Plan* plan;
  int64_t width;
  std::vector<Token> tokens;
  size_t leaves = 0;
};

/// The result of a program, from the values of its plan.
nanobind::object result_of(const Direct& direct, std::vector<Value>& values);

/// The inputs of a plan, as it reads them.
struct Inputs {
  std::vector<View> views;
  std::vector<std::byte> numbers;
  std::vector<int64_t> sizes;  // copied: another thread may change the shape of an array

  /// Read leaves; false if they are not what the plan takes. Arrays that are not plain are replaced by copies.
  bool read(Arguments& arguments, const std::vector<DType>& dtypes, const Plan& plan);
};

}  // namespace undertow
