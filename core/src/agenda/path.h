// Tags as hashes of 128 bits, as src/undertow/ir/path.py makes them: what crosses between parts instead of labels.
#pragma once

#include <cstdint>

namespace undertow::agenda {

struct Path {
  uint64_t first, second;

  bool operator==(const Path&) const = default;
};

constexpr Path kRoot{0x243F6A8885A308D3, 0x13198A2E03707344};  // digits of pi

constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

/// The tag with one more label: a site, and the number of the iteration or lane in loops and maps, else -1.
constexpr Path child(const Path& parent, int64_t site, int64_t index) {
  const uint64_t first = mixed(parent.first + static_cast<uint64_t>(site)) ^ parent.second;
  const uint64_t second = mixed(parent.second + static_cast<uint64_t>(index + 1)) ^ first;
  return {mixed(first * 3 + second), mixed(second * 5 + first)};
}

/// One of `count` numbers, by the tag; other salts choose independently.
constexpr int64_t choice(const Path& tag, int64_t salt, int64_t count) {
  return static_cast<int64_t>(mixed((tag.first ^ tag.second) + static_cast<uint64_t>(salt)) %
                              static_cast<uint64_t>(count));
}

}  // namespace undertow::agenda
