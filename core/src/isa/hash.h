// The hash behind random numbers; undertow/ops/random.py defines it. The same bits everywhere.
#pragma once

#include <cstdint>

namespace undertow {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

[[maybe_unused]] inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

[[maybe_unused]] inline uint64_t fold_in(uint64_t key, uint64_t data) {
  return mix(mix(key + kGolden) ^ mix(data + 2 * kGolden));
}

/// bits(key, n) = draw(start(key), n).
[[maybe_unused]] inline uint64_t start_of(uint64_t key) { return mix(key ^ 0xD1B54A32D192ED03); }
[[maybe_unused]] inline uint64_t draw(uint64_t start, uint64_t n) { return mix(start + (n + 1) * kGolden); }

}  // namespace
}  // namespace undertow
