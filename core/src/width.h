// What a lane adds to a wave, for choosing how many there may be.
#pragma once

#include "shared.h"

namespace undertow {

/// Bytes that one more lane takes, by group: the slots of all its regions, without those that all lanes share. Values
/// whose size only the run knows count as their boxes.
std::vector<int64_t> lane_bytes_of(const Plan& plan, const Shared& shared);

}  // namespace undertow
