#include "agenda/frame.h"

#include <algorithm>

#include "memory/lanes.h"
#include "undertow/run.h"
#include "undertow/size.h"

namespace undertow::agenda {
Frame* Frames::fresh(const RegionPlan& plan) {
  const int64_t size = before_ + plan.size;
  if (left_ < size) {
    size_ = std::max<int64_t>(std::min<int64_t>(size_ * 2, 1 << 18), size);
    room_ = tables_.pool.take(size_)->data();
    left_ = size_;
  }
  auto* frame = reinterpret_cast<Frame*>(room_ + before_);
  room_ += size;
  left_ -= size;
  return frame;
}

void Frames::count() {
  tables_.peak_frames = tables_.frames;
  if (tables_.frames > tables_.most_frames) tables_.extend(1);
}

void Frames::end(Frame* root) {
  ending_.assign(1, root);
  while (!ending_.empty()) {
    Frame* frame = ending_.back();
    ending_.pop_back();
    const RegionPlan& plan = *frame->plan;
    Frame** const links = frame->links();
    for (int32_t k = 0; k < plan.frame_links; ++k)
      if (links[k] != nullptr) ending_.push_back(links[k]);
    for (int32_t k = 0; k < plan.region->maps; ++k)
      if (MapLanes* lanes = frame->map(k); lanes != nullptr) {
        ending_.insert(ending_.end(), lanes->frames.begin(), lanes->frames.end());
        lanes->frames.clear();
        map_store_.give(lanes);
      }
    for (int32_t k = 0; k < plan.region->calls; ++k)
      if (Entry* entry = frame->made_entry(k); entry != nullptr) {
        tables_.drop_sums(*entry);
        entry_store_.give(entry);
      }
    for (Box& box : frame->boxes()) tables_.pool.drop(box.block);
    if (plan.is_counted) --tables_.frames;
    frame->parent = free_[z(plan.number)];
    free_[z(plan.number)] = frame;
  }
}

Column Frames::column(Frame& frame, Operand x) const {
  if (x < 0) return {nullptr, plan_.constants[z(~x)].data, 0};
  const Slot& slot = frame.plan->region->slots[z(x)];
  std::byte* at = frame.at(frame.plan->places[z(x)]);
  if (is_small(slot) || slot.is_dynamic) return {nullptr, at, 0};
  const Box* box = reinterpret_cast<const Box*>(at);
  return {box->block, box->data, 0};
}

/// Box a value of known shape.
void Frames::put(Frame& to, const Carry& carry, const Column& from, int64_t lane) {
  Box* box = reinterpret_cast<Box*>(to.at(carry.to_place));
  const Slot& slot = *carry.from_slot;
  Box made;
  std::byte* const data = from.data + lane * from.stride;
  const bool is_constant = carry.from < 0, is_aligned = reinterpret_cast<uintptr_t>(data) % 64 == 0;
  if (slot.is_dynamic) {
    made = tables_.box_of(slot, from, lane);
  } else if (is_constant || (!is_small(slot) && is_aligned)) {
    made = {from.block, data, tables_.static_shape(slot)};
    if (made.block != nullptr) ++made.block->refs;
  } else {  // a small value dies with its frame or table, and kernels need aligned arrays: copy
    Block* block = tables_.pool.take(slot.bytes, carry.to_slot->home);
    lanes::copy(block->data(), data, slot.bytes);
    made = {block, block->data(), tables_.static_shape(slot)};
  }
  tables_.pool.drop(box->block);
  *box = made;
}

void Frames::carry(Frame& to, Frame& from, const Carry& carry) {
  switch (carry.kind) {
    case Carry::Kind::Small:
      lanes::copy_few(to.at(carry.to_place),
                      carry.from < 0 ? plan_.constants[z(~carry.from)].data : from.at(carry.from_place), carry.bytes);
      return;
    case Carry::Kind::Fetch:
      lanes::copy(to.at(carry.to_place), reinterpret_cast<const Box*>(from.at(carry.from_place))->data, carry.bytes);
      return;
    case Carry::Kind::Array:
      return hold(to.at(carry.to_place), *reinterpret_cast<const Box*>(from.at(carry.from_place)));
    case Carry::Kind::Other: put(to, carry, column(from, carry.from), 0);
  }
}

void Frames::carry(std::span<Frame* const> to, const Column& from, const int32_t* lanes, const Carry& carry) {
  if (from.data == nullptr) throw Stop{Stop::Kind::Internal};
  const auto lane = [&](size_t k) { return lanes != nullptr ? int64_t{lanes[k]} : static_cast<int64_t>(k); };
  switch (carry.kind) {
    case Carry::Kind::Small:
    case Carry::Kind::Fetch:
      lanes::each(
          static_cast<int64_t>(to.size()), carry.bytes, [&](int64_t k) { return to[z(k)]->at(carry.to_place); },
          [&](int64_t k) { return from.data + lane(z(k)) * from.stride; });
      return;
    case Carry::Kind::Array:
      for (size_t k = 0; k < to.size(); ++k) {
        Box box{from.block, from.data + lane(k) * from.stride, carry.to_slot->shape.data()};
        if (carry.to_slot->is_dynamic) box = *from.lane<Box>(lane(k));
        hold(to[k]->at(carry.to_place), box);
      }
      return;
    case Carry::Kind::Other:
      for (size_t k = 0; k < to.size(); ++k) put(*to[k], carry, from, lane(k));
  }
}

}  // namespace undertow::agenda
