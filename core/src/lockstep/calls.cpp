// What calls hand over and bring back, and the entries that they make.
#include <algorithm>

#include "lockstep/run.h"

namespace undertow::lockstep {

/// An argument of some calls, side by side.
void Lockstep::hand_over(Table& table, int32_t slot, std::span<Piece* const> pieces, size_t argument) {
  const Slot& to = table.region->slots[z(slot)];
  const auto given = [&](const Piece& piece) {
    Column column = tables_.column(*piece.parent, piece.request->item->arguments[argument]).from(piece.from);
    if (is_outermost(piece.chunk)) column.block = nullptr;  // lent: counting is for one thread
    return column;
  };
  const auto slot_of = [&](const Piece& piece) -> const Slot& {
    return tables_.slot(*piece.parent->region, piece.request->item->arguments[argument]);
  };
  const Piece& first = **std::ranges::min_element(pieces, {}, &Piece::at);
  Column column = given(first);
  int64_t lanes = 0;  // where only some of the table's are given theirs now, the others must not see it
  for (const Piece* piece : pieces) lanes += piece->count;
  if (lanes == table.lanes && table.columns[slot].data == nullptr) {
    bool is_shared = pieces.size() == 1;
    const bool is_one = column.stride == 0, are_siblings = z(first.step) == pieces.size();
    if (!is_shared && !to.is_dynamic && (is_one || are_siblings)) {
      const int64_t next = is_one ? 0 : to.bytes;  // of siblings, in the rows of one column
      is_shared = column.stride == first.step * next;
      for (const Piece* piece : pieces) {
        const Column other = given(*piece);
        is_shared = is_shared && other.stride == column.stride && other.block == column.block &&
                    other.data == column.data + piece->at * next;
      }
      column.stride = next;
    }
    if (is_shared && (column.stride == 0 || column.stride == slot_of(first).bytes)) {
      tables_.take(table, slot, slot_of(first), column, nullptr, table.lanes);
      return;
    }
  }
  tables_.own(table, slot);
  for (const Piece* piece : pieces)
    tables_.put(to, table.columns[slot].from(piece->at, piece->step), nullptr, slot_of(*piece), given(*piece),
                piece->count);
}

void Lockstep::give_entries(Table& table, std::span<Piece* const> pieces) {
  bool is_uniform = true;
  Entry* one = nullptr;
  for (const Piece* piece : pieces) {
    if (piece->request->item->makes_entry) make_entries(*piece->parent, *piece->request->item);
    Entry* found = piece->request->item->makes_entry ? &piece->parent->calls[z(piece->call)].entries[z(piece->from)]
                                                     : piece->parent->entry;
    if (piece->request->item->makes_entry && piece->count > 1) found = nullptr;
    if (found == nullptr || (one != nullptr && found != one)) is_uniform = false;
    one = found;
  }
  if (is_uniform) {
    table.entry = one;
    return;
  }
  table.entries = tables_.pool.take(table.lanes * 8);
  Entry** to = reinterpret_cast<Entry**>(table.entries->data());
  for (const Piece* piece : pieces)
    for (int64_t k = 0; k < piece->count; ++k)
      to[piece->at + k * piece->step] = piece->request->item->makes_entry
                                            ? &piece->parent->calls[z(piece->call)].entries[z(piece->from + k)]
                                            : entry_of(*piece->parent, piece->from + k);
}

void Lockstep::make_entries(Table& table, const CallItem& item) {
  std::vector<Entry>& entries = table.calls[z(item.call)].entries;
  if (!entries.empty()) return;
  entries.resize(z(table.lanes));
  for (int64_t lane = 0; lane < table.lanes; ++lane) {
    Entry& entry = entries[z(lane)];
    entry.region = table.region;
    entry.item = &item;
    entry.sums.resize(item.hoists.size());
    for (Operand x : item.hoists) {
      const Column column = tables_.column(table, x);
      entry.values.push_back({column.block, column.data + lane * column.stride, 0});
    }
  }
}

/// Lanes of a table inside another: they are below the same entries.
void Lockstep::inherit(Table& table, const Table& from, const int32_t* index) {
  if (from.entry != nullptr || from.entries == nullptr) {
    table.entry = from.entry;
    return;
  }
  table.entries = tables_.pool.take(table.lanes * 8);
  Entry** to = reinterpret_cast<Entry**>(table.entries->data());
  for (int64_t k = 0; k < table.lanes; ++k)
    to[k] = reinterpret_cast<Entry**>(from.entries->data())[index != nullptr ? index[k] : k];
}

void Lockstep::deliver(const Piece& piece, int32_t phase) {
  const CallItem& item = *piece.request->item;
  const Region& body = *piece.child->region;
  for (size_t k = 0; k < item.results.size(); ++k) {
    const int32_t to = item.results[k];
    if (to == kNoSlot) continue;
    const int32_t from = body.results[z(phase)][k];
    if (piece.child->columns[from].data == nullptr) throw Stop{Stop::Kind::Internal};
    const Column column = piece.child->columns[from].from(piece.at, piece.step);
    Table& parent = *piece.parent;
    const Slot& to_slot = parent.region->slots[z(to)];
    const Slot& from_slot = body.slots[z(from)];
    // Arrays stay where they are; small values are copied, or they would keep all that is small in that table.
    const bool is_whole = piece.count == parent.lanes && !is_outermost(piece.chunk);
    if (is_whole && ((piece.at == 0 && piece.step == 1) || from_slot.offset < 0)) {
      tables_.take(parent, to, from_slot, column, nullptr, piece.count);
      continue;
    }
    tables_.own(parent, to);
    tables_.put(to_slot, parent.columns[to].from(piece.from), nullptr, from_slot, column, piece.count);
  }
}

void Lockstep::read(Table& table, const ReadItem& item) {
  if (!item.is_shared) {
    read_entry(tables_, table, item);
    return;
  }
  const Slot& from = main_->region->slots[z(item.index)];
  Column column = main_->columns[item.index];
  if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
  column.stride = 0;
  if (is_worker_) column.block = nullptr;
  tables_.take(table, item.to, from, column, nullptr, 1);
}

void Lockstep::collect(Table& table, const CollectItem& item) {
  stats_.fired[z(item.node)] += table.lanes;
  collect_into_entries(tables_, table, item, tables_.scratch());
}

void Lockstep::collected(Table& table, const CollectedItem& item) {
  std::vector<Entry*> entries;
  for (Entry& entry : table.calls[z(item.call)].entries) entries.push_back(&entry);
  take_collected(tables_, table, item, entries);
}

}  // namespace undertow::lockstep
