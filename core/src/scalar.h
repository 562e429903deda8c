// Numbers in cells of 8 bytes: the low ones hold the number, the others are zero.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace undertow {

template <class T>
T as(uint64_t cell) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(cell);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(cell));
  else
    return static_cast<T>(cell);
}

template <class T>
uint64_t cell_of(T value) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, int32_t>)
    return static_cast<uint32_t>(value);
  else
    return static_cast<uint64_t>(value);
}

/// Whole division towards minus infinity, y not zero. The least number has no opposite: it wraps.
template <class T>
T floor_divide(T x, T y) {
  if (y == -1) return -x;
  const T quotient = x / y, rest = x % y;
  return rest != 0 && ((rest < 0) != (y < 0)) ? quotient - 1 : quotient;
}

/// What it leaves: of the sign of y.
template <class T>
T remainder(T x, T y) {
  if (y == -1) return 0;
  const T rest = x % y;
  return rest != 0 && ((rest < 0) != (y < 0)) ? rest + y : rest;
}

}  // namespace undertow
