// Frames and stages of the agenda schedule as text, for people.
#include "agenda/outline.h"
#include "plan/describe.h"
#include "undertow/size.h"

namespace undertow {

std::string describe_agenda(const Plan& plan) {
  const agenda::Outline& outline = *plan.outline;
  std::string text;
  for (const agenda::RegionPlan& region : outline.regions) {
    if (plan.groups[z(region.region->group)].schedule != Schedule::Agenda) continue;
    text += "frame of region " + std::to_string(region.number) + ": " + std::to_string(region.size) + " bytes";
    for (size_t slot = 0; slot < region.places.size(); ++slot)
      if (region.places[slot] >= 0)
        text += ", column " + std::to_string(slot) + " at " + std::to_string(region.places[slot]);
    text += "\n";
    for (size_t k = 0; k < outline.stages.size(); ++k) {
      const agenda::StagePlan& stage = outline.stages[k];
      if (stage.region != region.number || stage.stage == nullptr) continue;
      text += "  stage " + std::to_string(stage.number) + " of program " + std::to_string(stage.phase) +
              (stage.is_heavy ? ", on arrays" : "") + ": loads";
      for (int32_t slot : stage.loads) text += " " + std::to_string(slot);
      text += ", leaves";
      for (const agenda::Carry& carry : stage.stores) text += " " + std::to_string(carry.from);
      text += "\n";
    }
  }
  return text;
}

}  // namespace undertow
