// Beginning and end of a run, and where it is.
#include "lockstep/run.h"

#include <cstring>

namespace undertow::lockstep {

Lockstep::Lockstep(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats,
                   Poll::Clock::time_point began)
    : plan_(plan),
      options_(options),
      host_(host),
      stats_(stats),
      tables_(plan, options.memory),
      operate_(plan, tables_, host, options, stats),
      narrow_(plan, tables_, host, options, stats),
      waiting_(plan.lates.size()),
      poll_(host, options.timeout, began) {
  narrow_.context = this;
  narrow_.is_late = [](void* self) { static_cast<Lockstep*>(self)->poll_.look(); };
  operate_.context = this;
  operate_.tick = narrow_.is_late;
  narrow_.climb_on = [](void* self) {
    static_cast<Lockstep*>(self)->climb(static_cast<Lockstep*>(self)->at_, static_cast<Lockstep*>(self)->operate_.lane);
  };
  tables_.most_frames = options.frames;
  stats_.fired.assign(z(plan.nodes), 0);
}

std::vector<Value> Lockstep::run(std::span<const View> inputs) {
  clock_.start(options_.is_timed);
  std::vector<Value> values;
  guarded([&] {
    start(inputs);
    poll_.look();  // where there is no time at all, nothing is done
    while (deep_ > 0) step();
    values = results();
  });
  plan_.calls_before = stats_.activations;
  if (space_->is_small()) Idle<WaveSpace>::all().give(std::move(space_));
  return values;
}

/// The labels of a lane, innermost first.
std::vector<Label> Lockstep::tag(const Table& table, int64_t lane) const {
  std::vector<Label> labels;
  const Table* at = &table;
  if (at == joint_) {
    const Waiting::Part* part = joint_parts_;
    while (lane >= part->at + part->lanes) ++part;
    at = part->table;
    lane -= part->at;
  }
  while (at != nullptr && at->region->kind != Region::Kind::Main) {
    switch (at->region->kind) {
      case Region::Kind::Function: {
        const auto& pieces = at->chunk->pieces;
        const auto found =
            std::ranges::find_if(pieces, [&](const Piece* piece) { return piece->caller_of(at, lane) >= 0; });
        if (found == pieces.end()) return labels;
        labels.push_back({(*found)->site, -1});
        lane = (*found)->caller_of(at, lane);
        at = (*found)->parent;
        continue;
      }
      case Region::Kind::Loop:
        labels.push_back({at->site, at->iteration});
        break;
      case Region::Kind::Map:
        labels.push_back({at->site, reinterpret_cast<const int64_t*>(at->numbers->data())[lane]});
        break;
      default:
        break;
    }
    lane = at->parent_lane(lane);
    at = at->parent;
  }
  return labels;
}

/// Say where the run was stopped.
void Lockstep::locate(Stop& stop) {
  if (stop.tag.empty()) stop.tag = where();
  if (stop.node < 0 && stop.site < 0) {
    const Doing doing = is_narrow_ ? narrow_.doing() : operate_.doing;
    stop.node = doing.node;
    stop.site = doing.site;
  }
}

/// The tag of what runs now.
std::vector<Label> Lockstep::where() const {
  std::vector<Label> labels;
  if (is_narrow_) labels = narrow_.tag();
  if (at_ != nullptr)
    for (const Label& label : tag(*at_, operate_.lane)) labels.push_back(label);
  return labels;
}

void Lockstep::start(std::span<const View> inputs) {
  const Region& main = plan_.regions[0];
  main_ = tables_.make(main, 1, 1);
  at_ = main_;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t number = main.params[0][k];
    if (number == kNoSlot) continue;
    const Slot& slot = main.slots[z(number)];
    const View& view = inputs[k];
    const int64_t bytes = view.bytes();
    if (slot.is_dynamic) {
      *reinterpret_cast<Box*>(tables_.own(*main_, number, true)) = tables_.lent(view);
    } else if (slot.offset < 0) {
      const Box box = tables_.lent(view);
      main_->columns[number] = {box.block, box.data, 0};
    } else {
      std::byte* to = tables_.own(*main_, number, true);
      if (bytes > 0) std::memcpy(to, view.data, z(bytes));
    }
  }
  begin_wave(nullptr, 0).ready.push_back(fiber(Fiber::Kind::Root, main_, 0, nullptr));
  tell(*main_, 0);
}

std::vector<Value> Lockstep::results() {
  const Region& main = plan_.regions[0];
  std::vector<Value> values;
  values.reserve(main.results[0].size());
  tables_.drop_sums(*main_);  // so that results have one user
  for (int32_t number : main.results[0]) {
    if (number == kNoSlot) {  // an order token
      values.emplace_back();
      continue;
    }
    const Slot& slot = main.slots[z(number)];
    const Column column = main_->columns[number];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    View view{column.data, 0, slot.shape.data(), slot.rank(), slot.dtype};
    Block* block = column.block;
    if (slot.is_dynamic) {
      Box* box = column.lane<Box>(0);
      view.data = box->data;
      view.shape = box->shape;
      block = box->block;
    }
    if (block == nullptr || block->refs > 1 || block->data() != view.data || block == main_->block) {
      values.push_back(value_of(view));
      continue;
    }
    tables_.pool.release(block);
    values.push_back({{view.shape, view.shape + view.rank}, {block, z(view.bytes())}});
    if (slot.is_dynamic)
      column.lane<Box>(0)->block = nullptr;
    else
      main_->columns[number].block = nullptr;
  }
  finish_stats();
  tables_.end(main_);
  main_ = nullptr;
  return values;
}

/// The deepest tag gets the labels from a table up to the next function, which adds its own when its wave ends: so no
/// level costs more than itself, however many are deeper than all before.
void Lockstep::climb(const Table* at, int64_t lane) {
  for (; at->region->kind != Region::Kind::Main && at->region->kind != Region::Kind::Function; at = at->parent) {
    if (at->region->kind == Region::Kind::Loop) stats_.deepest.push_back({at->site, at->iteration});
    if (at->region->kind == Region::Kind::Map)
      stats_.deepest.push_back({at->site, reinterpret_cast<const int64_t*>(at->numbers->data())[lane]});
    lane = at->parent_lane(lane);
  }
  deepest_ = at->region->kind == Region::Kind::Main ? Deepest{} : Deepest{at->chunk, at, lane};
}

void Lockstep::climb() {
  const Table* at = deepest_.table;
  if (at == nullptr && !deepest_.chunk->roots.empty()) at = deepest_.chunk->roots[0];
  for (const Piece* piece : deepest_.chunk->pieces)
    if (const int64_t caller = piece->caller_of(at, deepest_.lane); caller >= 0) {
      stats_.deepest.push_back({piece->site, -1});
      climb(piece->parent, caller);
      return;
    }
  deepest_ = {};  // it was stopped before there was a lane
}

void Lockstep::finish_stats() {
  while (deepest_.chunk != nullptr) climb();
  stats_.peak_frames = tables_.peak_frames;
  stats_.peak_bytes = tables_.pool.peak();
  clock_.stop(stats_);
}

void Lockstep::tell(const Table& table, int32_t phase) {
  if (!options_.is_traced) return;
  const auto region = static_cast<int32_t>(table.region - plan_.regions.data());
  host_.wave(region, table.lanes, table.chunk == nullptr ? 0 : table.chunk->depth, phase, 0);
}

}  // namespace undertow::lockstep

namespace undertow {

std::vector<Value> run_lockstep(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                                RunStats& stats) {
  lockstep::Lockstep run(plan, options, host, stats);
  return run.run(inputs);
}

}  // namespace undertow
