// Decode a plan. Every number is checked here, once, so that runs need not.
#include "undertow/plan.h"

#include <algorithm>

#include "agenda/outline.h"
#include "narrow/program.h"
#include "plan/check.h"
#include "plan/fused_item.h"
#include "plan/int_reader.h"
#include "plan/items.h"
#include "remote/outline.h"
#include "run/deferred.h"

namespace undertow {
namespace {

constexpr int64_t kVersion = 5;
constexpr int64_t kFormat = kFieldsHash << 8 | kVersion;

/// Reads records, field by field.
class Decoder {
 public:
  Decoder(IntReader& in, Plan& plan, std::vector<std::pair<size_t, FusedFields>>& fused)
      : in_(in), plan_(plan), fused_(fused) {}

  void operator()(int32_t& to) { to = in_.any(); }
  void operator()(bool& to) { to = in_.flag(); }
  void operator()(ValueType& to) { to = read_type(in_); }
  void operator()(Item& to) {
    (*this)(to.kind);
    to.number = read_item(to.kind);
  }
  template <class T>
  void operator()(std::vector<T>& to) {
    to.resize(z(in_.count()));
    for (T& each : to) (*this)(each);
  }
  template <class T>
  void operator()(std::array<T, 2>& to) {
    for (T& each : to) (*this)(each);
  }
  template <class T>
  void operator()(T& to) {
    if constexpr (std::is_enum_v<T>)
      to = static_cast<T>(in_.between(0, count_of(T{})));
    else
      each_field(*this, to);
  }

 private:
  template <class T>
  int32_t add(std::vector<T>& table) {
    T made{};
    (*this)(made);
    table.push_back(std::move(made));
    return static_cast<int32_t>(table.size()) - 1;
  }

  int32_t read_item(Item::Kind kind) {
    switch (kind) {
      case Item::Kind::Op: return add(plan_.ops);
      case Item::Kind::Branch: return add(plan_.branches);
      case Item::Kind::Call: return add(plan_.calls);
      case Item::Kind::Loop: return add(plan_.loops);
      case Item::Kind::Map: return add(plan_.maps);
      case Item::Kind::Read: return add(plan_.reads);
      case Item::Kind::Send: return add(plan_.sends);
      case Item::Kind::Recv: return add(plan_.recvs);
      case Item::Kind::Replica: return add(plan_.replicas);
      case Item::Kind::Collect: {
        const int32_t number = add(plan_.collects);
        CollectItem& collect = plan_.collects.back();
        if (collect.values.size() != (collect.kind == CollectKind::Whole ? 1 : 2))
          not_a_plan("a collect has the wrong number of values");
        collect.values.resize(2, collect.values[0]);
        return number;
      }
      case Item::Kind::Collected: {
        const int32_t number = add(plan_.collecteds);
        CollectedItem& collected = plan_.collecteds.back();
        if (collected.to.empty() || collected.to.size() > 2)
          not_a_plan("a collected writes to no column, or to more than two");
        collected.to.resize(2, kNoSlot);
        return number;
      }
      case Item::Kind::Fused: {
        FusedFields fields;
        (*this)(fields);
        FusedItem& made = plan_.fuseds.emplace_back();
        for (const OpFields& op : fields.ops) {
          made.ops.push_back(static_cast<int32_t>(plan_.ops.size()));
          plan_.ops.push_back({op});
        }
        fused_.emplace_back(plan_.fuseds.size() - 1, std::move(fields));
        return static_cast<int32_t>(plan_.fuseds.size()) - 1;
      }
    }
    not_a_plan("an item is of an unknown kind");
  }

