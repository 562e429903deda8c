// Who reads what: a slot that only its neighbours read needs no column.
#include "fuse.h"

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }

class Uses {
 public:
  explicit Uses(const Plan& plan) : plan_(plan), counts_(plan.regions.size()) {
    for (size_t r = 0; r < plan.regions.size(); ++r) counts_[r].assign(plan.regions[r].slots.size(), 0);
  }

  std::vector<std::vector<int32_t>> count() {
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      const auto region = static_cast<int32_t>(r);
      for (const auto& results : plan_.regions[r].results)
        for (int32_t slot : results) use(region, slot);
      for (const Program& program : plan_.regions[r].phases)
        for (const Stage& stage : program.stages)
          for (const auto* items : {&stage.straight, &stage.entered})
            for (const Item& item : *items) look(region, item);
    }
    return std::move(counts_);
  }

 private:
  void use(int32_t region, Operand x) {
    if (x >= 0) ++counts_[z(region)][z(x)];
  }

  void use(int32_t region, const std::vector<Operand>& all) {
    for (Operand x : all) use(region, x);
  }

  void look(int32_t r, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Op:
        return use(r, plan_.ops[z(item.number)].inputs);
      case Item::Kind::Collect:
        for (Operand x : plan_.collects[z(item.number)].values) use(r, x);
        return;
      case Item::Kind::Collected:
        return use(r, plan_.collecteds[z(item.number)].like);
      case Item::Kind::Read:
        if (plan_.reads[z(item.number)].is_shared) use(0, plan_.reads[z(item.number)].index);
        return;
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        use(r, branch.pred);
        for (int side = 0; side < 2; ++side) {
          for (const Transfer& t : branch.transfers[side]) use(r, t.from);
          for (const MergeRow& merge : branch.merges) use(branch.regions[side], merge.sides[side]);
        }
        return;
      }
      case Item::Kind::Call:
        use(r, plan_.calls[z(item.number)].arguments);
        return use(r, plan_.calls[z(item.number)].hoists);
      case Item::Kind::Loop:
        return look(r, plan_.loops[z(item.number)]);
      case Item::Kind::Map: {
        const MapItem& map = plan_.maps[z(item.number)];
        if (map.phase == 0) use(r, map.counted);
        for (const auto* transfers : {&map.mapped, &map.outers})
          for (const Transfer& t : *transfers) use(r, t.from);
        for (const LoopItem::Exit& result : map.results) use(map.body, result.from);
        return;
      }
      case Item::Kind::Fused:  // what it stands for has been seen
      case Item::Kind::Drop:
        return;
    }
  }

  void look(int32_t r, const LoopItem& loop) {
    for (const auto* transfers : {&loop.variables, &loop.outers})
      for (const Transfer& t : *transfers) {
        use(r, t.from);
        use(loop.body, t.to);  // the next iteration takes it from there
      }
    for (const LoopItem::Exit& exit : loop.exits) use(loop.body, exit.from);
    for (const Stage& stage : plan_.regions[z(loop.body)].phases[0].stages)
      for (const Item& item : stage.entered)
        if (item.kind == Item::Kind::Branch && plan_.branches[z(item.number)].branch == loop.branch)
          use(plan_.branches[z(item.number)].regions[0], loop.next);
  }

  const Plan& plan_;
  std::vector<std::vector<int32_t>> counts_;
};

}  // namespace

std::vector<std::vector<int32_t>> count_uses(const Plan& plan) { return Uses(plan).count(); }

}  // namespace undertow
