// Decode a plan: every number is looked at once, here, so that a run need not.
#include "undertow/plan.h"

#include <cstring>
#include <stdexcept>

#include "agenda/outline.h"
#include "flow.h"
#include "fuse.h"
#include "homes.h"
#include "late.h"
#include "lifetimes.h"
#include "narrow/program.h"
#include "reader.h"
#include "siblings.h"
#include "width.h"

namespace undertow {
namespace {

constexpr int64_t kVersion = 3;
constexpr int64_t kInBlock = 64;  // bytes of a value that shares a block with others

/// A slot of a table: what only the run knows is a box.
Slot read_column(Rows& in) {
  Slot slot = read_slot(in);
  if (slot.is_dynamic) slot.bytes = 3 * static_cast<int64_t>(sizeof(void*));
  slot.home = home_of(slot);
  slot.offset = slot.bytes <= kInBlock && (slot.is_dynamic || !slot.is_away()) ? 0 : -1;
  return slot;
}

std::vector<Transfer> read_transfers(Rows& in) {
  std::vector<Transfer> found(static_cast<size_t>(in.count()));
  for (Transfer& transfer : found) transfer = {in.any(), in.any()};
  return found;
}

std::vector<LoopItem::Exit> read_exits(Rows& in) {
  std::vector<LoopItem::Exit> found(static_cast<size_t>(in.count()));
  for (LoopItem::Exit& exit : found) exit = {in.any(), in.any()};
  return found;
}

}  // namespace

namespace {

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  void check() {
    if (plan_.regions.empty() || plan_.regions[0].kind != Region::Kind::Main)
      not_a_plan("the first region is not main");
    for (const Region& region : plan_.regions) check_region(region);
    const Region& main = plan_.regions[0];
    if (main.params.size() != 1 || main.results.size() != 1 || main.phases.size() != 1) not_a_plan("main has phases");
  }

 private:
  const Region& region(int32_t number) const {
    if (number < 0 || static_cast<size_t>(number) >= plan_.regions.size()) not_a_plan("there is no such region");
    return plan_.regions[static_cast<size_t>(number)];
  }
  const Slot& slot(const Region& in, int32_t number) const {
    if (number < 0 || static_cast<size_t>(number) >= in.slots.size()) not_a_plan("there is no such slot");
    return in.slots[static_cast<size_t>(number)];
  }
  const Slot& operand(const Region& in, Operand x) const {
    if (x >= 0) return slot(in, x);
    if (static_cast<size_t>(~x) >= plan_.constants.size()) not_a_plan("there is no such constant");
    return plan_.constants[static_cast<size_t>(~x)].slot;
  }
  /// May a value of one slot be put into another? Lengths that only the run knows may meet any.
  static void accept(const Slot& to, const Slot& from) {
    if (to.dtype != from.dtype || to.rank() != from.rank()) not_a_plan("a value of another type goes into a slot");
    for (size_t axis = 0; axis < to.shape.size(); ++axis)
      if (to.shape[axis] != kUnknown && to.shape[axis] != from.shape[axis])
        not_a_plan("a value of another shape goes there");
  }
  /// A lane of an array, or an array of lanes: which of them may know less of its lengths?
  static void accept_row(const Slot& lane, const Slot& stack, bool is_mapped) {
    if (lane.dtype != stack.dtype || lane.rank() + 1 != stack.rank()) not_a_plan("a lane is no row of the stack");
    for (size_t axis = 0; axis < lane.shape.size(); ++axis)
      if (lane.shape[axis] != stack.shape[axis + 1] &&
          (is_mapped ? lane.shape[axis] : stack.shape[axis + 1]) != kUnknown)
        not_a_plan("a lane is no row of the stack");
  }
  static void below(int32_t number, int32_t count, const char* what) {
    if (number < 0 || number >= count) not_a_plan(what);
  }

  void check_region(const Region& in) {
    const Region& body = region(in.body);
    if (body.kind == Region::Kind::Branch || body.body != in.body) not_a_plan("a region belongs to no body");
    if (in.kind != Region::Kind::Branch && &body != &in) not_a_plan("a body belongs to another");
    if (in.group < 0 || in.group >= plan_.groups) not_a_plan("there is no such group");
    for (const auto& params : in.params)
      for (int32_t number : params)
        if (number != kNoSlot) slot(in, number);
    for (const auto& results : in.results)
      for (int32_t number : results)
        if (number != kNoSlot) slot(in, number);
    for (const Program& program : in.phases)
      for (const Stage& stage : program.stages) {
        for (const Item& item : stage.straight) check_item(in, item, true);
        for (const Item& item : stage.entered) check_item(in, item, false);
      }
  }

