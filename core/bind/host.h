// What every engine of the core needs from Python: arrays in and out, a host, and how runs end.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <span>
#include <vector>

#include "arrays.h"
#include "undertow/run.h"

namespace undertow {

using Ints = nanobind::ndarray<const int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

/// Arrays as the constants of a plan: aligned and padded.
std::vector<Constant> constants_of(const std::vector<Array>& arrays);

/// Decode a plan from integers, words and constants. An invalid one raises a ValueError.
template <class Plan>
std::unique_ptr<Plan> decode(const Ints& rows, const std::vector<std::string>& words,
                             const std::vector<Array>& constants) {
  try {
    return std::make_unique<Plan>(std::span(rows.data(), rows.size()), words, constants_of(constants));
  } catch (const std::invalid_argument& wrong) {
    throw nanobind::value_error(wrong.what());
  }
}

using Engine = std::function<std::vector<Value>(std::span<const View>, Host&, RunStats&)>;

/// Run a plan without the GIL: a value for each result. Raises Stopped. If `apply`, which runs operators that have side
/// effects or no kernel, raises an error, the tag that it was called for is appended to `where`. `trace` is called with
/// waves, unless it is None.
std::vector<Value> run_unlocked(const Engine& engine, std::span<const View> inputs, RunStats& stats,
                                nanobind::object apply, nanobind::list where, nanobind::object trace);

/// The same with arrays. `inputs` and `results` are the types of its inputs and results: null for unused inputs
/// and for order tokens. Returns (results, stats), each result a number, an array, or None for an order token.
nanobind::tuple run_with_host(const Engine& engine, std::span<const ValueType* const> inputs,
                              std::span<const ValueType* const> results, const std::vector<Array>& arrays,
                              nanobind::callable apply, nanobind::list where, nanobind::object trace);

}  // namespace undertow
