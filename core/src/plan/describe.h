// What the core makes of a plan besides executing it item by item, as text: it is not decided here, but it is compiled.
#pragma once

#include <string>

#include "undertow/plan.h"

namespace undertow {

std::string describe_narrow(const Plan& plan);  ///< the code of narrow groups
std::string describe_agenda(const Plan& plan);  ///< frames and stages of groups that run by an agenda

}  // namespace undertow
