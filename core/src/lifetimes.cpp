#include "lifetimes.h"

#include "reads.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// When a slot is read: programs of a region run one after the other, and so do their stages.
struct Time {
  size_t program = 0, stage = 0;

  auto operator<=>(const Time&) const = default;
};

constexpr size_t kEnd = SIZE_MAX;  // behind all stages

struct Last {
  Time time;
  bool is_read = false, is_pinned = false;
  int32_t entered = 0;  // that read it at that time
  Item item{};          // one of these
};

class Lifetimes {
 public:
  explicit Lifetimes(Plan& plan) : plan_(plan), calls_(plan.calls.size(), 0), branches_(plan.branches.size(), 0) {
    for (const Region& region : plan.regions) lasts_.emplace_back(region.slots.size());
  }

  void find() {
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      const Region& region = plan_.regions[r];
      for (size_t q = 0; q < region.results.size(); ++q)
        for (int32_t slot : region.results[q]) read(r, slot, {q, kEnd});
      for (size_t q = 0; q < region.phases.size(); ++q)
        for (size_t s = 0; s < region.phases[q].stages.size(); ++s) look(r, {q, s}, region.phases[q].stages[s]);
    }
    for (size_t r = 0; r < plan_.regions.size(); ++r)
      for (size_t k = 0; k < lasts_[r].size(); ++k) end(r, static_cast<int32_t>(k));
  }

 private:
  Last* later(size_t r, Operand x, Time time) {
    if (x < 0) return nullptr;
    Last& last = lasts_[r][z(x)];
    if (last.is_read && time < last.time) return nullptr;
    if (!last.is_read || time > last.time) {
      last.entered = 0;
      last.time = time;
      last.is_read = true;
    }
    return &last;
  }

  void read(size_t r, Operand x, Time time) { later(r, x, time); }

  /// By something that is entered: it looks at it before anything else happens, or some time later.
  void read(size_t r, Operand x, Time time, const Item& item) {
    Last* last = later(r, x, time);
    if (last == nullptr) return;
    if (last->entered == 0 || last->item.kind != item.kind || last->item.number != item.number) ++last->entered;
    last->item = item;
  }

  void pin(size_t r, Operand x) {
    if (x >= 0) lasts_[r][z(x)].is_pinned = true;
  }

  void look(size_t r, Time time, const Stage& stage) {
    for (const Item& item : stage.straight)
      each_read(plan_, r, item, [&](size_t in, Operand x) {
        item.kind == Item::Kind::Read ? pin(in, x) : read(in, x, time);  // anybody may read what main shares
      });
    for (const Item& item : stage.entered) look_entered(r, time, item);
  }

  void look_entered(size_t r, Time time, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Call: {
        const CallItem& call = plan_.calls[z(item.number)];
        ++calls_[z(item.number)];
        for (Operand x : call.arguments) read(r, x, time, item);
        for (Operand x : call.hoists) pin(r, x);  // lent to all that is below
        return;
      }
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        ++branches_[z(item.number)];
        pin(r, branch.pred);
        for (int side = 0; side < 2; ++side) {
          for (const Transfer& t : branch.transfers[side]) read(r, t.from, time, item);
          const Time end{z(branch.programs[side]), kEnd};
          for (const MergeRow& merge : branch.merges) read(z(branch.regions[side]), merge.sides[side], end);
        }
        return;
      }
      case Item::Kind::Map: {
        const MapItem& map = plan_.maps[z(item.number)];
        if (map.phase == 0) read(r, map.counted, time, item);
        for (const auto* transfers : {&map.mapped, &map.outers})
          for (const Transfer& t : *transfers) read(r, t.from, time, item);
        for (const LoopItem::Exit& result : map.results) read(z(map.body), result.from, {z(map.phase), kEnd});
        return;
      }
      case Item::Kind::Loop: {
        const LoopItem& loop = plan_.loops[z(item.number)];
        for (const auto* transfers : {&loop.variables, &loop.outers})
          for (const Transfer& t : *transfers) pin(r, t.from);
        return;
      }
      default:
        return;
    }
  }

  /// A slot goes behind the last that reads it, where that is known. (Small ones share the memory of their table.)
  void end(size_t r, int32_t number) {
    Region& region = plan_.regions[r];
    const Slot& slot = region.slots[z(number)];
    const Last& last = lasts_[r][z(number)];
    const bool is_in_loop = plan_.regions[z(region.body)].kind == Region::Kind::Loop;  // the next round looks at it
    if (last.is_pinned || is_in_loop || !last.is_read || last.time.stage == kEnd || slot.is_inner) return;
    if (slot.offset >= 0 && !slot.is_dynamic) return;
    if (last.entered == 0)
      region.phases[last.time.program].stages[last.time.stage].drops.push_back(number);
    else if (last.entered == 1 && last.item.kind == Item::Kind::Call && calls_[z(last.item.number)] == 1)
      plan_.calls[z(last.item.number)].drops.push_back(number);
    else if (last.entered == 1 && last.item.kind == Item::Kind::Branch && branches_[z(last.item.number)] == 1)
      plan_.branches[z(last.item.number)].drops.push_back(number);
  }

  Plan& plan_;
  std::vector<std::vector<Last>> lasts_;
  std::vector<int32_t> calls_, branches_;  // how often each stands in the plan: in a spoiled one, where it never runs
};

}  // namespace

void find_lifetimes(Plan& plan) { Lifetimes(plan).find(); }

}  // namespace undertow
