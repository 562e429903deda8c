// Loops: lanes iterate until they exit.
#include "lockstep/run.h"
#include "run/waves.h"

namespace undertow::lockstep {

void Lockstep::enter_loop(Wave& wave, Fiber* self, const LoopItem& item) {
  operators_.position = {-1, item.site};
  Table& table = *self->table;
  Table* inner = tables_.make_inside(table, plan_.regions[z(item.body)], table.lanes, 1, item.site);
  if (table.lanes > 1) {
    space_.index[0].resize(z(table.lanes));
    for (int64_t k = 0; k < table.lanes; ++k) space_.index[0][z(k)] = static_cast<int32_t>(k);
    inner->index = tables_.copy_index(space_.index[0].data(), table.lanes);
  }
  inherit(*inner, table, nullptr);
  for (const auto* transfers : {&item.variables, &item.outers})
    for (const Transfer& transfer : *transfers)
      tables_.take(*inner, transfer.to, tables_.slot(*table.region, transfer.from),
                   tables_.column(table, transfer.from), nullptr, table.lanes);
  tables_.drop(table, item.drops);
  tell(*inner, 0);
  Fiber* made = fiber(Fiber::Kind::Loop, inner, 0, self);
  made->loop = &item;
  ++self->pending;
  wave.ready.push_back(made);
}

/// An iteration has ended: some lanes exit, the others begin the next iteration. Are there any?
bool Lockstep::go_round(Wave& wave, Fiber* self) {
  clock_.to(Step::Loop);
  operators_.position = {-1, self->loop->site};
  run_.poll.tick();
  const LoopItem& item = *self->loop;
  Table* before = self->table;
  Table& parent = *before->parent;
  Sides& sides = before->branches[z(item.branch)];
  if (sides.count[1] > 0) {
    const int32_t* gone = sides.lanes(1);
    std::vector<int32_t> places(z(sides.count[1]));
    for (int64_t k = 0; k < sides.count[1]; ++k)
      places[z(k)] = static_cast<int32_t>(before->parent_lane(gone != nullptr ? gone[k] : k));
    for (const Exit& exit : item.exits) {
      const Slot& slot = parent.region->slots[z(exit.to)];
      const Slot& from_slot = tables_.slot(*before->region, exit.from);
      Column column = tables_.column(*before, exit.from);
      if (sides.count[1] == parent.lanes) {
        tables_.take(parent, exit.to, from_slot, column, gone, sides.count[1]);
        continue;
      }
      tables_.own(parent, exit.to);
      for (int64_t k = 0; k < sides.count[1]; ++k)
        tables_.put(slot, parent.columns[exit.to].from(places[z(k)]), nullptr, from_slot,
                    column.from(gone != nullptr ? gone[k] : k), 1);
    }
  }
  const bool goes_on = sides.count[0] > 0;
  if (goes_on) {
    Table* going = sides.table[0];
    Table* inner = tables_.make_inside(parent, *before->region, sides.count[0], 1, item.site);
    inner->iteration = before->iteration + 1;
    const int32_t* stay = sides.lanes(0);
    if (stay == nullptr) {
      if (before->index != nullptr) ++before->index->refs;
      inner->index = before->index;
    } else {
      inner->index = tables_.pool.take(4 * inner->lanes);
      int32_t* to = reinterpret_cast<int32_t*>(inner->index->data());
      for (int64_t k = 0; k < inner->lanes; ++k) to[k] = static_cast<int32_t>(before->parent_lane(stay[k]));
    }
    inherit(*inner, *before, stay);
    for (size_t k = 0; k < item.variables.size(); ++k)
      tables_.take(*inner, item.variables[k].to, tables_.slot(*going->region, item.next[k]),
                   tables_.column(*going, item.next[k]), nullptr, inner->lanes);
    for (const Transfer& outer : item.outers)
      tables_.take(*inner, outer.to, before->region->slots[z(outer.to)], tables_.column(*before, outer.to), stay,
                   inner->lanes);
    tell(*inner, 0);
    self->table = inner;
    self->stage = 0;
    wave.ready.push_back(self);
  }
  at_ = &parent;
  tables_.end(before);
  return goes_on;
}

}  // namespace undertow::lockstep
