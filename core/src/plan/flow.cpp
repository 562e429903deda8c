#include <algorithm>
#include <span>

#include "plan/check.h"
#include "plan/int_reader.h"
#include "plan/items.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int32_t kNever = INT32_MAX;

/// Facts about one region.
struct RegionFlow {
  std::vector<int32_t> phase;                   ///< by program: the phase of the body; -1: it never runs
  std::vector<std::vector<int32_t>> given;      ///< by program: parameters, the slots written before it begins
  std::vector<int32_t> written;                 ///< by slot: the program that writes it, or kNever
  int32_t parent = -1, number = -1, side = -1;  ///< of a branch, loop or map: where it is entered
  std::vector<int32_t> branch_visits;           ///< by branch: visits so far
  std::vector<const BranchItem*> branch_items;  ///< by branch: its first visit
  std::vector<const CallItem*> call_items;      ///< by call: its first phase
  std::vector<int32_t> call_phases;             ///< by call: phases so far
  std::vector<const MapItem*> map_items;
  std::vector<int32_t> map_phases;
  std::vector<bool> loops;  ///< by loop: has it been entered?
};

class Flow {
 public:
  explicit Flow(const Plan& plan) : plan_(plan), flows_(plan.regions.size()) {}

  void check() {
    for (size_t r = 0; r < plan_.regions.size(); ++r) open(r);
    for (size_t r = 0; r < plan_.regions.size(); ++r) place(r);
    for (size_t r = 0; r < plan_.regions.size(); ++r) walk(r);
    for (size_t r = 0; r < plan_.regions.size(); ++r) look_inside(r);
    check_entries();
  }

  int32_t phase(size_t r, size_t program) const { return flows_[r].phase[program]; }

 private:
  const Region& region(size_t r) const { return plan_.regions[r]; }

  void open(size_t r) {
    const Region& in = region(r);
    RegionFlow& flow = flows_[r];
    const bool is_root = in.kind == Region::Kind::Main || in.kind == Region::Kind::Function;
    flow.phase.assign(in.programs.size(), -1);
    flow.given.resize(in.programs.size());
    flow.written.assign(in.slots.size(), kNever);
    flow.branch_visits.assign(z(in.branches), 0);
    flow.branch_items.assign(z(in.branches), nullptr);
    flow.call_items.assign(z(in.calls), nullptr);
    flow.call_phases.assign(z(in.calls), 0);
    flow.map_items.assign(z(in.maps), nullptr);
    flow.map_phases.assign(z(in.maps), 0);
    flow.loops.assign(z(in.loops), false);
    for (size_t phase = 0; is_root && phase < in.programs.size(); ++phase) {
      flow.phase[phase] = static_cast<int32_t>(phase);
      for (int32_t slot : in.params[phase])
        if (slot != kNoSlot) flow.given[phase].push_back(slot);
    }
  }

  /// A branch, loop or map is entered from one place only, and comes after its parent in the list of regions.
  RegionFlow& enter(size_t from, int32_t inner, int32_t number, int32_t side) {
    RegionFlow& flow = flows_[z(inner)];
    if (z(inner) <= from) not_a_plan("a region comes before the one that enters it");
    if (flow.parent < 0) {
      flow.parent = static_cast<int32_t>(from);
      flow.number = number;
      flow.side = side;
    }
    if (flow.parent != static_cast<int32_t>(from) || flow.number != number || flow.side != side)
      not_a_plan("a region is entered from two places");
    return flow;
  }

  /// For each region entered from this one: where it is entered, when its programs run, and with which parameters.
  void place(size_t r) {
    each_item(region(r), [&](int32_t from, const Item& item) {
      const int32_t phase = flows_[r].phase[z(from)];
      // A program that never runs enters nothing; a call enters another body.
      if (phase < 0 || is_straight(item.kind) || item.kind == Item::Kind::Call) return;
      const bool is_branch = item.kind == Item::Kind::Branch;
      int32_t side = 2 * static_cast<int32_t>(item.kind);
      each_entered(plan_, item, [&](int32_t inner, int32_t program) {
        RegionFlow& flow = enter(r, inner, number_of(plan_, item), side++);
        if (flow.phase[z(program)] >= 0) not_a_plan("a program runs twice");
        flow.phase[z(program)] = is_branch ? phase : program;
        each_given(plan_, item, [&](size_t to, const Transfer& transfer) {
          if (to == z(inner)) flow.given[z(program)].push_back(transfer.to);
        });
      });
    });
  }

