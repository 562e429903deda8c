// All functions of one instruction set.
#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {

#define UNDERTOW_TEXT(name) #name
#define UNDERTOW_NAME(name) UNDERTOW_TEXT(name)

extern constinit const Functions kFunctions = {
    UNDERTOW_NAME(UNDERTOW_ISA),
    {&kArithRows, &kLogicRows, &kMathRows, &kSpecialRows, &kComplexRows},
    &kRowFunctions,
    {nullptr, nullptr, nullptr, &kGemmF32, &kGemmF64, nullptr, nullptr},
    {nullptr, nullptr, nullptr, kUpdatesF32, kUpdatesF64, nullptr, nullptr},
    &kLaneFunctions,
};

}  // namespace undertow::UNDERTOW_ISA
