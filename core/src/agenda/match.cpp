// Which token belongs to which frame: by stretches where parts go the same way, else by a table.
#include <algorithm>

#include "agenda/crossing.h"
#include "memory/lanes.h"
#include "run/values.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {

constexpr size_t kAhead = 8;  // paths
constexpr size_t kShort = 4;  // fewer than so many are no stretch: its two ends would be looked up

[[noreturn]] void twice() { throw BadMessage("a token has come twice"); }

}  // namespace

// ------------------------------------------------------------------------------------------------------------------
// Stretches

void Crossing::add(Edge& edge, Stretch& stretch) {
  stretch.number = edge.stretches.size();
  edge.stretches.push_back(&stretch);
  link(edge, stretch);
}

void Crossing::link(const Edge& edge, Stretch& stretch) {
  const auto enter = [&](size_t k) {
    bool is_new = false;
    ends_.make(edge.number(), stretch.path(k), is_new).value = &stretch;
    if (is_new) return;
    if (stretch.frames.empty()) twice();
    throw Stop{Stop::Kind::Internal};  // two frames with one tag
  };
  enter(stretch.first);
  if (stretch.end - stretch.first > 1) enter(stretch.end - 1);
}

void Crossing::unlink(const Edge& edge, const Stretch& stretch) {
  ends_.erase(*ends_.find(edge.number(), stretch.path(stretch.first)));
  if (stretch.end - stretch.first > 1) ends_.erase(*ends_.find(edge.number(), stretch.path(stretch.end - 1)));
}

/// Only that much is left of a stretch.
void Crossing::shrink(Edge& edge, Stretch& stretch, size_t first, size_t end) {
  unlink(edge, stretch);
  stretch.first = first;
  stretch.end = end;
  if (first < end) {
    link(edge, stretch);
    return;
  }
  for (Block* block : {stretch.paths, stretch.values.first.block, stretch.values.boxes}) tables_.pool.drop(block);
  edge.stretches[stretch.number] = edge.stretches.back();
  edge.stretches[stretch.number]->number = stretch.number;
  edge.stretches.pop_back();
  stretches_.give(&stretch);
}

/// Go from both ends of a row of paths along the stretches of the other kind, and call `each` with the part of a
/// stretch and where it is in the row. What is between `first` and `end` then is at no end of any of them.
template <class PathOf, class Each>
void Crossing::along(Edge& edge, size_t& first, size_t& end, PathOf&& path_of, Each&& each) {
  const auto stretch_at = [&](size_t k) -> Stretch* {
    const auto* found = ends_.find(edge.number(), path_of(k));
    return found != nullptr ? found->value : nullptr;
  };
  while (first < end) {
    size_t count = 1;
    if (Stretch* one = stretch_at(first)) {
      if (one->path(one->first) == path_of(first)) {
        const size_t most = std::min(end - first, one->end - one->first);
        while (count < most && one->path(one->first + count) == path_of(first + count)) ++count;
        each(*one, one->first, first, count);
        shrink(edge, *one, one->first + count, one->end);
      } else {
        each(*one, one->end - 1, first, 1);
        shrink(edge, *one, one->first, one->end - 1);
      }
      first += count;
    } else if (Stretch* other = stretch_at(end - 1)) {
      if (other->path(other->end - 1) == path_of(end - 1)) {
        const size_t most = std::min(end - first, other->end - other->first);
        while (count < most && other->path(other->end - 1 - count) == path_of(end - 1 - count)) ++count;
        each(*other, other->end - count, end - count, count);
        shrink(edge, *other, other->first, other->end - count);
      } else {
        each(*other, other->first, end - 1, 1);
        shrink(edge, *other, other->first + 1, other->end);
      }
      end -= count;
    } else {
      return;
    }
  }
}

// ------------------------------------------------------------------------------------------------------------------
// The table

