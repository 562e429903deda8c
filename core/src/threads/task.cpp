#include "threads/task.h"

#include <algorithm>

#include "undertow/size.h"

namespace undertow {
namespace {

/// Call `see` with each entry above some lanes of a part; equal ones in a row count once.
template <class See>
void each_entry(const Part& part, int64_t from, int64_t count, See&& see) {
  const Entry* last = nullptr;
  for (int64_t lane = from; lane < from + count; ++lane) {
    Entry* entry = part.entry_of(lane);
    if (entry != last && entry != nullptr) see(*entry);
    last = entry;
  }
}

}  // namespace

void SharedLanes::hold() {
  for (const Part* part : invocation.parts) {
    const std::vector<Operand>& arguments = part->item->arguments;
    for (size_t k = 0; k < part->arguments.size(); ++k)
      if (arguments[k] != kNoSlot) keep(owner.plan.slot(*part->region, arguments[k]), part->arguments[k], part->lanes);
    if (invocation.phase > 0 || owner.plan.regions[z(part->item->body)].hoisted == 0) continue;
    each_entry(*part, 0, part->lanes, [&](const Entry& entry) {
      for (size_t k = 0; k < entry.values.size(); ++k)
        keep(owner.plan.slot(*entry.region, entry.item->hoists[k]), entry.values[k], 1);
    });
  }
  const std::vector<Slot>& slots = owner.plan.regions[0].slots;
  for (size_t k = 0; k < slots.size(); ++k) keep(slots[k], owner.shared(static_cast<int32_t>(k)), 1);
}

void SharedLanes::make_rooms() {
  rooms.assign(invocation.parts.size(), {});
  for (size_t part = first_part; part < rooms.size(); ++part)
    for (size_t k = 0; k < invocation.parts[part]->item->results.size(); ++k) {
      const bool is_order = invocation.parts[part]->item->results[k] == kNoSlot;
      rooms[part].push_back(is_order ? Column{} : invocation.caller->room(*invocation.parts[part], k));
    }
}

Task::Task(SharedLanes& shared, Range range, int64_t place)
    : order(place),
      shared_(shared),
      host_(place, shared.first_failed),
      invocation_{this,
                  shared.invocation.group,
                  shared.invocation.visits,
                  shared.invocation.resume_group,
                  0,
                  shared.invocation.depth,
                  {},
                  nullptr,
                  nullptr} {
  for (; range.count > 0; ++range.part, range.lane = 0) {
    const Part& owner = *shared.invocation.parts[range.part];
    Lanes& part = parts_.emplace_back();
    static_cast<Part&>(part) = owner;
    part.invocation = &invocation_;
    part.owner = &owner;
    part.number = range.part;
    part.from = range.lane;
    part.lanes = std::min(range.count, owner.lanes - range.lane);
    range.count -= part.lanes;
    find_entries(part);
    invocation_.parts.push_back(&part);
  }
}

void Task::run(Host* host) {
  host_.begin(host);
  const bool is_first = !run_;
  if (is_first) {
    run_.emplace(shared_.owner.plan, shared_.options, host_, stats, &shared_.owner, &shared_.share);
    for (Lanes& part : parts_) lend_entries(part);
  }
  Tables& tables = run_->tables;
  frames.kept = tables.frames;
  bytes.kept = tables.pool.live();
  tables.measure();
  run_->lend_main();
  for (Lanes& part : parts_) lend_arguments(part);
  run_->run(invocation_, is_first);
  for (size_t k = 0; k < entries_.size(); ++k) take_partials(tables, entries_[k], *owners_[k], partials_);
  frames = {std::max(frames.kept, tables.frames), tables.peak_frames};
  bytes = {std::max(bytes.kept, tables.pool.live()), tables.pool.peak()};
  tables.give_back();
  const auto has_boxes = [](const Lanes& part) {
    return std::ranges::any_of(part.boxes, [](const auto& boxes) { return !boxes.empty(); });
  };
  // Its memory serves the next task; but values in boxes are still to be handed over.
  if (shared_.is_last_phase() && std::ranges::none_of(parts_, has_boxes)) run_.reset();
}

void Task::lend_arguments(Lanes& part) {
  const Part& owner = *part.owner;
  part.item = owner.item;
  part.arguments = owner.arguments;
  for (size_t k = 0; k < part.arguments.size(); ++k) {
    if (part.item->arguments[k] == kNoSlot) continue;
    const Slot& slot = shared_.owner.plan.slot(*part.region, part.item->arguments[k]);
    part.arguments[k] = run_->lend(slot, part.arguments[k].from(part.from), part.lanes);
  }
  const std::vector<int32_t>& results = part.item->results;
  part.boxes.assign(results.size(), {});
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k] != kNoSlot && part.region->slots[z(results[k])].is_dynamic)
      part.boxes[k].assign(z(part.lanes), Box{nullptr, nullptr, nullptr});
}

