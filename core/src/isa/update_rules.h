// clang-format off
// Generated from src/undertow/api/update_rules.py by `python -m undertow.api.update_header`: do not edit.
//
// A rule adds to an element of a parameter, held[0], and to those of its slots, which come after it.
#pragma once

#include <cmath>

namespace undertow::UNDERTOW_ISA {

template <class T>
struct Sgd {
  static constexpr int kSlots = 0, kSettings = 1;
  static void update(T g, T* held, const T* settings) {
    const T rate = settings[0];
    held[0] += ((-rate) * g);
  }
};

template <class T>
struct Momentum {
  static constexpr int kSlots = 1, kSettings = 2;
  static void update(T g, T* held, const T* settings) {
    const T speed = held[1];
    const T rate = settings[0], friction = settings[1];
    const T to_speed = (g - (friction * speed));
    held[0] += ((-rate) * (speed + to_speed));
    held[1] += to_speed;
  }
};

template <class T>
struct Nesterov {
  static constexpr int kSlots = 1, kSettings = 3;
  static void update(T g, T* held, const T* settings) {
    const T speed = held[1];
    const T rate = settings[0], friction = settings[1], momentum = settings[2];
    const T to_speed = (g - (friction * speed));
    held[0] += ((-rate) * (g + (momentum * (speed + to_speed))));
    held[1] += to_speed;
  }
};

template <class T>
struct Adagrad {
  static constexpr int kSlots = 1, kSettings = 2;
  static void update(T g, T* held, const T* settings) {
    const T squares = held[1];
    const T rate = settings[0], epsilon = settings[1];
    const T to_squares = (g * g);
    held[0] += (((-rate) * g) / (std::sqrt((squares + to_squares)) + epsilon));
    held[1] += to_squares;
  }
};

template <class T>
struct Rmsprop {
  static constexpr int kSlots = 1, kSettings = 3;
  static void update(T g, T* held, const T* settings) {
    const T squares = held[1];
    const T rate = settings[0], fresh = settings[1], epsilon = settings[2];
    const T to_squares = (fresh * ((g * g) - squares));
    held[0] += (((-rate) * g) / (std::sqrt((squares + to_squares)) + epsilon));
    held[1] += to_squares;
  }
};

template <class T>
struct RmspropMomentum {
  static constexpr int kSlots = 2, kSettings = 4;
  static void update(T g, T* held, const T* settings) {
    const T squares = held[1], speed = held[2];
    const T rate = settings[0], fresh = settings[1], epsilon = settings[2], friction = settings[3];
    const T to_squares = (fresh * ((g * g) - squares));
    const T subtract_2 = ((g / (std::sqrt((squares + to_squares)) + epsilon)) - (friction * speed));
    held[0] += ((-rate) * (speed + subtract_2));
    held[1] += to_squares;
    held[2] += subtract_2;
  }
};

template <class T>
struct Adam {
  static constexpr int kSlots = 2, kSettings = 4;
  static void update(T g, T* held, const T* settings) {
    const T mean = held[1], squares = held[2];
    const T rate = settings[0], fresh_mean = settings[1], fresh_squares = settings[2], epsilon = settings[3];
    const T multiply = (fresh_mean * (g - mean));
    const T to_squares = (fresh_squares * ((g * g) - squares));
    held[0] += (((-rate) * (mean + multiply)) / (std::sqrt((squares + to_squares)) + epsilon));
    held[1] += multiply;
    held[2] += to_squares;
  }
};

#define UNDERTOW_UPDATES(T) \
  row<T, Sgd<T>>("sgd"), \
  row<T, Momentum<T>>("momentum"), \
  row<T, Nesterov<T>>("nesterov"), \
  row<T, Adagrad<T>>("adagrad"), \
  row<T, Rmsprop<T>>("rmsprop"), \
  row<T, RmspropMomentum<T>>("rmsprop_momentum"), \
  row<T, Adam<T>>("adam"),

}  // namespace undertow::UNDERTOW_ISA
