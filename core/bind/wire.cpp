// Wires for Python: to make them, and for tests.
#include "wire.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "bytes.h"
#include "interpreter.h"
#include "parts.h"
#include "remote/bytes.h"

namespace nb = nanobind;

namespace undertow {
namespace {

PyObject *lost_error = nullptr, *stopped_error = nullptr;  // as long as the module

void check(const Wire& wire, int32_t part) {
  if (!wire.has(part)) throw nb::value_error(("there is no connection to part " + std::to_string(part)).c_str());
}

void send(HeldWire& self, int32_t part, nb::handle data) {
  const auto held = self.open();
  Wire& wire = *held;
  check(wire, part);
  const Bytes bytes(data);
  wire.to(part).copy(bytes.span().data(), static_cast<int64_t>(bytes.span().size()));
  wire.added(part);
}

nb::list take(HeldWire& self, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto wire = self.open();
  const auto since = Clock::now();
  nb::list taken;
  const bool was_full = wire->is_full(), was_sent = wire->is_sent();
  return translated([&] {
    for (double left = seconds;;) {
      bool came;
      {
        Unlocked unlocked;
        came = wire->take(left, [&](int32_t part, std::span<const std::byte> batch) {
          const Locked locked(unlocked);
          taken.append(nb::make_tuple(part, nb::bytes(batch.data(), batch.size())));
        });
      }
      left = seconds - std::chrono::duration<double>(Clock::now() - since).count();
      if (came || left <= 0 || (was_full && !wire->is_full()) || (!was_sent && wire->is_sent())) return taken;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  });
}

nb::list counts(const HeldWire& self) {
  const auto wire = self.open();
  nb::list rows;
  for (int32_t part = 0; part < wire->parts(); ++part) {
    const Wire::Counts of = wire->counts(part);
    rows.append(nb::make_tuple(of.sent, of.sent_bytes, of.taken, of.taken_bytes));
  }
  return rows;
}

// What benchmarks do, without the time that Python takes.

void pass(int32_t, std::span<const std::byte>) {}

struct Lending {
  Wire& wire;
  ~Lending() { wire.give_up(); }
};

/// Send a row many times, each a message of its own, until all has gone; what comes meanwhile is dropped.
void pour(HeldWire& self, int32_t part, nb::handle row, int64_t count) {
  const auto wire = self.open();
  check(*wire, part);
  const Bytes bytes(row);
  translated([&] {
    const Unlocked unlocked;
    remote::Writer& batch = wire->to(part);
    struct Token {
      std::byte bytes[40];
    } token{};
    const bool is_token = bytes.span().size() == sizeof token;  // put as a part does it: its size is known
    if (is_token) std::copy(bytes.span().begin(), bytes.span().end(), token.bytes);
    const auto size = static_cast<int64_t>(bytes.span().size());
    const Lending lending{*wire};
    for (int64_t k = 0; k < count; ++k) {
      if (is_token)
        batch.put(token);
      else if (size < Wire::kLent)
        batch.copy(bytes.span().data(), size);
      else
        wire->lend(part, bytes.span(), {});
      if (size < Wire::kLent && batch.size() < Wire::kBatch) continue;
      wire->added(part);
      while (wire->is_full()) wire->take(1, pass);
    }
    for (wire->flush(); !wire->is_sent();) wire->take(1, pass);
  });
}

/// Drop what comes, until so many bytes have come from a part in all.
void swallow(HeldWire& self, int32_t part, int64_t bytes) {
  const auto wire = self.open();
  check(*wire, part);
  translated([&] {
    const Unlocked unlocked;
    while (wire->counts(part).taken_bytes < bytes) wire->take(1, pass);
  });
}

/// Send a row and wait for as many bytes, or the other way around, many times.
void swing(HeldWire& self, int32_t part, nb::handle row, int64_t count, bool begins) {
  const auto wire = self.open();
  check(*wire, part);
  const Bytes bytes(row);
  const auto size = static_cast<int64_t>(bytes.span().size());
  const auto send = [&] {
    wire->to(part).copy(bytes.span().data(), size);
    wire->flush();
  };
  translated([&] {
    const Unlocked unlocked;
    for (int64_t k = 0, end = wire->counts(part).taken_bytes; k < count; ++k) {
      if (begins) send();
      for (end += size; wire->counts(part).taken_bytes < end;) wire->take(1, pass);
      if (!begins) send();
    }
  });
}

PyObject* new_error(nb::module_& module, const char* name, const char* path, const char* says, PyObject* base) {
  PyObject* error = PyErr_NewExceptionWithDoc(path, says, base, nullptr);
  if (error == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(error);
  return error;
}

}  // namespace

HeldWire::HeldWire(const std::vector<int>& sockets, int stop, int64_t window) {
  if (window < 1) throw nb::value_error("a window has one byte or more");
  wire = std::make_shared<Wire>(sockets, stop, window);
}

std::shared_ptr<Wire> HeldWire::open() const {
  if (!wire) throw nb::value_error("this wire is closed");
  return wire;
}

void raise(const Wire::Lost& lost) {
  PyErr_SetObject(lost_error, nb::int_(lost.part).ptr());
  throw nb::python_error();
}

void raise(const Wire::Stopped&) {
  PyErr_SetNone(stopped_error);
  throw nb::python_error();
}

void bind_wire(nb::module_& module) {
  lost_error = new_error(module, "WireLost", "undertow._core.WireLost",
                         "A part has closed its end of a wire, or the connection has failed: its number.",
                         PyExc_ConnectionError);
  stopped_error = new_error(module, "WireStopped", "undertow._core.WireStopped",
                            "The descriptor that stops a wire has become readable.", PyExc_Exception);
  nb::class_<HeldWire>(module, "Wire", "One part's connections to the other parts of a placed graph.")
      .def(nb::init<const std::vector<int>&, int, int64_t>(), nb::arg("sockets"), nb::arg("stop") = -1,
           nb::arg("window") = Wire::kWindow)
      .def("send", &send, nb::arg("part"), nb::arg("data"))
      .def("flush", [](HeldWire& self) { self.open()->flush(); })
      .def("take", &take, nb::arg("seconds"))
      .def_prop_ro("is_full", [](const HeldWire& self) { return self.open()->is_full(); })
      .def_prop_ro("is_sent", [](const HeldWire& self) { return self.open()->is_sent(); })
      .def("counts", &counts)
      .def("pour", &pour, nb::arg("part"), nb::arg("row"), nb::arg("count"))
      .def("swallow", &swallow, nb::arg("part"), nb::arg("bytes"))
      .def("swing", &swing, nb::arg("part"), nb::arg("row"), nb::arg("count"), nb::arg("begins"))
      .def("close", [](HeldWire& self) { self.wire.reset(); });
}

}  // namespace undertow
