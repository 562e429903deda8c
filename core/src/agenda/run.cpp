#include "agenda/run.h"

#include <algorithm>

#include "memory/lanes.h"
#include "run/waves.h"
#include "undertow/size.h"

namespace undertow::agenda {

Agenda::Agenda(Run& run)
    : TableRunner(run), outline_(*run.plan.outline), frames_(run.plan, outline_, run.tables, run.wire != nullptr) {
  if (run.wire != nullptr) crossing_.emplace(*run.wire, run.plan, outline_, run.tables);
}

/// Queue a frame for its stage; at the end of a phase it returns at once.
void Agenda::queue(Frame* frame) {
  while (frame != nullptr) {
    if (outline_.stages[z(frame->stage)].stage != nullptr) {
      top().queues[z(frame->stage)].push_back(frame);
      return;
    }
    frame = go_back(frame);
  }
}

/// What goes first among stages that are equally heavy: where most wait, since the others gain frames in the meantime;
/// or what the scheduler says of the frame that came last.
int64_t Agenda::priority(size_t stage, const std::vector<Frame*>& queue) const {
  switch (options_.scheduler) {
    case Scheduler::Depth: return queue.back()->depth;
    case Scheduler::LongestPath: return queue.back()->ahead + outline_.stages[stage].ahead;
    default: return static_cast<int64_t>(queue.size());
  }
}

/// Cheap stages first, so that as many frames as possible reach the heavy ones.
size_t Agenda::best_stage(const Level& level) const {
  const auto& queues = level.queues;
  size_t best = queues.size();
  for (size_t k = 0; k < queues.size(); ++k) {
    if (queues[k].empty()) continue;
    const bool is_heavy = outline_.stages[k].is_heavy;
    if (best == queues.size() || is_heavy < outline_.stages[best].is_heavy ||
        (is_heavy == outline_.stages[best].is_heavy && priority(k, queues[k]) > priority(best, queues[best])))
      best = k;
  }
  return best;
}

void Agenda::step() {
  Level& level = top();
  const size_t best = best_stage(level);
  const bool is_light = best < level.queues.size() && !outline_.stages[best].is_heavy;
  if (crossing_ && deep_ == 1 && (!is_light || crossing_->is_full())) {
    crossing_->flush();
    const bool has_work = best < level.queues.size() || !level.calls.empty();
    if (!has_work && !crossing_->is_awaited()) throw Stop{Stop::Kind::Internal};
    // What comes now makes heavy stages wider. Without credit, no more is made until others have taken what there is.
    if (receive(has_work && !crossing_->is_full() ? 0 : kBetweenLooks) || !has_work || crossing_->is_full()) return;
  }
  if (!level.calls.empty() && !is_light) {
    Invocation* next = level.calls.back();
    level.calls.pop_back();
    run_.enter(*next);
    return;
  }
  if (best == level.queues.size()) throw Stop{Stop::Kind::Internal};
  std::vector<Frame*>& found = level.queues[best];
  const size_t count = std::min(found.size(), z(std::min(options_.width, outline_.stages[best].most)));
  batch_.assign(found.end() - static_cast<std::ptrdiff_t>(count), found.end());
  found.resize(found.size() - count);
  now_ = batch_[0];  // earlier ones may have been freed
  run_.poll.tick();  // operators poll too
  run_stage(outline_.stages[best]);
  batch_.clear();
}

/// Take what has come from other parts. Whether frames have come to a stage by that.
bool Agenda::receive(double seconds) {
  arrived_.clear();
  now_ = main_;
  clock_.to(Step::Crossing);
  crossing_->receive(seconds, arrived_);
  if (seconds > 0) run_.poll.look();
  come_back(arrived_);
  return !arrived_.empty();
}

void Agenda::send(Table& table, const SendItem& item) {
  if (!crossing_) throw Stop{Stop::Kind::Internal};
  if (item.from == kNoSlot) return crossing_->send(item, batch_, nullptr, {});
  crossing_->send(item, batch_, &tables_.slot(*table.region, item.from), tables_.column(table, item.from));
}

void Agenda::choose(Table& table, const ReplicaItem& item) {
  if (!crossing_) throw Stop{Stop::Kind::Internal};
  auto* to = reinterpret_cast<int64_t*>(tables_.own(table, item.to));
  const Access access;
  for (size_t k = 0; k < batch_.size(); ++k) to[k] = choice(batch_[k]->path(), item.salt, item.count);
}

void Agenda::run_stage(const StagePlan& stage) {
  const Region& region = plan_.regions[z(stage.region)];
  const int64_t lanes = static_cast<int64_t>(batch_.size());
  if (stage.is_heavy) {  // cheap stages are not counted as waves
    ++stats_.waves;
    stats_.lanes += lanes;
  }
  stats_.peak_width = std::max(stats_.peak_width, lanes);
  if (options_.is_traced) run_.host.wave(stage.region, lanes, batch_[0]->depth, stage.phase, stage.number);
  clock_.to(Step::Rest);
  Table* table = tables_.make(region, lanes, 1, false);
  give_entries(*table);
  for (int32_t slot : stage.loads) load(*table, slot);
  straight_in_order(*table, stage.stage->run);
  carry(batch_, *table, nullptr, stage.stores);
  operators_.lane = -1;
  // Count one more for each frame, so that none continues before everything has been entered.
  for (Frame* frame : batch_) frame->pending = 1;
  for (const Item& item : stage.entered) enter(*table, item);
  come_back(batch_);
  tables_.end(table);
}

/// An item that each of these frames entered has returned.
void Agenda::come_back(std::span<Frame* const> frames) {
  for (Frame* frame : frames)
    if (--frame->pending == 0) {
      ++frame->stage;
      queue(frame);
    }
}

void Agenda::give_entries(Table& table) {
  bool is_uniform = true;
  for (const Frame* frame : batch_) is_uniform = is_uniform && frame->entry == batch_[0]->entry;
  if (is_uniform) {
    table.entry = batch_[0]->entry;
    return;
  }
  table.entries = tables_.pool.take(8 * table.lanes);
  for (int64_t k = 0; k < table.lanes; ++k) table.below()[k] = batch_[z(k)]->entry;
}

/// Gather the values of a slot from the frames.
void Agenda::load(Table& table, int32_t number) {
  const Slot& slot = table.region->slots[z(number)];
  const int64_t at = batch_[0]->plan->places[z(number)];
  const auto box = [&](int64_t k) { return reinterpret_cast<const Box*>(batch_[z(k)]->at(at)); };
  if (is_small(slot)) {
    lanes::join(tables_.own(table, number), table.lanes, slot.bytes, [&](int64_t k) { return batch_[z(k)]->at(at); });
    return;
  }
  if (slot.is_dynamic) {
    Box* boxes = reinterpret_cast<Box*>(tables_.own(table, number));
    for (int64_t k = 0; k < table.lanes; ++k) {
      boxes[k] = *box(k);
      if (boxes[k].block != nullptr) ++boxes[k].block->refs;
    }
    return;
  }
  const std::byte* first = box(0)->data;
  bool is_same = true, is_row = reinterpret_cast<uintptr_t>(first) % 64 == 0;
  for (int64_t k = 1; k < table.lanes && (is_same || is_row); ++k) {
    is_same = is_same && box(k)->data == first;
    is_row = is_row && box(k)->data == first + k * slot.bytes && box(k)->block == box(0)->block;
  }
  if (is_same || is_row) {
    Block* block = box(0)->block;
    if (block != nullptr) ++block->refs;
    table.columns[number] = {block, box(0)->data, is_same ? 0 : slot.bytes};
    return;
  }
  lanes::join(tables_.own(table, number), table.lanes, slot.bytes, [&](int64_t k) { return box(k)->data; });
}

}  // namespace undertow::agenda
