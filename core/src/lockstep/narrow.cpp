// Calls of few lanes, one lane after the other.
#include "lanes.h"
#include "lockstep/run.h"

namespace undertow::lockstep {
namespace {

constexpr int64_t kNarrow = 16;  // lanes; with more, waves are faster

}  // namespace

bool Lockstep::goes_narrow(const Group& group) const {
  if (group.request > 0 || group.lane > 0 || options_.check_finite || options_.is_traced ||
      !plan_.groups[z(group.group)].is_narrow)
    return false;
  int64_t lanes = 0;
  for (const Request* request : group.requests) lanes += request->table->lanes;
  return lanes <= kNarrow;
}

/// Run the calls of a group one lane after the other.
void Lockstep::run_narrow(Wave& wave) {
  const Group group = std::move(wave.groups.back());
  wave.groups.pop_back();
  narrow_.main_ = main_;
  const int64_t depth = (wave.chunk == nullptr ? 0 : wave.chunk->depth) + 1;
  for (Request* request : group.requests) {
    Table& table = *request->table;
    const CallItem& item = *request->item;
    at_ = &table;
    operate_.doing = {-1, item.site};
    if (depth > stats_.max_depth) {
      operate_.lane = 0;
      if (depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
      stats_.max_depth = depth;
      stats_.deepest.assign(1, {item.site, -1});
      climb(&table, 0);
    }
    CallState& state = table.calls[z(item.call)];
    if (item.makes_entry) make_entries(table, item);
    state.frames.clear();
    const int32_t hoisted = plan_.regions[z(item.body)].hoisted;
    for (int64_t lane = 0; lane < table.lanes; ++lane) {
      Entry* entry = hoisted == 0 ? nullptr : item.makes_entry ? &state.entries[z(lane)] : entry_of(table, lane);
      NarrowFrame* frame = narrow_.call(item.body, item.site, group.visits, entry, depth);
      run_lane(table, lane, item, frame);
      if (group.visits > 1) state.frames.push_back(frame);
    }
    ++stats_.waves;
    stats_.lanes += table.lanes;
    Fiber* waiter = request->fiber;
    space_->requests.give(request);
    come_back(wave, waiter);
  }
}

void Lockstep::run_lane(Table& table, int64_t lane, const CallItem& item, NarrowFrame* frame) {
  clock_.to(Step::Narrow);
  const Access access;  // a lane runs to its end as in one kernel
  const NarrowBody& body = narrow_.body(item.body);
  for (size_t k = 0; k < item.arguments.size(); ++k) {
    const int32_t to = body.params[z(item.phase)][k];
    if (to < 0) continue;
    const Column column = tables_.column(table, item.arguments[k]);
    frame->cells[to] =
        lanes::cell_at(column.lane<std::byte>(lane), tables_.slot(*table.region, item.arguments[k]).bytes);
  }
  at_ = &table;
  operate_.lane = lane;
  is_narrow_ = true;
  narrow_.run(frame, item.phase);
  is_narrow_ = false;
  for (size_t k = 0; k < item.results.size(); ++k) {
    const int32_t to = item.results[k];
    if (to == kNoSlot) continue;
    std::byte* out = tables_.own(table, to, table.lanes == 1);
    const uint64_t value = narrow_.value(*frame, body.results[z(item.phase)][k]);
    const int64_t bytes = table.region->slots[z(to)].bytes;
    lanes::put_cell(out + (table.lanes == 1 ? 0 : lane * bytes), value, bytes);
  }
  if (item.phase + 1 == frame->visits) narrow_.end(frame);
}

}  // namespace undertow::lockstep
