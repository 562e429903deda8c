#include "run/door.h"

#include "plan/items.h"
#include "run/entries.h"
#include "run/waves.h"

namespace undertow {

TableRunner::TableRunner(Run& run)
    : run_(run),
      plan_(run.plan),
      options_(run.options),
      stats_(run.stats),
      operators_(run.operators),
      clock_(run.clock),
      tables_(run.tables) {}

void TableRunner::begin(TablePart& part, Table& table, const CallItem& item) {
  part.item = &item;
  part.region = table.region;
  part.origin = part.table = &table;
  part.lanes = table.lanes;
  part.entry = part.row = nullptr;
  part.entries = nullptr;
  part.makes_entries = item.makes_entry;
  part.entry_bytes = 0;
}

void TableRunner::join(std::vector<Invocation*>& waiting, Store<Invocation>& store, Part& part, int32_t visits,
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

void TableRunner::lend_arguments(TablePart& part) const {
  part.arguments.clear();
  for (Operand x : part.item->arguments) part.arguments.push_back(tables_.column(*part.table, x));
}

Column TableRunner::room(Part& part, size_t result) {
  Table& table = *static_cast<TablePart&>(part).table;
  const int32_t slot = part.item->results[result];
  tables_.own(table, slot, table.lanes == 1);
  return table.columns[slot];
}

void TableRunner::take(Part& part, size_t result, const Slot& slot, const Column& column) {
  tables_.take(*static_cast<TablePart&>(part).table, part.item->results[result], slot, column, nullptr, part.lanes);
}

void TableRunner::taken(Part& part) { tables_.drop(*static_cast<TablePart&>(part).table, part.item->drops); }

void TableRunner::straight(Table& table, const Item& item) {
  clock_.to(item.kind);
  switch (item.kind) {
    case Item::Kind::Op: return operators_.run(table, plan_.ops[z(item.number)]);
    case Item::Kind::Fused: return operators_.run(table, plan_.fuseds[z(item.number)]);
    case Item::Kind::Read: return read(table, plan_.reads[z(item.number)]);
    case Item::Kind::Collect: {
      const CollectItem& collect = plan_.collects[z(item.number)];
      stats_.fired[z(collect.node)] += table.lanes;
      return collect_into_entries(tables_, table, collect, tables_.scratch());
    }
    case Item::Kind::Collected: {
      const CollectedItem& collected = plan_.collecteds[z(item.number)];
      for (int64_t lane = 0; lane < table.lanes; ++lane)
        take_collected(tables_, table, collected, lane, made_entry(table, collected.call, lane));
      return;
    }
    case Item::Kind::Send: return send(table, plan_.sends[z(item.number)]);
    case Item::Kind::Replica: return choose(table, plan_.replicas[z(item.number)]);
    default: throw Stop{Stop::Kind::Internal};
  }
}

void TableRunner::send(Table&, const SendItem&) { throw Stop{Stop::Kind::Internal}; }
void TableRunner::choose(Table&, const ReplicaItem&) { throw Stop{Stop::Kind::Internal}; }

void TableRunner::straight_in_order(Table& table, std::span<const Item> items) {
  for (const Item& item : items) {
    if (options_.check_finite)
      singly(plan_, item, [&](const Item& one) { straight(table, one); });
    else
      straight(table, item);
  }
}

void TableRunner::read(Table& table, const ReadItem& item) {
  if (!item.is_shared) return read_entry(tables_, table, item);
  Column column = run_.shared(item.index);
  if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
  column.stride = 0;
  tables_.take(table, item.to, plan_.regions[0].slots[z(item.index)], column, nullptr, 1);
}

}  // namespace undertow
