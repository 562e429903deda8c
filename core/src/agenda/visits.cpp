// Invocations that enter, and calls into groups that another schedule runs.
#include <algorithm>

#include "agenda/run.h"
#include "run/waves.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {

/// The label of a frame. Main and branches have none.
void add_label(const Frame& frame, std::vector<Label>& labels) {
  const Region::Kind kind = frame.plan->region->kind;
  if (kind == Region::Kind::Branch || kind == Region::Kind::Main) return;
  labels.push_back({frame.site, kind == Region::Kind::Function ? -1 : frame.index});
}

}  // namespace

void Agenda::enter(Invocation& invocation) {
  if (free_visits_.empty()) {
    free_visits_.push_back(static_cast<int32_t>(visits_.size()));
    visits_.emplace_back();
  }
  const int32_t number = free_visits_.back();
  free_visits_.pop_back();
  Visit& visit = visits_[z(number)];
  visit.number = number;
  visit.invocation = &invocation;
  visit.frames.clear();
  invocation.handle = &visit;
  now_ = nullptr;
  for (Part* part : invocation.parts) {
    const CallItem& item = *part->item;
    operators_.position = {-1, item.site};
    calling_ = {part, 0};
    run_.deepen(invocation.depth, calling_);
    for (int64_t lane = 0; lane < part->lanes; ++lane) {
      Frame* frame = frames_.make(item.body, nullptr, number, invocation.visits);
      frame->site = item.site;
      frame->depth = invocation.depth;
      frame->entry = part->entry_of(lane);
      frame->index = static_cast<int64_t>(visit.frames.size());
      if (crossing_) frame->path() = kRoot;  // of main: no other invocation crosses
      visit.frames.push_back(frame);
    }
    if (invocation.depth > 0) stats_.activations += part->lanes;  // main is not counted
  }
  if (invocation.depth == 0) main_ = visit.frames[0];
  begin(visit);
}

void Agenda::resume(Invocation& invocation) {
  now_ = nullptr;
  calling_ = {invocation.parts[0], 0};
  begin(*static_cast<Visit*>(invocation.handle));
}

/// Begin a phase of all lanes, with their arguments.
void Agenda::begin(Visit& visit) {
  Invocation& invocation = *visit.invocation;
  std::span<Frame* const> frames = visit.frames;
  for (Part* part : invocation.parts) {
    const RegionPlan& body = outline_.regions[z(part->item->body)];
    const std::vector<int32_t>& params = body.region->params[z(invocation.phase)];
    for (size_t k = 0; k < params.size(); ++k) {
      if (params[k] == kNoSlot || body.places[z(params[k])] < 0) continue;
      const Operand from = part->item->arguments[k];
      frames_.carry(frames.first(z(part->lanes)), part->arguments[k], nullptr,
                    make_carry(from, tables_.slot(*part->region, from), -1, body.region->slots[z(params[k])],
                               body.places[z(params[k])]));
    }
    frames = frames.subspan(z(part->lanes));
    invocation.caller->taken(*part);
  }
  if (deep_++ == levels_.size()) levels_.emplace_back().queues.resize(outline_.stages.size());
  visit.left =
      static_cast<int64_t>(visit.frames.size()) + 1;  // one more, so that it does not end before all have begun
  for (Frame* frame : visit.frames) begin(frame, invocation.phase);
  if (--visit.left == 0) finish(visit);
}

void Agenda::finish(Visit& visit) {
  Invocation& invocation = *visit.invocation;
  if (crossing_ && deep_ == 1) finish_crossing();
  --deep_;
  if (invocation.phase + 1 == invocation.visits) free_visits_.push_back(visit.number);
  run_.leave(invocation);
}

/// Main has returned: what it has sent is still to go.
void Agenda::finish_crossing() {
  std::vector<Frame*> none;  // all tokens have been taken
  for (crossing_->flush(); !crossing_->is_sent(); run_.poll.look()) crossing_->receive(kBetweenLooks, none);
  crossing_->check_empty();
}

Place Agenda::place_of(const Frame& root) const {
  int64_t lane = root.index;
  const std::vector<Part*>& parts = visits_[z(root.item)].invocation->parts;
  auto part = parts.begin();
  while (lane >= (*part)->lanes) lane -= (*part++)->lanes;
  return {*part, lane};
}

/// A lane of an invocation is at the end of a phase.
void Agenda::come_out(Frame* root) {
  Visit& visit = visits_[z(root->item)];
  Invocation& invocation = *visit.invocation;
  const Place place = place_of(*root);
  Part& part = *place.part;
  const std::vector<int32_t>& results = root->plan->region->results[z(invocation.phase)];
  now_ = root;
  for (size_t k = 0; k < results.size(); ++k) {
    const int32_t to = part.item->results[k];
    if (to == kNoSlot) continue;
    const Slot& slot = root->plan->region->slots[z(results[k])];
    const Column column = frames_.column(*root, results[k]);
    if (column.data == nullptr || (slot.is_dynamic && column.lane<Box>(0)->data == nullptr))
      throw Stop{Stop::Kind::Internal};
    tables_.put(part.region->slots[z(to)], invocation.caller->room(part, k).from(place.lane), nullptr, slot, column, 1);
  }
  if (invocation.phase + 1 == invocation.visits && root != main_) frames_.end(root);
  if (--visit.left == 0) finish(visit);
}

