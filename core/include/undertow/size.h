// Counts are signed in the core, and unsigned in the standard library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow {

/// A count for the standard library.
constexpr size_t z(int64_t n) { return static_cast<size_t>(n); }

}  // namespace undertow
