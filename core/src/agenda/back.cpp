// What frames give back when they come to the end of a phase.
#include <algorithm>

#include "agenda/run.h"
#include "memory/lanes.h"
#include "undertow/size.h"

namespace undertow::agenda {

/// A frame is at the end of a phase. Gives the frame that may go on now, or null.
Frame* Agenda::go_back(Frame* frame) {
  Frame* parent = frame->parent;
  if (frame == deepest_) climb();
  if (parent == nullptr) {
    come_out(frame);
    return nullptr;
  }
  switch (frame->plan->region->kind) {
    case Region::Kind::Main:
      throw Stop{Stop::Kind::Internal};
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

/// The next iteration, or null: the loop is over.
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
  frames_.carry(*next, *going, plan.next);
  frames_.carry(*next, *frame, plan.outers);
  frames_.end(frame);
  next->stage = next->plan->first[0];
  return next;
}

void Agenda::leave_map(Frame& frame, const MapItem& item) {
  std::vector<Frame*>& lanes = frame.map(item.map)->frames;
  now_ = &frame;
  for (const Exit& result : item.results)
    if (frame.plan->places[z(result.to)] >= 0) stack(frame, lanes, result, plan_.regions[z(item.body)]);
  const bool is_over = lanes.empty() || item.phase + 1 >= lanes[0]->visits;
  if (is_over) {
    for (Frame* lane : lanes) frames_.end(lane);
    lanes.clear();
  }
}

void Agenda::stack(Frame& frame, std::span<Frame* const> lanes, const Exit& result, const Region& body) {
  const Slot& to = frame.plan->region->slots[z(result.to)];
  const Slot& from = tables_.slot(body, result.from);
  std::vector<int64_t> shape{static_cast<int64_t>(lanes.size())};
  std::vector<Column> values;
  for (Frame* lane : lanes) {
    Column found = frames_.column(*lane, result.from);
    const int64_t* own = from.is_dynamic ? reinterpret_cast<const Box*>(found.data)->shape : from.shape.data();
    if (from.is_dynamic) found.data = reinterpret_cast<const Box*>(found.data)->data;
    if (values.empty()) shape.insert(shape.end(), own, own + from.rank());
    values.push_back(found);
    if (!std::equal(own, own + from.rank(), shape.begin() + 1)) unequal(frame, lanes, result, from);
  }
  if (lanes.empty())
    for (size_t axis = 1; axis < to.shape.size(); ++axis)
      shape.push_back(to.shape[axis] == kUnknown ? 0 : to.shape[axis]);
  if (!to.is_dynamic && shape != to.shape) throw Stop{Stop::Kind::Internal};
  int64_t bytes = size_of(to.dtype);
  for (size_t axis = 1; axis < shape.size(); ++axis) bytes *= shape[axis];
  std::byte* at = frame.at(frame.plan->places[z(result.to)]);
  if (!is_small(to)) {
    Block* block = tables_.pool.take(bytes * shape[0], to.home);
    Box* box = reinterpret_cast<Box*>(at);
    tables_.pool.drop(box->block);
    *box = {block, block->data(), tables_.shape(shape)};
    at = block->data();
  }
  lanes::join(at, static_cast<int64_t>(values.size()), bytes, [&](int64_t k) { return values[z(k)].data; });
}

void Agenda::unequal(Frame& frame, std::span<Frame* const> lanes, const Exit& result, const Slot& slot) {
  Stop stop{Stop::Kind::UnequalResults};
  stop.site = lanes[0]->site;
  for (Frame* lane : lanes) {
    const Box* box = reinterpret_cast<const Box*>(lane->at(lane->plan->places[z(result.from)]));
    stop.values.push_back(value_of({box->data, 0, box->shape, slot.rank(), slot.dtype}));
    stop.types.push_back({slot.dtype, slot.rank()});
  }
  now_ = &frame;
  operators_.lane = -1;
  throw stop;
}

}  // namespace undertow::agenda
