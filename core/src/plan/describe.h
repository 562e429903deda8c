// What the core compiles from a plan, as text: code of narrow groups, frame layouts of agendas.
#pragma once

#include <string>

#include "undertow/plan.h"

namespace undertow {

std::string describe_narrow(const Plan& plan);  ///< the code of narrow groups
std::string describe_agenda(const Plan& plan);  ///< frames and stages of groups that an agenda schedules

}  // namespace undertow
