// Who reads what: every value that an item of a plan looks at.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Call see(region, operand) for each: in the item's own region, in those that it enters and takes results from, or in
/// main.
template <class See>
void each_read(const Plan& plan, size_t r, const Item& item, See&& see) {
  const auto at = static_cast<size_t>(item.number);
  const auto in = [](int32_t region) { return static_cast<size_t>(region); };
  const auto see_all = [&](const auto& operands) {
    for (Operand x : operands) see(r, x);
  };
  const auto hand_in = [&](const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers) see(r, transfer.from);
  };
  switch (item.kind) {
    case Item::Kind::Op:
      return see_all(plan.ops[at].inputs);
    case Item::Kind::Read:
      if (plan.reads[at].is_shared) see(0, plan.reads[at].index);
      return;
    case Item::Kind::Collect:
      return see_all(plan.collects[at].values);
    case Item::Kind::Collected:
      return see(r, plan.collecteds[at].like);
    case Item::Kind::Branch: {
      const BranchItem& branch = plan.branches[at];
      see(r, branch.pred);
      for (int side = 0; side < 2; ++side) {
        hand_in(branch.transfers[side]);
        for (const MergeRow& merge : branch.merges) see(in(branch.regions[side]), merge.sides[side]);
      }
      return;
    }
    case Item::Kind::Call:
      see_all(plan.calls[at].arguments);
      return see_all(plan.calls[at].hoists);
    case Item::Kind::Loop: {
      const LoopItem& loop = plan.loops[at];
      for (const auto* transfers : {&loop.variables, &loop.outers}) {
        hand_in(*transfers);
        for (const Transfer& transfer : *transfers) see(in(loop.body), transfer.to);  // the next iteration does
      }
      for (const LoopItem::Exit& exit : loop.exits) see(in(loop.body), exit.from);
      for (const Stage& stage : plan.regions[in(loop.body)].phases[0].stages)
        for (const Item& inner : stage.entered)
          if (inner.kind == Item::Kind::Branch && plan.branches[in(inner.number)].branch == loop.branch)
            for (Operand x : loop.next) see(in(plan.branches[in(inner.number)].regions[0]), x);
      return;
    }
    case Item::Kind::Map: {
      const MapItem& map = plan.maps[at];
      if (map.phase == 0) see(r, map.counted);
      hand_in(map.mapped);
      hand_in(map.outers);
      for (const LoopItem::Exit& result : map.results) see(in(map.body), result.from);
      return;
    }
    case Item::Kind::Fused:
      return;  // what it stands for is seen
  }
}

}  // namespace undertow