  // -- in a region ---------------------------------------------------------------------------------------------

  void read(size_t r, Operand x) const {
    if (x >= 0 && flows_[r].written[z(x)] == kNever) not_a_plan("a column is read before it is written");
  }

  void write(size_t r, int32_t slot, int32_t program) {
    if (slot == kNoSlot) return;
    if (flows_[r].written[z(slot)] != kNever) not_a_plan("a column is written twice");
    flows_[r].written[z(slot)] = program;
  }

  void walk(size_t r) {
    const Region& in = region(r);
    for (size_t number = 0; number < in.programs.size(); ++number) {
      const auto program = static_cast<int32_t>(number);
      if (flows_[r].phase[number] < 0) continue;
      for (int32_t slot : flows_[r].given[number]) write(r, slot, program);
      for (const Stage& stage : in.programs[number].stages) {
        each_straight(plan_, stage, [&](const Item& item) { straight(r, program, item); });
        // Items that are entered together cannot read each other's results.
        for (const Item& item : stage.entered) entered(r, program, item);
        for (const Item& item : stage.entered) each_write(plan_, item, [&](int32_t to) { write(r, to, program); });
      }
    }
  }

  void straight(size_t r, int32_t program, const Item& item) {
    if (item.kind == Item::Kind::Collected) {
      const CollectedItem& collected = plan_.collecteds[z(item.number)];
      const CallItem* call =
          z(collected.call) < flows_[r].call_items.size() ? flows_[r].call_items[z(collected.call)] : nullptr;
      if (call == nullptr || !call->makes_entry || z(collected.index) >= call->hoists.size())
        not_a_plan("a collected reads a value that its call does not hoist, or comes before the call");
    }
    look(r, item);
    each_write(plan_, item, [&](int32_t to) { write(r, to, program); });
  }

  /// Check that what an item reads in its own region has been written.
  void look(size_t r, const Item& item) const {
    each_read(plan_, r, item, [&](size_t, Operand x, Reading when) {
      if (when != Reading::Later) read(r, x);
    });
  }

