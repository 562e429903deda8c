// What a plan's calls need, if their lanes are to run in another process.
#pragma once

#include <cstdint>
#include <vector>

namespace undertow {

class Plan;

namespace remote {

struct Outline {
  std::vector<int32_t> regions;              ///< by call: the caller's
  std::vector<std::vector<int32_t>> makers;  ///< by body: calls whose entries its lanes may be below, sorted
  std::vector<std::vector<int32_t>> reads;   ///< by group: slots of main that are read in it, or below
};

Outline make_outline(const Plan& plan);

}  // namespace remote
}  // namespace undertow
