#include "run/deferred.h"

#include <algorithm>

#include "memory/lanes.h"
#include "plan/int_reader.h"
#include "plan/items.h"
#include "run/entries.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// Counts the readers of each slot, in its own region or from outside.
class Readers {
 public:
  /// Counts readers in phases up to `last`.
  explicit Readers(const Plan& plan, int32_t last = INT32_MAX) : plan_(plan) {
    for (const Region& region : plan.regions) counts_.emplace_back(region.slots.size(), 0);
    for (size_t r = 0; r < plan.regions.size(); ++r) {
      const Region& region = plan.regions[r];
      for (size_t phase = 0; phase < region.results.size() && static_cast<int64_t>(phase) <= last; ++phase)
        for (int32_t slot : region.results[phase])
          if (slot != kNoSlot) ++counts_[r][z(slot)];
      for (const Program& program : region.programs)
        for (const Stage& stage : program.stages)
          if (program.phase <= last) each_item(stage, [&](const Item& item) { note(r, item, 1); });
    }
  }

  int32_t count(size_t region, int32_t slot) const { return counts_[region][z(slot)]; }

  void note(size_t r, const Item& item, int32_t change) {
    each_read(plan_, r, item, [&](size_t region, Operand x, Reading) {
      if (x >= 0) counts_[region][z(x)] += change;
    });
  }

 private:
  const Plan& plan_;
  std::vector<std::vector<int32_t>> counts_;  ///< by region and slot
};

/// Find the slots that deferred operators read from outside, and those of theirs that other items read.
Deferral deferral_of(const Plan& plan, size_t r, const Program& program, const Stage& stage, Readers& readers) {
  Deferral deferral{};
  deferral.region = static_cast<int32_t>(r);
  deferral.kind = stage.deferred_kind;
  deferral.items = stage.deferred;
  deferral.wide = stage.wide;
  std::vector<int32_t> reads, writes;
  for (const Item& item : deferral.items) {
    singly(plan, item, [&](const Item& one) {
      if (one.kind == Item::Kind::Op && plan.ops[z(one.number)].is_effect)
        not_a_plan("an operator with side effects is deferred");
      if (one.kind == Item::Kind::Collected) not_a_plan("a collected is deferred");
    });
    each_read(plan, r, item, [&](size_t, Operand x, Reading when) {
      if (when != Reading::Later) reads.push_back(x);
    });
    each_write(plan, item, [&](int32_t to) { writes.push_back(to); });
  }
  const auto unique = [](std::vector<int32_t>& slots) {
    std::ranges::sort(slots);
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    std::erase_if(slots, [](int32_t slot) { return slot < 0; });  // constants and unused outputs
  };
  unique(reads);
  unique(writes);
  std::ranges::set_difference(reads, writes, std::back_inserter(deferral.takes));
  for (int32_t slot : writes) deferral.bytes += plan.regions[r].slots[z(slot)].bytes;
  const auto others = [&](Readers& all) {
    for (const Item& item : deferral.items) all.note(r, item, -1);
    std::vector<int32_t> read;
    for (int32_t slot : writes)
      if (all.count(r, slot) > 0) read.push_back(slot);
    for (const Item& item : deferral.items) all.note(r, item, 1);
    return read;
  };
  deferral.gives = others(readers);
  if (deferral.is_held()) return deferral;
  // No fiber waits for these, so their tables may have ended when they run, unless a later phase is to come.
  Readers now(plan, program.phase);
  if (deferral.kind == DeferredKind::Kept ? !deferral.gives.empty() : !others(now).empty())
    not_a_plan("an item reads a deferred result that may not have been computed");
  for (const auto* slots : {&deferral.takes, &deferral.gives})
    for (int32_t slot : *slots)
      if (plan.regions[r].slots[z(slot)].is_dynamic) not_a_plan("a deferred step keeps a value of unknown shape");
  return deferral;
}

