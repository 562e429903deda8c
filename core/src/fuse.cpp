// Find operators that can run together.
//
// The straight part of a stage is a list of items in an order that suits their operands. It is put into another such
// order: what cannot be fused goes first, as far as possible, and then as many of the others as fit together, until
// nothing is left. What the host runs stays where it is between what comes before and after it.
#include "fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <ranges>
#include <set>
#include <string_view>

#include "undertow/isa.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// What an operator is to a group.
struct Role {
  enum class Kind : uint8_t {
    None,
    Each,    // an operator on each element
    Fold,    // a short row to one element
    Pick,    // an element of a short row
    Place,   // an element added to one of a short row
    Part,    // some elements of its operand as they stand there: nothing is done
    Spread,  // one element, for a row
    Join,    // rows side by side: each goes to its place at once
  };
  Kind kind = Kind::None;
  int64_t width = 0;                // elements of the rows
  const Elementwise* op = nullptr;  // of a Fold or Place: how to add up
};

class Roles {
 public:
  Roles(const Plan& plan, const Region& region) : plan_(plan), region_(region) {}

  Role of(const OpItem& item) const {
    if (item.kernel < 0 || item.is_open || item.is_effect || item.outputs.size() != 1 || item.inputs.empty()) return {};
    const Kernel& kernel = *plan_.kernels[z(item.kernel)];
    const Slot& out = region_.slots[z(item.outputs[0])];
    const Slot& first = slot(item.inputs[0]);
    if (out.count < 1 || first.count < 1) return {};
    if (const Elementwise* each = kernel.elementwise()) {
      for (Operand x : item.inputs)
        if (slot(x).count != 1 && (slot(x).count != out.count || slot(x).rank() > out.rank())) return {};
      return {Role::Kind::Each, out.count, each};
    }
    if (item.inputs.size() == 1 && kernel.part_at(view(first)) >= 0) return {Role::Kind::Part, out.count};
    const std::string_view name = plan_.kernel_ops[z(item.kernel)];
    if (name == "broadcast_to" && item.inputs.size() == 1 && first.count == 1 && out.count > 1)
      return {Role::Kind::Spread, out.count};
    if (name == "concat" && out.rank() == 1 && first.count > 1) {
      for (Operand x : item.inputs)
        if (slot(x).count != first.count) return {};
      return {Role::Kind::Join, first.count};
    }
    if (first.count < 2 || first.count > Fused::kMostPlanes) return {};
    const bool is_one = out.count == 1 && out.dtype == first.dtype && item.inputs.size() == 1;
    for (const auto& [reduction, op] : {std::pair{"sum", "add"}, {"max", "maximum"}, {"min", "minimum"}})
      if (name == reduction && is_one) return folded(Role::Kind::Fold, first, op);
    if (name == "index" && item.inputs.size() == 2 && first.rank() == 1 && is_number(item.inputs[1]))
      return {Role::Kind::Pick, first.count};
    if (name == "scatter_add" && item.inputs.size() == 3 && first.rank() == 1 && is_number(item.inputs[1]) &&
        slot(item.inputs[2]).rank() == 0)
      return folded(Role::Kind::Place, first, "add");
    return {};
  }

  const Slot& slot(Operand x) const { return x < 0 ? plan_.constants[z(~x)].slot : region_.slots[z(x)]; }
  static View view(const Slot& slot) { return {nullptr, 0, slot.shape.data(), slot.rank(), slot.dtype}; }

 private:
  bool is_number(Operand x) const {
    return slot(x).rank() == 0 && (slot(x).dtype == DType::I32 || slot(x).dtype == DType::I64);
  }

  static Role folded(Role::Kind kind, const Slot& row, const char* name) {
    const Type types[2] = {{row.dtype, 0}, {row.dtype, 0}};
    const Elementwise* op = find_elementwise(functions(), name, types, row.dtype);
    return op == nullptr ? Role{} : Role{kind, row.count, op};
  }

  const Plan& plan_;
  const Region& region_;
};