  void check_item(const Region& in, const Item& item, bool is_straight) {
    const auto at = static_cast<size_t>(item.number);
    const auto exists = [&](size_t count) {
      if (item.number < 0 || at >= count) not_a_plan("there is no such item");
    };
    using Kind = Item::Kind;
    const bool enters =
        item.kind == Kind::Branch || item.kind == Kind::Call || item.kind == Kind::Loop || item.kind == Kind::Map;
    if (enters == is_straight) not_a_plan("an item stands in the wrong place");
    switch (item.kind) {
      case Kind::Op: {
        exists(plan_.ops.size());
        const OpItem& op = plan_.ops[at];
        below(op.node, plan_.nodes, "there is no such node");
        for (Operand x : op.inputs) operand(in, x);
        for (int32_t to : op.outputs)
          if (to != kNoSlot) slot(in, to);
        break;
      }
      case Kind::Branch: {
        exists(plan_.branches.size());
        const BranchItem& branch = plan_.branches[at];
        below(branch.branch, in.branches, "there is no such branch");
        const Slot& pred = slot(in, branch.pred);
        if (pred.dtype != DType::Bool || pred.rank() != 0) not_a_plan("a branch is not decided by a bool");
        for (int side = 0; side < 2; ++side) {
          const Region& inner = region(branch.regions[side]);
          if (inner.kind != Region::Kind::Branch || inner.body != in.body)
            not_a_plan("a side is no branch of this body");
          below(branch.programs[side], static_cast<int32_t>(inner.phases.size()), "a side has no such phase");
          for (const Transfer& t : branch.transfers[side]) accept(slot(inner, t.to), operand(in, t.from));
          for (const MergeRow& merge : branch.merges) accept(slot(in, merge.to), operand(inner, merge.sides[side]));
        }
        break;
      }
      case Kind::Call: {
        exists(plan_.calls.size());
        const CallItem& call = plan_.calls[at];
        below(call.call, in.calls, "there is no such call");
        const Region& callee = region(call.body);
        if (callee.kind != Region::Kind::Function || callee.group != call.group)
          not_a_plan("a call enters no function");
        below(call.phase, static_cast<int32_t>(callee.phases.size()), "a callee has no such phase");
        const auto phase = static_cast<size_t>(call.phase);
        if (call.arguments.size() != callee.params[phase].size())
          not_a_plan("a call has other arguments than its callee");
        if (call.results.size() != callee.results[phase].size()) not_a_plan("a call has other results than its callee");
        for (size_t k = 0; k < call.arguments.size(); ++k)
          if (callee.params[phase][k] != kNoSlot)
            accept(slot(callee, callee.params[phase][k]), operand(in, call.arguments[k]));
        for (size_t k = 0; k < call.results.size(); ++k)
          if (call.results[k] != kNoSlot) {
            if (callee.results[phase][k] == kNoSlot) not_a_plan("a result is not there");
            accept(slot(in, call.results[k]), slot(callee, callee.results[phase][k]));
          }
        for (Operand x : call.hoists) operand(in, x);
        if (call.makes_entry ? static_cast<int32_t>(call.hoists.size()) < callee.hoisted : !call.hoists.empty())
          not_a_plan("an entry is not given what it needs");
        check_visits(in, callee, call.visits, call.phase);
        break;
      }
      case Kind::Loop: {
        exists(plan_.loops.size());
        const LoopItem& loop = plan_.loops[at];
        below(loop.loop, in.loops, "there is no such loop");
        const Region& body = region(loop.body);
        if (body.kind != Region::Kind::Loop || body.phases.size() != 1) not_a_plan("a loop enters no loop");
        below(loop.branch, body.branches, "there is no such branch");
        const BranchItem* found = nullptr;
        for (const Stage& stage : body.phases[0].stages)
          for (const Item& inner : stage.entered)
            if (inner.kind == Kind::Branch && inner.number >= 0 &&
                static_cast<size_t>(inner.number) < plan_.branches.size() &&
                plan_.branches[static_cast<size_t>(inner.number)].branch == loop.branch)
              found = &plan_.branches[static_cast<size_t>(inner.number)];
        if (found == nullptr) not_a_plan("nothing decides whether a loop goes on");
        const Region& going = region(found->regions[0]);
        if (loop.next.size() != loop.variables.size()) not_a_plan("a loop variable has no next value");
        for (size_t k = 0; k < loop.variables.size(); ++k) {
          accept(slot(body, loop.variables[k].to), operand(in, loop.variables[k].from));
          accept(slot(body, loop.variables[k].to), operand(going, loop.next[k]));
        }
        for (const Transfer& t : loop.outers) accept(slot(body, t.to), operand(in, t.from));
        for (const LoopItem::Exit& exit : loop.exits) accept(slot(in, exit.to), operand(body, exit.from));
        break;
      }
      case Kind::Map: {
        exists(plan_.maps.size());
        const MapItem& map = plan_.maps[at];
        below(map.map, in.maps, "there is no such map");
        const Region& body = region(map.body);
        if (body.kind != Region::Kind::Map) not_a_plan("a map enters no map");
        below(map.phase, static_cast<int32_t>(body.phases.size()), "a map has no such phase");
        if (map.phase == 0 && operand(in, map.counted).rank() == 0) not_a_plan("a map over a scalar");
        for (const Transfer& t : map.mapped) accept_row(slot(body, t.to), operand(in, t.from), true);
        for (const Transfer& t : map.outers) accept(slot(body, t.to), operand(in, t.from));
        for (const LoopItem::Exit& r : map.results) accept_row(operand(body, r.from), slot(in, r.to), false);
        check_visits(in, body, map.visits, map.phase);
        break;
      }
      case Kind::Read: {
        exists(plan_.reads.size());
        const ReadItem& read = plan_.reads[at];
        if (read.is_shared)
          accept(slot(in, read.to), slot(plan_.regions[0], read.index));
        else
          below(read.index, region(in.body).hoisted, "an entry is not given what is read"), slot(in, read.to);
        break;
      }
      case Kind::Collect: {
        exists(plan_.collects.size());
        const CollectItem& collect = plan_.collects[at];
        below(collect.node, plan_.nodes, "there is no such node");
        below(collect.index, region(in.body).hoisted, "an entry is not given what is collected");
        const Slot& first = operand(in, collect.values[0]);
        const Slot& second = operand(in, collect.values[1]);
        const auto is_float = [](const Slot& slot) { return slot.dtype == DType::F32 || slot.dtype == DType::F64; };
        if (!is_float(second) || (collect.kind != 1 && first.dtype != second.dtype))
          not_a_plan("what is collected is no float");
        if (collect.kind == 1 && first.dtype != DType::I32 && first.dtype != DType::I64)
          not_a_plan("rows without numbers");
        if (collect.kind == 0 && collect.values[0] != collect.values[1]) not_a_plan("two values are collected as one");
        if (collect.kind == 2) {
          const bool is_row = first.rank() == 1 && second.rank() == 1;
          const bool are_rows = first.rank() == 2 && second.rank() == 2 && first.shape[0] == second.shape[0];
          if (!(is_row || are_rows) || first.is_dynamic || second.is_dynamic)
            not_a_plan("a product of what has not as many rows is collected");
        }
        break;
      }
      case Kind::Collected: {
        exists(plan_.collecteds.size());
        const CollectedItem& collected = plan_.collecteds[at];
        below(collected.call, in.calls, "there is no such call");
        if (collected.index < 0) not_a_plan("a number is out of range");
        const Slot& like = operand(in, collected.like);
        if (like.dtype != DType::F32 && like.dtype != DType::F64) not_a_plan("what is collected is no float");
        if (collected.to[1] == kNoSlot) {
          accept(slot(in, collected.to[0]), like);
        } else {
          const Slot& numbers = slot(in, collected.to[0]);
          const Slot& rows = slot(in, collected.to[1]);
          if (numbers.dtype != DType::I64 || numbers.rank() != 1 || !numbers.is_dynamic)
            not_a_plan("rows without numbers");
          if (rows.dtype != like.dtype || rows.rank() != like.rank() || like.rank() == 0 || !rows.is_dynamic)
            not_a_plan("rows of another type than what is collected");
        }
        break;
      }
      case Kind::Fused:
        not_a_plan("an item stands in the wrong place");
    }
  }

