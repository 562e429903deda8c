// Steps that may wait: rows of many tables go through the same operators together.
//
// A *held* run of operators is one that only returns need (a leaf of a tree): its fiber waits until the deepest wave
// has nobody left to call, and then the rows of all waves run as one table. What feeds nothing but collects waits
// without holding anybody: its operands are copied while they are at hand, and run together when many rows have come,
// or their entry is over. What the next phase will need of this one alone is kept as well, *ahead* of its phase, and
// given to its tables before they are visited again.
#pragma once

#include "memory/table.h"

namespace undertow {

/// Find what the operators that may wait take and give; throws where they may not wait.
void find_deferrals(Plan& plan);

/// Rows that wait for one run of operators.
class DeferredRows {
 public:
  struct Part {
    Table* table;  ///< alive where it is held, or visited again
    void* fiber;   ///< that waits for it, or null
    size_t wave;   ///< of that fiber
    int64_t lanes;
    int64_t at = 0;  ///< its first lane, once it is joined
    Entry* entry;
    Block* entries;
  };

  /// Remember a table whose fiber waits.
  void hold(const Deferral& deferral, Table& table, void* fiber, size_t wave);

  /// Copy what the operators will need of a table; false where it does not go together with what is here already.
  bool keep(Tables& tables, const Deferral& deferral, Table& table);

  /// All rows side by side, in a table of their own. Columns that lie side by side already are not copied.
  Table* join(Tables& tables, const Plan& plan, const Deferral& deferral);

  /// Give every table its rows of the results.
  void share(Tables& tables, const Deferral& deferral, const Table& joint);

  /// Forget them; tables and fibers are others'.
  void clear(Tables& tables);

  std::vector<Part> parts;
  int64_t lanes = 0;
  int64_t bytes = 0;  ///< of all rows, when they run

 private:
  void add(const Deferral& deferral, Table& table, void* fiber, size_t wave);
  void sort(const Deferral& deferral);
  void join_column(Tables& tables, Table& joint, int32_t slot, size_t take, size_t takes);
  void join_entries(Tables& tables, Table& joint);

  std::vector<Column> columns_;  ///< of each part that is held, those that are taken; of all that is kept; counted
  std::vector<int64_t> room_;    ///< for so many bytes, in each column that is kept
};

}  // namespace undertow
