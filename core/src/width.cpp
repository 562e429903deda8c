#include "width.h"

#include <algorithm>

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }

/// Slots that hold one value for all lanes of a table: what is read from outside, and what is made of that alone. (An
/// entry for each lane may hold values of its own: who makes entries counts them.)
class Shared {
 public:
  explicit Shared(const Plan& plan) : plan_(plan) {
    for (const Region& region : plan.regions) slots.emplace_back(region.slots.size(), false);
    for (has_grown_ = true; has_grown_;) {
      has_grown_ = false;
      for (size_t r = 0; r < plan.regions.size(); ++r)
        for (const Program& program : plan.regions[r].phases)
          for (const Stage& stage : program.stages)
            for (const auto* items : {&stage.straight, &stage.entered})
              for (const Item& item : *items) look(r, item);
    }
  }

  std::vector<std::vector<bool>> slots;  ///< by region

 private:
  bool is_shared(size_t region, Operand x) const { return x < 0 || slots[region][z(x)]; }

  void mark(size_t region, int32_t slot) {
    if (slot == kNoSlot || slots[region][z(slot)]) return;
    slots[region][z(slot)] = has_grown_ = true;
  }

  void hand_in(size_t from, size_t to, const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers)
      if (is_shared(from, transfer.from)) mark(to, transfer.to);
  }

  void look(size_t r, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Read:
        return mark(r, plan_.reads[z(item.number)].to);
      case Item::Kind::Op: {
        const OpItem& op = plan_.ops[z(item.number)];
        if (op.is_effect || !std::ranges::all_of(op.inputs, [&](Operand x) { return is_shared(r, x); })) return;
        for (int32_t to : op.outputs) mark(r, to);
        return;
      }
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        for (int side = 0; side < 2; ++side) hand_in(r, z(branch.regions[side]), branch.transfers[side]);
        return;
      }
      case Item::Kind::Loop: {
        const LoopItem& loop = plan_.loops[z(item.number)];
        return hand_in(r, z(loop.body), loop.outers);
      }
      case Item::Kind::Map: {
        const MapItem& map = plan_.maps[z(item.number)];
        return hand_in(r, z(map.body), map.outers);
      }
      default:
        return;
    }
  }

  const Plan& plan_;
  bool has_grown_ = false;
};

}  // namespace

std::vector<int64_t> lane_bytes_of(const Plan& plan) {
  const Shared shared(plan);
  std::vector<int64_t> bytes(z(plan.groups), 0);
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    for (size_t k = 0; k < region.slots.size(); ++k)
      if (!shared.slots[r][k] && !region.slots[k].is_inner) bytes[z(region.group)] += region.slots[k].bytes;
  }
  return bytes;
}

}  // namespace undertow