/// A group that is being made.
class Group {
 public:
  Group(const Plan& plan, const Roles& roles) : plan_(plan), roles_(roles) {}

  bool is_empty() const { return ops_.empty(); }
  bool makes(Operand x) const { return made_.contains(x); }

  /// Is there room for one more?
  bool is_full() const {
    return inputs_.size() + 3 > 64 || inputs_.size() + instructions_.size() + 4 > Fused::kMostRegisters;
  }

  /// Take an operator; false where it does not fit.
  bool add(int32_t number, const Role& role) {
    const OpItem& item = plan_.ops[z(number)];
    Register result{};
    uint64_t depends = 0;
    int32_t own = -1;
    if (role.kind == Role::Kind::Join) {
      if (item.inputs.size() + inputs_.size() > 64) return false;
      for (Operand x : item.inputs) depends |= use(x).depends;
    } else if (role.kind == Role::Kind::Part) {
      result = part(item);
      depends = result.depends;
    } else if (role.kind == Role::Kind::Spread) {
      result = use(item.inputs[0]);
      depends = result.depends;
    } else {
      Fused::Instruction instruction{Fused::Kind::Each, role.op, {}};
      if (role.kind == Role::Kind::Fold) instruction.kind = Fused::Kind::Fold;
      if (role.kind == Role::Kind::Pick) instruction.kind = Fused::Kind::Pick;
      if (role.kind == Role::Kind::Place) instruction.kind = Fused::Kind::Place;
      instruction.adds = plan_.kernel_ops[z(item.kernel)] == "sum";
      const bool wants_row = role.kind != Role::Kind::Each;
      if (wants_row && makes(item.inputs[0]) && !made_.at(item.inputs[0]).is_row) return false;
      result.is_row = role.kind == Role::Kind::Place || (wants_row ? false : role.width > Fused::kMostPlanes);
      for (size_t k = 0; k < item.inputs.size(); ++k) {
        const Register operand = use(item.inputs[k]);
        instruction.inputs[k] = operand.number;
        depends |= operand.depends;
        if (!wants_row) result.is_row = result.is_row || operand.is_row;
      }
      own = static_cast<int32_t>(instructions_.size());
      result.number = ~own;
      result.depends = depends;
      instructions_.push_back(instruction);
    }
    if (role.kind == Role::Kind::Join)
      joined_.insert(item.outputs[0]);
    else
      made_[item.outputs[0]] = result;
    ops_.push_back({number, role.kind, depends, own});
    width_ = std::max(width_, role.width);
    return true;
  }

  /// Must it wait until the group is done? Rows that were put side by side are no register.
  bool is_late(const OpItem& item) const {
    return std::ranges::any_of(item.inputs, [&](Operand x) { return joined_.contains(x); });
  }

  /// Make an item of it, if that pays. What is left over runs before it, or instead of it.
  std::optional<FusedItem> finish(const std::vector<int32_t>& uses, std::vector<int32_t>& alone) {
    std::map<Operand, int32_t> inside;
    for (const Member& member : ops_)
      for (Operand x : plan_.ops[z(member.op)].inputs) ++inside[x];
    std::set<Operand> wanted;  // by others
    for (const Member& member : ops_) {
      const int32_t to = plan_.ops[z(member.op)].outputs[0];
      if (uses[z(to)] > inside[to]) wanted.insert(to);
    }
    // A part of an input that others want too is made for them, but not for the group.
    std::vector<Member> members;
    for (const Member& member : ops_ | std::views::reverse) {
      const OpItem& item = plan_.ops[z(member.op)];
      const bool is_alone = member.kind == Role::Kind::Join
                                ? !joins_results(item)
                                : made_.at(item.outputs[0]).number >= 0 && wanted.contains(item.outputs[0]);
      if (is_alone) {
        alone.push_back(member.op);
        wanted.insert(item.inputs.begin(), item.inputs.end());
      } else {
        members.push_back(member);
      }
    }
    if (instructions_.empty() || members.size() < 2) {
      alone.clear();
      for (const Member& member : ops_) alone.push_back(member.op);
      return std::nullopt;
    }
    std::ranges::reverse(alone);
    std::ranges::reverse(members);
    return write(members, wanted);
  }

