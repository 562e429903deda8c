// Waves: calls into one group of functions become chunks of lanes; what runs next.
#include <algorithm>

#include "lockstep/run.h"

namespace undertow::lockstep {

Wave& Lockstep::begin_wave(Chunk* chunk, int32_t phase) {
  if (deep_ == space_->waves.size()) space_->waves.emplace_back();
  Wave& wave = space_->waves[deep_++];
  wave.chunk = chunk;
  wave.phase = phase;
  return wave;
}

void Lockstep::step() {
  Wave& wave = space_->waves[deep_ - 1];
  if (is_full_) {
    run_late(LateKind::Held);
    return;
  }
  if (!wave.ready.empty()) {
    Fiber* next = wave.ready.back();
    wave.ready.pop_back();
    advance(wave, next);
    return;
  }
  clock_.to(Step::Call);
  if (!wave.groups.empty()) {
    start_chunk(wave);
  } else if (!wave.calls.empty()) {
    make_groups(wave);
  } else if (!wave.resumed.empty()) {
    start_resumed(wave);
  } else if (is_late(LateKind::Held)) {
    run_late(LateKind::Held);
  } else if (wave.waiting > 0) {
    throw Stop{Stop::Kind::Internal};  // a phase was asked for by some lanes of a chunk and not by others
  } else {
    finish_wave();
  }
}

void Lockstep::make_groups(Wave& wave) {
  for (Request* request : wave.calls) {
    const int32_t visits = visits_of(*request->table, request->item->visits);
    const int32_t asks = visits > 1 ? request->item->asks : 0;
    Group* found = nullptr;
    for (Group& group : wave.groups)
      if (group.group == request->item->group && group.visits == visits && group.asks == asks) found = &group;
    if (found == nullptr) {
      wave.groups.push_back({request->item->group, visits, asks, {}});
      found = &wave.groups.back();
    }
    found->requests.push_back(request);
  }
  wave.calls.clear();
}

/// How many parts, from the first of these on, are the same lanes of all calls of one family; else 1.
size_t Lockstep::siblings_in(std::span<const Part> parts) {
  const CallItem& item = *parts[0].request->item;
  const auto siblings = z(item.siblings);
  if (siblings == 1 || siblings > parts.size()) return 1;
  const auto is_one = [&](const Part& part) {
    return part.request->item->family == item.family && part.request->table == parts[0].request->table &&
           part.from == parts[0].from && part.count == parts[0].count;
  };
  return std::ranges::all_of(parts.first(siblings), is_one) ? siblings : 1;
}

/// The table of the parts of a chunk that enter one function, with what they are given.
Table* Lockstep::make_root(Chunk* chunk, std::span<const Part> parts, int64_t lanes) {
  const Region& body = plan_.regions[z(parts[0].request->item->body)];
  Table* table = tables_.make(body, lanes, chunk->visits);
  table->chunk = chunk;
  chunk->roots.push_back(table);
  const size_t pieces = chunk->pieces.size();
  int64_t at = 0;
  for (size_t k = 0; k < parts.size();) {
    const size_t siblings = siblings_in(parts.subspan(k)), oldest = chunk->pieces.size();
    const int64_t base = at, step = static_cast<int64_t>(siblings);
    for (const size_t end = k + siblings; k < end; ++k) {
      const Part& part = parts[k];
      const CallItem& item = *part.request->item;
      Piece* piece = space_->pieces.take();
      const int64_t own = siblings > 1 ? base + item.sibling : base;
      *piece = {part.request->table, item.site, item.call, part.from, part.count, table, own, step, oldest, chunk,
                part.request};
      chunk->pieces.push_back(piece);
      if (!is_outermost(chunk)) piece->parent->calls[z(piece->call)].pieces.push_back(piece);
      at += part.count;
    }
  }
  const std::span<Piece*> own(chunk->pieces.data() + pieces, chunk->pieces.size() - pieces);
  for (size_t k = 0; k < body.params[0].size(); ++k)
    if (body.params[0][k] != kNoSlot) hand_over(*table, body.params[0][k], own, k);
  if (body.hoisted > 0) give_entries(*table, own);
  return table;
}

/// Call as many lanes of a group as a wave may have.
void Lockstep::start_chunk(Wave& wave) {
  poll_.tick();
  if (goes_narrow(wave.groups.back())) {
    run_narrow(wave);
    return;
  }
  if (goes_parallel(wave.groups.back())) {
    run_parallel(wave);
    return;
  }
  Group& group = wave.groups.back();
  Chunk* chunk = space_->chunks.take();
  chunk->roots.clear();
  chunk->pieces.clear();
  chunk->lanes = chunk->asked = 0;
  chunk->visits = group.visits;
  chunk->depth = (wave.chunk == nullptr ? 0 : wave.chunk->depth) + 1;
  // How many lanes of which request, then one table for each function.
  std::vector<Part>& parts = space_->parts;
  parts.clear();
  if (deep_ == 1) {
    base_frames_ = tables_.frames;
    base_bytes_ = tables_.pool.live();
  }
  const int64_t width = width_now(group);
  if (group.done == 0) group.calls_before = stats_.activations;
  while (group.request < group.requests.size() && group.left > 0 && chunk->lanes < width) {
    Request* request = group.requests[group.request];
    const int64_t room = std::min(group.left, width - chunk->lanes);
    const int64_t count = std::min(request->table->lanes - group.lane, room);
    parts.push_back({request, group.lane, count});
    chunk->lanes += count;
    group.lane += count;
    group.left -= count;
    if (group.lane == request->table->lanes) {
      ++group.request;
      group.lane = 0;
    }
  }
  group.done += chunk->lanes;
  if (group.request == group.requests.size() || group.left == 0) wave.groups.pop_back();
  at_ = parts[0].request->table;
  operate_.lane = parts[0].from;
  operate_.doing = {-1, parts[0].request->item->site};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.request->item->body < b.request->item->body; });
  if (chunk->depth > stats_.max_depth) {
    if (chunk->depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
    stats_.max_depth = chunk->depth;
    stats_.deepest.clear();
    deepest_ = {chunk, nullptr, 0};
  }
  Wave& child = begin_wave(chunk, 0);  // from here on, `wave` and `group` are not looked at
  for (size_t first = 0; first < parts.size();) {
    size_t last = first;
    int64_t lanes = 0;
    while (last < parts.size() && parts[last].request->item->body == parts[first].request->item->body)
      lanes += parts[last++].count;
    Table* table = make_root(chunk, std::span(parts).subspan(first, last - first), lanes);
    child.ready.push_back(fiber(Fiber::Kind::Root, table, 0, nullptr));
    tell(*table, 0);
    stats_.activations += lanes;
    first = last;
  }
  for (const Part& part : parts)
    if (part.from + part.count == part.request->table->lanes && !is_outermost(chunk))
      tables_.drop(*part.request->table, part.request->item->drops);
  ++stats_.waves;
  stats_.lanes += chunk->lanes;
  stats_.peak_width = std::max(stats_.peak_width, chunk->lanes);
}

