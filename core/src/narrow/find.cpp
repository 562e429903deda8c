// Which functions run narrow: they, and all that they enter, are scalar and linear.
#include <algorithm>
#include <span>
#include <string_view>

#include "narrow/program.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// Looks at all that a group can reach.
class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan) {
    good_.assign(plan.regions.size(), 0);
    enters_.resize(plan.regions.size());
    find_calls();
    for (size_t number = 0; number < plan.regions.size(); ++number) {
      const Region& region = plan.regions[number];
      bool good = true;
      for (const auto* ends : {&region.params, &region.results})
        for (const auto& slots : *ends)
          for (int32_t slot : slots) good = good && (slot == kNoSlot || is_scalar(number, slot));
      for (const Program& program : region.phases)
        for (const Stage& stage : program.stages) {
          int calls = 0;
          for (const auto* items : {&stage.straight, &stage.entered})
            for (const Item& item : *items) good = good && fits(number, item, calls);
          good = good && calls <= 1;
        }
      good_[number] = good ? 1 : 0;
    }
  }

  /// The bodies that run narrow: they, and all that they enter, are scalar and linear.
  std::vector<bool> bodies() const {
    std::vector<bool> body(plan_.regions.size(), true);
    for (size_t number = 0; number < plan_.regions.size(); ++number) {
      const Region& region = plan_.regions[number];
      if (good_[number] == 0) body[z(region.body)] = false;
      if (region.kind == Region::Kind::Main || region.kind == Region::Kind::Map) body[number] = false;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t number = 0; number < plan_.regions.size(); ++number) {
        const auto own = z(plan_.regions[number].body);
        for (int32_t entered : enters_[number])
          if (body[own] && !body[z(entered)]) {
            body[own] = false;
            changed = true;
          }
      }
    }
    return body;
  }

 private:
  const Slot& slot(size_t region, Operand x) const {
    return x < 0 ? plan_.constants[z(~x)].slot : plan_.regions[region].slots[z(x)];
  }

  bool is_scalar(size_t region, Operand x) const {
    return x == kNoSlot || (!slot(region, x).is_dynamic && slot(region, x).rank() == 0);
  }

  bool are_scalar(size_t region, std::span<const Operand> all) const {
    return std::ranges::all_of(all, [&](Operand x) { return is_scalar(region, x); });
  }

  /// Values are numbers. An array may come from the entry, be handed on to branches and loops, and be looked into.
  bool fits(size_t region, const Item& item, int& calls) {
    const auto at = z(item.number);
    switch (item.kind) {
      case Item::Kind::Op:
        return fits(region, plan_.ops[at]);
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[at];
        for (const MergeRow& merge : branch.merges) {
          if (!is_scalar(region, merge.to)) return false;
          for (int side = 0; side < 2; ++side)
            if (!is_scalar(z(branch.regions[side]), merge.sides[side])) return false;
        }
        // Calls on both sides are one call of each lane.
        calls += has_calls(Item{Item::Kind::Branch, item.number}) ? 1 : 0;
        return true;
      }
      case Item::Kind::Call: {
        const CallItem& call = plan_.calls[at];
        ++calls;
        enters_[region].push_back(call.body);
        return are_scalar(region, call.arguments) && are_scalar(region, call.hoists) &&
               are_scalar(region, call.results);
      }
      case Item::Kind::Loop: {
        const LoopItem& loop = plan_.loops[at];
        calls += has_calls(item) ? 1 : 0;
        enters_[region].push_back(loop.body);
        return std::ranges::all_of(loop.variables, [&](const Transfer& t) { return is_scalar(region, t.from); }) &&
               std::ranges::all_of(loop.exits, [&](const LoopItem::Exit& exit) { return is_scalar(region, exit.to); });
      }
      case Item::Kind::Map:
      case Item::Kind::Fused:
        return false;
      case Item::Kind::Read:
        return true;
      case Item::Kind::Collect: {
        const CollectItem& collect = plan_.collects[at];
        return collect.kind < 2 && are_scalar(region, collect.values);
      }
      case Item::Kind::Collected: {
        const CollectedItem& collected = plan_.collecteds[at];
        return collected.to[1] == kNoSlot && collected.to[0] != kNoSlot && is_scalar(region, collected.to[0]);
      }
    }
    return false;
  }

  bool fits(size_t region, const OpItem& op) const {
    if (op.kernel < 0 || op.outputs.size() != 1 || op.outputs[0] == kNoSlot || !is_scalar(region, op.outputs[0]))
      return false;
    const std::string_view name = plan_.kernel_ops[z(op.kernel)];
    if (name == "index") return are_scalar(region, std::span(op.inputs).subspan(1));
    if (op.inputs.size() > 3 || !are_scalar(region, op.inputs)) return false;
    if (name == "identity" || name == "stop_gradient" || name == "fill") return op.inputs.size() == 1;
    return plan_.kernels[z(op.kernel)]->elementwise() != nullptr;
  }

  /// In which phases of which regions calls are made. What stands inside has a higher number; where not, say yes.
  void find_calls() {
    calls_.resize(plan_.regions.size());
    for (size_t number = plan_.regions.size(); number-- > 0;)
      for (const Program& program : plan_.regions[number].phases) {
        bool found = false;
        for (const Stage& stage : program.stages)
          for (const Item& item : stage.entered) found = found || has_calls(item);
        calls_[number].push_back(found);
      }
  }

  bool has_calls(const Item& item) const {
    const auto inside = [&](int32_t region, int32_t phase) {
      const std::vector<bool>& known = calls_[z(region)];
      return z(phase) >= known.size() || known[z(phase)];
    };
    if (item.kind == Item::Kind::Branch) {
      const BranchItem& branch = plan_.branches[z(item.number)];
      return inside(branch.regions[0], branch.programs[0]) || inside(branch.regions[1], branch.programs[1]);
    }
    return item.kind != Item::Kind::Loop || inside(plan_.loops[z(item.number)].body, 0);
  }

  const Plan& plan_;
  std::vector<std::vector<bool>> calls_;
  std::vector<char> good_;
  std::vector<std::vector<int32_t>> enters_;
};

}  // namespace

std::vector<bool> find_narrow(const Plan& plan) { return Finder(plan).bodies(); }

}  // namespace undertow