/// All stretches of an edge go into the table: something is in the midst of one, or in none, and only the table knows.
void Crossing::loosen(Edge& edge) {
  while (!edge.stretches.empty()) {
    Stretch& stretch = *edge.stretches.back();
    loose_.reserve(stretch.end - stretch.first);
    for (size_t k = stretch.first; k < stretch.end; ++k) {
      if (k + kAhead < stretch.end) loose_.prefetch(edge.number(), stretch.path(k + kAhead));
      if (stretch.frames.empty())
        loosen(edge, stretch.path(k), value_of(stretch.values, k));
      else
        loosen(edge, stretch.frames[k]);
    }
    shrink(edge, stretch, stretch.end, stretch.end);
  }
}

void Crossing::loosen(Edge& edge, Path path, Box value) {
  bool is_new = false;
  loose_.make(edge.number(), path, is_new).value = {nullptr, value};
  if (!is_new) twice();
  ++edge.loose_tokens;
}

void Crossing::loosen(Edge& edge, Frame* frame) {
  bool is_new = false;
  loose_.make(edge.number(), frame->path(), is_new).value = {frame, {}};
  if (!is_new) throw Stop{Stop::Kind::Internal};  // two frames with one tag
  ++edge.loose_frames;
}

// ------------------------------------------------------------------------------------------------------------------

void Crossing::arm(const RecvPlan& recv, std::span<Frame* const> frames) {
  Edge& edge = edges_.find(recv.item->edge)->second;
  size_t first = 0, end = frames.size();
  if (edge.has_stretches(false)) {
    along(
        edge, first, end, [&](size_t k) { return frames[k]->path(); },
        [&](const Stretch& tokens, size_t from, size_t to, size_t count) {
          put(recv, frames.subspan(to, count), tokens.values, from);
        });
    if (first < end) loosen(edge);
  }
  frames = frames.subspan(first, end - first);
  if (edge.loose_tokens == 0) {
    for (Frame* frame : frames) ++frame->pending;
    armed_ += static_cast<int64_t>(frames.size());
    if (frames.size() < kShort) {
      for (Frame* frame : frames) loosen(edge, frame);
      return;
    }
    Stretch& made = *stretches_.take();
    made.first = 0;
    made.end = frames.size();
    made.frames.assign(frames.begin(), frames.end());
    made.paths = nullptr;
    made.values = {};
    add(edge, made);
    return;
  }
  loose_.reserve(frames.size());
  for (size_t k = 0; k < frames.size(); ++k) {
    if (k + kAhead < frames.size()) loose_.prefetch(edge.number(), frames[k + kAhead]->path());
    Frame* const frame = frames[k];
    const auto* found = loose_.find(edge.number(), frame->path());
    if (found == nullptr) {
      ++armed_;
      ++frame->pending;
      loosen(edge, frame);
      continue;
    }
    if (found->value.frame != nullptr) throw Stop{Stop::Kind::Internal};  // two frames with one tag
    put(recv, frame, found->value.value);
    loose_.erase(*found);
    --edge.loose_tokens;
  }
}