/// How many lanes a chunk may have, so that what is below it finds room too. A quarter of what there is goes to wide
/// waves, each taking a part of what is left of that; the rest is for depth, where lanes go down one by one. What
/// later phases need stays anyway, however few lanes run at once.
int64_t Lockstep::width_now(const Group& group) const {
  int64_t width = options_.width;
  if (group.visits > 1) return width;
  const int64_t frames = tables_.frames - base_frames_, bytes = tables_.pool.live() - base_bytes_;
  width = std::min(width, ((options_.frames - base_frames_) / 4 - frames) / 8);
  const int64_t lane = std::max(lane_bytes(group), frames > 0 ? bytes / frames : 0);
  width = std::min(width, ((options_.memory - base_bytes_) / 4 - bytes) / 8 / std::max<int64_t>(lane, 1));
  return std::max<int64_t>(width, 1);
}

/// What a lane of a group takes, as far as that is known before there is one.
int64_t Lockstep::lane_bytes(const Group& group) const {
  int64_t bytes = plan_.lane_bytes[z(group.group)];
  for (const Request* request : group.requests) {
    if (!request->item->makes_entry) continue;
    int64_t own = 0;  // what its entry holds for it alone
    for (Operand x : request->item->hoists)
      if (tables_.column(*request->table, x).stride != 0) own += tables_.slot(*request->table->region, x).bytes;
    bytes = std::max(bytes, plan_.lane_bytes[z(group.group)] + own);
  }
  return bytes;
}