  void check_visits(const Region& in, const Region& entered, const std::vector<int32_t>& visits, int32_t phase) {
    if (phase > 0) return;
    if (visits.size() != region(in.body).phases.size()) not_a_plan("it is not said how often something is visited");
    for (int32_t count : visits)
      if (count < 0 || count > static_cast<int32_t>(entered.phases.size()))
        not_a_plan("a phase is visited that is not there");
  }

  const Plan& plan_;
};

}  // namespace

namespace {

/// Which groups several threads may run at once; and which of these work on numbers only.
void find_pure(Plan& plan) {
  std::vector<bool> pure(static_cast<size_t>(plan.groups), true), scalar = pure;
  std::vector<std::pair<size_t, size_t>> enters;  // groups
  const auto at = [](int64_t n) { return static_cast<size_t>(n); };
  for (const Region& region : plan.regions) {
    const size_t own = at(region.group);
    if (!region.boxed.empty()) pure[own] = false;
    for (const Slot& slot : region.slots)
      if (slot.is_dynamic || !slot.shape.empty()) scalar[own] = false;
    for (const Program& program : region.phases)
      for (const Stage& stage : program.stages) {
        for (const Item& item : stage.straight)
          if (item.kind == Item::Kind::Collect || item.kind == Item::Kind::Collected ||
              (item.kind == Item::Kind::Op && plan.ops[at(item.number)].kernel < 0))
            pure[own] = false;
        for (const Item& item : stage.entered) {
          if (item.kind == Item::Kind::Call) enters.emplace_back(own, at(plan.calls[at(item.number)].group));
          if (item.kind == Item::Kind::Loop)
            enters.emplace_back(own, at(plan.regions[at(plan.loops[at(item.number)].body)].group));
          if (item.kind == Item::Kind::Map) pure[own] = false;
        }
      }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [from, to] : enters)
      for (auto* fact : {&pure, &scalar})
        if ((*fact)[from] && !(*fact)[to]) {
          (*fact)[from] = false;
          changed = true;
        }
  }
  plan.is_pure = std::move(pure);
  plan.is_scalar = std::move(scalar);
}

}  // namespace

