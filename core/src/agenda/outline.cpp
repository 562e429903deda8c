#include "agenda/outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "agenda/frame.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {

class Maker {
 public:
  explicit Maker(const Plan& plan) : plan_(plan), used_(plan.regions.size()) {
    find_uses();
    for (size_t r = 0; r < plan.regions.size(); ++r) write_stages(static_cast<int32_t>(r));
    for (size_t r = 0; r < plan.regions.size(); ++r) lay_out(out_.regions[r]);
    for (StagePlan& stage : out_.stages)
      if (stage.stage != nullptr) connect(stage);
  }

  Outline take() { return std::move(out_); }

 private:
  // -- uses ----------------------------------------------------------------------------------------------------

  void find_uses() {
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      const auto region = static_cast<int32_t>(r);
      for (const auto& list : plan_.regions[r].results)
        for (int32_t slot : list) use(region, slot, kElsewhere);
      int32_t number = 0;
      for (const Program& program : plan_.regions[r].phases)
        for (const Stage& stage : program.stages) {
          for (const Item& item : stage.straight) look_straight(region, item, number);
          for (const Item& item : stage.entered) look_entered(region, item, number);
          ++number;
        }
    }
  }

  /// A slot is used in a stage, or elsewhere.
  void use(int32_t region, Operand x, int32_t stage) {
    if (x >= 0) used_[z(region)][x].insert(stage);
  }

  void look_straight(int32_t r, const Item& item, int32_t number) {
    switch (item.kind) {
      case Item::Kind::Op:
        for (Operand x : plan_.ops[z(item.number)].inputs) use(r, x, number);
        break;
      case Item::Kind::Collect:
        for (Operand x : plan_.collects[z(item.number)].values) use(r, x, number);
        break;
      case Item::Kind::Collected:
        use(r, plan_.collecteds[z(item.number)].like, number);
        break;
      case Item::Kind::Read:
        if (plan_.reads[z(item.number)].is_shared) use(0, plan_.reads[z(item.number)].index, kElsewhere);
        break;
      default:
        break;
    }
  }

  void look_entered(int32_t r, const Item& item, int32_t number) {
    switch (item.kind) {
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        use(r, branch.pred, number);
        for (int side = 0; side < 2; ++side) {
          for (const Transfer& t : branch.transfers[side]) use(r, t.from, number);
          for (const MergeRow& merge : branch.merges) use(branch.regions[side], merge.sides[side], kElsewhere);
        }
        break;
      }
      case Item::Kind::Call: {
        const CallItem& call = plan_.calls[z(item.number)];
        for (Operand x : call.arguments) use(r, x, number);
        for (Operand x : call.hoists) use(r, x, kElsewhere);  // entries point to it
        break;
      }
      case Item::Kind::Loop: {
        const LoopItem& loop = plan_.loops[z(item.number)];
        for (const Transfer& t : loop.variables) use(r, t.from, number);
        for (const Transfer& t : loop.outers) {
          use(r, t.from, number);
          use(loop.body, t.to, kElsewhere);
        }
        for (const LoopItem::Exit& exit : loop.exits) use(loop.body, exit.from, kElsewhere);
        for (Operand x : loop.next) use(going(loop), x, kElsewhere);
        break;
      }
      case Item::Kind::Map: {
        const MapItem& map = plan_.maps[z(item.number)];
        if (map.phase == 0) use(r, map.counted, number);
        for (const Transfer& t : map.mapped) use(r, t.from, number);
        for (const Transfer& t : map.outers) use(r, t.from, number);
        for (const LoopItem::Exit& result : map.results) use(map.body, result.from, kElsewhere);
        break;
      }
      default:
        break;
    }
  }

  /// The region of the branch in which a loop goes on. Plans are checked: there is one.
  int32_t going(const LoopItem& loop) const {
    int32_t found = 0;
    for (const Stage& stage : plan_.regions[z(loop.body)].phases[0].stages)
      for (const Item& item : stage.entered)
        if (item.kind == Item::Kind::Branch && plan_.branches[z(item.number)].branch == loop.branch)
          found = plan_.branches[z(item.number)].regions[0];
    return found;
  }

  // -- stages --------------------------------------------------------------------------------------------------

  void write_stages(int32_t r) {
    RegionPlan region{};
    region.region = &plan_.regions[z(r)];
    region.number = r;
    region.is_counted = region.region->kind != Region::Kind::Branch;
    region.places.assign(region.region->slots.size(), -1);
    for (const auto& [slot, stages] : used_[z(r)])
      if (stages.contains(kElsewhere)) region.places[z(slot)] = 0;
    int32_t number = 0, phase = 0;
    for (const Program& program : region.region->phases) {
      region.first.push_back(static_cast<int32_t>(out_.stages.size()));
      for (const Stage& stage : program.stages) {
        StagePlan& made = out_.stages.emplace_back();
        made.stage = &stage;
        made.region = r;
        made.phase = phase;
        made.number = static_cast<int32_t>(&stage - program.stages.data());
        for (const Item& item : stage.straight) made.is_heavy = made.is_heavy || is_heavy(r, item);
        const std::set<int32_t> own = makes(stage);
        for (const auto& [slot, stages] : used_[z(r)]) {
          if (own.contains(slot) || !stages.contains(number)) continue;
          made.loads.push_back(slot);
          region.places[z(slot)] = 0;
        }
        ++number;
      }
      StagePlan& end = out_.stages.emplace_back();
      end.stage = nullptr;
      end.region = r;
      end.phase = phase++;
    }
    out_.regions.push_back(std::move(region));
  }

  std::set<int32_t> makes(const Stage& stage) const {
    std::set<int32_t> made;
    for (const Item& item : stage.straight) switch (item.kind) {
        case Item::Kind::Op:
          for (int32_t to : plan_.ops[z(item.number)].outputs) made.insert(to);
          break;
        case Item::Kind::Read:
          made.insert(plan_.reads[z(item.number)].to);
          break;
        case Item::Kind::Collected:
          for (int32_t to : plan_.collecteds[z(item.number)].to) made.insert(to);
          break;
        default:
          break;
      }
    made.erase(kNoSlot);
    return made;
  }

  bool is_heavy(int32_t r, const Item& item) const {
    if (item.kind == Item::Kind::Collect) return true;
    if (item.kind != Item::Kind::Op) return false;
    for (int32_t to : plan_.ops[z(item.number)].outputs)
      if (to != kNoSlot && !is_small(plan_.regions[z(r)].slots[z(to)])) return true;
    return false;
  }

  // -- frames --------------------------------------------------------------------------------------------------

  void lay_out(RegionPlan& region) {
    const Region& from = *region.region;
    auto size = static_cast<int64_t>(sizeof(Frame));
    region.frame_links = from.branches + from.calls;
    size += 8 * int64_t{region.frame_links};
    region.entries = static_cast<int32_t>(size);
    size += 8 * int64_t{from.calls};
    region.maps = static_cast<int32_t>(size);
    size += 8 * int64_t{from.maps};
    region.boxes = static_cast<int32_t>(size);
    for (size_t slot = 0; slot < from.slots.size(); ++slot)
      if (region.places[slot] >= 0 && !is_small(from.slots[slot])) {
        region.places[slot] = static_cast<int32_t>(size);
        size += static_cast<int64_t>(sizeof(Box));
        ++region.box_count;
      }
    region.zeroed = static_cast<int32_t>(size);
    for (size_t slot = 0; slot < from.slots.size(); ++slot)
      if (region.places[slot] >= 0 && is_small(from.slots[slot])) {
        region.places[slot] = static_cast<int32_t>(size);
        size += (std::max<int64_t>(1, from.slots[slot].bytes) + 7) / 8 * 8;
      }
    region.size = static_cast<int32_t>(size);
  }

  const Slot& slot_of(int32_t region, Operand x) const {
    return x < 0 ? plan_.constants[z(~x)].slot : plan_.regions[z(region)].slots[z(x)];
  }

  /// Nothing if nobody needs it there.
  void add(Carries& carries, int32_t from_region, Operand from, int32_t to_region, int32_t to) const {
    if (to == kNoSlot || from == kNoSlot) return;
    const int32_t to_place = out_.regions[z(to_region)].places[z(to)];
    if (to_place < 0) return;
    const int32_t from_place = from < 0 ? -1 : out_.regions[z(from_region)].places[z(from)];
    carries.push_back(make_carry(from, slot_of(from_region, from), from_place, slot_of(to_region, to), to_place));
  }

  // -- what is entered -----------------------------------------------------------------------------------------

  void connect(StagePlan& stage) {
    const int32_t r = stage.region;
    for (int32_t slot : makes(*stage.stage)) add(stage.stores, r, slot, r, slot);
    for (const Item& item : stage.stage->entered) {
      const auto entered = [&](auto& list, auto made) {
        stage.entered.push_back({item.kind, static_cast<int32_t>(list.size())});
        list.push_back(std::move(made));
      };
      const auto at = z(item.number);
      if (item.kind == Item::Kind::Branch) entered(out_.branches, branch(r, plan_.branches[at]));
      if (item.kind == Item::Kind::Call) entered(out_.calls, call(r, plan_.calls[at]));
      if (item.kind == Item::Kind::Loop) entered(out_.loops, loop(r, plan_.loops[at]));
      if (item.kind == Item::Kind::Map) entered(out_.maps, map(r, plan_.maps[at]));
    }
  }

  BranchPlan branch(int32_t r, const BranchItem& item) const {
    BranchPlan made{&item, {}, {}};
    for (int side = 0; side < 2; ++side) {
      for (const Transfer& t : item.transfers[side]) add(made.in[side], r, t.from, item.regions[side], t.to);
      for (const MergeRow& merge : item.merges) add(made.out[side], item.regions[side], merge.sides[side], r, merge.to);
    }
    return made;
  }

  CallPlan call(int32_t r, const CallItem& item) const {
    CallPlan made{&item, {}, {}, {}};
    const Region& body = plan_.regions[z(item.body)];
    for (size_t k = 0; k < item.arguments.size(); ++k)
      add(made.in, r, item.arguments[k], item.body, body.params[z(item.phase)][k]);
    for (size_t k = 0; k < item.results.size(); ++k)
      add(made.out, item.body, body.results[z(item.phase)][k], r, item.results[k]);
    for (int32_t result : item.results) add(made.back, r, result, r, result);
    return made;
  }

  LoopPlan loop(int32_t r, const LoopItem& item) const {
    LoopPlan made{&item, {}, {}, {}, {}, going(item)};
    for (const auto* transfers : {&item.variables, &item.outers})
      for (const Transfer& t : *transfers) add(made.in, r, t.from, item.body, t.to);
    for (size_t k = 0; k < item.variables.size(); ++k)
      add(made.next, made.going, item.next[k], item.body, item.variables[k].to);
    for (const Transfer& t : item.outers) add(made.outers, item.body, t.to, item.body, t.to);
    for (const LoopItem::Exit& exit : item.exits) add(made.out, item.body, exit.from, r, exit.to);
    return made;
  }

  MapPlan map(int32_t r, const MapItem& item) const {
    MapPlan made{&item, {}};
    for (const Transfer& t : item.outers) add(made.outers, r, t.from, item.body, t.to);
    return made;
  }

  static constexpr int32_t kElsewhere = -1;
  const Plan& plan_;
  Outline out_;
  std::vector<std::map<int32_t, std::set<int32_t>>> used_;  ///< slots of each region, and the stages that use them
};

}  // namespace

Carry make_carry(Operand from, const Slot& from_slot, int32_t from_place, const Slot& to_slot, int32_t to_place) {
  Carry made{};
  made.from = from;
  made.from_place = from_place;
  made.to_place = to_place;
  made.from_slot = &from_slot;
  made.to_slot = &to_slot;
  made.bytes = static_cast<int32_t>(std::min<int64_t>(to_slot.bytes, kSmall));
  if (is_small(to_slot))
    made.kind = from < 0 || is_small(from_slot) ? Carry::Kind::Small : Carry::Kind::Fetch;
  else if (from >= 0 && !is_small(from_slot) && from_slot.is_dynamic == to_slot.is_dynamic)
    made.kind = Carry::Kind::Array;
  else
    made.kind = Carry::Kind::Other;
  return made;
}

Outline make_outline(const Plan& plan) { return Maker(plan).take(); }

}  // namespace undertow::agenda
