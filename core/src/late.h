// Steps that may wait: rows of many tables go through the same operators together.
//
// A *held* run of operators is one that only returns need (a leaf of a tree): its fiber waits until the deepest wave
// has nobody left to call, and then the rows of all waves run as one table. What feeds nothing but collects waits
// without holding anybody: its operands are kept, and run together when many rows have come, or their entry is over.
#pragma once

#include "table.h"

namespace undertow {

/// Find what the operators that may wait take and give; throws where they may not wait.
void find_lates(Plan& plan);

/// Rows that wait for one run of operators.
class Waiting {
 public:
  struct Part {
    Table* table;  ///< alive only if the run is held
    void* fiber;   ///< that waits for it, or null
    size_t wave;   ///< of that fiber
    int64_t lanes;
    int64_t at = 0;  ///< its first lane, once it is joined
    Entry* entry;
    Block* entries;
  };

  /// Keep what the operators will need of a table.
  void add(const Late& late, Table& table, void* fiber, size_t wave);

  /// All rows side by side, in a table of their own. Columns that lie side by side already are not copied.
  Table* join(Tables& tables, const Plan& plan, const Late& late);

  /// Give every table its rows of the results.
  void share(Tables& tables, const Late& late, const Table& joint);

  /// Forget them; tables and fibers are others'.
  void clear(Tables& tables);

  std::vector<Part> parts;
  int64_t lanes = 0;
  int64_t bytes = 0;  ///< of all rows, when they run

 private:
  void join_column(Tables& tables, Table& joint, int32_t slot, size_t take, size_t takes);
  void join_entries(Tables& tables, Table& joint);

  std::vector<Column> columns_;  ///< of each part, those that are taken; counted
};

}  // namespace undertow
