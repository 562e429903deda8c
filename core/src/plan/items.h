// What items of a plan read, write and enter. A new kind of item is added here first; the compiler then warns of every
// switch that lacks it. src/undertow/plan/walk.py is the same for Python.
#pragma once

#include "undertow/plan.h"
#include "undertow/size.h"

namespace undertow {

/// When a value is read.
enum class Reading : uint8_t {
  Now,   // in the item's own region, when the item runs
  Lent,  // the same, and then by everything below the entry that it makes
  Later  // in a region that it enters, when that returns; or in main
};

inline bool is_straight(Item::Kind kind) {
  return kind != Item::Kind::Branch && kind != Item::Kind::Call && kind != Item::Kind::Loop &&
         kind != Item::Kind::Map && kind != Item::Kind::Recv;
}

/// Every item of a stage: see(item).
template <class See>
void each_item(const Stage& stage, See&& see) {
  for (const auto* items : {&stage.straight, &stage.deferred, &stage.entered})
    for (const Item& item : *items) see(item);
}

/// Every item of a region, with the number of its program: see(program, item).
template <class See>
void each_item(const Region& region, See&& see) {
  for (size_t program = 0; program < region.programs.size(); ++program)
    for (const Stage& stage : region.programs[program].stages)
      each_item(stage, [&](const Item& item) { see(static_cast<int32_t>(program), item); });
}

/// An item, or the operators of a fused pass one by one: see(item).
template <class See>
void singly(const Plan& plan, const Item& item, See&& see) {
  if (item.kind != Item::Kind::Fused) return see(item);
  for (int32_t op : plan.fuseds[z(item.number)].ops) see(Item{Item::Kind::Op, op});
}

/// All operators of the straight run of a stage, one by one: see(item).
template <class See>
void each_straight(const Plan& plan, const Stage& stage, See&& see) {
  for (const auto* items : {&stage.straight, &stage.deferred})
    for (const Item& item : *items) singly(plan, item, see);
}

/// The branch that decides whether a loop continues; null only in plans that have not been checked.
inline const BranchItem* decides(const Plan& plan, const LoopItem& loop) {
  for (const Stage& stage : plan.regions[z(loop.body)].programs[0].stages)
    for (const Item& item : stage.entered)
      if (item.kind == Item::Kind::Branch && plan.branches[z(item.number)].branch == loop.branch)
        return &plan.branches[z(item.number)];
  return nullptr;
}

/// The number of a branch, call, loop or map among those of its region.
inline int32_t number_of(const Plan& plan, const Item& item) {
  const auto at = z(item.number);
  switch (item.kind) {
    case Item::Kind::Branch: return plan.branches[at].branch;
    case Item::Kind::Call: return plan.calls[at].call;
    case Item::Kind::Loop: return plan.loops[at].loop;
    default: return plan.maps[at].map;
  }
}

/// The values that an item passes to the regions that it enters: see(region, transfer).
template <class See>
void each_given(const Plan& plan, const Item& item, See&& see) {
  const auto all = [&](int32_t region, const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers) see(z(region), transfer);
  };
  switch (item.kind) {
    case Item::Kind::Branch: {
      const BranchItem& branch = plan.branches[z(item.number)];
      for (size_t side = 0; side < 2; ++side) all(branch.regions[side], branch.transfers[side]);
      return;
    }
    case Item::Kind::Loop: {
      const LoopItem& loop = plan.loops[z(item.number)];
      all(loop.body, loop.variables);
      return all(loop.body, loop.outers);
    }
    case Item::Kind::Map: {
      const MapItem& map = plan.maps[z(item.number)];
      all(map.body, map.mapped);
      return all(map.body, map.outers);
    }
    default: return;
  }
}

