// Waves: the lanes of an invocation, chunk by chunk, and what runs next.
#include "run/waves.h"

#include <algorithm>

#include "lockstep/run.h"

namespace undertow::lockstep {

Wave& Lockstep::push(Invocation& invocation) {
  if (deep_ == space_.waves.size()) space_.waves.emplace_back();
  Wave& wave = space_.waves[deep_++];
  wave.invocation = &invocation;
  wave.progress = {};
  wave.resumed = wave.chunk = nullptr;
  return wave;
}

void Lockstep::enter(Invocation& invocation) {
  Wave& wave = push(invocation);
  wave.progress.calls_before = stats_.activations;
  invocation.handle = nullptr;
  run_chunk(wave);
}

/// Hand the arguments of a later phase to all chunks at once, so that the caller's columns are free while the first
/// runs.
void Lockstep::resume(Invocation& invocation) {
  Wave& wave = push(invocation);
  wave.resumed = static_cast<Chunk*>(invocation.handle);
  for (const Chunk* chunk = wave.resumed; chunk != nullptr; chunk = chunk->before) {
    std::span<const Piece> pieces = chunk->pieces;
    for (Table* root : chunk->roots) {
      size_t own = 0;
      while (own < pieces.size() && pieces[own].child == root) ++own;
      hand_over(*root, pieces.first(own), invocation.phase);
      pieces = pieces.subspan(own);
    }
  }
  for (Part* part : invocation.parts) invocation.caller->taken(*part);
  run_chunk(wave);
}

void Lockstep::step() {
  Wave& wave = top();
  if (is_full_) {
    run_deferred(DeferredKind::Held);
    return;
  }
  if (!wave.ready.empty()) {
    Fiber* next = wave.ready.back();
    wave.ready.pop_back();
    advance(wave, next);
    return;
  }
  clock_.to(Step::Call);
  if (wave.entered.empty() && !wave.calls.empty()) make_invocations(wave);
  if (!wave.entered.empty()) {
    enter_next(wave);
  } else if (!wave.asked.empty()) {
    resume_next(wave);
  } else if (has_deferred(DeferredKind::Held)) {
    run_deferred(DeferredKind::Held);
  } else if (wave.waiting > 0) {
    throw Stop{Stop::Kind::Internal};  // only some lanes of the invocation have asked for the phase
  } else {
    finish_chunk(wave);
  }
}

/// Begin the next chunk of an invocation; if there is none, the phase ends.
void Lockstep::run_chunk(Wave& wave) {
  Invocation& invocation = *wave.invocation;
  run_.poll.tick();
  if (run_.link != nullptr && run_.may_give()) give_away();
  at_ = nullptr;  // no table runs now; but some lane is called next, or was
  calling_ = {invocation.parts[std::min(wave.progress.part, invocation.parts.size() - 1)], 0};
  if (wave.resumed != nullptr) {
    resume_chunk(wave);
  } else if (invocation.phase == 0 && wave.progress.part < invocation.parts.size() &&
             wave.progress.done < wave.progress.own &&
             (wave.progress.gives() || !run_.share(invocation, wave.progress))) {
    start_chunk(wave);
  } else {
    if (wave.progress.gives()) run_.take_back(invocation);
    --deep_;
    run_.leave(invocation);
  }
}

/// Give lanes that no chunk has yet to workers who have nothing to do: those of the outermost wave, since they take
/// longest.
void Lockstep::give_away() {
  for (size_t k = 0; k < deep_; ++k) {
    Wave& wave = space_.waves[k];
    const Invocation& invocation = *wave.invocation;
    if (wave.resumed != nullptr || invocation.phase > 0 || wave.progress.part >= invocation.parts.size()) continue;
    if (run_.give(*wave.invocation, wave.progress, k + 1 < deep_)) return;
  }
}

/// The spans of lanes that run next: as many lanes as a wave may have.
void Lockstep::cut(Wave& wave, Chunk& chunk) {
  const Invocation& invocation = *wave.invocation;
  Progress& progress = wave.progress;
  std::vector<Span>& spans = space_.spans;
  spans.clear();
  if (invocation.depth <= 1 || deep_ == 1) {
    base_frames_ = tables_.frames;
    base_bytes_ = tables_.pool.live();
  }
  const int64_t width = std::min(width_now(invocation), progress.own - progress.done);
  while (progress.part < invocation.parts.size() && chunk.lanes < width) {
    Part* part = invocation.parts[progress.part];
    const int64_t count = std::min(part->lanes - progress.lane, width - chunk.lanes);
    spans.push_back({part, progress.lane, count});
    chunk.lanes += count;
    progress.lane += count;
    if (progress.lane == part->lanes) {
      ++progress.part;
      progress.lane = 0;
    }
  }
  progress.done += chunk.lanes;
}

/// Call as many lanes of an invocation as a wave may have, in one table for each function.
void Lockstep::start_chunk(Wave& wave) {
  Invocation& invocation = *wave.invocation;
  Chunk* chunk = space_.chunks.take();
  chunk->invocation = &invocation;
  chunk->roots.clear();
  chunk->pieces.clear();
  chunk->lanes = 0;
  chunk->before = static_cast<Chunk*>(invocation.handle);
  cut(wave, *chunk);
  std::vector<Span>& spans = space_.spans;
  at_ = nullptr;
  calling_ = {spans[0].part, spans[0].from};
  operators_.position = {-1, spans[0].part->item->site};
  const auto body = [](const Span& span) { return span.part->item->body; };
  if (!std::ranges::is_sorted(spans, {}, body))
    std::ranges::stable_sort(spans, {}, body);  // only if needed: the sort allocates
  run_.deepen(invocation.depth, {spans[0].part, spans[0].from});
  wave.chunk = chunk;
  invocation.handle = chunk;
  for (size_t first = 0; first < spans.size();) {
    size_t last = first;
    while (last < spans.size() && spans[last].part->item->body == spans[first].part->item->body) ++last;
    start_root(wave, *make_root(*chunk, std::span(spans).subspan(first, last - first)));
    first = last;
  }
  for (const Span& span : spans)
    if (span.from + span.count == span.part->lanes) invocation.caller->taken(*span.part);
  if (invocation.depth == 0) return;  // main is no activation
  stats_.activations += chunk->lanes;
  ++stats_.waves;
  stats_.lanes += chunk->lanes;
  stats_.peak_width = std::max(stats_.peak_width, chunk->lanes);
}

void Lockstep::start_root(Wave& wave, Table& table) {
  const int32_t phase = wave.invocation->phase;
  wave.ready.push_back(fiber(Fiber::Kind::Root, &table, phase, nullptr));
  tell(table, phase);
}

/// If the next spans are the same lanes of all calls of one family: how many there are; else 1.
size_t Lockstep::siblings_in(std::span<const Span> spans) {
  const CallItem& item = *spans[0].part->item;
  const auto siblings = z(item.siblings);
  if (siblings == 1 || siblings > spans.size()) return 1;
  const auto is_one = [&](const Span& span) {
    return span.part->item->family == item.family && span.part->origin == spans[0].part->origin &&
           span.from == spans[0].from && span.count == spans[0].count;
  };
  return std::ranges::all_of(spans.first(siblings), is_one) ? siblings : 1;
}

/// Make the table of the lanes of a chunk that enter one function, with their arguments.
Table* Lockstep::make_root(Chunk& chunk, std::span<const Span> spans) {
  const int32_t number = spans[0].part->item->body;
  const Region& body = plan_.regions[z(number)];
  int64_t lanes = 0;
  for (const Span& span : spans) lanes += span.count;
  Table* table = tables_.make(body, lanes, chunk.invocation->visits);
  if (number == 0) run_.main_columns = table->columns;
  table->chunk = &chunk;
  chunk.roots.push_back(table);
  const size_t before = chunk.pieces.size();
  int64_t at = 0;
  for (size_t k = 0; k < spans.size();) {
    const size_t siblings = siblings_in(spans.subspan(k));
    const int64_t base = at, step = static_cast<int64_t>(siblings);
    for (const size_t end = k + siblings; k < end; ++k) {
      const int64_t own = siblings > 1 ? base + spans[k].part->item->sibling : base;
      chunk.pieces.push_back({spans[k], table, own, step});
      at += spans[k].count;
    }
  }
  const std::span<const Piece> pieces = std::span(chunk.pieces).subspan(before);
  hand_over(*table, pieces, 0);
  if (body.hoisted > 0) give_entries(*table, pieces);
  return table;
}

/// How many lanes a chunk may have, so that memory is left for the waves below it. A quarter of all memory is for wide
/// waves, each taking a share of what is left of it; the rest is for deep recursion, where lanes descend one by one.
/// Values for later phases are kept in any case, however few lanes run at once.
int64_t Lockstep::width_now(const Invocation& invocation) const {
  constexpr int64_t kGiven = 512;  // so many go on together while somebody waits for the others
  int64_t width = options_.width;
  if (invocation.visits > 1) return width;
  if (run_.is_awaited() && plan_.groups[z(invocation.group)].is_free) width = std::min(width, kGiven);
  const int64_t frames = tables_.frames - base_frames_, bytes = tables_.pool.live() - base_bytes_;
  int64_t own = 0;  // bytes that an entry holds for a lane alone
  for (const Part* part : invocation.parts) own = std::max(own, part->entry_bytes);
  width = std::min(width, ((options_.frames - base_frames_) / 4 - frames) / 8);
  const int64_t lane = std::max(plan_.lane_bytes[z(invocation.group)] + own, frames > 0 ? bytes / frames : 0);
  width = std::min(width, ((options_.memory - base_bytes_) / 4 - bytes) / 8 / std::max<int64_t>(lane, 1));
  return std::max<int64_t>(width, 1);
}

void Lockstep::resume_chunk(Wave& wave) {
  wave.chunk = wave.resumed;
  wave.resumed = wave.chunk->before;
  for (Table* table : wave.chunk->roots) start_root(wave, *table);
  ++stats_.waves;
  stats_.lanes += wave.chunk->lanes;
}

void Lockstep::finish_chunk(Wave& wave) {
  const Invocation& invocation = *wave.invocation;
  Chunk* chunk = wave.chunk;
  const auto makes_entries = [](const Part* part) { return part->makes_entries; };
  if (std::ranges::any_of(invocation.parts, makes_entries)) run_kept();
  for (const Piece& piece : chunk->pieces) deliver(piece, invocation.phase);
  wave.chunk = nullptr;
  if (invocation.phase + 1 == invocation.visits) {
    for (Table* table : chunk->roots) tables_.end(table);
    space_.chunks.give(chunk);
  }
  run_chunk(wave);
}

}  // namespace undertow::lockstep