/// Check how a stage is deferred, and list the operators that run in this phase.
void find_runs(const Plan& plan, Stage& stage) {
  if ((stage.deferred_kind == DeferredKind::None) != stage.deferred.empty())
    not_a_plan("a stage has deferred items but no kind of deferral, or a kind but no items");
  stage.run = stage.straight;
  stage.run.insert(stage.run.end(), stage.deferred.begin(), stage.deferred.end());
  int32_t number = 0;
  auto ahead = stage.ahead.begin();
  for (const Item& item : stage.deferred)
    singly(plan, item, [&](const Item& one) {
      if (ahead != stage.ahead.end() && *ahead == number)
        ++ahead;
      else
        stage.now.push_back(one);
      ++number;
    });
  if (ahead != stage.ahead.end() || (!stage.ahead.empty() && stage.deferred_kind != DeferredKind::Ahead))
    not_a_plan("`ahead` names an operator that is not deferred to the next phase");
}

/// Is each column one value for all lanes, and are the two the same?
bool is_same(const Slot& slot, const Column& a, const Column& b) {
  if (a.stride != 0 || b.stride != 0) return false;
  if (!slot.is_dynamic) return a.data == b.data;
  return a.lane<Box>(0)->data == b.lane<Box>(0)->data && a.lane<Box>(0)->shape == b.lane<Box>(0)->shape;
}

}  // namespace

void find_deferrals(Plan& plan) {
  Readers readers(plan);
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    std::vector<int32_t> given;  // slots that earlier joint runs write
    for (Program& program : plan.regions[r].programs)
      for (Stage& stage : program.stages) {
        find_runs(plan, stage);
        if (stage.deferred.empty() || program.phase < 0) continue;
        Deferral deferral = deferral_of(plan, r, program, stage, readers);
        for (int32_t slot : deferral.takes)
          if (std::ranges::find(given, slot) != given.end()) deferral.order = slot;
        given.insert(given.end(), deferral.gives.begin(), deferral.gives.end());
        stage.deferral = static_cast<int32_t>(plan.deferrals.size());
        plan.deferrals.push_back(std::move(deferral));
      }
  }
}

void DeferredRows::add(const Deferral& deferral, Table& table, void* fiber, size_t wave) {
  parts.push_back({&table, fiber, wave, table.lanes, 0, table.entry, table.entries});
  if (table.entries != nullptr) ++table.entries->refs;
  bytes += deferral.bytes * table.lanes;
  lanes += table.lanes;
}

void DeferredRows::hold(const Deferral& deferral, Table& table, void* fiber, size_t wave) {
  add(deferral, table, fiber, wave);
  for (int32_t slot : deferral.takes) {
    const Column column = table.columns[slot];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    if (column.block != nullptr) ++column.block->refs;
    columns_.push_back(column);
    bytes += column.stride * table.lanes;
  }
}

bool DeferredRows::keep(Tables& tables, const Deferral& deferral, Table& table) {
  const size_t takes = deferral.takes.size();
  const bool is_first = parts.empty();
  for (size_t k = 0; k < takes; ++k) {  // values that all lanes share are not copied, so all tables must share them
    const Column& column = table.columns[deferral.takes[k]];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    if (is_first) continue;
    if ((columns_[k].stride == 0) != (column.stride == 0)) return false;
    if (column.stride == 0 && column.data != columns_[k].data) return false;
  }
  if (is_first) {
    columns_.assign(takes, Column{});
    room_.assign(takes, 0);
  }
  for (size_t k = 0; k < takes; ++k) {
    const Column& from = table.columns[deferral.takes[k]];
    Column& to = columns_[k];
    if (from.stride == 0) {
      if (is_first && from.block != nullptr) ++from.block->refs;
      to = from;
      continue;
    }
    const Slot& slot = table.region->slots[z(deferral.takes[k])];
    const int64_t used = lanes * slot.bytes, more = table.lanes * slot.bytes;
    if (used + more > room_[k]) {
      room_[k] = std::max({2 * room_[k], used + more, 16 * slot.bytes});
      Block* block = tables.pool.take(room_[k], slot.home);
      lanes::copy(block->data(), to.data, used);
      tables.pool.drop(to.block);
      to = {block, block->data(), slot.bytes};
    }
    tables.put(slot, to.from(lanes), nullptr, slot, from, table.lanes);
    bytes += more;
  }
  add(deferral, table, nullptr, 0);
  return true;
}

