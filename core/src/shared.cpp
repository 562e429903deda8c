#include "shared.h"

#include <algorithm>

#include "undertow/size.h"

namespace undertow {
namespace {

/// Every item of a plan, with the number of its region.
template <class Plan, class See>
void each_item(Plan& plan, See&& see) {
  for (size_t r = 0; r < plan.regions.size(); ++r)
    for (const Program& program : plan.regions[r].phases)
      for (const Stage& stage : program.stages)
        for (const auto* items : {&stage.straight, &stage.entered})
          for (const Item& item : *items) see(r, item);
}

}  // namespace

Shared::Shared(const Plan& plan) {
  for (const Region& region : plan.regions) slots.emplace_back(region.slots.size(), false);
  for (has_grown_ = true; has_grown_;) {
    has_grown_ = false;
    each_item(plan, [&](size_t r, const Item& item) { look(plan, r, item); });
  }
}

void Shared::mark_operands(Plan& plan) const {
  each_item(plan, [&](size_t r, const Item& item) {
    if (item.kind != Item::Kind::Op) return;
    OpItem& op = plan.ops[z(item.number)];
    for (size_t k = 0; k < op.inputs.size() && k < 64; ++k)
      if (is_shared(r, op.inputs[k])) op.shared |= uint64_t{1} << k;
    const auto is_own = [](Operand x) { return x >= 0; };
    op.is_same = !op.is_effect && !op.is_open && op.kernel >= 0 && op.outputs.size() == 1 && op.outputs[0] >= 0 &&
                 std::ranges::any_of(op.inputs, is_own) &&
                 std::ranges::all_of(op.inputs, [&](Operand x) { return is_shared(r, x); });
  });
}

void Shared::mark(size_t region, int32_t slot) {
  if (slot == kNoSlot || slots[region][z(slot)]) return;
  slots[region][z(slot)] = has_grown_ = true;
}

void Shared::hand_in(size_t from, size_t to, const std::vector<Transfer>& transfers) {
  for (const Transfer& transfer : transfers)
    if (is_shared(from, transfer.from)) mark(to, transfer.to);
}

void Shared::look(const Plan& plan, size_t r, const Item& item) {
  switch (item.kind) {
    case Item::Kind::Read:
      return mark(r, plan.reads[z(item.number)].to);
    case Item::Kind::Op: {
      const OpItem& op = plan.ops[z(item.number)];
      if (op.is_effect || !std::ranges::all_of(op.inputs, [&](Operand x) { return is_shared(r, x); })) return;
      for (int32_t to : op.outputs) mark(r, to);
      return;
    }
    case Item::Kind::Branch: {
      const BranchItem& branch = plan.branches[z(item.number)];
      for (int side = 0; side < 2; ++side) hand_in(r, z(branch.regions[side]), branch.transfers[side]);
      return;
    }
    case Item::Kind::Loop: {
      const LoopItem& loop = plan.loops[z(item.number)];
      return hand_in(r, z(loop.body), loop.outers);
    }
    case Item::Kind::Map: {
      const MapItem& map = plan.maps[z(item.number)];
      return hand_in(r, z(map.body), map.outers);
    }
    default:
      return;
  }
}

}  // namespace undertow