 private:
  struct Register {
    int32_t number;  // of an input, or ~number of an instruction
    uint64_t depends;
    bool is_row;
  };
  struct Member {
    int32_t op;
    Role::Kind kind;
    uint64_t depends;
    int32_t instruction;  // or -1
  };

  /// Rows that are put side by side but not made here are better left to their own operator.
  bool joins_results(const OpItem& item) const {
    return std::ranges::any_of(item.inputs, [&](Operand x) { return makes(x) && made_.at(x).number < 0; });
  }

  Register input(Operand x, int64_t offset, int64_t count, DType dtype) {
    const auto [found, is_new] = numbers_.try_emplace({x, offset, count}, static_cast<int32_t>(inputs_.size()));
    if (is_new) {
      inputs_.push_back({x, offset});
      types_.push_back({dtype, count > 1});
      bytes_ += count * size_of(dtype);
    }
    return {found->second, uint64_t{1} << found->second, count > 1};
  }

  Register use(Operand x) {
    if (makes(x)) return made_.at(x);
    const Slot& slot = roles_.slot(x);
    return input(x, 0, slot.count, slot.dtype);
  }

  Register part(const OpItem& item) {
    if (makes(item.inputs[0])) return made_.at(item.inputs[0]);
    const Slot &from = roles_.slot(item.inputs[0]), &to = roles_.slot(item.outputs[0]);
    const int64_t at = plan_.kernels[z(item.kernel)]->part_at(Roles::view(from));
    return input(item.inputs[0], at * size_of(from.dtype), to.count, from.dtype);
  }

  int number(int32_t reg) const { return reg >= 0 ? reg : static_cast<int>(inputs_.size()) + ~reg; }

  FusedItem write(const std::vector<Member>& members, const std::set<Operand>& wanted) {
    for (Fused::Instruction& instruction : instructions_)
      for (int k = 0; k < instruction.arity(); ++k) instruction.inputs[k] = number(instruction.inputs[k]);
    std::vector<int32_t> ops, results;
    std::vector<uint64_t> depends;
    std::vector<FusedItem::Output> outputs;
    std::vector<Fused::Output> from;
    for (const Member& member : members) {
      const OpItem& item = plan_.ops[z(member.op)];
      const int32_t to = item.outputs[0];
      ops.push_back(member.op);
      depends.push_back(member.depends);
      results.push_back(member.instruction < 0 ? -1 : number(~member.instruction));
      if (member.kind == Role::Kind::Join) {
        int64_t offset = 0;
        for (Operand x : item.inputs) {
          outputs.push_back({to, offset, offset == 0, member.depends});
          from.push_back({number(use(x).number), true});
          offset += roles_.slot(x).bytes;
        }
        bytes_ += offset;
      } else if (wanted.contains(to)) {
        outputs.push_back({to, 0, true, member.depends});
        from.push_back({number(made_.at(to).number), roles_.slot(to).count > 1});
        bytes_ += roles_.slot(to).bytes;
      }
    }
    return {std::move(ops),     std::move(depends), std::move(results),
            std::move(inputs_), std::move(outputs), Fused(width_, types_, instructions_, from),
            bytes_ + 8};
  }

  const Plan& plan_;
  const Roles& roles_;
  std::vector<Member> ops_;
  std::vector<FusedItem::Input> inputs_;
  std::vector<Fused::Type> types_;  // of inputs
  std::map<std::tuple<Operand, int64_t, int64_t>, int32_t> numbers_;
  std::vector<Fused::Instruction> instructions_;
  std::map<Operand, Register> made_;  // by slot
  std::set<Operand> joined_;
  int64_t width_ = 1;
  int64_t bytes_ = 0;
};

using Heap = std::priority_queue<size_t, std::vector<size_t>, std::greater<>>;  // items by their old place

