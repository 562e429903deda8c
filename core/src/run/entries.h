// What lanes have to do with their entries: read what those were given, and add to what is collected there.
#pragma once

#include "memory/table.h"
#include "undertow/run.h"

namespace undertow {

/// The entry that a lane is below of.
inline Entry* entry_of(const Table& table, int64_t lane) {
  if (table.entry != nullptr) return table.entry;
  return table.entries == nullptr ? nullptr : table.below()[lane];
}

void read_entry(Tables& tables, Table& table, const ReadItem& item);

/// Add what some lanes below one entry have. Of rows `owner` is the block, if they are its beginning.
void collect_lanes(Tables& tables, Entry& entry, const CollectItem& item, int64_t lanes, const View* values,
                   Block* owner, Scratch& scratch);

void collect_into_entries(Tables& tables, Table& table, const CollectItem& item, Scratch& scratch);

/// What was collected for one value of an entry by somebody who had an entry of his own in its place: on another
/// thread.
struct Partial {
  Entry* entry;
  size_t index;
  bool is_rows;
  Buffer numbers;  ///< of rows, i64
  Buffer values;
};

/// Take what an entry has collected away, for the one that it stands for.
void take_partials(Tables& tables, Entry& from, Entry& entry, std::vector<Partial>& partials);
void add_partial(Tables& tables, const Partial& partial);

/// What was collected by the entry that a lane of a table made.
void take_collected(Tables& tables, Table& table, const CollectedItem& item, int64_t lane, const Entry* entry);

}  // namespace undertow
