// Arguments and results of calls, and the entries that they make.
#include <algorithm>

#include "lockstep/run.h"
#include "run/waves.h"

namespace undertow::lockstep {

void Lockstep::call(Wave& wave, Fiber* self, const CallItem& item) {
  Request* made = space_.requests.take();
  begin(*made, *self->table, item);
  made->fiber = self;
  wave.calls.push_back(made);
}

/// The lanes of a call ask for its next phase.
void Lockstep::ask(Wave& wave, Fiber* self, const CallItem& item) {
  if (has_deferred(DeferredKind::Ahead)) run_deferred(DeferredKind::Ahead);
  auto* request = static_cast<Request*>(self->table->calls[z(item.call)].part);
  if (request == nullptr) throw Stop{Stop::Kind::Internal};
  request->item = &item;
  request->fiber = self;
  ++wave.waiting;
  Invocation& invocation = *request->invocation;
  if (++invocation.asked == invocation.parts.size()) wave.asked.push_back(&invocation);
}

void Lockstep::make_invocations(Wave& wave) {
  for (Request* request : wave.calls) {
    const int32_t visits = visits_of(*request->table, request->item->visits);
    join(wave.entered, space_.invocations, *request, visits, wave.invocation->depth + 1);
    if (visits > 1) request->table->calls[z(request->item->call)].part = request;
  }
  wave.calls.clear();
}

void Lockstep::enter_next(Wave& wave) {
  Invocation* next = wave.entered.back();
  wave.entered.pop_back();
  for (Part* part : next->parts) {
    auto& request = static_cast<Request&>(*part);
    at_ = request.table;
    lend_arguments(request);
    lend_entries(request);
  }
  run_.enter(*next);
}

void Lockstep::resume_next(Wave& wave) {
  Invocation* next = wave.asked.back();
  wave.asked.pop_back();
  next->asked = 0;
  for (Part* part : next->parts) lend_arguments(static_cast<Request&>(*part));
  run_.resume(*next);
}

void Lockstep::back(Invocation& invocation) {
  Wave& wave = top();
  const bool is_over = invocation.phase + 1 == invocation.visits;
  if (invocation.phase > 0) wave.waiting -= invocation.parts.size();
  for (Part* part : invocation.parts) {
    auto* request = static_cast<Request*>(part);
    Fiber* waiter = request->fiber;
    if (is_over) {
      request->table->calls[z(request->item->call)].part = nullptr;
      space_.requests.give(request);
    }
    at_ = waiter->table;
    come_back(wave, waiter);
  }
  if (is_over) space_.invocations.give(&invocation);
}

/// Write the arguments of a phase to the table of a function.
void Lockstep::hand_over(Table& table, std::span<const Piece> pieces, int32_t phase) {
  const std::vector<int32_t>& params = table.region->params[z(phase)];
  for (size_t k = 0; k < params.size(); ++k)
    if (params[k] != kNoSlot) hand_over(table, params[k], pieces, k);
}

/// One argument, joined from several calls.
void Lockstep::hand_over(Table& table, int32_t slot, std::span<const Piece> pieces, size_t argument) {
  const Slot& to = table.region->slots[z(slot)];
  const auto given = [&](const Piece& piece) { return piece.part->arguments[argument].from(piece.from); };
  const auto slot_of = [&](const Piece& piece) -> const Slot& {
    return tables_.slot(*piece.part->region, piece.part->item->arguments[argument]);
  };
  const Piece& first = *std::ranges::min_element(pieces, {}, &Piece::at);
  Column column = given(first);
  if (table.columns[slot].data == nullptr) {
    bool is_shared = pieces.size() == 1;
    const bool is_one = column.stride == 0, are_siblings = z(first.step) == pieces.size();
    if (!is_shared && !to.is_dynamic && (is_one || are_siblings)) {
      const int64_t next = is_one ? 0 : to.bytes;  // for siblings, whose arguments are parts of the rows of one column
      is_shared = column.stride == first.step * next;
      for (const Piece& piece : pieces) {
        const Column other = given(piece);
        is_shared = is_shared && other.stride == column.stride && other.block == column.block &&
                    other.data == column.data + piece.at * next;
      }
      column.stride = next;
    }
    if (is_shared && (column.stride == 0 || column.stride == slot_of(first).bytes)) {
      tables_.take(table, slot, slot_of(first), column, nullptr, table.lanes);
      return;
    }
  }
  tables_.own(table, slot);
  for (const Piece& piece : pieces)
    tables_.put(to, table.columns[slot].from(piece.at, piece.step), nullptr, slot_of(piece), given(piece), piece.count);
}

void Lockstep::give_entries(Table& table, std::span<const Piece> pieces) {
  Entry* one = pieces[0].part->entry_of(pieces[0].from);
  const auto is_below_one = [&](const Piece& piece) {
    const bool is_uniform = piece.count == 1 || (piece.part->row == nullptr && piece.part->entries == nullptr);
    return is_uniform && piece.part->entry_of(piece.from) == one;
  };
  if (std::ranges::all_of(pieces, is_below_one)) {
    table.entry = one;
    return;
  }
  table.entries = tables_.pool.take(table.lanes * 8);
  for (const Piece& piece : pieces)
    for (int64_t k = 0; k < piece.count; ++k)
      table.below()[piece.at + k * piece.step] = piece.part->entry_of(piece.from + k);
}

void Lockstep::lend_entries(Request& request) {
  Table& table = *request.table;
  const CallItem& item = *request.item;
  if (!item.makes_entry) {
    request.entry = table.entry;
    if (table.entries != nullptr) request.entries = table.below();
    return;
  }
  make_entries(table, item);
  request.row = table.calls[z(item.call)].entries.data();
  for (Operand x : item.hoists)
    if (tables_.column(table, x).stride != 0) request.entry_bytes += tables_.slot(*table.region, x).bytes;
}

void Lockstep::make_entries(Table& table, const CallItem& item) {
  std::vector<Entry>& entries = table.calls[z(item.call)].entries;
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

/// A table inside another: its lanes are below the same entries.
void Lockstep::inherit(Table& table, const Table& from, const int32_t* index) {
  if (from.entry != nullptr || from.entries == nullptr) {
    table.entry = from.entry;
    return;
  }
  table.entries = tables_.pool.take(table.lanes * 8);
  for (int64_t k = 0; k < table.lanes; ++k) table.below()[k] = from.below()[index != nullptr ? index[k] : k];
}

void Lockstep::deliver(const Piece& piece, int32_t phase) {
  Part& part = *piece.part;
  Caller& caller = *part.invocation->caller;
  const Region& body = *piece.child->region;
  for (size_t k = 0; k < part.item->results.size(); ++k) {
    const int32_t to = part.item->results[k];
    if (to == kNoSlot) continue;
    const int32_t from = body.results[z(phase)][k];
    if (piece.child->columns[from].data == nullptr) throw Stop{Stop::Kind::Internal};
    const Column column = piece.child->columns[from].from(piece.at, piece.step);
    const Slot& slot = body.slots[z(from)];
    // Arrays are referenced; small values are copied, since a reference would keep that table's whole block alive.
    if (piece.count == part.lanes && ((piece.at == 0 && piece.step == 1) || slot.offset < 0))
      caller.take(part, k, slot, column);
    else
      tables_.put(part.region->slots[z(to)], caller.room(part, k).from(piece.from), nullptr, slot, column, piece.count);
  }
}

}  // namespace undertow::lockstep