// ------------------------------------------------------------------------------------------------------------------
// Tags

Place Agenda::where(std::vector<Label>& labels) const {
  const int64_t lane = operators_.lane;
  if (!batch_.empty() && lane >= 0 && lane < static_cast<int64_t>(batch_.size())) return out(batch_[z(lane)], labels);
  return now_ != nullptr ? out(now_, labels) : calling_;
}

Place Agenda::out(const Frame* frame, std::vector<Label>& labels) const {
  for (; frame->parent != nullptr; frame = frame->parent) add_label(*frame, labels);
  add_label(*frame, labels);
  return place_of(*frame);
}

Place Agenda::out(const Part& part, int64_t lane, std::vector<Label>& labels) const {
  return out(static_cast<const Outgoing&>(part).frames[z(lane)], labels);
}

Place Agenda::climb(const Part& part, int64_t lane, std::vector<Label>&) {
  deepest_ = static_cast<const Outgoing&>(part).frames[z(lane)];
  return {};
}

/// The frame `deepest_` returns: record its label, and continue with its parent.
void Agenda::climb() {
  add_label(*deepest_, stats_.deepest);
  if (deepest_->parent == nullptr) run_.go_on_deepest(place_of(*deepest_));
  deepest_ = deepest_->parent;
}

// ------------------------------------------------------------------------------------------------------------------
// Calls into other groups

/// Only for calls without later phases: frames ask for these one by one, but an invocation must be resumed as a whole.
bool Agenda::goes_out(const CallItem& item) const {
  return item.phase == 0 && run_.schedule_of(item.group) != Schedule::Agenda &&
         std::ranges::all_of(batch_, [&](const Frame* frame) { return item.visits[z(frame->visits - 1)] == 1; });
}

/// Calls at the same depth enter together.
void Agenda::call_out(Table& table, const CallPlan& plan) {
  std::vector<int32_t> lanes(batch_.size());
  for (size_t k = 0; k < lanes.size(); ++k) lanes[k] = static_cast<int32_t>(k);
  const auto depth = [&](int32_t lane) { return batch_[z(lane)]->depth; };
  std::ranges::stable_sort(lanes, {}, depth);
  for (std::span<const int32_t> left = lanes; !left.empty();) {
    size_t count = 1;
    while (count < left.size() && depth(left[count]) == depth(left[0])) ++count;
    call_out(table, plan, left.first(count));
    left = left.subspan(count);
  }
}

void Agenda::call_out(Table& table, const CallPlan& plan, std::span<const int32_t> lanes) {
  const CallItem& item = *plan.item;
  const auto count = static_cast<int64_t>(lanes.size());
  Table* own = tables_.make(*table.region, count, 1, false);
  for (Operand x : item.arguments)
    if (x >= 0 && own->columns[x].data == nullptr)
      tables_.take(*own, x, table.region->slots[z(x)], tables_.column(table, x),
                   count < table.lanes ? lanes.data() : nullptr, count);
  Outgoing* made = outgoing_.take();
  TableRunner::begin(*made, *own, item);
  made->plan = &plan;
  made->frames.clear();
  made->below.clear();
  for (int32_t lane : lanes) {
    Frame* frame = now_ = batch_[z(lane)];
    ++frame->pending;
    made->frames.push_back(frame);
    made->below.push_back(item.makes_entry ? make_entry(*frame, item) : frame->entry);
  }
  made->entries = made->below.data();
  made->origin = made->frames[0];
  join(top().calls, invocations_, *made, 1, now_->depth + 1);
  lend_arguments(*made);
}

void Agenda::back(Invocation& invocation) {
  for (Part* part : invocation.parts) {
    auto* made = static_cast<Outgoing*>(part);
    now_ = made->frames[0];
    carry(made->frames, *made->table, nullptr, made->plan->back);
    tables_.end(made->table);
    come_back(made->frames);
    outgoing_.give(made);
  }
  invocations_.give(&invocation);
}

Column Agenda::shared(int32_t slot) const {
  if (main_->plan->places[z(slot)] < 0) return {};
  const Column column = frames_.column(*main_, slot);
  const bool is_there = !main_->plan->region->slots[z(slot)].is_dynamic || column.lane<Box>(0)->data != nullptr;
  return is_there ? column : Column{};
}

}  // namespace undertow::agenda
