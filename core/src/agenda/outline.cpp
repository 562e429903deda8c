#include "agenda/outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "agenda/frame.h"
#include "plan/items.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {
constexpr int64_t kSentAtOnce = 1 << 17;  // bytes: half of the memory that is read from a socket at once
constexpr int64_t kFewest = 64;           // lanes: matrix products want no fewer

class OutlineBuilder {
 public:
  explicit OutlineBuilder(const Plan& plan) : plan_(plan), used_(plan.regions.size()) {
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
      for (const auto& list : plan_.regions[r].results)
        for (int32_t slot : list) use(r, slot, kElsewhere);
      int32_t number = 0;
      for (const Program& program : plan_.regions[r].programs)
        for (const Stage& stage : program.stages) {
          each_item(stage, [&](const Item& item) {
            each_read(plan_, r, item, [&](size_t region, Operand x, Reading when) {
              use(region, x, when == Reading::Now ? number : kElsewhere);  // entries point to hoisted values
            });
          });
          ++number;
        }
    }
  }

  /// Record that a stage, or something elsewhere, uses a slot.
  void use(size_t region, Operand x, int32_t stage) {
    if (x >= 0) used_[region][x].insert(stage);
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
    for (const Program& program : region.region->programs) {
      region.first.push_back(static_cast<int32_t>(out_.stages.size()));
      for (const Stage& stage : program.stages) {
        StagePlan& made = out_.stages.emplace_back();
        made.stage = &stage;
        made.region = r;
        made.phase = phase;
        made.number = static_cast<int32_t>(&stage - program.stages.data());
        made.ahead = static_cast<int32_t>(program.stages.size()) - 1 - made.number;
        for (const Item& item : stage.run) made.is_heavy = made.is_heavy || is_heavy(r, item);
        if (const int64_t bytes = sent(r, stage); bytes > 0) made.most = std::max(kFewest, kSentAtOnce / bytes);
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

  /// Bytes that a lane sends, as far as they are known.
  int64_t sent(int32_t r, const Stage& stage) const {
    int64_t bytes = 0;
    for (const Item& item : stage.run) {
      if (item.kind != Item::Kind::Send) continue;
      const int32_t from = plan_.sends[z(item.number)].from;
      if (from < 0) continue;
      const Slot& slot = plan_.regions[z(r)].slots[z(from)];
      if (!slot.is_dynamic) bytes += slot.bytes;
    }
    return bytes;
  }

  std::set<int32_t> makes(const Stage& stage) const {
    std::set<int32_t> made;
    for (const Item& item : stage.run) each_write(plan_, item, [&](int32_t to) { made.insert(to); });
    return made;
  }

  bool is_heavy(int32_t r, const Item& item) const {
    if (item.kind == Item::Kind::Collect) return true;
    bool found = false;
    if (item.kind == Item::Kind::Op || item.kind == Item::Kind::Fused)
      each_write(plan_, item, [&](int32_t to) { found = found || !is_small(plan_.regions[z(r)].slots[z(to)]); });
    return found;
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

  const Slot& slot_of(int32_t region, Operand x) const { return plan_.slot(plan_.regions[z(region)], x); }

  /// Add a carry, unless its target is never read.
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
      if (item.kind == Item::Kind::Recv) entered(out_.recvs, recv(r, plan_.recvs[at]));
    }
  }

  BranchPlan branch(int32_t r, const BranchItem& item) const {
    BranchPlan made{&item, {}, {}};
    for (size_t side = 0; side < 2; ++side) {
      for (const Transfer& t : item.transfers[side]) add(made.in[side], r, t.from, item.regions[side], t.to);
      for (const Merge& merge : item.merges) add(made.out[side], item.regions[side], merge.sides[side], r, merge.to);
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
    LoopPlan made{&item, {}, {}, {}, {}, decides(plan_, item)->regions[0]};
    for (const auto* transfers : {&item.variables, &item.outers})
      for (const Transfer& t : *transfers) add(made.in, r, t.from, item.body, t.to);
    for (size_t k = 0; k < item.variables.size(); ++k)
      add(made.next, made.going, item.next[k], item.body, item.variables[k].to);
    for (const Transfer& t : item.outers) add(made.outers, item.body, t.to, item.body, t.to);
    for (const Exit& exit : item.exits) add(made.out, item.body, exit.from, r, exit.to);
    return made;
  }

  MapPlan map(int32_t r, const MapItem& item) const {
    MapPlan made{&item, {}};
    for (const Transfer& t : item.outers) add(made.outers, r, t.from, item.body, t.to);
    return made;
  }

  RecvPlan recv(int32_t r, const RecvItem& item) const {
    if (item.to == kNoSlot) return {&item, nullptr, -1};
    return {&item, &plan_.regions[z(r)].slots[z(item.to)], out_.regions[z(r)].places[z(item.to)]};
  }

  static constexpr int32_t kElsewhere = -1;
  const Plan& plan_;
  Outline out_;
  std::vector<std::map<int32_t, std::set<int32_t>>> used_;  ///< by region: the stages that use each slot
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

Outline make_outline(const Plan& plan) { return OutlineBuilder(plan).take(); }

}  // namespace undertow::agenda
