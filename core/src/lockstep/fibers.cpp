// Fibers: each runs the stages of a program for one table.
#include "lockstep/run.h"
#include "plan/items.h"

namespace undertow::lockstep {

Fiber* Lockstep::fiber(Fiber::Kind kind, Table* table, int32_t phase, Fiber* parent) {
  Fiber* made = space_.fibers.take();
  *made = {kind, table, &table->region->programs[z(phase)], phase};
  made->parent = parent;
  return made;
}

/// An item that a fiber entered has returned.
void Lockstep::come_back(Wave& wave, Fiber* waiter) {
  if (--waiter->pending == 0) {
    complete(*waiter);
    ++waiter->stage;
    wave.ready.push_back(waiter);
  }
}

/// Run a fiber until it waits or ends.
void Lockstep::advance(Wave& wave, Fiber* self) {
  Table& table = *self->table;
  for (;;) {
    at_ = &table;
    if (self->stage == self->program->stages.size()) {
      over(wave, self);
      return;
    }
    const Stage& stage = self->program->stages[self->stage];
    if (!self->is_past && defer(self, stage)) return;
    self->is_past = false;
    tables_.drop(table, stage.drops);
    if (stage.entered.empty()) {
      ++self->stage;
      continue;
    }
    self->pending = 1;
    for (const Item& item : stage.entered) enter(wave, self, item);
    if (--self->pending > 0) return;
    complete(*self);
    ++self->stage;
  }
}

/// A fiber has ended.
void Lockstep::over(Wave& wave, Fiber* self) {
  Fiber* waiter = self->parent;
  if (self->kind == Fiber::Kind::Loop && go_round(wave, self)) return;
  space_.fibers.give(self);
  if (waiter != nullptr) come_back(wave, waiter);
}

/// Run the items of a straight run, in order; if there are many lanes, consecutive operators as a series.
void Lockstep::straight(Table& table, std::span<const Item> items) {
  constexpr int64_t kFewLanes = 64;
  if (table.lanes < kFewLanes || !table.region->has_arrays || options_.check_finite || items.size() < 2)
    return straight_in_order(table, items);
  std::vector<Item>& collects = space_.collects;  // run after the series: nothing here depends on them
  collects.clear();
  for (const Item& item : items) {
    clock_.to(item.kind);
    if (item.kind == Item::Kind::Fused) {
      operators_.add(table, plan_.fuseds[z(item.number)]);
    } else if (item.kind == Item::Kind::Collect) {
      if (!operators_.add(table, plan_.collects[z(item.number)])) collects.push_back(item);
    } else if (item.kind != Item::Kind::Op || !operators_.add(table, plan_.ops[z(item.number)])) {
      if (item.kind != Item::Kind::Read) operators_.finish(table);
      if (item.kind == Item::Kind::Op && plan_.ops[z(item.number)].may_change) {
        for (const Item& before : collects) straight(table, before);  // they may read what changes here
        collects.clear();
      }
      straight(table, item);
    }
  }
  clock_.to(Item::Kind::Op);
  operators_.finish(table);
  for (const Item& item : collects) straight(table, item);
}

void Lockstep::enter(Wave& wave, Fiber* self, const Item& item) {
  clock_.to(item.kind);
  switch (item.kind) {
    case Item::Kind::Branch: enter_branch(wave, self, plan_.branches[z(item.number)]); break;
    case Item::Kind::Call: {
      const CallItem& entered = plan_.calls[z(item.number)];
      ++self->pending;
      if (entered.phase == 0)
        call(wave, self, entered);
      else
        ask(wave, self, entered);
      break;
    }
    case Item::Kind::Loop: enter_loop(wave, self, plan_.loops[z(item.number)]); break;
    case Item::Kind::Map: enter_map(wave, self, plan_.maps[z(item.number)]); break;
    default: throw Stop{Stop::Kind::Internal};
  }
}

/// All items entered together have returned: write their results.
void Lockstep::complete(const Fiber& self) {
  const Stage& stage = self.program->stages[self.stage];
  for (const Item& item : stage.entered) {
    clock_.to(item.kind);
    if (item.kind == Item::Kind::Branch)
      leave_branch(*self.table, plan_.branches[z(item.number)]);
    else if (item.kind == Item::Kind::Map)
      leave_map(*self.table, plan_.maps[z(item.number)]);
  }
}

}  // namespace undertow::lockstep
