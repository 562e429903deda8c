// Guarded memory, for tests: the host faults (SIGSEGV) if it touches it without holding an Access.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow {

/// Some bytes, 64-byte aligned; throws OverLimit.
std::byte* take_guarded(int64_t bytes);
void give_guarded(std::byte* data, int64_t bytes);

}  // namespace undertow