/// Give the tokens of a group, whose tags are in `paths_`, to frames that wait for them; keep the others.
void Crossing::match(Edge& edge, Values& values, std::vector<Frame*>& found) {
  const RecvPlan& recv = *edge.recv;
  size_t first = 0, end = paths_.size();
  if (edge.has_stretches(true)) {
    along(
        edge, first, end, [&](size_t k) { return paths_[k]; },
        [&](const Stretch& waiting, size_t from, size_t to, size_t count) {
          const std::span<Frame* const> frames = std::span(waiting.frames).subspan(from, count);
          put(recv, frames, values, to);
          found.insert(found.end(), frames.begin(), frames.end());
          armed_ -= static_cast<int64_t>(count);
        });
    if (first < end) loosen(edge);
  }
  if (first == end) {
    tables_.pool.drop(values.first.block);
    tables_.pool.drop(values.boxes);
    return;
  }
  if (values.first.data != nullptr && values.first.block == nullptr) {  // they are in the message, and it goes
    const size_t count = values.stride == 0 ? 1 : paths_.size();
    values.first =
        copied(*recv.slot, values.first.data, static_cast<int64_t>(count) * recv.slot->bytes, values.first.shape);
  }
  if (edge.loose_frames == 0 && end - first >= kShort) {
    Stretch& made = *stretches_.take();
    made.first = first;
    made.end = end;
    made.frames.clear();
    const size_t bytes = paths_.size() * sizeof(Path);
    made.paths = tables_.pool.take(static_cast<int64_t>(bytes));
    std::copy(paths_.begin(), paths_.end(), reinterpret_cast<Path*>(made.paths->data()));
    made.values = values;
    add(edge, made);
    return;
  }
  loose_.reserve(end - first);
  for (size_t k = first; k < end; ++k) {
    if (k + kAhead < end) loose_.prefetch(edge.number(), paths_[k + kAhead]);
    const auto* waiting = loose_.find(edge.number(), paths_[k]);
    if (waiting == nullptr) {
      loosen(edge, paths_[k], value_of(values, k));
      continue;
    }
    Frame* const frame = waiting->value.frame;
    if (frame == nullptr) twice();
    loose_.erase(*waiting);
    --edge.loose_frames;
    --armed_;
    put(recv, frame, value_of(values, k));
    found.push_back(frame);
  }
  tables_.pool.drop(values.first.block);
  tables_.pool.drop(values.boxes);
}

// ------------------------------------------------------------------------------------------------------------------
// Values

/// A value of a group, with a reference of its own.
Box Crossing::value_of(const Values& values, size_t k) const {
  if (values.boxes != nullptr) return *values.box(k);  // the reference that there is
  Box value = values.first;
  if (value.block == nullptr) return value;
  ++value.block->refs;
  value.data += static_cast<int64_t>(k) * values.stride;
  return value;
}

/// A value goes into a frame, with the reference to its block.
void Crossing::put(const RecvPlan& recv, Frame* frame, Box value) {
  if (recv.place >= 0 && !is_small(*recv.slot)) {
    Box* box = reinterpret_cast<Box*>(frame->at(recv.place));
    tables_.pool.drop(box->block);
    *box = value;
    return;
  }
  if (recv.place >= 0) lanes::copy_few(frame->at(recv.place), value.data, static_cast<int32_t>(recv.slot->bytes));
  tables_.pool.drop(value.block);
}

/// Values of a group, from one on, go into frames.
void Crossing::put(const RecvPlan& recv, std::span<Frame* const> frames, const Values& values, size_t first) {
  const auto count = static_cast<int64_t>(frames.size());
  if (values.boxes != nullptr) {
    for (size_t k = 0; k < frames.size(); ++k) put(recv, frames[k], *values.box(first + k));
    return;
  }
  if (recv.place < 0 || recv.slot == nullptr) return;
  std::byte* const data = values.first.data + static_cast<int64_t>(first) * values.stride;
  if (is_small(*recv.slot)) {
    lanes::each(
        count, recv.slot->bytes, [&](int64_t k) { return frames[z(k)]->at(recv.place); },
        [&](int64_t k) { return data + k * values.stride; });
    return;
  }
  values.first.block->refs += count;
  for (int64_t k = 0; k < count; ++k) {
    Box* const box = reinterpret_cast<Box*>(frames[z(k)]->at(recv.place));
    tables_.pool.drop(box->block);
    *box = {values.first.block, data + k * values.stride, values.first.shape};
  }
}

void Crossing::check_empty() const {
  const auto has_stretches = [](const auto& edge) { return !edge.second.stretches.empty(); };
  if (loose_.size() > 0 || std::ranges::any_of(edges_, has_stretches)) throw Stop{Stop::Kind::Internal};
}

}  // namespace undertow::agenda
