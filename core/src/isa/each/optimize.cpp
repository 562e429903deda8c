// Updates of parameters, element by element, by the rules of isa/update_rules.h.
#include "isa/tables.h"
#include "isa/update_rules.h"

namespace undertow::UNDERTOW_ISA {
namespace {

template <class T, class Rule>
void update(int64_t n, const void* gradient, const void* const* in, void* const* out, const double* settings) {
  constexpr int kHeld = Rule::kSlots + 1;
  static_assert(kHeld <= kMostUpdated);
  const T* g = static_cast<const T*>(gradient);
  const T* from[kHeld];
  T* to[kHeld];
  T rounded[Rule::kSettings];
  for (int j = 0; j < kHeld; ++j) {
    from[j] = static_cast<const T*>(in[j]);
    to[j] = static_cast<T*>(out[j]);
  }
  for (int j = 0; j < Rule::kSettings; ++j) rounded[j] = T(settings[j]);
#pragma GCC ivdep  // a result stands nowhere, or just where its operand stood
  for (int64_t k = 0; k < n; ++k) {
    T held[kHeld];
    for (int j = 0; j < kHeld; ++j) held[j] = from[j][k];
    Rule::update(g[k], held, rounded);
    for (int j = 0; j < kHeld; ++j) to[j][k] = held[j];
  }
}

template <class T, class Rule>
constexpr UpdateRule row(const char* name) {
  return {name, Rule::kSlots, Rule::kSettings, &update<T, Rule>};
}

}  // namespace

extern const UpdateRule kUpdatesF32[] = {UNDERTOW_UPDATES(float) {}};
extern const UpdateRule kUpdatesF64[] = {UNDERTOW_UPDATES(double) {}};

}  // namespace undertow::UNDERTOW_ISA
