// Parameter updates, element by element, by the rules of isa/update_rules.h.
#include "isa/tables.h"
#include "isa/update_rules.h"

namespace undertow::UNDERTOW_ISA {
namespace {

template <class T, class Rule>
void update(int64_t n, const void* gradient, const void* const* in, void* const* out, const double* settings) {
  constexpr int kSlots = Rule::kSlots;
  static_assert(kSlots < kMostUpdated && kMostUpdated == 3);
  T rounded[Rule::kSettings];
  for (int k = 0; k < Rule::kSettings; ++k) rounded[k] = T(settings[k]);
  // Pointers of their own: in arrays they are read anew for the rest of a short row.
  const T* g = static_cast<const T*>(gradient);
  const T* x = static_cast<const T*>(in[0]);
  const T* first = kSlots > 0 ? static_cast<const T*>(in[1]) : nullptr;
  const T* second = kSlots > 1 ? static_cast<const T*>(in[2]) : nullptr;
  T* x_out = static_cast<T*>(out[0]);
  T* first_out = kSlots > 0 ? static_cast<T*>(out[1]) : nullptr;
  T* second_out = kSlots > 1 ? static_cast<T*>(out[2]) : nullptr;
#pragma GCC ivdep  // a result overlaps no operand, or is exactly its own
  for (int64_t k = 0; k < n; ++k) {
    T held[kMostUpdated];
    held[0] = x[k];
    if constexpr (kSlots > 0) held[1] = first[k];
    if constexpr (kSlots > 1) held[2] = second[k];
    Rule::update(g[k], held, rounded);
    x_out[k] = held[0];
    if constexpr (kSlots > 0) first_out[k] = held[1];
    if constexpr (kSlots > 1) second_out[k] = held[2];
  }
}

template <class T, class Rule>
constexpr UpdateRule row(const char* name) {
  return {name, Rule::kSlots, Rule::kSettings, &update<T, Rule>};
}

}  // namespace

extern const UpdateRule kUpdatesF32[] = {UNDERTOW_UPDATES(float){}};
extern const UpdateRule kUpdatesF64[] = {UNDERTOW_UPDATES(double){}};

}  // namespace undertow::UNDERTOW_ISA
