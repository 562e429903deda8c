// The end of a tag that a guest knows: the lane of a part by which the owner goes on.
#pragma once

#include <limits>
#include <utility>

#include "undertow/run.h"

namespace undertow::remote {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::min();  // labels of calls have index -1, others are not negative

inline Label end_at(int64_t part, int64_t lane) { return {part, kEnd + lane}; }
inline bool is_end(const Label& label) { return label.index < kEnd / 2; }
inline std::pair<int64_t, int64_t> end_of(const Label& label) { return {label.site, label.index - kEnd}; }

}  // namespace undertow::remote
