// Branches: lanes are divided, and their results merged.
#include "lockstep/run.h"
#include "undertow/isa.h"

namespace undertow::lockstep {

void Lockstep::enter_branch(Wave& wave, Fiber* self, const BranchItem& item) {
  Table& table = *self->table;
  Sides& sides = table.branches[z(item.branch)];
  if (item.is_first())
    divide(table, item, sides);
  else if (has_deferred(DeferredKind::Ahead))
    run_deferred(DeferredKind::Ahead);
  for (size_t side = 0; side < 2; ++side) {
    if (sides.count[side] == 0) continue;
    const Region& region = plan_.regions[z(item.regions[side])];
    const int32_t* index = sides.lanes(side);
    if (sides.table[side] == nullptr) {
      Table* inner = sides.table[side] = tables_.make_inside(table, region, sides.count[side], table.visits);
      if (sides.index[side] != nullptr) {
        ++sides.index[side]->refs;
        inner->index = sides.index[side];
      }
      inherit(*inner, table, index);
    }
    Table& inner = *sides.table[side];
    for (const Transfer& transfer : item.transfers[side])
      tables_.take_side(inner, transfer.to, tables_.slot(*table.region, transfer.from),
                        tables_.column(table, transfer.from), index, tables_.column(table, item.pred), side == 0,
                        table.lanes);
    if (region.programs[z(item.visit)].stages.empty()) continue;
    ++self->pending;
    wave.ready.push_back(fiber(Fiber::Kind::Branch, &inner, item.visit, self));
  }
  if (!item.decides || sides.count[1] == 0) tables_.drop(table, item.drops);  // lanes that leave a loop exit with them
}

void Lockstep::divide(Table& table, const BranchItem& item, Sides& sides) {
  const Column pred = tables_.column(table, item.pred);
  const uint8_t* values = reinterpret_cast<const uint8_t*>(pred.data);
  for (int side = 0; side < 2; ++side) sides.count[side] = 0;
  if (pred.stride == 0) {
    sides.count[values[0] != 0 ? 0 : 1] = table.lanes;
    return;
  }
  for (std::vector<int32_t>& index : space_.index)
    index.resize(z(table.lanes) + 16);  // room for a whole vector at the end
  const int64_t there = functions().lanes->divide(values, table.lanes, space_.index[0].data(), space_.index[1].data());
  sides.count[0] = there;
  sides.count[1] = table.lanes - there;
  for (int side = 0; side < 2; ++side)
    if (sides.count[side] > 0 && sides.count[side] < table.lanes)
      sides.index[side] = tables_.copy_index(space_.index[side].data(), sides.count[side]);
}

void Lockstep::leave_branch(Table& table, const BranchItem& item) {
  Sides& sides = table.branches[z(item.branch)];
  for (const Merge& merge : item.merges) {
    const Slot& slot = table.region->slots[z(merge.to)];
    if (sides.count[0] > 0 && sides.count[1] > 0 &&
        tables_.meet(table, merge.to, tables_.column(table, item.pred), tables_.column(*sides.table[0], merge.sides[0]),
                     tables_.column(*sides.table[1], merge.sides[1])))
      continue;
    for (size_t side = 0; side < 2; ++side) {
      if (sides.count[side] == 0) continue;
      const Table& inner = *sides.table[side];
      const Slot& from_slot = tables_.slot(*inner.region, merge.sides[side]);
      const Column column = tables_.column(inner, merge.sides[side]);
      if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
      if (sides.count[side] == table.lanes) {
        tables_.take(table, merge.to, from_slot, column, nullptr, table.lanes);
      } else {
        tables_.own(table, merge.to);
        tables_.put(slot, table.columns[merge.to], sides.lanes(side), from_slot, column, sides.count[side]);
      }
    }
  }
  if (table.visits == 1 && item.is_last && !item.decides) {  // a loop reads it once more
    for (int side = 0; side < 2; ++side) {
      if (sides.table[side] != nullptr) tables_.end(sides.table[side]);
      tables_.pool.drop(sides.index[side]);
    }
    sides = {};
  }
}

}  // namespace undertow::lockstep