/// Sort by the order of an earlier joint run, in which the rows are contiguous.
void DeferredRows::sort(const Deferral& deferral) {
  const size_t takes = deferral.takes.size();
  const size_t key = z(std::ranges::find(deferral.takes, deferral.order) - deferral.takes.begin());
  std::vector<size_t> order(parts.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::less<>()(columns_[a * takes + key].data, columns_[b * takes + key].data);
  });
  std::vector<Part> sorted;
  std::vector<Column> columns;
  for (size_t k : order) {
    sorted.push_back(parts[k]);
    const auto first = columns_.begin() + static_cast<int64_t>(k * takes);
    columns.insert(columns.end(), first, first + static_cast<int64_t>(takes));
  }
  parts = std::move(sorted);
  columns_ = std::move(columns);
}

Table* DeferredRows::join(Tables& tables, const Plan& plan, const Deferral& deferral) {
  const size_t takes = deferral.takes.size();
  if (deferral.is_held() && deferral.order >= 0) sort(deferral);
  Table* joint = tables.make(plan.regions[z(deferral.region)], lanes, 1, false);
  int64_t at = 0;
  for (Part& part : parts) {
    part.at = at;
    at += part.lanes;
  }
  for (size_t k = 0; k < takes; ++k) {
    const int32_t slot = deferral.takes[k];
    if (deferral.is_held())
      join_column(tables, *joint, slot, k, takes);
    else
      tables.take(*joint, slot, joint->region->slots[z(slot)], columns_[k], nullptr, lanes);
  }
  join_entries(tables, *joint);
  return joint;
}

void DeferredRows::join_column(Tables& tables, Table& joint, int32_t number, size_t take, size_t takes) {
  const Slot& slot = joint.region->slots[z(number)];
  const Column first = columns_[take];
  bool is_one = true, is_row = first.stride != 0 && !slot.is_dynamic;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Column& column = columns_[k * takes + take];
    is_one = is_one && is_same(slot, first, column);
    is_row = is_row && column.stride == first.stride && column.block == first.block &&
             column.data == first.data + parts[k].at * first.stride;
  }
  if (is_one || is_row) {
    tables.take(joint, number, slot, first, nullptr, lanes);
    return;
  }
  tables.own(joint, number);
  for (size_t k = 0; k < parts.size(); ++k)
    tables.put(slot, joint.columns[number].from(parts[k].at), nullptr, slot, columns_[k * takes + take],
               parts[k].lanes);
}

void DeferredRows::join_entries(Tables& tables, Table& joint) {
  Entry* one = parts[0].entry;
  const bool is_one = std::ranges::all_of(
      parts, [&](const Part& part) { return part.entry == one && (one != nullptr || part.entries == nullptr); });
  if (is_one) {
    joint.entry = one;
    return;
  }
  joint.entries = tables.pool.take(lanes * 8);
  for (const Part& part : parts)
    for (int64_t k = 0; k < part.lanes; ++k)
      joint.below()[part.at + k] = part.entry != nullptr || part.entries == nullptr
                                       ? part.entry
                                       : reinterpret_cast<Entry**>(part.entries->data())[k];
}

void DeferredRows::share(Tables& tables, const Deferral& deferral, const Table& joint) {
  for (int32_t number : deferral.gives) {
    const Slot& slot = joint.region->slots[z(number)];
    const Column column = joint.columns[number];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    for (const Part& part : parts) {
      Column own = column;
      own.data += part.at * column.stride;
      tables.take(*part.table, number, slot, own, nullptr, part.lanes);
    }
  }
}

void DeferredRows::clear(Tables& tables) {
  for (const Column& column : columns_) tables.pool.drop(column.block);
  for (const Part& part : parts) tables.pool.drop(part.entries);
  columns_.clear();
  parts.clear();
  lanes = bytes = 0;
}

}  // namespace undertow
