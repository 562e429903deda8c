// What the agenda schedule derives from a plan before it runs: frame layouts, what each stage loads and stores, and how
// values move between frames.
#pragma once

#include <vector>

#include "undertow/plan.h"

namespace undertow::agenda {

inline bool is_small(const Slot& slot) { return !slot.is_dynamic && slot.bytes <= kSmall && !slot.is_away(); }

/// A value moved to a frame, from another frame or from a lane of a table.
struct Carry {
  enum class Kind : uint8_t {
    Small,  // copies bytes
    Fetch,  // copies bytes that the source frame has by reference
    Array,  // copies a reference
    Other,  // boxes a value of known shape for a slot of unknown shape
  };
  Kind kind;
  int32_t bytes;
  Operand from;
  int32_t from_place, to_place;  ///< in the frames; constants have none
  const Slot *from_slot, *to_slot;
};

using Carries = std::vector<Carry>;

Carry make_carry(Operand from, const Slot& from_slot, int32_t from_place, const Slot& to_slot, int32_t to_place);

/// A stage of a region in a phase; or the end of a phase, after its last stage.
struct StagePlan {
  const Stage* stage;  ///< null: the end
  int32_t region, phase, number;
  std::vector<int32_t> loads;  ///< slots that it reads and does not write
  Carries stores;              ///< values that it writes and other stages read
  std::vector<Item> entered;   ///< numbers are those of the outline
  bool is_heavy = false;       ///< does it work on arrays?
  int32_t ahead = 0;           ///< stages after it in its phase
  /// Lanes that run it together, at most: what it sends then goes while it is in the cache, and others can begin.
  int64_t most = INT64_MAX;
};

/// The layout of a frame: its head, links to what it has entered, arrays by reference, small values.
struct RegionPlan {
  const Region* region;
  int32_t number;
  bool is_counted;              ///< counts towards the limit of frames: all but branches
  int32_t size;                 ///< bytes of a frame
  int32_t zeroed;               ///< end of the links and references, which start as zero
  int32_t frame_links;          ///< how many: branches, then calls
  int32_t entries, maps;        ///< where their links begin
  int32_t boxes, box_count;     ///< where the references begin
  std::vector<int32_t> places;  ///< by slot; -1: no stage reads what another wrote
  std::vector<int32_t> first;   ///< stage, by phase
};

// An item that is entered, and how values go in and come back.

struct BranchPlan {
  const BranchItem* item;
  Carries in[2], out[2];
};

struct CallPlan {
  const CallItem* item;
  Carries in, out;
  Carries back;  ///< if another schedule runs the callee: from a table of the caller to its frames
};

struct LoopPlan {
  const LoopItem* item;
  Carries in, out;
  Carries next, outers;  ///< to the next iteration: from the branch that continues, and from this iteration
  int32_t going;         ///< the region of that branch
};

struct MapPlan {
  const MapItem* item;
  Carries outers;
};

struct RecvPlan {
  const RecvItem* item;
  const Slot* slot;  ///< null: an order token
  int32_t place;     ///< in the frame; -1: nothing reads it
};

struct Outline {
  std::vector<RegionPlan> regions;
  std::vector<StagePlan> stages;
  std::vector<BranchPlan> branches;
  std::vector<CallPlan> calls;
  std::vector<LoopPlan> loops;
  std::vector<MapPlan> maps;
  std::vector<RecvPlan> recvs;
};

/// The outline points into the plan, which owns it.
Outline make_outline(const Plan& plan);

}  // namespace undertow::agenda
