// Operators on numbers that have codes of their own.
#pragma once

#include <string_view>

#include "narrow/program.h"
#include "undertow/elementwise.h"

namespace undertow {

/// The code of an operator, all operands being cells; Flat, if it has none of its own.
NarrowCode code_of(std::string_view op, const Elementwise& each);

/// The code that gives the same with the two operands in the other order; Flat, if there is none.
NarrowCode swapped(NarrowCode code);

}  // namespace undertow
