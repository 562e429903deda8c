// What the agenda schedule knows of a plan before it runs: how frames are laid out, what each stage reads and leaves
// behind, and how values go from frame to frame.
#pragma once

#include <vector>

#include "undertow/plan.h"

namespace undertow::agenda {

constexpr int64_t kSmall = 64;  // bytes of a value that stands in the frame itself

inline bool is_small(const Slot& slot) { return !slot.is_dynamic && slot.bytes <= kSmall && !slot.is_away(); }

/// A value that goes to a frame, from another one or from a lane of a table.
struct Carry {
  enum class Kind : uint8_t {
    Small,  // bytes
    Fetch,  // bytes, of what the frame that they come from has by reference
    Array,  // by reference
    Other,  // what was of a known shape is not any more
  };
  Kind kind;
  int32_t bytes;
  Operand from;
  int32_t from_place, to_place;  ///< in the frames; constants have none
  const Slot *from_slot, *to_slot;
};

using Carries = std::vector<Carry>;

Carry make_carry(Operand from, const Slot& from_slot, int32_t from_place, const Slot& to_slot, int32_t to_place);

/// A stage of a region in a phase; or, after the last one of each, its end.
struct StagePlan {
  const Stage* stage;  ///< null: the end
  int32_t region, phase, number;
  std::vector<int32_t> loads;  ///< slots that it needs and does not make
  Carries stores;              ///< what it makes and others need
  std::vector<Item> entered;   ///< numbers are those of the outline
  bool is_heavy = false;       ///< it works on arrays
};

/// A frame: its head, links to what it has entered, arrays by reference, small values.
struct RegionPlan {
  const Region* region;
  int32_t number;
  bool is_counted;              ///< among frames: it is no branch
  int32_t size;                 ///< bytes of a frame
  int32_t zeroed;               ///< up to here, links and references are set to zero
  int32_t frame_links;          ///< how many: branches, then calls
  int32_t entries, maps;        ///< where their links begin
  int32_t boxes, box_count;     ///< where the references begin
  std::vector<int32_t> places;  ///< of each slot; -1: no stage needs what another one made
  std::vector<int32_t> first;   ///< stage, by phase
};

// What is entered at one place: the item, and how values go in and come back.

struct BranchPlan {
  const BranchItem* item;
  Carries in[2], out[2];
};

struct CallPlan {
  const CallItem* item;
  Carries in, out;
  Carries back;  ///< where another schedule runs it: from a table of the caller to its frames
};

struct LoopPlan {
  const LoopItem* item;
  Carries in, out;
  Carries next, outers;  ///< to the next iteration: from the branch that goes on, and from this iteration
  int32_t going;         ///< the region of that branch
};

struct MapPlan {
  const MapItem* item;
  Carries outers;
};

struct Outline {
  std::vector<RegionPlan> regions;
  std::vector<StagePlan> stages;
  std::vector<BranchPlan> branches;
  std::vector<CallPlan> calls;
  std::vector<LoopPlan> loops;
  std::vector<MapPlan> maps;
};

/// The outline points into the plan, and goes with it.
Outline make_outline(const Plan& plan);

}  // namespace undertow::agenda
