// Copies of templates, and what they share: entries, lanes of maps, and the table of values saved for later phases.
#pragma once

#include <vector>

#include "undertow/expand.h"
#include "undertow/memory.h"

namespace undertow::expand {

/// Identifies an activation: a hash of the caller's path, the site, and the number of the iteration or lane.
struct Path {
  uint64_t words[2] = {0, 0};

  Path below(int32_t site, int64_t index) const {
    const uint64_t label = (static_cast<uint64_t>(static_cast<uint32_t>(site)) << 40) ^ static_cast<uint64_t>(index);
    Path path;
    path.words[0] = mix(words[0] ^ (label * 0x9e3779b97f4a7c15u));
    path.words[1] = mix(words[1] + (label ^ 0xd1b54a32d192ed03u) * 0x8cb92ba72f3d8dd7u);
    return path;
  }
  bool operator==(const Path& other) const = default;

 private:
  static uint64_t mix(uint64_t x) {  // the finalizer of splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

/// The sum collected for one hoisted value of an entry.
struct Sum {
  bool is_there = false;
  uint64_t cell = 0;             ///< a scalar, or an array
  std::vector<int64_t> numbers;  ///< indices of the rows
  Block* rows = nullptr;
  int64_t used = 0;  ///< bytes of `rows`
};

/// The hoisted values and sums that all activations below an entry share.
struct Entry {
  int64_t refs;
  const Entering* row;
  const Template* caller;  ///< its slot types say which values are arrays
  std::vector<uint64_t> values;
  std::vector<Sum> sums;
};

struct Copy;

/// The lanes of one map. The next lane is made when all that the one before it made ready has fired.
struct Lanes {
  Copy* parent;
  const Entering* row;
  int64_t count;
  int64_t made, ended;
  int32_t visits;
  struct Gathered {
    int64_t lacking;               ///< lanes that have not returned it
    Block* array = nullptr;        ///< if lanes return scalars
    std::vector<uint64_t> values;  ///< if they return arrays
  };
  std::vector<Gathered> results;
};

struct Copy {
  const Template* made_of;
  Copy* parent;
  const Entering* row;
  Entry* entry;
  Lanes* lanes;
  int64_t index;  ///< of the iteration or lane; -1 for calls
  int32_t left;   ///< steps that are ready or fire now, and copies and maps below that have not gone
  int32_t visits;
  int64_t depth;
  Path path;
  uint64_t slots[1];

  uint32_t* counts() { return reinterpret_cast<uint32_t*>(reinterpret_cast<std::byte*>(this) + made_of->counts_at); }
};

constexpr int64_t copy_head() { return static_cast<int64_t>(sizeof(Copy)) - 8; }

/// Memory for copies and records: a free list for each size class.
class Arena {
 public:
  explicit Arena(Pool& pool) : pool_(pool) {}

  /// The size class, computed once for each template rather than at each call.
  static int32_t size_number(int64_t bytes) { return static_cast<int32_t>((bytes + 31) / 32); }
  void reserve(int32_t number) {
    if (static_cast<size_t>(number) >= free_.size()) free_.resize(static_cast<size_t>(number) + 1, nullptr);
  }
  void* take(int32_t number) {  ///< which must have been reserved
    Free*& first = free_[static_cast<size_t>(number)];
    if (first == nullptr) [[unlikely]]
      return fresh(number);
    Free* found = first;
    first = found->next;
    return found;
  }
  void give(void* object, int32_t number) {
    Free* free = static_cast<Free*>(object);
    free->next = free_[static_cast<size_t>(number)];
    free_[static_cast<size_t>(number)] = free;
  }

 private:
  struct Free {
    Free* next;
  };
  void* fresh(int32_t number);

  Pool& pool_;
  std::vector<Free*> free_;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  int64_t size_ = 128;
};

/// Records by path and body: those of one body look alike. Open addressing; a place is freed by moving up those behind
/// it.
class Table {
 public:
  explicit Table(Pool& pool) : pool_(pool) {}

  /// The record of an activation, or null.
  uint64_t* get(const Path& path, int32_t body) { return size_ == 0 ? nullptr : find(path, body)->record; }
  void put(const Path& path, int32_t body, uint64_t* record);  ///< of an activation that has none
  void remove(const Path& path, int32_t body);

 private:
  struct Row {
    Path path;
    uint64_t* record;
    int32_t body;
  };
  size_t home(const Path& path) const { return path.words[0] & (size_ - 1); }
  Row* find(const Path& path, int32_t body);
  void grow();

  Pool& pool_;
  Block* block_ = nullptr;
  Row* rows_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace undertow::expand