Plan::Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> given)
    : constants(std::move(given)) {
  Rows in(rows);
  if (in.next() != kVersion) not_a_plan("it is of another version");
  nodes = in.between(0, Rows::kMost);
  groups = in.between(0, Rows::kMost);
  if (in.count() != static_cast<int32_t>(constants.size())) not_a_plan("constants are missing");
  const int32_t kernel_count = in.count();
  std::vector<KernelTypes> kernel_types;
  for (int32_t k = 0; k < kernel_count; ++k) {
    BoundKernel found = read_kernel(in, words);
    kernel_ops.push_back(std::move(found.op));
    kernels.push_back(std::move(found.kernel));
    kernel_types.push_back({std::move(found.inputs), std::move(found.outputs)});
  }
  for (int kind = 0; kind < 8; ++kind) {
    const int32_t count = in.count();
    for (int32_t i = 0; i < count; ++i) switch (static_cast<Item::Kind>(kind)) {
        case Item::Kind::Op: {
          OpItem op;
          op.node = in.any();
          op.kernel = in.between(-1, kernel_count);
          op.is_effect = in.flag();
          op.inputs = in.list();
          op.outputs = in.list();
          if (op.kernel >= 0 && !kernels[static_cast<size_t>(op.kernel)]) op.kernel = -1;
          ops.push_back(std::move(op));
          break;
        }
        case Item::Kind::Branch: {
          BranchItem branch;
          branch.branch = in.any();
          branch.pred = in.any();
          branch.is_first = in.flag();
          branch.is_last = in.flag();
          for (int32_t& side : branch.regions) side = in.any();
          for (int32_t& program : branch.programs) program = in.any();
          for (auto& transfers : branch.transfers) transfers = read_transfers(in);
          branch.merges.resize(static_cast<size_t>(in.count()));
          for (MergeRow& merge : branch.merges) {
            merge.to = in.any();
            for (Operand& side : merge.sides) side = in.any();
          }
          branches.push_back(std::move(branch));
          break;
        }
        case Item::Kind::Call: {
          CallItem call;
          call.site = in.any();
          call.call = in.any();
          call.phase = in.any();
          call.body = in.any();
          call.group = in.any();
          call.makes_entry = in.flag();
          call.asks = in.any();
          call.arguments = in.list();
          call.hoists = in.list();
          call.results = in.list();
          call.visits = in.list();
          calls.push_back(std::move(call));
          break;
        }
        case Item::Kind::Loop: {
          LoopItem loop;
          loop.site = in.any();
          loop.loop = in.any();
          loop.body = in.any();
          loop.branch = in.any();
          loop.variables = read_transfers(in);
          loop.outers = read_transfers(in);
          loop.next = in.list();
          loop.exits = read_exits(in);
          loops.push_back(std::move(loop));
          break;
        }
        case Item::Kind::Map: {
          MapItem map;
          map.site = in.any();
          map.map = in.any();
          map.phase = in.any();
          map.body = in.any();
          map.counted = in.any();
          map.mapped = read_transfers(in);
          map.outers = read_transfers(in);
          map.results = read_exits(in);
          map.visits = in.list();
          maps.push_back(std::move(map));
          break;
        }
        case Item::Kind::Read: {
          ReadItem read{};
          read.to = in.any();
          read.index = in.any();
          read.is_shared = in.flag();
          reads.push_back(read);
          break;
        }
        case Item::Kind::Collect: {
          CollectItem collect{};
          collect.node = in.any();
          collect.index = in.any();
          collect.kind = in.between(0, 3);
          for (Operand& value : collect.values) value = in.any();
          collects.push_back(collect);
          break;
        }
        case Item::Kind::Collected: {
          CollectedItem collected{};
          collected.call = in.any();
          collected.index = in.any();
          collected.like = in.any();
          for (int32_t& to : collected.to) to = in.any();
          collecteds.push_back(collected);
          break;
        }
        case Item::Kind::Fused:
          break;
      }
  }
  const int32_t region_count = in.count();
  const auto read_lists = [&](std::vector<std::vector<int32_t>>& lists) {
    lists.resize(static_cast<size_t>(in.count()));
    for (auto& list : lists) list = in.list();
  };
  for (int32_t number = 0; number < region_count; ++number) {
    Region region{};
    region.kind = static_cast<Region::Kind>(in.between(0, 5));
    region.body = in.between(0, region_count);
    region.group = in.any();
    const int32_t slots = in.count();
    for (int32_t k = 0; k < slots; ++k) {
      region.slots.push_back(read_column(in));
      if (region.slots.back().is_dynamic) region.boxed.push_back(k);
    }
    for (int32_t* count : {&region.branches, &region.calls, &region.loops, &region.maps, &region.hoisted})
      *count = in.between(0, Rows::kMost);
    const int32_t phases = in.count();
    for (int32_t p = 0; p < phases; ++p) {
      Program program;
      program.stages.resize(static_cast<size_t>(in.count()));
      for (Stage& stage : program.stages) {
        for (auto* items : {&stage.straight, &stage.entered}) {
          items->resize(static_cast<size_t>(in.count()));
          for (Item& item : *items) {
            item.kind = static_cast<Item::Kind>(in.between(0, 8));
            item.number = in.any();
          }
        }
        stage.late_from = static_cast<size_t>(in.between(0, static_cast<int64_t>(stage.straight.size()) + 1));
        stage.ahead_from = static_cast<size_t>(in.between(0, static_cast<int64_t>(stage.straight.size()) + 1));
        if (stage.ahead_from < stage.late_from) not_a_plan("what belongs to the next phase does not wait");
        stage.late_kind = static_cast<LateKind>(in.between(0, 4));
      }
      region.phases.push_back(std::move(program));
    }
    read_lists(region.params);
    read_lists(region.results);
    if (region.kind != Region::Kind::Branch &&
        (region.params.size() != region.phases.size() || region.results.size() != region.phases.size()))
      not_a_plan("a body does not say what each phase takes and gives");
    regions.push_back(std::move(region));
  }
  if (!in.at_end()) not_a_plan("it goes on behind its end");
  Checker(*this).check();
  const Region& main = regions[0];
  schedules.assign(z(groups), Schedule::Lockstep);
  start = {-1, 0, 0, 0, main.group, main.params[0], {}, false, 0, main.results[0], {1}, -1, 0, 1, {}};
  check_kernels(*this, kernel_types);
  check_flow(*this);
  const Shared shared(*this);
  shared.mark_operands(*this);
  find_lates(*this);
  find_pure(*this);
  narrow = compile_narrow(*this);
  fuse(*this);
  find_siblings(*this);
  find_lifetimes(*this);
  lane_bytes = lane_bytes_of(*this, shared);
  outline = std::make_unique<const agenda::Outline>(agenda::make_outline(*this));
}

Plan::~Plan() = default;

}  // namespace undertow