  IntReader& in_;
  Plan& plan_;
  std::vector<std::pair<size_t, FusedFields>>& fused_;
};

/// Count the branches, calls, loops and maps of a region: one more than the highest number of each.
void count_parts(const Plan& plan, Region& region) {
  int32_t items = 0;
  each_item(region, [&](int32_t, const Item&) { ++items; });
  each_item(region, [&](int32_t, const Item& item) {
    if (is_straight(item.kind) || item.kind == Item::Kind::Recv) return;
    int32_t& most = item.kind == Item::Kind::Branch ? region.branches
                    : item.kind == Item::Kind::Call ? region.calls
                    : item.kind == Item::Kind::Loop ? region.loops
                                                    : region.maps;
    const int32_t number = number_of(plan, item);
    // Numbers may have gaps: a branch in which nothing happens is never entered.
    if (number < 0 || number >= items + static_cast<int32_t>(plan.regions.size()))
      not_a_plan("the number of a branch, call, loop or map is out of range");
    most = std::max(most, number + 1);
  });
}

/// Mark the operands of an operator that all waves below an entry share.
void mark_shared(const Region& region, OpItem& op) {
  const auto is_shared = [&](Operand x) { return x < 0 || region.slots[z(x)].is_shared; };
  for (size_t k = 0; k < op.inputs.size() && k < 64; ++k)
    if (is_shared(op.inputs[k])) op.shared |= uint64_t{1} << k;
  op.is_same = !op.is_effect && !op.is_open && op.kernel >= 0 && op.outputs.size() == 1 && op.outputs[0] >= 0 &&
               std::ranges::any_of(op.inputs, [](Operand x) { return x >= 0; }) &&
               std::ranges::all_of(op.inputs, is_shared);
}

/// Find the operators that may write into their first operand.
void mark_change(const Plan& plan, OpItem& op) {
  op.may_change = op.kernel >= 0 && !op.is_effect && plan.kernels[z(op.kernel)]->is_change() &&
                  std::ranges::find(op.last, 0) != op.last.end() && op.inputs[0] >= 0 && (op.shared & 1) == 0 &&
                  op.outputs.size() == 1 && std::ranges::count(op.inputs, op.inputs[0]) == 1;
}

/// Count how often each slot is read, anywhere in the plan.
void count_uses(Plan& plan) {
  const auto use = [&](size_t region, Operand x, Reading = Reading::Now) {
    if (x >= 0) ++plan.regions[region].slots[z(x)].uses;
  };
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    for (const auto& results : plan.regions[r].results)
      for (int32_t slot : results) use(r, slot);
    each_item(plan.regions[r], [&](int32_t, const Item& item) { each_read(plan, r, item, use); });
  }
}

/// Mark the slots that need no column, and give the small ones a place in their table's block.
void place_slots(const Plan& plan, Region& region) {
  each_item(region, [&](int32_t, const Item& item) {
    if (item.kind != Item::Kind::Fused) return;
    const FusedItem& fused = plan.fuseds[z(item.number)];
    for (int32_t op : fused.ops) region.slots[z(plan.ops[z(op)].outputs[0])].is_inner = true;
    for (const FusedItem::Output& output : fused.outputs) region.slots[z(output.to)].is_inner = false;
  });
  for (size_t k = 0; k < region.slots.size(); ++k) {
    Slot& slot = region.slots[k];
    if (slot.is_dynamic) {
      region.boxed.push_back(static_cast<int32_t>(k));
      slot.bytes = 3 * static_cast<int64_t>(sizeof(void*));
    }
    if (slot.is_inner || slot.bytes > kSmall || (slot.is_away() && !slot.is_dynamic)) {
      region.has_arrays = region.has_arrays || !slot.is_inner;
      continue;
    }
    slot.offset = region.row;
    slot.place = region.small++;
    region.row += slot.bytes;
  }
}

/// Bytes of one more lane, by group: the slots of all its regions, without those that all lanes share. A value whose
/// size is known only at run time counts as its box.
std::vector<int64_t> lane_bytes_of(const Plan& plan) {
  std::vector<int64_t> bytes(plan.groups.size(), 0);
  for (const Region& region : plan.regions)
    for (const Slot& slot : region.slots)
      if (!slot.is_shared && !slot.is_inner) bytes[z(region.group)] += slot.bytes;
  return bytes;
}

/// Does it only look at its first operand? In a plan that is not valid it might not have one, or have results.
bool is_check(const OpItem& op, const std::string& name) {
  const bool gives_nothing = std::ranges::all_of(op.outputs, [](int32_t slot) { return slot == kNoSlot; });
  return (name == "assert" || name == "raise") && !op.inputs.empty() && gives_nothing;
}

}  // namespace

