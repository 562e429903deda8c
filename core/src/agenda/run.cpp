#include "agenda/run.h"

#include <algorithm>

#include "entries.h"
#include "guard.h"
#include "lanes.h"
#include "undertow/size.h"

namespace undertow::agenda {

Agenda::Agenda(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats)
    : plan_(plan),
      outline_(*plan.outline),
      options_(options),
      host_(host),
      stats_(stats),
      tables_(plan, options.memory),
      operate_(plan, tables_, host, options, stats),
      frames_(plan, outline_, tables_, options.frames),
      queues_(outline_.stages.size()),
      poll_(host, options.timeout) {
  operate_.context = this;
  operate_.tick = [](void* self) { static_cast<Agenda*>(self)->poll_.look(); };
  stats_.fired.assign(z(plan.nodes), 0);
}

// ------------------------------------------------------------------------------------------------------------------
// Beginning and end

std::vector<Value> Agenda::run(std::span<const View> inputs) {
  clock_.start(options_.is_timed);
  std::vector<Value> values;
  const auto work = [&] {
    start(inputs);
    while (run_next()) {
    }
    values = results();
  };
  guarded(work, [&](Stop& stop) { locate(stop); }, [&] { return where(); }, stats_.stopped);
  return values;
}

void Agenda::start(std::span<const View> inputs) {
  main_ = frames_.make(0, nullptr, 0, 1);
  now_ = main_;
  const Region& main = plan_.regions[0];
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t number = main.params[0][k];
    if (number == kNoSlot || main_->plan->places[z(number)] < 0) continue;
    std::byte* to = main_->at(main_->plan->places[z(number)]);
    if (is_small(main.slots[z(number)]))
      lanes::copy(to, inputs[k].data, inputs[k].bytes());
    else
      *reinterpret_cast<Box*>(to) = tables_.lent(main.slots[z(number)], inputs[k]);
  }
  begin(main_, 0);
}

std::vector<Value> Agenda::results() {
  std::vector<Value> values;
  for (int32_t number : plan_.regions[0].results[0]) {
    if (number == kNoSlot) {
      values.emplace_back();
      continue;
    }
    const Slot& slot = plan_.regions[0].slots[z(number)];
    std::byte* at = main_->at(main_->plan->places[z(number)]);
    View view{at, 0, slot.shape.data(), slot.rank(), slot.dtype};
    if (!is_small(slot)) {
      const Box* box = reinterpret_cast<const Box*>(at);
      if (box->data == nullptr) throw Stop{Stop::Kind::Internal};
      view.data = box->data;
      view.shape = box->shape;
    }
    values.push_back(value_of(view));
  }
  finish_stats();
  return values;
}

void Agenda::finish_stats() {
  while (deepest_ != nullptr) climb();
  stats_.peak_frames = frames_.peak();
  stats_.peak_bytes = tables_.pool.peak();
  clock_.stop(stats_);
}

std::vector<Label> Agenda::tag(Frame* frame) {
  std::vector<Label> labels;
  for (; frame != nullptr; frame = frame->parent)
    if (frame->plan->is_counted && frame->parent != nullptr) labels.push_back({frame->site, frame->index});
  return labels;
}

/// The deepest tag goes on one frame further up.
void Agenda::climb() {
  if (deepest_->plan->is_counted) stats_.deepest.push_back({deepest_->site, deepest_->index});
  deepest_ = deepest_->parent;
  if (deepest_->parent == nullptr) deepest_ = nullptr;
}

/// Say where the run was stopped.
void Agenda::locate(Stop& stop) {
  if (stop.tag.empty()) stop.tag = where();
  if (stop.node < 0 && stop.site < 0) {
    stop.node = operate_.doing.node;
    stop.site = operate_.doing.site;
  }
}

std::vector<Label> Agenda::where() const {
  const int64_t lane = operate_.lane;
  if (!batch_.empty() && lane >= 0 && lane < static_cast<int64_t>(batch_.size())) return tag(batch_[z(lane)]);
  return tag(now_);
}

// ------------------------------------------------------------------------------------------------------------------
// Stages

/// Let a frame wait for its stage; at its end it goes back at once.
void Agenda::queue(Frame* frame) {
  while (frame != nullptr) {
    if (outline_.stages[z(frame->stage)].stage != nullptr) {
      queues_[z(frame->stage)].push_back(frame);
      ++waiting_;
      return;
    }
    frame = go_back(frame);
  }
}

