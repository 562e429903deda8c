// The table of forward values: what a phase leaves for later ones, by call path.
//
// One record for each activation. Threads put, find and remove records at the same time; the rows of the table are
// divided among parts by hash, each with a lock of its own. A record itself needs none: the phases of an activation
// follow each other.
#pragma once

#include <array>
#include <vector>

#include "copy.h"
#include "heap.h"

namespace undertow::expand {

/// A part of the table. Open addressing; a place is freed by moving up those behind it.
template <bool kIsShared>
class TablePart {
 public:
  uint64_t* get(const Path& path, int32_t body) { return size_ == 0 ? nullptr : find(path, body)->record; }
  void put(const Path& path, int32_t body, uint64_t* record, Heap<kIsShared>& heap) {
    if (used_ * 4 >= size_ * 3) grow(heap);
    *find(path, body) = {path, record, body};
    ++used_;
  }
  void remove(const Path& path, int32_t body);

 private:
  struct Row {
    Path path;
    uint64_t* record;
    int32_t body;
  };
  size_t home(const Path& path) const { return path.words[0] & (size_ - 1); }
  Row* find(const Path& path, int32_t body);
  void grow(Heap<kIsShared>& heap);

  Block* block_ = nullptr;
  Row* rows_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

template <bool kIsShared>
class Table {
 public:
  explicit Table(Heap<kIsShared>& heap) : heap_(heap) {}

  /// The record of an activation, or null.
  uint64_t* get(const Path& path, int32_t body) {
    Part& part = part_of(path);
    const std::lock_guard lock(part.mutex);
    return part.rows.get(path, body);
  }
  void put(const Path& path, int32_t body, uint64_t* record) {  ///< of an activation that has none
    Part& part = part_of(path);
    const std::lock_guard lock(part.mutex);
    part.rows.put(path, body, record, heap_);
  }
  void remove(const Path& path, int32_t body) {
    Part& part = part_of(path);
    const std::lock_guard lock(part.mutex);
    part.rows.remove(path, body);
  }

 private:
  static constexpr size_t kParts = kIsShared ? 64 : 1;
  struct Part {
    MutexOf<kIsShared> mutex;  // guards the rows; the heap's comes after it
    TablePart<kIsShared> rows;
  };
  Part& part_of(const Path& path) { return parts_[path.words[1] % kParts]; }

  Heap<kIsShared>& heap_;
  std::array<Part, kParts> parts_;
};

}  // namespace undertow::expand
