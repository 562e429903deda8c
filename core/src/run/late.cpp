#include "run/late.h"

#include <algorithm>

#include "memory/lanes.h"
#include "plan/items.h"
#include "plan/reader.h"
#include "run/entries.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// Which slots are read, and by whom: in its own region, or from around it.
class Readers {
 public:
  /// Those up to a phase.
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

/// What a run of operators takes from before it, and what of it others read.
Late late_of(const Plan& plan, size_t r, const Program& program, const Stage& stage, Readers& readers) {
  Late late{};
  late.region = static_cast<int32_t>(r);
  late.kind = stage.late_kind;
  late.items = stage.late;
  late.wide = stage.wide;
  std::vector<int32_t> reads, writes;
  for (const Item& item : late.items) {
    singly(plan, item, [&](const Item& one) {
      if (one.kind == Item::Kind::Op && plan.ops[z(one.number)].is_effect) not_a_plan("what acts on the world waits");
      if (one.kind == Item::Kind::Collected) not_a_plan("what belongs to one table waits");
    });
    each_read(plan, r, item, [&](size_t, Operand x, Reading when) {
      if (when != Reading::Later) reads.push_back(x);
    });
    each_write(plan, item, [&](int32_t to) { writes.push_back(to); });
  }
  const auto unique = [](std::vector<int32_t>& slots) {
    std::ranges::sort(slots);
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    std::erase_if(slots, [](int32_t slot) { return slot < 0; });  // constants, and what nobody uses
  };
  unique(reads);
  unique(writes);
  std::ranges::set_difference(reads, writes, std::back_inserter(late.takes));
  for (int32_t slot : writes) late.bytes += plan.regions[r].slots[z(slot)].bytes;
  const auto others = [&](Readers& all) {
    for (const Item& item : late.items) all.note(r, item, -1);
    std::vector<int32_t> read;
    for (int32_t slot : writes)
      if (all.count(r, slot) > 0) read.push_back(slot);
    for (const Item& item : late.items) all.note(r, item, 1);
    return read;
  };
  late.gives = others(readers);
  if (late.is_held()) return late;
  // Nobody waits for these, so their tables may be gone when they run; but for those that have a phase to come.
  Readers now(plan, program.phase);
  if (late.kind == LateKind::Kept ? !late.gives.empty() : !others(now).empty())
    not_a_plan("a result is waited for that comes at any time");
  for (const auto* slots : {&late.takes, &late.gives})
    for (int32_t slot : *slots)
      if (plan.regions[r].slots[z(slot)].is_dynamic) not_a_plan("a value without a known shape is kept");
  return late;
}

/// It is said how steps wait, and which of them, one by one and in order, belong to the next phase.
void find_runs(const Plan& plan, Stage& stage) {
  if ((stage.late_kind == LateKind::None) != stage.late.empty()) not_a_plan("it is not said how steps wait");
  stage.run = stage.straight;
  stage.run.insert(stage.run.end(), stage.late.begin(), stage.late.end());
  int32_t number = 0;
  auto ahead = stage.ahead.begin();
  for (const Item& item : stage.late)
    singly(plan, item, [&](const Item& one) {
      if (ahead != stage.ahead.end() && *ahead == number)
        ++ahead;
      else
        stage.now.push_back(one);
      ++number;
    });
  if (ahead != stage.ahead.end() || (!stage.ahead.empty() && stage.late_kind != LateKind::Ahead))
    not_a_plan("what belongs to the next phase does not wait");
}

/// Are these the same value for all lanes?
bool is_same(const Slot& slot, const Column& a, const Column& b) {
  if (a.stride != 0 || b.stride != 0) return false;
  if (!slot.is_dynamic) return a.data == b.data;
  return a.lane<Box>(0)->data == b.lane<Box>(0)->data && a.lane<Box>(0)->shape == b.lane<Box>(0)->shape;
}

}  // namespace

