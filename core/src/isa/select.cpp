// Which instruction set this machine has, and the functions for it.
#include <cstdlib>

#include "undertow/isa.h"

namespace undertow {

namespace baseline {
extern const Functions kFunctions;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Functions kFunctions;
}
namespace avx512 {
extern const Functions kFunctions;
}
#endif

namespace {

struct Choice {
  const Functions* functions;
  bool runs;
};

/// From the best to the baseline.
std::span<const Choice> choices() {
#if defined(__x86_64__)
  // The features that -march=x86-64-v3 and -v4 allow the compiler.
  static const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  static const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl");
  static const Choice all[] = {{&avx512::kFunctions, v4}, {&avx2::kFunctions, v3}, {&baseline::kFunctions, true}};
#else
  static const Choice all[] = {{&baseline::kFunctions, true}};
#endif
  return all;
}

const Functions& choose() {
  if (const char* wanted = std::getenv("UNDERTOW_ISA"))
    if (const Functions* found = functions(wanted)) return *found;
  for (const Choice& choice : choices())
    if (choice.runs) return *choice.functions;
  return *choices().back().functions;
}

}  // namespace

const Functions* functions(std::string_view name) {
  for (const Choice& choice : choices())
    if (choice.runs && name == choice.functions->name) return choice.functions;
  return nullptr;
}

const Functions& functions() {
  static const Functions& chosen = choose();
  return chosen;
}

const Elementwise* find_elementwise(const Functions& isa, std::string_view op, std::span<const Type> inputs,
                                    DType output) {
  for (const FlatRows* family : isa.flat) {
    for (int k = 0; k < family->count; ++k) {
      const FlatRow& row = family->rows[k];
      if (op != row.name || row.op.output != output || row.op.arity != static_cast<int>(inputs.size())) continue;
      bool fits = true;
      for (int operand = 0; operand < row.op.arity; ++operand)
        fits = fits && row.op.inputs[operand] == inputs[operand].dtype;
      if (fits) return &row.op;
    }
  }
  return nullptr;
}

}  // namespace undertow
