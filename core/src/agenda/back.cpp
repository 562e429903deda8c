// Returning from a frame at the end of a phase.
#include "agenda/run.h"
#include "undertow/size.h"

namespace undertow::agenda {

/// A frame is at the end of a phase. Returns the frame that may now continue, or null.
Frame* Agenda::go_back(Frame* frame) {
  Frame* parent = frame->parent;
  if (frame == deepest_) climb();
  if (parent == nullptr) {
    come_out(frame);
    return nullptr;
  }
  switch (frame->plan->region->kind) {
    case Region::Kind::Main: throw Stop{Stop::Kind::Internal};
    case Region::Kind::Branch: {
      const BranchPlan& plan = outline_.branches[z(frame->item)];
      const BranchItem& item = *plan.item;
      frames_.carry(*parent, *frame, plan.out[frame->plan->number == item.regions[0] ? 0 : 1]);
      if (frame->visits == 1 && item.is_last && parent->plan->region->kind != Region::Kind::Loop) {
        parent->branch(item.branch) = nullptr;
        frames_.end(frame);
      }
      break;
    }
    case Region::Kind::Function: {
      const CallPlan& plan = outline_.calls[z(frame->item)];
      frames_.carry(*parent, *frame, plan.out);
      if (plan.item->phase + 1 == frame->visits) {
        parent->call(plan.item->call) = nullptr;
        frames_.end(frame);
      }
      break;
    }
    case Region::Kind::Loop:
      if (Frame* next = leave_loop(frame); next != nullptr) return next;
      break;
    case Region::Kind::Map: {
      const MapItem& item = *outline_.maps[z(frame->item)].item;
      if (--parent->map(item.map)->left > 0) return nullptr;
      leave_map(*parent, item);
      break;
    }
  }
  if (--parent->pending > 0) return nullptr;
  ++parent->stage;
  return parent;
}

/// The next iteration, or null if the loop ends.
Frame* Agenda::leave_loop(Frame* frame) {
  const LoopPlan& plan = outline_.loops[z(frame->item)];
  const LoopItem& item = *plan.item;
  Frame* parent = frame->parent;
  Frame* going = frame->branch(item.branch);
  if (going == nullptr || going->plan->number != plan.going) {
    frames_.carry(*parent, *frame, plan.out);
    frames_.end(frame);
    return nullptr;
  }
  Frame* next = frames_.make(item.body, parent, frame->item, 1);
  next->site = item.site;
  next->index = frame->index + 1;
  label(*next, parent->path());
  frames_.carry(*next, *going, plan.next);
  frames_.carry(*next, *frame, plan.outers);
  frames_.end(frame);
  next->stage = next->plan->first[0];
  return next;
}

void Agenda::leave_map(Frame& frame, const MapItem& item) {
  std::vector<Frame*>& lanes = frame.map(item.map)->frames;
  now_ = &frame;
  for (const Exit& result : item.results) {
    const int32_t place = frame.plan->places[z(result.to)];
    if (place < 0) continue;
    const Slot& to = frame.plan->region->slots[z(result.to)];
    stack_lanes(
        to, frame.at(place), !is_small(to), tables_.slot(plan_.regions[z(item.body)], result.from),
        static_cast<int64_t>(lanes.size()), item.site,
        [&](int64_t k) { return frames_.column(*lanes[z(k)], result.from); }, [&] { operators_.lane = -1; });
  }
  const bool is_over = lanes.empty() || item.phase + 1 >= lanes[0]->visits;
  if (is_over) {
    for (Frame* lane : lanes) frames_.end(lane);
    lanes.clear();
  }
}

}  // namespace undertow::agenda
