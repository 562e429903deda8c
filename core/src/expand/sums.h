// What activations collect for hoisted values, added up in an order that does not depend on the schedule.
//
// Floats that are added in another order have other bits. So each copy adds up what its steps have collected and what
// the copies below it have handed up, in the order of its steps, and hands the sum to its parent when it ends; the
// iterations of a loop and the lanes of a map are added in their order as they end, the others wait. A copy that makes
// an entry keeps the sum there.
#pragma once

#include <map>
#include <mutex>

#include "copy.h"
#include "heap.h"

namespace undertow::expand {

/// Rows that one step has collected; a list in order.
struct Rows {
  Rows* next;
  const Template* of;  ///< whose types its operands have
  const Collect* row;
  uint64_t numbers;  ///< a scalar, or an array
  uint64_t rows;
};

/// What is collected for one hoisted value; a list, by index.
struct Sums {
  Sums* next;
  int32_t index;
  bool is_whole;  ///< is there a sum of whole values?
  DType dtype;
  int rank;
  uint64_t cell;  ///< that sum: a scalar, or an array
  Rows *first, *last;
};

/// The sums of the iterations of a loop, or of the lanes of a map.
struct Series {
  std::mutex mutex;  ///< guards all below, and the sums of the entry, if the series adds to one; the heap's after it
  int64_t next = 0;  ///< the first that has not been added
  Sums* sums = nullptr;
  std::map<int64_t, Sums*> early;  ///< those after it
};

}  // namespace undertow::expand
