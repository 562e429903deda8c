#include "run/door.h"

#include "undertow/size.h"

namespace undertow {

void TableCaller::begin(TablePart& part, Table& table, const CallItem& item) {
  part.item = &item;
  part.region = table.region;
  part.origin = part.table = &table;
  part.lanes = table.lanes;
  part.entry = part.row = nullptr;
  part.entries = nullptr;
  part.makes_entries = item.makes_entry;
  part.entry_bytes = 0;
}

void TableCaller::join(std::vector<Invocation*>& waiting, Store<Invocation>& store, Part& part, int32_t visits,
                       int64_t depth) {
  const int32_t group = part.item->group, resume_group = visits > 1 ? part.item->resume_group : 0;
  const auto is_one = [&](const Invocation* other) {
    return other->group == group && other->visits == visits && other->resume_group == resume_group &&
           other->depth == depth;
  };
  auto found = std::ranges::find_if(waiting, is_one);
  if (found == waiting.end()) {
    Invocation* made = store.take();
    made->parts.clear();
    *made = {this, group, visits, resume_group, 0, depth, std::move(made->parts), nullptr, nullptr};
    found = waiting.insert(waiting.end(), made);
  }
  part.invocation = *found;
  (*found)->parts.push_back(&part);
}

void TableCaller::lend_arguments(TablePart& part) const {
  part.arguments.clear();
  for (Operand x : part.item->arguments) part.arguments.push_back(tables_.column(*part.table, x));
}

Column TableCaller::room(Part& part, size_t result) {
  Table& table = *static_cast<TablePart&>(part).table;
  const int32_t slot = part.item->results[result];
  tables_.own(table, slot, table.lanes == 1);
  return table.columns[slot];
}

void TableCaller::take(Part& part, size_t result, const Slot& slot, const Column& column) {
  tables_.take(*static_cast<TablePart&>(part).table, part.item->results[result], slot, column, nullptr, part.lanes);
}

void TableCaller::taken(Part& part) { tables_.drop(*static_cast<TablePart&>(part).table, part.item->drops); }

}  // namespace undertow
