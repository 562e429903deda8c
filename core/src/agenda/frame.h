// Frames of the agenda schedule: one for each activation, iteration, lane of a map and branch taken. They hold the
// values that stages leave for later ones, small ones in the frame itself, arrays by reference.
#pragma once

#include <span>
#include <vector>

#include "agenda/outline.h"
#include "agenda/path.h"
#include "memory/table.h"

namespace undertow::agenda {

/// The head of a frame; the outline of its region lays out what follows. Frames of an invocation's lanes have no
/// parent.
struct Frame {
  const RegionPlan* plan;
  Frame* parent;
  Entry* entry;
  int64_t depth;
  int64_t index;  ///< of an iteration, or of a lane: of a map, or, without a parent, of the invocation
  int32_t item;   ///< of the outline: what it was entered by last; without a parent: number of the invocation
  int32_t site;
  int32_t visits;
  int32_t stage;  ///< of the outline: the one that it waits for or runs
  int64_t pending;
  int64_t ahead;  ///< stages that the longest path has from its end to that of the invocation

  /// The tag, in parts of a placed graph: it lies before the frame, so that nobody else has to have room for it.
  Path& path() { return reinterpret_cast<Path*>(this)[-1]; }
  std::byte* at(int64_t place) { return reinterpret_cast<std::byte*>(this) + place; }
  Frame** links() { return reinterpret_cast<Frame**>(this + 1); }
  Frame*& branch(int32_t number) { return links()[number]; }
  Frame*& call(int32_t number) { return links()[plan->region->branches + number]; }
  Entry*& made_entry(int32_t call) { return reinterpret_cast<Entry**>(at(plan->entries))[call]; }
  struct MapLanes*& map(int32_t number) { return reinterpret_cast<MapLanes**>(at(plan->maps))[number]; }
  std::span<Box> boxes() { return {reinterpret_cast<Box*>(at(plan->boxes)), static_cast<size_t>(plan->box_count)}; }
};

/// The lanes of one map in one frame.
struct MapLanes {
  std::vector<Frame*> frames;
  int64_t left = 0;  ///< that have not returned
};

/// Makes and frees frames, and moves values between them and tables.
class Frames {
 public:
  Frames(const Plan& plan, const Outline& outline, Tables& tables, bool has_paths)
      : plan_(plan),
        outline_(outline),
        tables_(tables),
        before_(has_paths ? sizeof(Path) : 0),
        free_(outline.regions.size(), nullptr) {}
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  Frame* make(int32_t region, Frame* parent, int32_t item, int32_t visits) {
    const RegionPlan& plan = outline_.regions[static_cast<size_t>(region)];
    Frame* frame = free_[static_cast<size_t>(region)];
    if (frame != nullptr)
      free_[static_cast<size_t>(region)] = frame->parent;
    else
      frame = fresh(plan);
    frame->plan = &plan;
    frame->parent = parent;
    frame->entry = parent != nullptr ? parent->entry : nullptr;
    frame->depth = parent != nullptr ? parent->depth : 0;
    frame->index = -1;
    frame->item = item;
    frame->site = 0;
    frame->visits = visits;
    frame->pending = 0;
    frame->ahead = parent != nullptr ? parent->ahead + outline_.stages[static_cast<size_t>(parent->stage)].ahead : 0;
    if (before_ > 0 && parent != nullptr) frame->path() = parent->path();
    auto* word = reinterpret_cast<uint64_t*>(frame + 1);
    for (auto* end = reinterpret_cast<uint64_t*>(frame->at(plan.zeroed)); word != end; ++word) *word = 0;
    if (plan.is_counted && ++tables_.frames > tables_.peak_frames) count();
    return frame;
  }

  /// Free a frame and the frames that it links to.
  void end(Frame* frame);
  MapLanes* make_lanes() { return map_store_.take(); }
  Entry* make_entry() { return entry_store_.take(); }

  /// Put a value into a box of a frame, adding a reference.
  void hold(std::byte* place, const Box& value) {
    Box* box = reinterpret_cast<Box*>(place);
    if (value.block != nullptr) ++value.block->refs;
    tables_.pool.drop(box->block);
    *box = value;
  }

  /// A value of a frame, or a constant, as a column of one lane.
  Column column(Frame& frame, Operand x) const;

  void carry(Frame& to, Frame& from, const Carries& carries) {
    for (const Carry& each : carries) carry(to, from, each);
  }
  /// Scatter lanes of a column to frames: those in `lanes`, or all.
  void carry(std::span<Frame* const> to, const Column& from, const int32_t* lanes, const Carry& carry);

 private:
  Frame* fresh(const RegionPlan& plan);
  void count();
  void carry(Frame& to, Frame& from, const Carry& carry);
  void put(Frame& to, const Carry& carry, const Column& from, int64_t lane);

  const Plan& plan_;
  const Outline& outline_;
  Tables& tables_;
  const int64_t before_;      ///< bytes before a frame, for its path
  std::vector<Frame*> free_;  ///< free lists by region, linked through `parent`
  std::byte* room_ = nullptr;
  int64_t left_ = 0, size_ = 512;  ///< bytes
  std::vector<Frame*> ending_;
  Store<MapLanes> map_store_;
  Store<Entry> entry_store_;
};

}  // namespace undertow::agenda
