// Guarded memory: what of it the host touches without Access is a segmentation fault. For tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow {

/// Some bytes, 64-byte aligned; throws OverLimit.
std::byte* take_guarded(int64_t bytes);
void give_guarded(std::byte* data, int64_t bytes);

}  // namespace undertow