  void entered(size_t r, int32_t program, const Item& item) {
    RegionFlow& flow = flows_[r];
    switch (item.kind) {
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        const BranchItem*& first = flow.branch_items[z(branch.branch)];
        const int32_t visits = flow.branch_visits[z(branch.branch)]++;
        if (branch.visit != visits) not_a_plan("the visits to a branch are out of order");
        if (first == nullptr) first = &branch;
        if (first->pred != branch.pred || first->regions[0] != branch.regions[0] ||
            first->regions[1] != branch.regions[1])
          not_a_plan("two visits to a branch differ in predicate or sides");
        break;
      }
      case Item::Kind::Call: {
        const CallItem& call = plan_.calls[z(item.number)];
        const CallItem*& first = flow.call_items[z(call.call)];
        if (flow.call_phases[z(call.call)]++ != call.phase) not_a_plan("the phases of a call are out of order");
        if (call.phase > 0 && call.makes_entry) not_a_plan("an entry is made in a later phase");
        if (first == nullptr) first = &call;
        if (first->body != call.body) not_a_plan("a resume enters another function than its call");
        check_visits(first->visits, flow.phase[z(program)], call.phase);
        break;
      }
      case Item::Kind::Loop: {
        const LoopItem& loop = plan_.loops[z(item.number)];
        if (flow.loops[z(loop.loop)]) not_a_plan("a loop is entered twice");
        flow.loops[z(loop.loop)] = true;
        break;
      }
      case Item::Kind::Recv: break;
      default: {
        const MapItem& map = plan_.maps[z(item.number)];
        const MapItem*& first = flow.map_items[z(map.map)];
        if (flow.map_phases[z(map.map)]++ != map.phase) not_a_plan("the phases of a map are out of order");
        if (first == nullptr) first = &map;
        if (first->body != map.body) not_a_plan("a resume enters another body than its map");
        check_visits(first->visits, flow.phase[z(program)], map.phase);
        if (map.phase > 0 && !map.outers.empty()) not_a_plan("a map takes outer values in a later phase");
      }
    }
    look(r, item);
  }

  /// In all phases of the caller from this one on, the callee's visits include phase `inner`.
  static void check_visits(const std::vector<int32_t>& visits, int32_t phase, int32_t inner) {
    for (size_t count = z(phase); count < visits.size(); ++count)
      if (visits[count] <= inner) not_a_plan("a call or map has fewer visits than phases");
  }

  // -- between regions -----------------------------------------------------------------------------------------

  /// Check that a value of a region has been written when one of its programs ends.
  void find(int32_t r, Operand x, int32_t program) const {
    if (x >= 0 && flows_[z(r)].written[z(x)] > program) not_a_plan("a result of a region is not written in time");
  }

  void look_inside(size_t r) const {
    const Region& in = region(r);
    for (size_t phase = 0; phase < in.results.size() && phase < flows_[r].phase.size(); ++phase)
      for (int32_t slot : in.results[phase])
        if (slot != kNoSlot && flows_[r].phase[phase] >= 0)
          find(static_cast<int32_t>(r), slot, static_cast<int32_t>(phase));
    each_item(region(r), [&](int32_t program, const Item& item) {
      if (flows_[r].phase[z(program)] < 0) return;
      if (item.kind == Item::Kind::Branch) {
        const BranchItem& branch = plan_.branches[z(item.number)];
        for (const Merge& merge : branch.merges)
          for (size_t side = 0; side < 2; ++side) find(branch.regions[side], merge.sides[side], branch.visit);
      } else if (item.kind == Item::Kind::Loop) {
        const LoopItem& loop = plan_.loops[z(item.number)];
        const BranchItem* decides = flows_[z(loop.body)].branch_items[z(loop.branch)];
        if (decides == nullptr) not_a_plan("the branch of a loop is never entered");
        for (const LoopItem::Exit& exit : loop.exits) find(loop.body, exit.from, 0);
        for (Operand x : loop.next) find(decides->regions[0], x, kNever - 1);
      } else if (item.kind == Item::Kind::Map) {
        const MapItem& map = plan_.maps[z(item.number)];
        for (const LoopItem::Exit& result : map.results) find(map.body, result.from, map.phase);
      }
    });
  }

  // -- entries -------------------------------------------------------------------------------------------------

  /// Check that every read of an entry finds a hoisted value of its type. (`check_items` has checked their numbers.)
  void check_entries() const {
    if (region(0).hoisted > 0) not_a_plan("main reads from an entry, but there is none above it");
    std::vector<std::vector<int32_t>> enters(plan_.regions.size());  // bodies that share the entry of a body
    std::vector<std::pair<size_t, const CallItem*>> makers;
    std::vector<std::vector<const ReadItem*>> reads(plan_.regions.size());
    for (size_t r = 0; r < plan_.regions.size(); ++r)
      each_item(region(r), [&](int32_t, const Item& item) {
        const int32_t body = region(r).body;
        const auto share = [&](int32_t inner) {
          if (region(z(body)).hoisted < region(z(inner)).hoisted)
            not_a_plan("a body enters one that reads more hoisted values than itself");
          enters[z(body)].push_back(inner);
        };
        const CallItem* call = item.kind == Item::Kind::Call ? &plan_.calls[z(item.number)] : nullptr;
        if (call != nullptr && call->makes_entry)
          makers.emplace_back(r, call);
        else if (item.kind != Item::Kind::Branch && (call == nullptr || call->phase == 0))
          each_entered(plan_, item, [&](int32_t inner, int32_t) { share(inner); });
        if (item.kind == Item::Kind::Read && !plan_.reads[z(item.number)].is_shared)
          reads[r].push_back(&plan_.reads[z(item.number)]);
      });
    std::vector<size_t> last(plan_.regions.size(), makers.size());
    for (size_t maker = 0; maker < makers.size(); ++maker) {
      const auto& [from, call] = makers[maker];
      std::vector<int32_t> todo{call->body};
      while (!todo.empty()) {
        const int32_t body = todo.back();
        todo.pop_back();
        if (last[z(body)] == maker) continue;
        last[z(body)] = maker;
        for (size_t r = 0; r < plan_.regions.size(); ++r)
          if (region(r).body == body)
            for (const ReadItem* read : reads[r])
              if (!is_fitting(region(r).slots[z(read->to)], hoisted(from, *call, read->index)))
                not_a_plan("a read does not have the type of the hoisted value");
        todo.insert(todo.end(), enters[z(body)].begin(), enters[z(body)].end());
      }
    }
  }

  const Slot& hoisted(size_t from, const CallItem& call, int32_t index) const {
    if (z(index) >= call.hoists.size()) not_a_plan("a read of an entry is out of range");
    return plan_.slot(region(from), call.hoists[z(index)]);
  }

  const Plan& plan_;
  std::vector<RegionFlow> flows_;
};

}  // namespace

