// Check that numbers are in range and types fit.
#include "plan/check.h"

#include <set>
#include <utility>

#include "plan/int_reader.h"
#include "plan/items.h"

namespace undertow {
namespace {

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  void check() {
    if (plan_.regions.empty() || plan_.regions[0].kind != Region::Kind::Main)
      not_a_plan("the first region is not main");
    find_pinned();
    for (const Region& region : plan_.regions) check_region(region);
    check_crossing();
    const Region& main = plan_.regions[0];
    if (main.params.size() != 1 || main.results.size() != 1 || main.programs.size() != 1)
      not_a_plan("main has more than one phase");
  }

 private:
  const Region& region(int32_t number) const {
    if (number < 0 || static_cast<size_t>(number) >= plan_.regions.size())
      not_a_plan("the number of a region is out of range");
    return plan_.regions[static_cast<size_t>(number)];
  }
  const Slot& slot(const Region& in, int32_t number) const {
    if (number < 0 || static_cast<size_t>(number) >= in.slots.size())
      not_a_plan("the number of a column is out of range");
    return in.slots[static_cast<size_t>(number)];
  }
  const Slot& operand(const Region& in, Operand x) const {
    if (x >= 0) return slot(in, x);
    if (static_cast<size_t>(~x) >= plan_.constants.size()) not_a_plan("the number of a constant is out of range");
    return plan_.constants[static_cast<size_t>(~x)].slot;
  }
  static void accept(const Slot& to, const Slot& from) {
    if (!is_fitting(to, from)) not_a_plan("a value does not have the type of the column that it goes to");
  }
  /// A lane of an array (`is_mapped`), or an array of lanes: the receiver may have fewer known dimensions.
  static void accept_row(const Slot& lane, const Slot& stack, bool is_mapped) {
    if (lane.dtype != stack.dtype || lane.rank() + 1 != stack.rank())
      not_a_plan("a lane of a map does not have the type of a row of its array");
    for (size_t axis = 0; axis < lane.shape.size(); ++axis)
      if (lane.shape[axis] != stack.shape[axis + 1] &&
          (is_mapped ? lane.shape[axis] : stack.shape[axis + 1]) != kUnknown)
        not_a_plan("a lane of a map does not have the type of a row of its array");
  }
  static bool is_float(const Slot& slot) { return is_inexact(slot.dtype); }
  static void below(int32_t number, int32_t count, const char* what) {
    if (number < 0 || number >= count) not_a_plan(what);
  }

  void check_region(const Region& in) {
    const Region& body = region(in.body);
    if (body.kind == Region::Kind::Branch || body.body != in.body) not_a_plan("a region names a body that is not one");
    if (in.kind != Region::Kind::Branch && &body != &in) not_a_plan("a body is not its own body");
    if (z(in.group) >= plan_.groups.size()) not_a_plan("the number of a group is out of range");
    for (const Slot& slot : in.slots)
      if (slot.kind != SlotKind::Value) not_a_plan("a column is a handle, which the core does not support yet");
    for (const auto* phases : {&in.params, &in.results})
      for (const auto& slots : *phases)
        for (int32_t number : slots)
          if (number != kNoSlot) slot(in, number);
    for (const Program& program : in.programs)
      for (const Stage& stage : program.stages) {
        each_straight(plan_, stage, [&](const Item& item) { check_item(in, item, true); });
        for (const Item& item : stage.entered) check_item(in, item, false);
        check_drops(in, stage.drops);
        check_families(stage);
      }
  }

