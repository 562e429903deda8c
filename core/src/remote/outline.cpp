#include "remote/outline.h"

#include <algorithm>
#include <set>

#include "plan/items.h"
#include "undertow/plan.h"
#include "undertow/size.h"

namespace undertow::remote {
namespace {

/// Everything that can be reached, from where it is; `next` are the edges.
std::vector<bool> reached(std::vector<int32_t> todo, const std::vector<std::set<int32_t>>& next) {
  std::vector<bool> seen(next.size(), false);
  while (!todo.empty()) {
    const int32_t at = todo.back();
    todo.pop_back();
    if (seen[z(at)]) continue;
    seen[z(at)] = true;
    todo.insert(todo.end(), next[z(at)].begin(), next[z(at)].end());
  }
  return seen;
}

}  // namespace

Outline make_outline(const Plan& plan) {
  Outline made;
  made.regions.assign(plan.calls.size(), 0);
  made.makers.resize(plan.regions.size());
  made.reads.resize(plan.groups.size());
  std::vector<std::set<int32_t>> below(plan.regions.size());  // by body: those that share its entries
  std::vector<std::set<int32_t>> inner(plan.groups.size());   // by group: those that it enters
  std::vector<int32_t> makers;
  std::vector<std::set<int32_t>> reads(plan.groups.size());
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    each_item(region, [&](int32_t, const Item& item) {
      const auto at = z(item.number);
      const bool is_call = item.kind == Item::Kind::Call;
      if (is_call) made.regions[at] = static_cast<int32_t>(r);
      const bool makes_entry = is_call && plan.calls[at].makes_entry;
      if (makes_entry) makers.push_back(item.number);
      each_entered(plan, item, [&](int32_t entered, int32_t) {
        const Region& to = plan.regions[z(entered)];
        if (!makes_entry && (!is_call || plan.calls[at].phase == 0)) below[z(region.body)].insert(to.body);
        inner[z(region.group)].insert(to.group);
      });
      if (item.kind == Item::Kind::Read && plan.reads[at].is_shared)
        reads[z(region.group)].insert(plan.reads[at].index);
    });
  }
  for (const int32_t maker : makers) {
    const std::vector<bool> seen = reached({plan.calls[z(maker)].body}, below);
    for (size_t body = 0; body < seen.size(); ++body)
      if (seen[body]) made.makers[body].push_back(maker);
  }
  for (std::vector<int32_t>& calls : made.makers) std::ranges::sort(calls);
  for (size_t group = 0; group < inner.size(); ++group) {
    const std::vector<bool> seen = reached({static_cast<int32_t>(group)}, inner);
    std::set<int32_t> all;
    for (size_t other = 0; other < seen.size(); ++other)
      if (seen[other]) all.insert(reads[other].begin(), reads[other].end());
    made.reads[group].assign(all.begin(), all.end());
  }
  return made;
}

}  // namespace undertow::remote
