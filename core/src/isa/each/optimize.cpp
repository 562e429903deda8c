// Parameter updates, element by element. The order of operations is that of the formulas in Python.
#include <cmath>

#include "isa/tables.h"

namespace undertow::UNDERTOW_ISA {
namespace {

/// An element of a parameter and of its slots.
template <class T, int Slots>
struct Element {
  T x;
  T slots[Slots == 0 ? 1 : Slots];
};

template <class T>
struct Sgd {
  static constexpr int kSlots = 0, kSettings = 1;
  T back;  // minus the learning rate
  explicit Sgd(const double* s) : back(-T(s[0])) {}
  void operator()(T g, Element<T, 0>& e) const { e.x += back * g; }
};

template <class T, bool IsNesterov>
struct Momentum {
  static constexpr int kSlots = 1, kSettings = 2;
  T back, momentum, rest;
  explicit Momentum(const double* s) : back(-T(s[0])), momentum(T(s[1])), rest(T(1 - s[1])) {}
  void operator()(T g, Element<T, 1>& e) const {
    const T speed = e.slots[0] + (g - rest * e.slots[0]);
    e.slots[0] = speed;
    e.x += back * (IsNesterov ? g + momentum * speed : speed);
  }
};

template <class T>
struct Adagrad {
  static constexpr int kSlots = 1, kSettings = 2;
  T back, epsilon;
  explicit Adagrad(const double* s) : back(-T(s[0])), epsilon(T(s[1])) {}
  void operator()(T g, Element<T, 1>& e) const {
    e.slots[0] += g * g;
    e.x += back * g / (std::sqrt(e.slots[0]) + epsilon);
  }
};

template <class T, bool HasMomentum>
struct RmsProp {
  static constexpr int kSlots = HasMomentum ? 2 : 1, kSettings = HasMomentum ? 4 : 3;
  T back, fresh, epsilon, rest;
  explicit RmsProp(const double* s)
      : back(-T(s[0])), fresh(T(1 - s[1])), epsilon(T(s[2])), rest(T(HasMomentum ? 1 - s[3] : 0)) {}
  void operator()(T g, Element<T, kSlots>& e) const {
    e.slots[0] += fresh * (g * g - e.slots[0]);
    T step = g / (std::sqrt(e.slots[0]) + epsilon);
    if constexpr (HasMomentum) step = e.slots[1] += step - rest * e.slots[1];
    e.x += back * step;
  }
};

template <class T>
struct Adam {
  static constexpr int kSlots = 2, kSettings = 6;
  T back, of_mean, of_squares, epsilon, mean_left, squares_left;
  explicit Adam(const double* s)
      : back(-T(s[0])),
        of_mean(T(1 - s[1])),
        of_squares(T(1 - s[2])),
        epsilon(T(s[3])),
        mean_left(T(s[4])),
        squares_left(T(s[5])) {}
  void operator()(T g, Element<T, 2>& e) const {
    e.slots[0] += of_mean * (g - e.slots[0]);
    e.slots[1] += of_squares * (g * g - e.slots[1]);
    e.x += back * (e.slots[0] / mean_left / (std::sqrt(e.slots[1] / squares_left) + epsilon));
  }
};

template <class T, class Rule>
void update(int64_t n, const void* gradient, const void* const* in, void* const* out, const double* settings) {
  constexpr int kSlots = Rule::kSlots;
  const Rule rule(settings);
  const T* g = static_cast<const T*>(gradient);
  const T* x = static_cast<const T*>(in[0]);
  const T* first = kSlots > 0 ? static_cast<const T*>(in[1]) : nullptr;
  const T* second = kSlots > 1 ? static_cast<const T*>(in[2]) : nullptr;
  T* x_out = static_cast<T*>(out[0]);
  T* first_out = kSlots > 0 ? static_cast<T*>(out[1]) : nullptr;
  T* second_out = kSlots > 1 ? static_cast<T*>(out[2]) : nullptr;
#pragma GCC ivdep  // a result overlaps no operand, or is exactly its own
  for (int64_t k = 0; k < n; ++k) {
    Element<T, kSlots> e;
    e.x = x[k];
    if constexpr (kSlots > 0) e.slots[0] = first[k];
    if constexpr (kSlots > 1) e.slots[1] = second[k];
    rule(g[k], e);
    x_out[k] = e.x;
    if constexpr (kSlots > 0) first_out[k] = e.slots[0];
    if constexpr (kSlots > 1) second_out[k] = e.slots[1];
  }
}

template <class T, class Rule>
constexpr UpdateRule row(const char* name) {
  return {name, Rule::kSlots, Rule::kSettings, &update<T, Rule>};
}

}  // namespace

#define UNDERTOW_UPDATES(T)                         \
  {                                                 \
      row<T, Sgd<T>>("sgd"),                        \
      row<T, Momentum<T, false>>("momentum"),       \
      row<T, Momentum<T, true>>("nesterov"),        \
      row<T, Adagrad<T>>("adagrad"),                \
      row<T, RmsProp<T, false>>("rmsprop"),         \
      row<T, RmsProp<T, true>>("rmsprop_momentum"), \
      row<T, Adam<T>>("adam")}

extern const UpdateRule kUpdatesF32[kUpdates] = UNDERTOW_UPDATES(float);
extern const UpdateRule kUpdatesF64[kUpdates] = UNDERTOW_UPDATES(double);

}  // namespace undertow::UNDERTOW_ISA
