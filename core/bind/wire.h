// Wires as Python holds them, and what their failures are there.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "undertow/remote.h"
#include "undertow/wire.h"

namespace undertow {

/// A wire until it is closed.
struct HeldWire {
  HeldWire(const std::vector<int>& sockets, int stop, int64_t window);
  std::shared_ptr<Wire> open() const;

  std::shared_ptr<Wire> wire;  ///< whoever waits in it holds it, too
};

[[noreturn]] void raise(const Wire::Lost& lost);
[[noreturn]] void raise(const Wire::Stopped& stopped);

/// What a wire throws, as Python's exceptions.
template <class Work>
auto translated(Work&& work) {
  try {
    return work();
  } catch (const Wire::Lost& lost) {
    raise(lost);
  } catch (const Wire::Stopped& stopped) {
    raise(stopped);
  } catch (const BadMessage& message) {
    throw nanobind::value_error(message.what());
  }
}

}  // namespace undertow