void check_flow(Plan& plan) {
  Flow flow(plan);
  flow.check();
  for (size_t r = 0; r < plan.regions.size(); ++r)
    for (size_t program = 0; program < plan.regions[r].programs.size(); ++program) {
      int32_t& phase = plan.regions[r].programs[program].phase;
      if (flow.phase(r, program) >= 0 && flow.phase(r, program) != phase)
        not_a_plan("a program does not run in the phase that it says");
      phase = flow.phase(r, program);
    }
}

void check_kernels(Plan& plan, std::span<const KernelTypes> types) {
  const auto check = [&](const Region& in, OpItem& op) {
    const Kernel& kernel = *plan.kernels[z(op.kernel)];
    const KernelTypes& wanted = types[z(op.kernel)];
    if (op.inputs.size() != wanted.inputs.size() || op.outputs.size() != wanted.outputs.size())
      not_a_plan("an operator has too many or too few operands for its kernel");
    std::vector<View> views;
    op.is_open = false;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const Operand x = op.inputs[k];
      const Slot& slot = plan.slot(in, x);
      if (slot.dtype != wanted.inputs[k].dtype || slot.rank() != wanted.inputs[k].rank)
        not_a_plan("an operand does not have the type of its kernel's");
      if (slot.is_dynamic || (x >= 0 && k < 64 && (kernel.deciding() >> k & 1) != 0)) op.is_open = true;
      views.push_back({x < 0 ? plan.constants[z(~x)].data : nullptr, 0, slot.shape.data(), slot.rank(), slot.dtype});
    }
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      if (op.outputs[k] == kNoSlot) not_a_plan("a result of a kernel has no column");
      const Slot& slot = in.slots[z(op.outputs[k])];
      if (slot.dtype != wanted.outputs[k].dtype || slot.rank() != wanted.outputs[k].rank)
        not_a_plan("a result does not have the type of its kernel's");
      if (slot.is_dynamic) op.is_open = true;
    }
    if (op.is_open) return;
    std::vector<Shape> shapes(op.outputs.size());
    if (kernel.shape(views.data(), shapes.data())) not_a_plan("a kernel does not take operands of these shapes");
    for (size_t k = 0; k < op.outputs.size(); ++k)
      if (!std::ranges::equal(std::span(shapes[k].sizes, z(shapes[k].rank)), in.slots[z(op.outputs[k])].shape))
        not_a_plan("the result of a kernel does not have the shape of its column");
  };
  // Each item belongs to one stage, since decoding makes it there.
  for (const Region& region : plan.regions)
    each_item(region, [&](int32_t, const Item& item) {
      singly(plan, item, [&](const Item& one) {
        if (one.kind == Item::Kind::Op && plan.ops[z(one.number)].kernel >= 0) check(region, plan.ops[z(one.number)]);
      });
    });
}

}  // namespace undertow
