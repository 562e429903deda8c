// Loops over flat arrays, and rows for the table: an operator is a type with a static `apply` on one element.
//
// For sources that are compiled once for each instruction set. All is local to its source.
#pragma once

#include <cstdint>

#include "undertow/isa.h"

// An operand may be the output itself: no iteration depends on another.
#if defined(__clang__)
#define UNDERTOW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define UNDERTOW_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Defines an operator by an expression of x, or of x and y, with result type R.
#define UNDERTOW_UNARY(Name, R, result) \
  struct Name {                         \
    template <class T>                  \
    static R apply(T x) {               \
      return result;                    \
    }                                   \
  };
#define UNDERTOW_BINARY(Name, R, result) \
  struct Name {                          \
    template <class T>                   \
    static R apply(T x, T y) {           \
      return result;                     \
    }                                    \
  };

namespace undertow::UNDERTOW_ISA {
namespace {

template <class T>
constexpr DType kDType = DType::Bool;
template <>
[[maybe_unused]] constexpr DType kDType<int32_t> = DType::I32;
template <>
[[maybe_unused]] constexpr DType kDType<int64_t> = DType::I64;
template <>
[[maybe_unused]] constexpr DType kDType<float> = DType::F32;
template <>
[[maybe_unused]] constexpr DType kDType<double> = DType::F64;

template <class F, class T, class R>
void each(const void* a, const void*, const void*, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  R* z = static_cast<R*>(out);
  UNDERTOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(F::apply(x[i]));
}

/// For expensive functions: only whole vectors, the last one padded in a buffer.
template <class F, class T>
void each_whole(const void* a, const void*, const void*, void* out, int64_t n) {
  constexpr int64_t kBlock = 64 / sizeof(T);
  const T* x = static_cast<const T*>(a);
  T* z = static_cast<T*>(out);
  const int64_t whole = n / kBlock * kBlock, rest = n - whole;
  UNDERTOW_INDEPENDENT
  for (int64_t i = 0; i < whole; ++i) z[i] = F::apply(x[i]);
  if (rest == 0) return;
  T kept[kBlock];
  UNDERTOW_INDEPENDENT
  for (int64_t i = 0; i < kBlock; ++i) {
    T value = 0;
    if (i < rest) value = x[whole + i];
    kept[i] = F::apply(value);
  }
  for (int64_t i = 0; i < rest; ++i) z[whole + i] = kept[i];
}

template <class F, class T, class R, bool OneX, bool OneY>
void each_pair(const void* a, const void* b, const void*, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  if constexpr (OneX) {
    const T first = x[0];
    UNDERTOW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(F::apply(first, y[i]));
  } else if constexpr (OneY) {
    const T second = y[0];
    UNDERTOW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(F::apply(x[i], second));
  } else {
    UNDERTOW_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(F::apply(x[i], y[i]));
  }
}

template <class T, class R = T>
constexpr FlatRow one_operand(const char* name, Flat flat) {
  return {name, {1, {kDType<T>, {}, {}}, kDType<R>, {flat}, nullptr, Fault::Code::None}};
}

template <class F, class T, class R = T>
constexpr FlatRow unary(const char* name) {
  return one_operand<T, R>(name, &each<F, T, R>);
}

template <class F, class T>
constexpr FlatRow whole_unary(const char* name) {
  return one_operand<T>(name, &each_whole<F, T>);
}

template <class F, class T, class R = T>
constexpr FlatRow binary(const char* name, Scan scan = nullptr, Fault::Code code = Fault::Code::None) {
  return {name,
          {2,
           {kDType<T>, kDType<T>, {}},
           kDType<R>,
           {&each_pair<F, T, R, false, false>, &each_pair<F, T, R, true, false>, &each_pair<F, T, R, false, true>},
           scan,
           code}};
}

}  // namespace
}  // namespace undertow::UNDERTOW_ISA
