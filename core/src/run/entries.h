// Entries: reading their hoisted values, and adding to the sums that they collect.
#pragma once

#include "memory/table.h"
#include "undertow/run.h"

namespace undertow {

/// The entry above a lane.
inline Entry* entry_of(const Table& table, int64_t lane) {
  if (table.entry != nullptr) return table.entry;
  return table.entries == nullptr ? nullptr : table.below()[lane];
}

void read_entry(Tables& tables, Table& table, const ReadItem& item);

/// Add the values of lanes below one entry. `owner` is the block of collected rows, if they are at its start.
void collect_lanes(Tables& tables, Entry& entry, const CollectItem& item, int64_t lanes, const View* values,
                   Block* owner, Scratch& scratch);

void collect_into_entries(Tables& tables, Table& table, const CollectItem& item, Scratch& scratch);

/// What another thread has collected for one hoisted value of an entry, in an entry of its own.
struct Partial {
  Entry* entry;
  size_t index;
  bool is_rows;
  Buffer numbers;  ///< indices of rows, i64
  Buffer values;
};

/// Take the sums of a thread's entry, to be added to those of the original.
void take_partials(Tables& tables, Entry& from, Entry& entry, std::vector<Partial>& partials);
void add_partial(Tables& tables, Partial& partial);

/// The sum collected by the entry that a lane of a table made.
void take_collected(Tables& tables, Table& table, const CollectedItem& item, int64_t lane, const Entry* entry);

}  // namespace undertow