bool Agenda::run_next() {
  if (waiting_ == 0) return false;
  size_t best = queues_.size();
  for (size_t k = 0; k < queues_.size(); ++k) {
    if (queues_[k].empty()) continue;
    // Light stages first, so that as many frames as possible come to the heavy ones; then the one where most wait, as
    // the others become more meanwhile.
    const bool is_heavy = outline_.stages[k].is_heavy;
    if (best == queues_.size() || is_heavy < outline_.stages[best].is_heavy ||
        (is_heavy == outline_.stages[best].is_heavy && queues_[k].size() > queues_[best].size()))
      best = k;
  }
  std::vector<Frame*>& found = queues_[best];
  const size_t count = std::min(found.size(), z(options_.width));
  batch_.assign(found.end() - static_cast<std::ptrdiff_t>(count), found.end());
  found.resize(found.size() - count);
  waiting_ -= static_cast<int64_t>(count);
  now_ = batch_[0];  // those before it may have ended
  poll_.look();
  run_stage(outline_.stages[best]);
  batch_.clear();
  return true;
}

void Agenda::run_stage(const StagePlan& stage) {
  const Region& region = plan_.regions[z(stage.region)];
  const int64_t lanes = static_cast<int64_t>(batch_.size());
  if (stage.is_heavy) {  // the others only lead there
    ++stats_.waves;
    stats_.lanes += lanes;
  }
  stats_.peak_width = std::max(stats_.peak_width, lanes);
  if (options_.is_traced) host_.wave(stage.region, lanes, batch_[0]->depth, stage.phase, stage.number);
  clock_.to(Step::Rest);
  const int64_t before = tables_.frames;
  Table* table = tables_.make(region, lanes, 1);
  tables_.frames = before;
  give_entries(*table);
  for (int32_t slot : stage.loads) load(*table, slot);
  for (const Item& item : options_.check_finite ? stage.stage->straight : stage.stage->fused) straight(*table, item);
  for (const Carry& carry : stage.stores) frames_.carry(batch_, *table, nullptr, carry);
  operate_.lane = -1;
  // The frames themselves count as entered, so that none goes on before all is.
  for (Frame* frame : batch_) frame->pending = 1;
  for (const Item& item : stage.entered) enter(*table, item);
  for (Frame* frame : batch_)
    if (--frame->pending == 0) {
      ++frame->stage;
      queue(frame);
    }
  tables_.frames += lanes;  // `end` takes them off
  if (region.kind == Region::Kind::Branch) tables_.frames -= lanes;
  tables_.end(table);
}

void Agenda::give_entries(Table& table) {
  bool is_uniform = true;
  for (const Frame* frame : batch_) is_uniform = is_uniform && frame->entry == batch_[0]->entry;
  if (is_uniform) {
    table.entry = batch_[0]->entry;
    return;
  }
  table.entries = tables_.pool.take(8 * table.lanes);
  for (int64_t k = 0; k < table.lanes; ++k) reinterpret_cast<Entry**>(table.entries->data())[k] = batch_[z(k)]->entry;
}

/// The values of a slot, side by side.
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

void Agenda::straight(Table& table, const Item& item) {
  clock_.to(item.kind);
  switch (item.kind) {
    case Item::Kind::Op:
      return operate_.run(table, plan_.ops[z(item.number)]);
    case Item::Kind::Fused:
      return operate_.run(table, plan_.fuseds[z(item.number)]);
    case Item::Kind::Read: {
      const ReadItem& read = plan_.reads[z(item.number)];
      if (!read.is_shared) return read_entry(tables_, table, read);
      const Slot& slot = plan_.regions[0].slots[z(read.index)];
      const Column from = frames_.column(*main_, read.index);
      if (from.data == nullptr || (slot.is_dynamic && from.lane<Box>(0)->data == nullptr))
        throw Stop{Stop::Kind::Internal};
      return tables_.take(table, read.to, slot, from, nullptr, 1);
    }
    case Item::Kind::Collect: {
      const CollectItem& collect = plan_.collects[z(item.number)];
      stats_.fired[z(collect.node)] += table.lanes;
      return collect_into_entries(tables_, table, collect, scratch_);
    }
    case Item::Kind::Collected: {
      const CollectedItem& collected = plan_.collecteds[z(item.number)];
      std::vector<Entry*> entries;
      for (Frame* frame : batch_) entries.push_back(frame->made_entry(collected.call));
      return take_collected(tables_, table, collected, entries);
    }
    default:
      throw Stop{Stop::Kind::Internal};
  }
}

}  // namespace undertow::agenda

namespace undertow {

std::vector<Value> run_agenda(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                              RunStats& stats) {
  agenda::Agenda run(plan, options, host, stats);
  return run.run(inputs);
}

}  // namespace undertow