  void check_item(const Region& in, const Item& item, bool in_straight) {
    const auto at = static_cast<size_t>(item.number);
    using Kind = Item::Kind;
    if (undertow::is_straight(item.kind) != in_straight)
      not_a_plan("a stage enters an operator, or runs something that is entered as an operator");
    switch (item.kind) {
      case Kind::Op: {
        const OpItem& op = plan_.ops[at];
        below(op.node, plan_.nodes, "the number of a node is out of range");
        for (Operand x : op.inputs) operand(in, x);
        for (int32_t to : op.outputs)
          if (to != kNoSlot) slot(in, to);
        for (int32_t k : op.last) {
          below(k, static_cast<int32_t>(op.inputs.size()), "the number of an operand is out of range");
          if (op.inputs[z(k)] >= 0) check_drops(in, {op.inputs[z(k)]});
        }
        break;
      }
      case Kind::Branch: {
        const BranchItem& branch = plan_.branches[at];
        const Slot& pred = slot(in, branch.pred);
        if (pred.dtype != DType::Bool || pred.rank() != 0) not_a_plan("the predicate of a branch is not a bool scalar");
        for (size_t side = 0; side < 2; ++side) {
          const Region& inner = region(branch.regions[side]);
          if (inner.kind != Region::Kind::Branch || inner.body != in.body)
            not_a_plan("a side of a branch is not a branch region of the same body");
          below(branch.visit, static_cast<int32_t>(inner.programs.size()), "a side of a branch lacks this visit");
          for (const Transfer& t : branch.transfers[side]) accept(slot(inner, t.to), operand(in, t.from));
          for (const Merge& merge : branch.merges) accept(slot(in, merge.to), operand(inner, merge.sides[side]));
        }
        check_drops(in, branch.drops);
        break;
      }
      case Kind::Call: {
        const CallItem& call = plan_.calls[at];
        if (call.callees.size() != 1 || call.selector != kNoSlot) not_a_plan("a call does not have exactly one callee");
        const Region& callee = region(call.body);
        if (callee.kind != Region::Kind::Function) not_a_plan("the callee of a call is not a function");
        if (call.sibling < 0 || call.sibling >= call.siblings)
          not_a_plan("a call's place in its family is out of range");
        below(call.phase, static_cast<int32_t>(callee.programs.size()), "a callee lacks the phase of a call");
        const auto phase = static_cast<size_t>(call.phase);
        if (call.arguments.size() != callee.params[phase].size())
          not_a_plan("a call has too many or too few arguments");
        if (call.results.size() != callee.results[phase].size()) not_a_plan("a call has too many or too few results");
        for (size_t k = 0; k < call.arguments.size(); ++k)
          if (callee.params[phase][k] != kNoSlot)
            accept(slot(callee, callee.params[phase][k]), operand(in, call.arguments[k]));
        for (size_t k = 0; k < call.results.size(); ++k)
          if (call.results[k] != kNoSlot) {
            if (callee.results[phase][k] == kNoSlot)
              not_a_plan("a call takes a result that its callee does not return");
            accept(slot(in, call.results[k]), slot(callee, callee.results[phase][k]));
          }
        for (Operand x : call.hoists) operand(in, x);
        if (call.makes_entry ? static_cast<int32_t>(call.hoists.size()) < callee.hoisted : !call.hoists.empty())
          not_a_plan("a call hoists fewer values than are read below it");
        check_visits(in, callee, call.visits, call.phase);
        check_drops(in, call.drops);
        break;
      }
      case Kind::Loop: {
        const LoopItem& loop = plan_.loops[at];
        const Region& body = region(loop.body);
        if (body.kind != Region::Kind::Loop || body.programs.size() != 1)
          not_a_plan("the body of a loop is not a loop");
        below(loop.branch, body.branches, "the number of a loop's branch is out of range");
        const BranchItem* branch = decides(plan_, loop);
        if (branch == nullptr) not_a_plan("the branch of a loop is never entered");
        const Region& continues = region(branch->regions[0]);
        if (loop.next.size() != loop.variables.size())
          not_a_plan("a loop does not have one next value for each variable");
        for (size_t k = 0; k < loop.variables.size(); ++k) {
          accept(slot(body, loop.variables[k].to), operand(in, loop.variables[k].from));
          accept(slot(body, loop.variables[k].to), operand(continues, loop.next[k]));
        }
        for (const Transfer& t : loop.outers) accept(slot(body, t.to), operand(in, t.from));
        for (const Exit& exit : loop.exits) accept(slot(in, exit.to), operand(body, exit.from));
        check_drops(in, loop.drops);
        break;
      }
      case Kind::Map: {
        const MapItem& map = plan_.maps[at];
        const Region& body = region(map.body);
        if (body.kind != Region::Kind::Map) not_a_plan("the body of a map is not a map");
        below(map.phase, static_cast<int32_t>(body.programs.size()), "the body of a map lacks its phase");
        if (map.phase == 0 && operand(in, map.counted).rank() == 0) not_a_plan("a map is over a scalar");
        for (const Transfer& t : map.mapped) accept_row(slot(body, t.to), operand(in, t.from), true);
        for (const Transfer& t : map.outers) accept(slot(body, t.to), operand(in, t.from));
        for (const Exit& r : map.results) accept_row(operand(body, r.from), slot(in, r.to), false);
        check_visits(in, body, map.visits, map.phase);
        break;
      }
      case Kind::Read: {
        const ReadItem& read = plan_.reads[at];
        if (read.is_shared)
          accept(slot(in, read.to), slot(plan_.regions[0], read.index));
        else
          below(read.index, region(in.body).hoisted, "a read of an entry is out of range"), slot(in, read.to);
        break;
      }
      case Kind::Collect: {
        const CollectItem& collect = plan_.collects[at];
        below(collect.node, plan_.nodes, "the number of a node is out of range");
        below(collect.index, region(in.body).hoisted, "the index of a collect is out of range");
        const Slot& first = operand(in, collect.values[0]);
        const Slot& second = operand(in, collect.values[1]);
        // Rows are only kept; all else is added up.
        if (collect.kind != CollectKind::Rows && (!is_float(second) || first.dtype != second.dtype))
          not_a_plan("a collected sum is not of floats");
        if (collect.kind == CollectKind::Rows && first.dtype != DType::I32 && first.dtype != DType::I64)
          not_a_plan("the indices of collected rows are not integers");
        if (collect.kind == CollectKind::Product) {
          const bool is_row = first.rank() == 1 && second.rank() == 1;
          const bool are_rows = first.rank() == 2 && second.rank() == 2 && first.shape[0] == second.shape[0];
          if (!(is_row || are_rows) || first.is_dynamic || second.is_dynamic)
            not_a_plan("a collected product is not of two vectors, or of two matrices with the same number of rows");
        }
        break;
      }
      case Kind::Collected: {
        const CollectedItem& collected = plan_.collecteds[at];
        below(collected.call, in.calls, "the number of a call is out of range");
        if (collected.index < 0) not_a_plan("the index of a collected is negative");
        const Slot& like = operand(in, collected.like);
        if (collected.to[1] == kNoSlot) {
          if (!is_float(like)) not_a_plan("a collected sum is not of floats");
          accept(slot(in, collected.to[0]), like);
        } else {
          const Slot& numbers = slot(in, collected.to[0]);
          const Slot& rows = slot(in, collected.to[1]);
          if (numbers.dtype != DType::I64 || numbers.rank() != 1 || !numbers.is_dynamic)
            not_a_plan("the indices of collected rows are not i64[?]");
          if (rows.dtype != like.dtype || rows.rank() != like.rank() || like.rank() == 0 || !rows.is_dynamic)
            not_a_plan("collected rows do not have the type of what they are rows of");
        }
        break;
      }
      case Kind::Fused: break;  // its operators are checked one by one
      case Kind::Send: {
        const SendItem& send = plan_.sends[at];
        if (send.edge < 0 || send.part < 0) not_a_plan("the number of an edge or part is negative");
        if (send.from != kNoSlot) operand(in, send.from);
        break;
      }
      case Kind::Replica: {
        const ReplicaItem& replica = plan_.replicas[at];
        const Slot& to = slot(in, replica.to);
        if (to.dtype != DType::I64 || to.rank() != 0) not_a_plan("the number of a replica is not i64");
        if (replica.count < 1 || replica.salt < 0) not_a_plan("the count or salt of a replica is out of range");
        break;
      }
      case Kind::Recv: {
        const RecvItem& recv = plan_.recvs[at];
        if (recv.edge < 0 || recv.part < 0) not_a_plan("the number of an edge or part is negative");
        if (recv.to != kNoSlot) slot(in, recv.to);
        break;
      }
    }
  }