/// The owner's entries above its lanes.
void Task::find_entries(Lanes& part) {
  const Part& owner = *part.owner;
  if (shared_.owner.plan.regions[z(part.item->body)].hoisted == 0) return;
  const bool is_one = owner.row == nullptr && owner.entries == nullptr;
  const Entry* last = nullptr;
  for (int64_t lane = part.from; lane < part.from + (is_one ? 1 : part.lanes); ++lane) {
    Entry* entry = owner.entry_of(lane);
    if (entry != last) owners_.push_back(entry);
    last = entry;
    part.places.push_back(static_cast<int32_t>(owners_.size()) - 1);
  }
}

/// Entries of its own, with the owner's values: what is collected in them is added to the owner's.
void Task::lend_entries(Lanes& part) {
  const Plan& plan = shared_.owner.plan;
  if (part.places.empty()) return;
  while (entries_.size() <= z(part.places.back())) {
    const Entry& from = *owners_[entries_.size()];
    entries_.push_back({from.region, from.item, from.values, std::vector<Sum>(from.sums.size())});
    Entry& entry = entries_.back();
    for (size_t k = 0; k < entry.values.size(); ++k)
      entry.values[k] = run_->lend(plan.slot(*entry.region, entry.item->hoists[k]), entry.values[k], 1);
  }
  part.row = nullptr;
  part.entries = nullptr;
  part.entry = &entries_[z(part.places[0])];
  if (part.owner->row == nullptr && part.owner->entries == nullptr) return;
  for (int32_t place : part.places) part.below.push_back(&entries_[z(place)]);
  part.entries = part.below.data();
}

Column Task::room(Part& part, size_t result) {
  Lanes& lanes = static_cast<Lanes&>(part);
  if (std::vector<Box>& boxes = lanes.boxes[result]; !boxes.empty())
    return {nullptr, reinterpret_cast<std::byte*>(boxes.data()), sizeof(Box)};
  return shared_.rooms[lanes.number][result].from(lanes.from);
}

void Task::take(Part& part, size_t result, const Slot& slot, const Column& column) {
  const Slot& to = part.region->slots[z(part.item->results[result])];
  run_->tables.put(to, room(part, result), nullptr, slot, column, part.lanes);
}

void Task::hand_over(Run& owner) {
  for (Partial& partial : partials_) add_partial(owner.tables, partial);
  partials_.clear();
  if (!run_) return;
  for (Lanes& part : parts_)
    for (size_t k = 0; k < part.boxes.size(); ++k) {
      if (part.boxes[k].empty()) continue;
      const Slot& slot = part.region->slots[z(part.item->results[k])];
      const Column to = shared_.rooms[part.number][k].from(part.from);
      for (int64_t lane = 0; lane < part.lanes; ++lane)
        owner.tables.adopt(slot, *to.lane<Box>(lane), part.boxes[k][z(lane)], run_->tables.pool);
      part.boxes[k].clear();
    }
}

}  // namespace undertow
