// Deferred steps: rows of many tables go through the same operators together.
//
// *Held* operators are those whose results only returns need (a leaf of a tree): their fiber waits until the deepest
// wave has nothing left to call, and then the rows of all waves run as one table. Operators that lead only to collects
// are *kept*: no fiber waits, their operands are copied, and they run when many rows have come, or when their entry
// ends. Operators of the next phase that depend only on this one run *ahead* in the same way, and their results are
// written to the tables before these are visited again.
#pragma once

#include "memory/table.h"

namespace undertow {

/// Find the slots that deferred operators read and write; throws if an operator may not be deferred.
void find_deferrals(Plan& plan);

/// Rows that wait for one deferred step.
class DeferredRows {
 public:
  struct Part {
    Table* table;  ///< still alive if it is held, or will be visited again
    void* fiber;   ///< that waits, or null
    size_t wave;   ///< of that fiber
    int64_t lanes;
    int64_t at = 0;  ///< its first lane in the joint table
    Entry* entry;
    Block* entries;
  };

  /// Add a table whose fiber waits.
  void hold(const Deferral& deferral, Table& table, void* fiber, size_t wave);

  /// Copy the operands from a table; false if it cannot be joined with the rows that are here already.
  bool keep(Tables& tables, const Deferral& deferral, Table& table);

  /// Join all rows in one table. Columns that are already contiguous are not copied.
  Table* join(Tables& tables, const Plan& plan, const Deferral& deferral);

  /// Hand every table its rows of the results.
  void share(Tables& tables, const Deferral& deferral, const Table& joint);

  /// Forget all rows; it does not own tables or fibers.
  void clear(Tables& tables);

  std::vector<Part> parts;
  int64_t lanes = 0;
  int64_t bytes = 0;  ///< of the results of all rows

 private:
  void add(const Deferral& deferral, Table& table, void* fiber, size_t wave);
  void sort(const Deferral& deferral);
  void join_column(Tables& tables, Table& joint, int32_t slot, size_t take, size_t takes);
  void join_entries(Tables& tables, Table& joint);

  std::vector<Column> columns_;  ///< operands of each held part, or of all kept rows; with references
  std::vector<int64_t> room_;    ///< capacity in bytes of each column of kept rows
};

}  // namespace undertow
