// How long columns are needed: what nobody reads any more goes, and its memory is found in the cache by who comes next.
//
// On the way back through a tree, every level is still on the stack; without this, the columns of all levels would be
// alive at the leaves.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Say which slots go when, by the last that reads them. For plans that have been checked.
void find_lifetimes(Plan& plan);

}  // namespace undertow
