// A slot that only its neighbours read needs no column: how often each is read.
#include "fuse.h"
#include "reads.h"

namespace undertow {

std::vector<std::vector<int32_t>> count_uses(const Plan& plan) {
  std::vector<std::vector<int32_t>> counts;
  for (const Region& region : plan.regions) counts.emplace_back(region.slots.size(), 0);
  const auto use = [&](size_t region, Operand x) {
    if (x >= 0) ++counts[region][static_cast<size_t>(x)];
  };
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    for (const auto& results : plan.regions[r].results)
      for (int32_t slot : results) use(r, slot);
    for (const Program& program : plan.regions[r].phases)
      for (const Stage& stage : program.stages)
        for (const auto* items : {&stage.straight, &stage.entered})
          for (const Item& item : *items) each_read(plan, r, item, use);
  }
  return counts;
}

}  // namespace undertow