  /// The lanes of siblings are interleaved: each sibling has a place of its own, and no place is free.
  void check_families(const Stage& stage) const {
    for (const Item& item : stage.entered) {
      if (item.kind != Item::Kind::Call) continue;
      const CallItem& call = plan_.calls[z(item.number)];
      if (call.siblings == 1) continue;
      std::vector<bool> places(stage.entered.size(), false);
      int32_t count = 0;
      for (const Item& other : stage.entered) {
        if (other.kind != Item::Kind::Call || plan_.calls[z(other.number)].family != call.family) continue;
        const CallItem& sibling = plan_.calls[z(other.number)];
        const bool is_alike = sibling.siblings == call.siblings && sibling.body == call.body && sibling.phase == 0;
        if (!is_alike || z(sibling.sibling) >= places.size() || places[z(sibling.sibling)])
          not_a_plan("a family has two calls in one place, or calls of different functions");
        places[z(sibling.sibling)] = true;
        ++count;
      }
      if (count != call.siblings) not_a_plan("a family of calls is not complete");
    }
  }

  /// Groups that send or receive, or lead to such, run by an agenda, in one piece; an edge ends in one place.
  void check_crossing() const {
    std::vector<bool> crosses(plan_.groups.size(), false);
    std::vector<std::pair<int32_t, int32_t>> enters;
    std::set<int32_t> edges;
    for (const Region& region : plan_.regions)
      each_item(region, [&](int32_t, const Item& item) {
        if (item.kind == Item::Kind::Recv && !edges.insert(plan_.recvs[z(item.number)].edge).second)
          not_a_plan("two receive from one edge");
        if (item.kind == Item::Kind::Send || item.kind == Item::Kind::Recv || item.kind == Item::Kind::Replica)
          crosses[z(region.group)] = true;
        each_entered(plan_, item,
                     [&](int32_t inner, int32_t) { enters.emplace_back(region.group, plan_.regions[z(inner)].group); });
      });
    for (bool has_changed = plan_.is_part(); has_changed;) {
      has_changed = false;
      for (const auto& [outer, inner] : enters)
        if (crosses[z(inner)] && !crosses[z(outer)]) crosses[z(outer)] = has_changed = true;
    }
    for (size_t group = 0; group < crosses.size(); ++group) {
      const GroupFields& how = plan_.groups[group];
      if (crosses[group] && (how.schedule != Schedule::Agenda || how.is_narrow || how.grain != 0))
        not_a_plan("a group that sends or receives does not run by an agenda, in one piece");
    }
  }

