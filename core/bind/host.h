// What every engine of the core needs of Python: arrays in and out, a host, and one way to run and to stop.
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

/// A plan of rows of integers, words and constants; what makes no sense is a ValueError.
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

/// Run a plan, without the lock of the interpreter. `inputs` and `results` say what it takes and gives: null where
/// nobody takes an input, and for order tokens. Gives (results, stats), results being numbers, arrays, or None for
/// order tokens; raises Stopped. Where `apply` raises, the tag that it was called for is put into `where`. `trace` is
/// told of waves, unless it is None.
nanobind::tuple run_with_host(const Engine& engine, std::span<const ValueType* const> inputs,
                              std::span<const ValueType* const> results, const std::vector<Array>& arrays,
                              nanobind::callable apply, nanobind::list where, nanobind::object trace);

}  // namespace undertow