Plan::Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> constant_values)
    : constants(std::move(constant_values)) {
  IntReader in(rows);
  if (in.next() != kFormat)
    not_a_plan("the core was built for another version of the encoding, or for other fields; rebuild it: `make core`");
  nodes = in.between(0, IntReader::kMost);
  if (in.count() != static_cast<int32_t>(constants.size())) not_a_plan("it has too many or too few constants");
  const int32_t kernel_count = in.count();
  std::vector<KernelTypes> kernel_types;
  std::vector<bool> is_effect;
  for (int32_t k = 0; k < kernel_count; ++k) {
    BoundKernel bound = read_kernel(in, words);
    kernel_ops.push_back(std::move(bound.op));
    kernels.push_back(std::move(bound.kernel));
    kernel_types.push_back({std::move(bound.inputs), std::move(bound.outputs)});
    is_effect.push_back(bound.is_effect);
  }
  std::vector<std::pair<size_t, FusedFields>> fused;
  Decoder decode(in, *this, fused);
  decode(groups);
  decode(regions);
  if (!in.at_end()) not_a_plan("numbers are left over at its end");
  for (OpItem& op : ops) {
    if (op.kernel < 0 || op.kernel >= kernel_count) not_a_plan("the number of a kernel is out of range");
    op.is_effect = is_effect[z(op.kernel)];
    op.is_check = op.is_effect && is_check(op, kernel_ops[z(op.kernel)]);
    if (!kernels[z(op.kernel)]) op.kernel = -1;
  }
  for (Region& region : regions) {
    if (region.kind != Region::Kind::Branch &&
        (region.params.size() != region.programs.size() || region.results.size() != region.programs.size()))
      not_a_plan("a body lacks the parameters or results of a phase");
    count_parts(*this, region);
  }
  for (CallItem& call : calls) {
    if (call.callees.empty() || z(call.callees[0]) >= regions.size())
      not_a_plan("the number of a region is out of range");
    call.body = call.callees[0];
    call.group = regions[z(call.body)].group;
    call.makes_entry = !call.hoists.empty();
  }
  check_items(*this);
  const Region& main = regions[0];
  start.site = -1;
  start.group = main.group;
  start.arguments = main.params[0];
  start.results = main.results[0];
  start.visits = {1};
  start.family = -1;
  start.siblings = 1;
  check_kernels(*this, kernel_types);
  check_flow(*this);
  for (const Region& region : regions)
    each_item(region, [&](int32_t, const Item& item) {
      singly(*this, item, [&](const Item& one) {
        if (one.kind != Item::Kind::Op) return;
        mark_shared(region, ops[z(one.number)]);
        mark_change(*this, ops[z(one.number)]);
      });
      if (item.kind == Item::Kind::Loop)
        branches[z(decides(*this, loops[z(item.number)]) - branches.data())].decides = true;
    });
  make_fused(*this, fused);
  find_deferrals(*this);
  count_uses(*this);
  for (Region& region : regions) place_slots(*this, region);
  lane_bytes = lane_bytes_of(*this);
  narrow = compile_narrow(*this);
  outline = std::make_unique<const agenda::Outline>(agenda::make_outline(*this));
  remote = std::make_unique<const remote::Outline>(remote::make_outline(*this));
  lane_costs = std::vector<LaneCost>(groups.size());
}

Plan::~Plan() = default;

}  // namespace undertow
