// A hash table by edge and path. Paths are hashes, so they say where to look.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "agenda/path.h"
#include "undertow/memory.h"

namespace undertow::agenda {

template <class Value>
class PathTable {
 public:
  /// It fills a cache line, or shares one, but never lies in two.
  struct alignas(std::bit_ceil(sizeof(Path) + 8 + sizeof(Value))) Entry {
    Path path;
    int32_t edge;  ///< -1: the place is free
    Value value;
  };

  explicit PathTable(Pool& pool) : pool_(pool) {}
  PathTable(const PathTable&) = delete;
  PathTable& operator=(const PathTable&) = delete;
  ~PathTable() { pool_.drop(block_); }

  size_t size() const { return size_; }

  /// The entry, or null.
  Entry* find(int32_t edge, Path path) {
    if (size_ == 0) return nullptr;
    Entry& entry = entries_[place(edge, path)];
    return entry.edge < 0 ? nullptr : &entry;
  }

  /// The entry, or a new one with an empty value; `is_new` says which.
  Entry& make(int32_t edge, Path path, bool& is_new) {
    reserve(1);
    Entry& entry = entries_[place(edge, path)];
    is_new = entry.edge < 0;
    if (is_new) {
      entry = {path, edge, {}};
      ++size_;
    }
    return entry;
  }

  /// There will be so many more: grow at once.
  void reserve(size_t count) {
    const size_t least = 2 * (size_ + count);
    if (least <= entries_.size()) return;
    size_t places = std::max(kLeast, entries_.size());
    while (places < least) places *= kFactor;
    grow(places);
  }

  /// Where many are looked up, memory is asked for some of them ahead: most are in no cache. There is room for one.
  void prefetch(int32_t edge, Path path) const { __builtin_prefetch(&entries_[home(edge, path)], 1); }

  /// The entry is no more. Others may move: references to them end.
  void erase(const Entry& entry) {
    const size_t mask = entries_.size() - 1;
    size_t gap = static_cast<size_t>(&entry - entries_.data());
    // Close the gap: whatever was pushed past it moves back.
    for (size_t at = (gap + 1) & mask; entries_[at].edge >= 0; at = (at + 1) & mask) {
      const size_t from_home = (at - home(entries_[at].edge, entries_[at].path)) & mask;
      if (from_home < ((at - gap) & mask)) continue;
      entries_[gap] = entries_[at];
      gap = at;
    }
    entries_[gap].edge = -1;
    --size_;
  }

 private:
  static constexpr size_t kLeast = 64, kFactor = 4;  // places, and how they grow

  size_t home(int32_t edge, Path path) const {
    return (path.first + static_cast<uint64_t>(edge) * 0x9E3779B97F4A7C15u) & (entries_.size() - 1);
  }

  /// Where it is, or could be put.
  size_t place(int32_t edge, Path path) const {
    size_t at = home(edge, path);
    while (entries_[at].edge >= 0 && (entries_[at].edge != edge || entries_[at].path != path))
      at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  void grow(size_t places) {
    const std::span<const Entry> before = entries_;
    Block* const block = pool_.take(static_cast<int64_t>(places * sizeof(Entry)));
    entries_ = {reinterpret_cast<Entry*>(block->data()), places};
    for (Entry& entry : entries_) entry.edge = -1;
    for (const Entry& entry : before)
      if (entry.edge >= 0) entries_[place(entry.edge, entry.path)] = entry;
    pool_.drop(std::exchange(block_, block));
  }

  Pool& pool_;
  Block* block_ = nullptr;    ///< of the pool: fresh memory costs a fault for each page
  std::span<Entry> entries_;  ///< in it; a power of two
  size_t size_ = 0;
};

}  // namespace undertow::agenda
