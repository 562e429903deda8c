// Templates for Python: decoded once, run any number of times.
#include "undertow/expand.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "host.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

nb::tuple run(const expand::Plan& plan, const std::vector<Array>& arrays, nb::callable apply, nb::list where,
              int64_t frames, int64_t max_depth, int64_t memory, double timeout, bool check_finite, bool shows_progress,
              int64_t threads, int scheduler, uint64_t schedule_seed) {
  std::vector<const ValueType*> taken, given;
  for (int32_t number : plan.inputs)
    taken.push_back(number == kNoSlot ? nullptr : &plan.templates[0].types[static_cast<size_t>(number)]);
  for (const expand::Plan::Fetch& fetch : plan.fetches) given.push_back(fetch.is_order ? nullptr : &fetch.type);
  RunOptions options{1, frames, max_depth, memory, timeout, check_finite};
  options.shows_progress = shows_progress;
  options.threads = threads;
  options.scheduler = static_cast<Scheduler>(scheduler);
  options.schedule_seed = schedule_seed;
  const Engine engine = [&](std::span<const View> inputs, Host& host, RunStats& stats) {
    return expand::run(plan, inputs, options, host, stats);
  };
  return run_with_host(engine, taken, given, arrays, std::move(apply), std::move(where), nb::none());
}

}  // namespace

void bind_expand(nb::module_& module) {
  nb::class_<expand::Plan>(module, "Templates", "A static graph as templates, ready to be copied.")
      .def("run", &run, nb::arg("inputs"), nb::arg("apply"), nb::arg("where"), nb::arg("frames"), nb::arg("max_depth"),
           nb::arg("memory"), nb::arg("timeout"), nb::arg("check_finite"), nb::arg("shows_progress") = false,
           nb::arg("threads") = 1, nb::arg("scheduler") = 0, nb::arg("schedule_seed") = 0);
  module.def("decode_templates", &decode<expand::Plan>, nb::arg("rows"), nb::arg("words"), nb::arg("constants"));
}

}  // namespace undertow