void find_lates(Plan& plan) {
  Readers readers(plan);
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    std::vector<int32_t> given;  // by earlier joint runs
    for (Program& program : plan.regions[r].programs)
      for (Stage& stage : program.stages) {
        find_runs(plan, stage);
        if (stage.late.empty() || program.phase < 0) continue;
        Late late = late_of(plan, r, program, stage, readers);
        for (int32_t slot : late.takes)
          if (std::ranges::find(given, slot) != given.end()) late.order = slot;
        given.insert(given.end(), late.gives.begin(), late.gives.end());
        stage.waits = static_cast<int32_t>(plan.lates.size());
        plan.lates.push_back(std::move(late));
      }
  }
}

void Waiting::hold(const Late& late, Table& table, void* fiber, size_t wave) {
  parts.push_back({&table, fiber, wave, table.lanes, 0, table.entry, table.entries});
  if (table.entries != nullptr) ++table.entries->refs;
  for (int32_t slot : late.takes) {
    const Column column = table.columns[slot];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    if (column.block != nullptr) ++column.block->refs;
    columns_.push_back(column);
    bytes += column.stride * table.lanes;
  }
  bytes += late.bytes * table.lanes;
  lanes += table.lanes;
}

bool Waiting::keep(Tables& tables, const Late& late, Table& table) {
  const size_t takes = late.takes.size();
  const bool is_first = parts.empty();
  for (size_t k = 0; k < takes; ++k) {  // what all lanes share is not copied, so it must be the same for all tables
    const Column& column = table.columns[late.takes[k]];
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
    const Column& from = table.columns[late.takes[k]];
    Column& to = columns_[k];
    if (from.stride == 0) {
      if (is_first && from.block != nullptr) ++from.block->refs;
      to = from;
      continue;
    }
    const Slot& slot = table.region->slots[z(late.takes[k])];
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
  parts.push_back({&table, nullptr, 0, table.lanes, lanes, table.entry, table.entries});
  if (table.entries != nullptr) ++table.entries->refs;
  bytes += late.bytes * table.lanes;
  lanes += table.lanes;
  return true;
}

/// As an earlier run put them side by side, so that they still lie so.
void Waiting::sort(const Late& late) {
  const size_t takes = late.takes.size();
  const size_t key = z(std::ranges::find(late.takes, late.order) - late.takes.begin());
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

Table* Waiting::join(Tables& tables, const Plan& plan, const Late& late) {
  const size_t takes = late.takes.size();
  if (late.is_held() && late.order >= 0) sort(late);
  Table* joint = tables.make(plan.regions[z(late.region)], lanes, 1, false);
  int64_t at = 0;
  for (Part& part : parts) {
    part.at = at;
    at += part.lanes;
  }
  for (size_t k = 0; k < takes; ++k) {
    const int32_t slot = late.takes[k];
    if (late.is_held())
      join_column(tables, *joint, slot, k, takes);
    else
      tables.take(*joint, slot, joint->region->slots[z(slot)], columns_[k], nullptr, lanes);
  }
  join_entries(tables, *joint);
  return joint;
}

void Waiting::join_column(Tables& tables, Table& joint, int32_t number, size_t take, size_t takes) {
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

void Waiting::join_entries(Tables& tables, Table& joint) {
  Entry* one = parts[0].entry;
  const bool is_one = std::ranges::all_of(
      parts, [&](const Part& part) { return part.entry == one && (one != nullptr || part.entries == nullptr); });
  if (is_one) {
    joint.entry = one;
    return;
  }
  joint.entries = tables.pool.take(lanes * 8);
  Entry** to = reinterpret_cast<Entry**>(joint.entries->data());
  for (const Part& part : parts)
    for (int64_t k = 0; k < part.lanes; ++k)
      to[part.at + k] = part.entry != nullptr || part.entries == nullptr
                            ? part.entry
                            : reinterpret_cast<Entry**>(part.entries->data())[k];
}

void Waiting::share(Tables& tables, const Late& late, const Table& joint) {
  for (int32_t number : late.gives) {
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

void Waiting::clear(Tables& tables) {
  for (const Column& column : columns_) tables.pool.drop(column.block);
  for (const Part& part : parts) tables.pool.drop(part.entries);
  columns_.clear();
  parts.clear();
  lanes = bytes = 0;
}

}  // namespace undertow