/// What an item reads: see(region, operand, when).
template <class See>
void each_read(const Plan& plan, size_t r, const Item& item, See&& see) {
  const auto at = z(item.number);
  const auto own = [&](const auto& operands, Reading when = Reading::Now) {
    for (Operand x : operands) see(r, x, when);
  };
  const auto later = [&](int32_t region, Operand x) { see(z(region), x, Reading::Later); };
  switch (item.kind) {
    case Item::Kind::Op: return own(plan.ops[at].inputs);
    case Item::Kind::Read:
      if (plan.reads[at].is_shared) later(0, plan.reads[at].index);
      return;
    case Item::Kind::Collect: return own(plan.collects[at].values);
    case Item::Kind::Collected: return see(r, plan.collecteds[at].like, Reading::Now);
    case Item::Kind::Send:
      if (plan.sends[at].from != kNoSlot) see(r, plan.sends[at].from, Reading::Now);
      return;
    case Item::Kind::Recv:
    case Item::Kind::Replica: return;
    case Item::Kind::Fused:
      for (int32_t op : plan.fuseds[at].ops) own(plan.ops[z(op)].inputs);
      return;
    case Item::Kind::Call: own(plan.calls[at].arguments); return own(plan.calls[at].hoists, Reading::Lent);
    case Item::Kind::Branch: {
      const BranchItem& branch = plan.branches[at];
      see(r, branch.pred, Reading::Now);
      for (const Merge& merge : branch.merges)
        for (size_t side = 0; side < 2; ++side) later(branch.regions[side], merge.sides[side]);
      break;
    }
    case Item::Kind::Loop: {
      const LoopItem& loop = plan.loops[at];
      for (const auto* transfers : {&loop.variables, &loop.outers})
        for (const Transfer& transfer : *transfers) later(loop.body, transfer.to);  // by the next iteration
      for (const Exit& exit : loop.exits) later(loop.body, exit.from);
      if (const BranchItem* branch = decides(plan, loop))
        for (Operand x : loop.next) later(branch->regions[0], x);
      break;
    }
    case Item::Kind::Map: {
      const MapItem& map = plan.maps[at];
      if (map.phase == 0) see(r, map.counted, Reading::Now);
      for (const Exit& result : map.results) later(map.body, result.from);
      break;
    }
  }
  each_given(plan, item, [&](size_t, const Transfer& transfer) { see(r, transfer.from, Reading::Now); });
}

/// The slots of its own region that an item writes: see(slot).
template <class See>
void each_write(const Plan& plan, const Item& item, See&& see) {
  const auto at = z(item.number);
  const auto all = [&](const auto& slots) {
    for (int32_t to : slots)
      if (to != kNoSlot) see(to);
  };
  switch (item.kind) {
    case Item::Kind::Op: return all(plan.ops[at].outputs);
    case Item::Kind::Read: return see(plan.reads[at].to);
    case Item::Kind::Collect:
    case Item::Kind::Send: return;
    case Item::Kind::Recv:
      if (plan.recvs[at].to != kNoSlot) see(plan.recvs[at].to);
      return;
    case Item::Kind::Replica: return see(plan.replicas[at].to);
    case Item::Kind::Collected: return all(plan.collecteds[at].to);
    case Item::Kind::Fused:
      for (int32_t op : plan.fuseds[at].ops) all(plan.ops[z(op)].outputs);
      return;
    case Item::Kind::Call: return all(plan.calls[at].results);
    case Item::Kind::Branch:
      for (const Merge& merge : plan.branches[at].merges) see(merge.to);
      return;
    case Item::Kind::Loop:
      for (const Exit& exit : plan.loops[at].exits) see(exit.to);
      return;
    case Item::Kind::Map:
      for (const Exit& result : plan.maps[at].results) see(result.to);
      return;
  }
}

/// The regions that an item enters, and which program of each: see(region, program). A call enters another body.
template <class See>
void each_entered(const Plan& plan, const Item& item, See&& see) {
  const auto at = z(item.number);
  switch (item.kind) {
    case Item::Kind::Branch:
      for (int32_t region : plan.branches[at].regions) see(region, plan.branches[at].visit);
      return;
    case Item::Kind::Call: return see(plan.calls[at].body, plan.calls[at].phase);
    case Item::Kind::Loop: return see(plan.loops[at].body, 0);
    case Item::Kind::Map: return see(plan.maps[at].body, plan.maps[at].phase);
    default: return;
  }
}

}  // namespace undertow
