// Counts have signs here; those of the standard library have none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow {

/// A count as the standard library wants it.
constexpr size_t z(int64_t n) { return static_cast<size_t>(n); }

}  // namespace undertow
