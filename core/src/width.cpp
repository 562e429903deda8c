#include "width.h"

#include "undertow/size.h"

namespace undertow {

std::vector<int64_t> lane_bytes_of(const Plan& plan, const Shared& shared) {
  std::vector<int64_t> bytes(z(plan.groups), 0);
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    for (size_t k = 0; k < region.slots.size(); ++k)
      if (!shared.slots[r][k] && !region.slots[k].is_inner) bytes[z(region.group)] += region.slots[k].bytes;
  }
  return bytes;
}

}  // namespace undertow