/// Some items of a stage, none of which the host runs.
class Segment {
 public:
  Segment(Plan& plan, const Region& region, const std::vector<int32_t>& uses, std::span<const Item> items,
          std::vector<Item>& out)
      : plan_(plan), roles_(plan, region), uses_(uses), items_(items), out_(out) {}

  void order() {
    connect();
    for (size_t k = 0; k < items_.size(); ++k)
      if (missing_[k] == 0) make_ready(k);
    for (;;) {
      if (!plain_.empty()) {
        const size_t next = plain_.top();
        plain_.pop();
        out_.push_back(items_[next]);
        release(next, nullptr);
      } else if (Heap* first = earliest(1, INT64_MAX)) {
        gather(first);
      } else {
        return;
      }
    }
  }

 private:
  std::vector<int32_t> read(const Item& item) const {
    switch (item.kind) {
      case Item::Kind::Op:
        return plan_.ops[z(item.number)].inputs;
      case Item::Kind::Collect:
        return {plan_.collects[z(item.number)].values, plan_.collects[z(item.number)].values + 2};
      case Item::Kind::Collected:
        return {plan_.collecteds[z(item.number)].like};
      default:
        return {};
    }
  }

  std::vector<int32_t> written(const Item& item) const {
    switch (item.kind) {
      case Item::Kind::Op:
        return plan_.ops[z(item.number)].outputs;
      case Item::Kind::Read:
        return {plan_.reads[z(item.number)].to};
      case Item::Kind::Collected:
        return {plan_.collecteds[z(item.number)].to, plan_.collecteds[z(item.number)].to + 2};
      default:
        return {};
    }
  }

  /// Who waits for whom.
  void connect() {
    std::map<int32_t, size_t> makers;
    missing_.assign(items_.size(), 0);
    after_.resize(items_.size());
    for (size_t k = 0; k < items_.size(); ++k) {
      std::set<size_t> before;
      for (int32_t x : read(items_[k]))
        if (const auto found = makers.find(x); found != makers.end()) before.insert(found->second);
      for (size_t other : before) after_[other].push_back(k);
      missing_[k] = before.size();
      for (int32_t to : written(items_[k])) makers[to] = k;
      roles_of_.push_back(items_[k].kind == Item::Kind::Op ? roles_.of(plan_.ops[z(items_[k].number)]) : Role{});
    }
  }

  void make_ready(size_t k) {
    if (roles_of_[k].kind == Role::Kind::None)
      plain_.push(k);
    else
      ready_[roles_of_[k].width].push(k);
  }

  /// Something is there now, or is made by a group: a part of that must wait until it has a column.
  void release(size_t k, const Group* group) {
    for (size_t next : after_[k]) {
      if (--missing_[next] > 0) continue;
      if (group != nullptr && items_[next].kind == Item::Kind::Op && must_wait(next, *group))
        held_.push_back(next);
      else
        make_ready(next);
    }
  }

  bool must_wait(size_t k, const Group& group) const {
    const OpItem& item = plan_.ops[z(items_[k].number)];
    if (group.is_late(item)) return true;
    return roles_of_[k].kind == Role::Kind::Part && group.makes(item.inputs[0]) &&
           roles_.slot(item.inputs[0]).count != roles_.slot(item.outputs[0]).count;
  }

  Heap* earliest(int64_t low, int64_t high) {
    Heap* best = nullptr;
    for (auto& [width, heap] : ready_)
      if (width >= low && width <= high && !heap.empty() && (best == nullptr || heap.top() < best->top())) best = &heap;
    return best;
  }

