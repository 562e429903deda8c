// The tables that the sources of one instruction set define; isa/each/table.cpp joins them.
#pragma once

#include <iterator>

#include "undertow/isa.h"

namespace undertow::UNDERTOW_ISA {

extern const FlatRows kArithRows;
extern const FlatRows kLogicRows;
extern const FlatRows kMathRows;
extern const FlatRows kComplexRows;
extern const FlatRows kSpecialRows;
extern const RowFunctions kRowFunctions;
extern const GemmFunctions kGemmF32;
extern const GemmFunctions kGemmF64;
extern const UpdateRule kUpdatesF32[];
extern const UpdateRule kUpdatesF64[];
extern const LaneFunctions kLaneFunctions;

extern const Functions kFunctions;

}  // namespace undertow::UNDERTOW_ISA
