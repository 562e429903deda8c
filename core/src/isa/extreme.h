// The smaller and the larger of two numbers, for sources that are compiled once for each instruction set.
//
// IEEE 754-2019, minimum and maximum: nan if either is, and -0 is smaller than 0. Only zeros are equal with different
// bits, so that one operation on the bits of equal numbers finds the sign.
#pragma once

#include <type_traits>

#include "isa/math.h"

namespace undertow::UNDERTOW_ISA {
namespace {

struct Minimum {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return x < y ? x : y;
    } else {
      const T other = x < y || x != x ? x : y;
      return x == y ? from_bits<T>(bits_of(x) | bits_of(y)) : other;
    }
  }
};

struct Maximum {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return x > y ? x : y;
    } else {
      const T other = x > y || x != x ? x : y;
      return x == y ? from_bits<T>(bits_of(x) & bits_of(y)) : other;
    }
  }
};

}  // namespace
}  // namespace undertow::UNDERTOW_ISA
