// Which functions run narrow: they, and all that they enter, are scalar and linear.
#include <string_view>

#include "narrow/program.h"

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }

bool is_scalar(const Slot& slot) { return !slot.is_dynamic && slot.rank() == 0; }

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
      for (const Slot& slot : region.slots) good = good && is_scalar(slot);
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
  bool fits(size_t region, const Item& item, int& calls) {
    const auto at = z(item.number);
    switch (item.kind) {
      case Item::Kind::Op: {
        const OpItem& op = plan_.ops[at];
        if (op.kernel < 0 || op.outputs.size() != 1 || op.outputs[0] == kNoSlot || op.inputs.size() > 3) return false;
        for (Operand x : op.inputs)
          if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        const std::string_view name = plan_.kernel_ops[z(op.kernel)];
        if (name == "identity" || name == "stop_gradient" || name == "fill") return op.inputs.size() == 1;
        return plan_.kernels[z(op.kernel)]->elementwise() != nullptr;
      }
      case Item::Kind::Branch: {
        for (const MergeRow& merge : plan_.branches[at].merges)
          for (Operand x : merge.sides)
            if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        // Calls on both sides are one call of each lane.
        calls += has_calls(Item{Item::Kind::Branch, item.number}) ? 1 : 0;
        return true;
      }
      case Item::Kind::Call:
        ++calls;
        enters_[region].push_back(plan_.calls[at].body);
        for (Operand x : plan_.calls[at].arguments)
          if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        return true;
      case Item::Kind::Loop:
        calls += has_calls(item) ? 1 : 0;
        enters_[region].push_back(plan_.loops[at].body);
        return true;
      case Item::Kind::Map:
      case Item::Kind::Fused:
      case Item::Kind::Drop:
        return false;
      case Item::Kind::Read:
        return true;
      case Item::Kind::Collect:
        return plan_.collects[at].kind == 0;
      case Item::Kind::Collected:
        return plan_.collecteds[at].to[1] == kNoSlot && plan_.collecteds[at].to[0] != kNoSlot;
    }
    return false;
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