void Lockstep::start_resumed(Wave& wave) {
  Chunk* chunk = wave.resumed.back();
  wave.resumed.pop_back();
  chunk->asked = 0;
  Wave& child = begin_wave(chunk, chunk->pieces[0]->request->item->phase);
  for (Table* table : chunk->roots) {
    child.ready.push_back(fiber(Fiber::Kind::Root, table, child.phase, nullptr));
    tell(*table, child.phase);
  }
  ++stats_.waves;
  stats_.lanes += chunk->lanes;
  poll_.tick();
}

void Lockstep::finish_wave() {
  Wave* wave = &space_->waves[--deep_];
  if (deep_ == 0) return;
  Wave& above = space_->waves[deep_ - 1];
  Chunk* chunk = wave->chunk;
  if (chunk == deepest_.chunk) climb();
  if ((is_late(LateKind::Kept) || is_late(LateKind::Ahead)) && ends_entry(*chunk)) {
    run_late(LateKind::Kept);
    run_late(LateKind::Ahead);
  }
  for (Piece* piece : chunk->pieces) deliver(*piece, wave->phase);
  if (is_outermost(chunk)) {  // who waits is told when all workers are done
    end_chunk(chunk);
    return;
  }
  const bool is_over = wave->phase + 1 == chunk->visits;
  for (Piece* piece : chunk->pieces) {
    Request* request = piece->request;
    request->left -= piece->count;
    if (wave->phase > 0) above.waiting -= piece->count;
    if (request->left == 0) {
      Fiber* waiter = request->fiber;
      space_->requests.give(request);
      come_back(above, waiter);
    }
    piece->request = nullptr;
  }
  if (is_over) end_chunk(chunk);
}

void Lockstep::end_chunk(Chunk* chunk) {
  for (Piece* piece : chunk->pieces) {
    if (!is_outermost(chunk)) {
      std::vector<Piece*>& pieces = piece->parent->calls[z(piece->call)].pieces;
      pieces.erase(std::find(pieces.begin(), pieces.end(), piece));
    }
    space_->pieces.give(piece);
  }
  for (Table* table : chunk->roots) tables_.end(table);
  space_->chunks.give(chunk);
}

/// Does a chunk come back to those who made its entries?
bool Lockstep::ends_entry(const Chunk& chunk) const {
  return is_outermost(&chunk) || std::ranges::any_of(chunk.pieces, [](const Piece* piece) {
           return !piece->parent->calls[z(piece->call)].entries.empty();
         });
}

void Lockstep::resume(Wave& wave, Fiber* self, const CallItem& item) {
  if (is_late(LateKind::Ahead)) run_late(LateKind::Ahead);
  Table& table = *self->table;
  CallState& state = table.calls[z(item.call)];
  if (!state.frames.empty()) {
    narrow_.main_ = main_;
    const bool is_last = item.phase + 1 == state.frames[0]->visits;
    for (int64_t lane = 0; lane < table.lanes; ++lane) run_lane(table, lane, item, state.frames[z(lane)]);
    if (is_last) state.frames.clear();
    --self->pending;
    return;
  }
  Request* made = request(self, item);
  wave.waiting += table.lanes;
  const std::vector<Piece*>& pieces = table.calls[z(item.call)].pieces;
  const Region& body = plan_.regions[z(item.body)];
  bool are_all_there = true;
  for (Piece* piece : pieces) {
    piece->request = made;
    const auto siblings = siblings_of(*piece);
    const bool are_there = std::ranges::all_of(siblings, [](const Piece* other) { return other->request != nullptr; });
    for (size_t k = 0; are_there && k < item.arguments.size(); ++k) {
      const int32_t slot = body.params[z(item.phase)][k];
      if (slot != kNoSlot) hand_over(*piece->child, slot, siblings, k);
    }
    are_all_there = are_all_there && are_there;
    piece->chunk->asked += piece->count;
    if (piece->chunk->asked == piece->chunk->lanes) wave.resumed.push_back(piece->chunk);
  }
  if (!are_all_there || pieces.empty()) return;
  for (const Piece* other : siblings_of(*pieces[0])) tables_.drop(table, other->request->item->drops);
}

}  // namespace undertow::lockstep