  /// A group, from the first that is ready on, as large as it can be.
  void gather(Heap* from) {
    Group group(plan_, roles_);
    std::vector<size_t> refused;
    int64_t width = 1;
    while (from != nullptr && !group.is_full()) {
      const size_t next = from->top();
      from->pop();
      const Role& role = roles_of_[next];
      if (group.add(items_[next].number, role)) {
        width = std::max(width, role.width);
        release(next, &group);
      } else {
        refused.push_back(next);
      }
      if (width == 1)
        from = earliest(1, Fused::kMostPlanes);
      else if (width > Fused::kMostPlanes)
        from = earliest(width, width);
      else if ((from = earliest(1, 1)) == nullptr)
        from = earliest(width, width);
    }
    std::vector<int32_t> alone;
    std::optional<FusedItem> item = group.finish(uses_, alone);
    for (int32_t number : alone) out_.push_back({Item::Kind::Op, number});
    if (item) {
      plan_.fuseds.push_back(std::move(*item));
      out_.push_back({Item::Kind::Fused, static_cast<int32_t>(plan_.fuseds.size()) - 1});
    }
    for (size_t next : refused) plain_.push(next);
    for (size_t next : held_) make_ready(next);
    held_.clear();
  }

  Plan& plan_;
  Roles roles_;
  const std::vector<int32_t>& uses_;
  std::span<const Item> items_;
  std::vector<Item>& out_;
  std::vector<Role> roles_of_;
  std::vector<size_t> missing_;
  std::vector<std::vector<size_t>> after_;
  std::map<int64_t, Heap> ready_;  // by width
  Heap plain_;
  std::vector<size_t> held_;
};

/// Slots without columns, and where the others stand.
void place_slots(const Plan& plan, Region& region) {
  std::vector<bool> is_inner(region.slots.size(), false);
  for (const Program& program : region.phases)
    for (const Stage& stage : program.stages)
      for (const Item& item : stage.fused) {
        if (item.kind != Item::Kind::Fused) continue;
        const FusedItem& fused = plan.fuseds[z(item.number)];
        for (int32_t op : fused.ops) is_inner[z(plan.ops[z(op)].outputs[0])] = true;
        for (const FusedItem::Output& output : fused.outputs) is_inner[z(output.to)] = false;
      }
  region.row = region.small = 0;
  for (size_t k = 0; k < region.slots.size(); ++k) {
    Slot& slot = region.slots[k];
    slot.is_inner = is_inner[k];
    if (slot.is_inner) slot.offset = -1;
    if (slot.offset < 0) continue;
    slot.offset = region.row;
    slot.place = region.small++;
    region.row += slot.bytes;
  }
}

void fuse_items(Plan& plan, const Region& region, const std::vector<int32_t>& uses, std::span<const Item> items,
                std::vector<Item>& out) {
  const auto is_hosted = [&](const Item& item) {
    return item.kind == Item::Kind::Op && plan.ops[z(item.number)].kernel < 0;
  };
  for (size_t first = 0; first < items.size();) {
    size_t last = first;
    while (last < items.size() && !is_hosted(items[last])) ++last;
    Segment(plan, region, uses, items.subspan(first, last - first), out).order();
    if (last < items.size()) out.push_back(items[last++]);
    first = last;
  }
}

}  // namespace

void fuse(Plan& plan) {
  const std::vector<std::vector<int32_t>> uses = count_uses(plan);
  for (size_t r = 0; r < uses.size(); ++r)
    for (size_t k = 0; k < uses[r].size(); ++k) plan.regions[r].slots[k].uses = uses[r][k];
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    Region& region = plan.regions[r];
    for (Program& program : region.phases)
      for (Stage& stage : program.stages) {
        const std::span<const Item> items(stage.straight);
        fuse_items(plan, region, uses[r], items.first(stage.late_from), stage.fused);
        stage.fused_late_from = stage.fused.size();
        fuse_items(plan, region, uses[r], items.subspan(stage.late_from), stage.fused);
        if (stage.late >= 0)
          plan.lates[z(stage.late)].fused.assign(stage.fused.begin() + static_cast<int64_t>(stage.fused_late_from),
                                                 stage.fused.end());
      }
    place_slots(plan, region);
    region.has_arrays =
        std::ranges::any_of(region.slots, [](const Slot& slot) { return slot.offset < 0 && !slot.is_inner; });
  }
}

}  // namespace undertow