  /// Hoisted values, predicates, and what main shares stay until their table ends.
  void check_drops(const Region& in, const std::vector<int32_t>& drops) const {
    for (int32_t number : drops) {
      slot(in, number);
      if (pinned_[z(&in - plan_.regions.data())][z(number)])
        not_a_plan("a column is dropped that is hoisted, shared, or a predicate");
    }
  }

  void find_pinned() {
    for (const Region& region : plan_.regions) pinned_.emplace_back(region.slots.size(), false);
    const auto pin = [&](size_t r, Operand x) {
      if (x >= 0) {
        slot(plan_.regions[r], x);
        pinned_[r][z(x)] = true;
      }
    };
    for (size_t r = 0; r < plan_.regions.size(); ++r)
      each_item(plan_.regions[r], [&](int32_t, const Item& item) {
        if (item.kind == Item::Kind::Call)
          for (Operand x : plan_.calls[z(item.number)].hoists) pin(r, x);
        else if (item.kind == Item::Kind::Branch)
          pin(r, plan_.branches[z(item.number)].pred);
        else if (item.kind == Item::Kind::Read && plan_.reads[z(item.number)].is_shared)
          pin(0, plan_.reads[z(item.number)].index);
      });
  }

  void check_visits(const Region& in, const Region& entered, const std::vector<int32_t>& visits, int32_t phase) {
    if (phase > 0) return;
    if (visits.size() != region(in.body).programs.size())
      not_a_plan("a call or map lacks its number of visits for some phase of the caller");
    for (int32_t count : visits)
      if (count < 0 || count > static_cast<int32_t>(entered.programs.size()))
        not_a_plan("a call or map has more visits than its body has phases");
  }

  const Plan& plan_;
  std::vector<std::vector<bool>> pinned_;  ///< by region and slot
};

}  // namespace

void check_items(const Plan& plan) { Checker(plan).check(); }

}  // namespace undertow
