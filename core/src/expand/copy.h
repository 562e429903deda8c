// Copies of templates, and what they share: entries, lanes of maps.
#pragma once

#include <vector>

#include "undertow/expand.h"
#include "undertow/memory.h"

namespace undertow::expand {

struct Sums;

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

/// The hoisted values and sums that all activations below an entry share.
struct Entry {
  int64_t refs;  ///< atomic, if threads share
  const Entering* row;
  const Template* caller;        ///< its slot types say which values are arrays
  std::vector<uint64_t> values;  ///< written when it is made
  Sums* sums;                    ///< written by what ends below it (sums.h); read when that has ended
};

struct Copy;

/// The lanes of one map. The next lane is made when all that the one before it made ready has fired.
struct Lanes {
  Copy* parent;
  const Entering* row;
  int64_t count;
  int64_t made;   ///< by whoever has taken these lanes from the queue, where they are once
  int64_t ended;  ///< atomic, if threads share
  int32_t visits;
  struct Gathered {
    int64_t lacking;               ///< lanes that have not returned it; atomic, if threads share
    Block* array = nullptr;        ///< if lanes return scalars; each writes its own
    std::vector<uint64_t> values;  ///< if they return arrays; each writes its own
  };
  std::vector<Gathered> results;
};

/// Slots are written by one step each, before the steps that read them are ready. What is not atomic is written when
/// the copy is made.
struct Copy {
  const Template* made_of;
  Copy* parent;
  const Entering* row;
  Entry* entry;
  Lanes* lanes;
  int64_t index;  ///< of the iteration or lane; -1 for calls
  int32_t left;   ///< steps that are ready or fire now, copies and maps below that have not gone; atomic, if shared
  int32_t visits;
  int64_t depth;
  int64_t ahead;  ///< how long the longest path is from its end to that of the run
  Path path;
  uint64_t slots[1];

  /// Atomic, if threads share.
  uint32_t* counts() { return reinterpret_cast<uint32_t*>(reinterpret_cast<std::byte*>(this) + made_of->counts_at); }
  /// What is collected in it and below it, by number of the part: see sums.h.
  uint64_t* parts() { return reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(this) + made_of->parts_at); }
};

constexpr int64_t copy_head() { return static_cast<int64_t>(sizeof(Copy)) - 8; }

/// A place in a program's order: a step of a copy; of a map, the lane. Places of one copy are in the order of its
/// steps, and what a step enters comes at its place.
struct Place {
  const Copy* copy = nullptr;
  int32_t order = 0;
  int64_t index = -1;
};

}  // namespace undertow::expand
