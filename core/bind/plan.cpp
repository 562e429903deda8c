// Plans for Python: decoded once, run any number of times, without the GIL.
#include "undertow/plan.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "host.h"
#include "link.h"
#include "parts.h"
#include "plan/describe.h"
#include "wire.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// For each fused pass, the nodes of its operators.
nb::list fused_of(const Plan& plan) {
  nb::list found;
  for (const FusedItem& item : plan.fuseds) {
    nb::list nodes;
    for (int32_t op : item.ops) nodes.append(plan.ops[static_cast<size_t>(op)].node);
    found.append(nodes);
  }
  return found;
}

/// The host of a part, which also stops when the other parts do.
class PartHost final : public Host {
 public:
  PartHost(Host& host, const Wire& wire) : host_(host), wire_(wire) {}

  void apply(int32_t node, std::span<const View> inputs, std::span<Value> outputs) override {
    host_.apply(node, inputs, outputs);
  }
  void poll() override {
    if ((is_stopped = wire_.is_stopped())) throw Interrupted{};
    host_.poll();
  }
  void progress(const RunProgress& progress) override { host_.progress(progress); }
  void wave(int32_t region, int64_t lanes, int64_t depth, int32_t phase, int32_t stage) override {
    host_.wave(region, lanes, depth, phase, stage);
  }

  bool is_stopped = false;

 private:
  Host& host_;
  const Wire& wire_;
};

nb::tuple run(const Plan& plan, const std::vector<Array>& arrays, nb::callable apply, nb::list where, int64_t width,
              int64_t frames, int64_t max_depth, int64_t memory, double timeout, bool check_finite, bool shows_progress,
              bool goes_deep, int64_t threads, nb::object trace, bool timed, nb::object link, nb::object wire,
              int scheduler) {
  const Region& main = plan.regions[0];
  const auto slot = [&](int32_t number) -> const ValueType* {
    return number == kNoSlot ? nullptr : &main.slots[static_cast<size_t>(number)];
  };
  std::vector<const ValueType*> taken, given;
  for (int32_t number : main.params[0]) taken.push_back(slot(number));
  for (int32_t number : main.results[0]) given.push_back(slot(number));
  RunOptions options{width,   frames, max_depth, memory,        timeout, check_finite, !trace.is_none(),
                     threads, timed,  goes_deep, shows_progress};
  options.scheduler = static_cast<Scheduler>(scheduler);
  std::optional<PythonLink> workers;
  if (!link.is_none()) workers.emplace(std::move(link));
  const std::shared_ptr<Wire> across = wire.is_none() ? nullptr : nb::cast<const HeldWire&>(wire).open();
  const Engine engine = [&](std::span<const View> inputs, Host& host, RunStats& stats) {
    try {
      if (!across) return run_waves(plan, inputs, options, host, stats, workers ? &*workers : nullptr);
      PartHost own(host, *across);
      try {
        return run_waves(plan, inputs, options, own, stats, nullptr, across.get());
      } catch (const Interrupted&) {
        if (own.is_stopped) throw Wire::Stopped{};
        throw;
      }
    } catch (const BadMessage& bad) {  // of a worker; it is no ValueError, since no input is wrong
      throw std::runtime_error("what a worker has sent cannot be read: " + std::string(bad.what()));
    }
  };
  return translated([&] {
    return run_with_host(engine, taken, given, arrays, std::move(apply), std::move(where), std::move(trace));
  });
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "A static graph, decoded and ready to run.")
      .def_prop_ro("fused", &fused_of)
      .def_prop_ro("code", [](const Plan& plan) { return describe_narrow(plan) + describe_agenda(plan); })
      .def("run", &run, nb::arg("inputs"), nb::arg("apply"), nb::arg("where"), nb::arg("width"), nb::arg("frames"),
           nb::arg("max_depth"), nb::arg("memory"), nb::arg("timeout"), nb::arg("check_finite"),
           nb::arg("shows_progress") = false, nb::arg("goes_deep") = false, nb::arg("threads") = 1,
           nb::arg("trace") = nb::none(), nb::arg("timed") = false, nb::arg("link") = nb::none(),
           nb::arg("wire") = nb::none(), nb::arg("scheduler") = 0);
  module.def("decode", &decode<Plan>, nb::arg("rows"), nb::arg("words"), nb::arg("constants"));
}

}  // namespace undertow
