// Runs the lanes of invocations, one after the other.
#include "memory/lanes.h"
#include "narrow/run.h"
#include "run/waves.h"
#include "undertow/size.h"

namespace undertow {

void Narrow::enter(Invocation& invocation) {
  run_.poll.tick();
  std::vector<NarrowFrame*>* frames = nullptr;
  if (invocation.visits > 1) {
    frames = lanes_.take();
    frames->clear();
    invocation.handle = frames;
  }
  for (Part* part : invocation.parts) {
    run_.operators.position = {-1, part->item->site};
    place_ = {part, 0};
    now_ = nullptr;
    run_.deepen(invocation.depth, place_);
    for (int64_t lane = 0; lane < part->lanes; ++lane) {
      NarrowFrame* frame = call(invocation, *part, lane);
      run_lane(*part, lane, frame, 0);
      if (frames != nullptr) frames->push_back(frame);
    }
    ++stats_.waves;
    stats_.lanes += part->lanes;
  }
  run_.leave(invocation);
}

void Narrow::resume(Invocation& invocation) {
  auto* frames = static_cast<std::vector<NarrowFrame*>*>(invocation.handle);
  size_t frame = 0;
  for (Part* part : invocation.parts)
    for (int64_t lane = 0; lane < part->lanes; ++lane) run_lane(*part, lane, (*frames)[frame++], invocation.phase);
  if (invocation.phase + 1 == invocation.visits) lanes_.give(frames);
  run_.leave(invocation);
}

void Narrow::step() { throw Stop{Stop::Kind::Internal}; }  // never needed: a phase ends as soon as it is entered

void Narrow::run_lane(Part& part, int64_t lane, NarrowFrame* frame, int32_t phase) {
  run_.clock.to(Step::Narrow);
  const Access access;  // a phase of a lane is like one kernel call
  const CallItem& item = *part.item;
  const NarrowBody& body = *frame->body;
  for (size_t k = 0; k < item.arguments.size(); ++k) {
    const int32_t to = body.params[z(phase)][k];
    if (to < 0) continue;
    frame->cells[to] =
        lanes::cell_at(part.arguments[k].lane<std::byte>(lane), tables_.slot(*part.region, item.arguments[k]).bytes);
  }
  place_ = {&part, lane};
  now_ = nullptr;
  run(frame, phase);
  for (size_t k = 0; k < item.results.size(); ++k) {
    if (item.results[k] == kNoSlot) continue;
    const uint64_t value = this->value(*frame, body.results[z(phase)][k]);
    lanes::put_cell(part.invocation->caller->room(part, k).lane<std::byte>(lane), value,
                    part.region->slots[z(item.results[k])].bytes);
  }
  if (phase + 1 == frame->visits) end(frame);
}

}  // namespace undertow
