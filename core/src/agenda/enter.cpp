// Entering regions: frames are made for all lanes, then values are copied to them one slot at a time.
#include <algorithm>

#include "agenda/run.h"
#include "memory/lanes.h"
#include "run/waves.h"
#include "undertow/size.h"

namespace undertow::agenda {
void Agenda::enter(Table& table, const Item& item) {
  clock_.to(item.kind);
  switch (item.kind) {
    case Item::Kind::Branch: return enter_branch(table, item.number);
    case Item::Kind::Call: return enter_call(table, item.number);
    case Item::Kind::Loop: return enter_loop(table, item.number);
    case Item::Kind::Recv: return enter_recv(item.number);
    default:
      for (size_t k = 0; k < batch_.size(); ++k) enter_map(*batch_[k], table, static_cast<int32_t>(k), item.number);
  }
}

void Agenda::enter_branch(Table& table, int32_t number) {
  const BranchPlan& plan = outline_.branches[z(number)];
  const BranchItem& item = *plan.item;
  const Column pred = tables_.column(table, item.pred);
  for (int side = 0; side < 2; ++side) {
    entered_[side].clear();
    lanes_[side].clear();
  }
  for (size_t k = 0; k < batch_.size(); ++k) {
    now_ = batch_[k];
    Frame*& inside = now_->branch(item.branch);
    if (inside == nullptr) {
      const int taken = *pred.lane<uint8_t>(static_cast<int64_t>(k)) != 0 ? 0 : 1;
      inside = frames_.make(item.regions[taken], now_, number, now_->visits);
    }
    inside->item = number;
    ++now_->pending;
    const int side = inside->plan->number == item.regions[0] ? 0 : 1;
    entered_[side].push_back(inside);
    lanes_[side].push_back(static_cast<int32_t>(k));
  }
  for (int side = 0; side < 2; ++side) {
    carry(entered_[side], table, lanes_[side].data(), plan.in[side]);
    for (Frame* frame : entered_[side]) begin(frame, item.visit);
  }
}

void Agenda::enter_call(Table& table, int32_t number) {
  const CallPlan& plan = outline_.calls[z(number)];
  operators_.position = {-1, plan.item->site};
  if (goes_out(*plan.item)) {
    call_out(table, plan);
    return;
  }
  enter_each(table, plan.in, plan.item->phase, [&](Frame& frame) { return call(frame, number); });
}

/// Every frame of the batch enters one frame, new or existing.
template <class Make>
void Agenda::enter_each(Table& table, const Carries& in, int32_t phase, Make&& make) {
  entered_[0].clear();
  for (Frame* frame : batch_) {
    now_ = frame;
    entered_[0].push_back(make(*frame));
    ++frame->pending;
  }
  carry(entered_[0], table, nullptr, in);
  for (Frame* frame : entered_[0]) begin(frame, phase);
}

/// The frame of a call: a new one or, in later phases, the existing one.
Frame* Agenda::call(Frame& frame, int32_t number) {
  const CallItem& item = *outline_.calls[z(number)].item;
  Frame*& callee = frame.call(item.call);
  if (item.phase > 0) {
    callee->item = number;
    return callee;
  }
  callee = frames_.make(item.body, &frame, number, item.visits[z(frame.visits - 1)]);
  callee->site = item.site;
  callee->depth = frame.depth + 1;
  label(*callee, frame.path());
  ++stats_.activations;
  if (run_.deepen(callee->depth, {})) deepest_ = callee;
  if (item.makes_entry) callee->entry = make_entry(frame, item);
  return callee;
}

Entry* Agenda::make_entry(Frame& frame, const CallItem& item) {
  Entry* entry = frames_.make_entry();
  *entry = {};
  entry->region = frame.plan->region;
  entry->item = &item;
  entry->sums.resize(item.hoists.size());
  for (Operand x : item.hoists) entry->values.push_back(frames_.column(frame, x));
  frame.made_entry(item.call) = entry;
  return entry;
}

void Agenda::enter_loop(Table& table, int32_t number) {
  const LoopPlan& plan = outline_.loops[z(number)];
  operators_.position = {-1, plan.item->site};
  enter_each(table, plan.in, 0, [&](Frame& frame) {
    Frame* inside = frames_.make(plan.item->body, &frame, number, 1);
    inside->site = plan.item->site;
    inside->index = 0;
    label(*inside, frame.path());
    return inside;
  });
}

/// Frames whose token has come go on; others wait for it.
void Agenda::enter_recv(int32_t number) {
  if (!crossing_) throw Stop{Stop::Kind::Internal};
  now_ = batch_[0];
  crossing_->arm(outline_.recvs[z(number)], batch_);
}

void Agenda::enter_map(Frame& frame, Table& table, int32_t lane, int32_t number) {
  const MapPlan& plan = outline_.maps[z(number)];
  const MapItem& item = *plan.item;
  operators_.position = {-1, item.site};
  now_ = &frame;
  MapLanes*& held = frame.map(item.map);
  if (held == nullptr) held = frames_.make_lanes();
  MapLanes& lanes = *held;
  if (item.phase == 0) {
    const Slot& slot = tables_.slot(*table.region, item.counted);
    const int64_t count = shape_of(slot, tables_.column(table, item.counted), lane)[0];
    const int32_t visits = std::max(1, item.visits[z(frame.visits - 1)]);
    lanes.frames.clear();
    for (int64_t k = 0; k < count; ++k) {
      Frame* inside = frames_.make(item.body, &frame, number, visits);
      inside->site = item.site;
      inside->index = k;
      label(*inside, frame.path());
      lanes.frames.push_back(inside);
    }
    lanes_[0].assign(z(count), lane);
    carry(lanes.frames, table, lanes_[0].data(), plan.outers);
  }
  for (const Transfer& transfer : item.mapped) carry_mapped(lanes.frames, table, lane, item, transfer);
  if (lanes.frames.empty()) {
    leave_map(frame, item);
    return;
  }
  ++frame.pending;  // all lanes together
  lanes.left = static_cast<int64_t>(lanes.frames.size());
  entered_[0] = lanes.frames;  // a copy: frames may be freed as soon as they have begun
  for (Frame* inside : entered_[0]) {
    inside->item = number;
    begin(inside, item.phase);
  }
}

/// Distribute the elements of an array over the lanes.
void Agenda::carry_mapped(std::span<Frame* const> lanes, const Table& table, int64_t lane, const MapItem& item,
                          const Transfer& transfer) {
  const Slot& slot = tables_.slot(*table.region, transfer.from);
  const Column from = tables_.column(table, transfer.from);
  const int64_t* shape = shape_of(slot, from, lane);
  const auto count = static_cast<int64_t>(lanes.size());
  if (shape[0] != count) throw unequal_lanes(item.phase, count, shape[0]);
  const RegionPlan& body = outline_.regions[z(item.body)];
  const int32_t place = body.places[z(transfer.to)];
  if (place < 0) return;
  const int64_t bytes = row_bytes(slot.dtype, shape, slot.rank());
  const Box* box = slot.is_dynamic ? from.lane<Box>(lane) : nullptr;
  std::byte* data = box != nullptr ? box->data : from.data + lane * from.stride;
  Block* block = box != nullptr ? box->block : from.block;
  if (is_small(body.region->slots[z(transfer.to)])) {
    lanes::each(
        count, bytes, [&](int64_t k) { return lanes[z(k)]->at(place); }, [&](int64_t k) { return data + k * bytes; });
    return;
  }
  const int64_t* inner = tables_.shape({shape + 1, z(slot.rank() - 1)});
  for (int64_t k = 0; k < count; ++k) frames_.hold(lanes[z(k)]->at(place), {block, data + k * bytes, inner});
}

}  // namespace undertow::agenda
