// The arguments of a call taken apart: what selects a program, and the values that it is run with.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "undertow/kernel.h"

namespace undertow {

enum class ArgumentKind : uint8_t { Array, Scalar, Bool, Int, Float, Complex, Tuple, List, Dict, Other, Object };

struct Leaf {
  nanobind::object object;  // held: without the GIL, another thread may take it out of its container
  ArgumentKind kind;
  DType dtype;  // of arrays and scalars
};

/// Arguments taken apart, in preorder: what selects a program, and leaves.
struct Arguments {
  std::vector<uint64_t> words;            // kinds, dtypes, ranks, lengths; hashes of the objects
  std::vector<nanobind::object> objects;  // keys of dicts, tokens of classes
  std::vector<Leaf> leaves;
  std::vector<nanobind::object> statics;  // objects that count by their class: guards read them

  void add(ArgumentKind kind, uint64_t more = 0) { words.push_back(static_cast<uint64_t>(kind) | more << 8); }
  void add_leaf(nanobind::handle object, ArgumentKind kind, DType dtype = {}, uint64_t rank = 0);
  bool add_object(nanobind::handle object);
  uint64_t hash() const;
};

/// Take arguments apart; false if more than types matters. A Python error may be set then. `parts` gives the token and
/// contents of an object of another class; objects of `classes` count by their class.
bool take_apart(nanobind::handle args, nanobind::handle parts, nanobind::handle classes, Arguments& arguments);

constexpr size_t kMostBytes = 16;  // of a number

/// The number as `kMostBytes` or fewer of a dtype; false if it does not fit. A Python error may be set then.
bool read_number(const Leaf& leaf, DType dtype, std::byte* to);

/// A Python error that stands for "take the slow path", which explains what is wrong; others, as of Ctrl-C, are raised.
void forget_error();

}  // namespace undertow
