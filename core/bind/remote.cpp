// Guests for Python: tasks of other processes.
#include "undertow/remote.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <memory>
#include <optional>

#include "bytes.h"
#include "interpreter.h"
#include "link.h"
#include "parts.h"
#include "undertow/plan.h"
#include "undertow/run.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// A guest, and what it refers to.
struct HeldGuest {
  explicit HeldGuest(nb::object of)
      : plan(std::move(of)), guest(std::make_unique<Guest>(nb::cast<const Plan&>(plan))) {}

  nb::object plan;
  std::deque<Bytes> shared;  ///< until the task has ended
  std::optional<PythonLink> link;
  std::unique_ptr<Guest> guest;  ///< goes before what it refers to
};

/// The reply; None if it was stopped.
nb::object run(HeldGuest& self, nb::handle message, const std::vector<nb::object>& shared, nb::object link) {
  const Bytes bytes(message);
  std::vector<std::span<const std::byte>> values;
  for (const nb::object& value : shared) values.push_back(self.shared.emplace_back(value).span());
  if (!self.link && !link.is_none()) self.link.emplace(std::move(link));
  std::string reply;
  try {
    const Unlocked unlocked;
    reply = self.guest->run(bytes.span(), std::move(values), self.link ? &*self.link : nullptr);
  } catch (const Interrupted&) {
    return nb::none();
  } catch (const BadMessage& bad) {
    throw nb::value_error(("this is not a message for a task: " + std::string(bad.what())).c_str());
  }
  return nb::bytes(reply.data(), reply.size());
}

}  // namespace

void bind_remote(nb::module_& module) {
  nb::class_<HeldGuest>(module, "Guest", "A task of another process, from its first phase to its last.")
      .def(nb::init<nb::object>(), nb::arg("plan"))
      .def("run", &run, nb::arg("message"), nb::arg("shared"), nb::arg("link").none())
      .def("stop", [](HeldGuest& self) { self.guest->stop(); })
      .def_prop_ro("activations", [](const HeldGuest& self) { return self.guest->activations; })
      .def_prop_ro("waves", [](const HeldGuest& self) { return self.guest->waves; });
}

}  // namespace undertow
