// Dividing lanes at a branch (compress), and merging them again (expand).
#include "isa/flat.h"
#include "isa/tables.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace undertow::UNDERTOW_ISA {
namespace {

#if defined(__AVX512F__)

// Intrinsics, because compilers do not vectorise loops that compress or expand.
constexpr int kFour = 16, kEight = 8;  // lanes of a vector

/// A mask of the lanes that exist, at most a vector of them.
__mmask16 first(int64_t count) {
  return count >= kFour ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << count) - 1);
}

/// A mask of the next lanes that take the first side.
__mmask16 taken(const uint8_t* pred, __mmask16 lanes) {
  const __m128i bytes = _mm_maskz_loadu_epi8(lanes, pred);
  return _mm_test_epi8_mask(bytes, bytes);
}

int64_t divide(const uint8_t* pred, int64_t n, int32_t* yes, int32_t* no) {
  const __m512i step = _mm512_set1_epi32(kFour);
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t there = 0;
  for (int64_t k = 0; k < n; k += kFour) {
    const __mmask16 lanes = first(n - k), side = taken(pred + k, lanes);
    _mm512_storeu_si512(yes + there, _mm512_maskz_compress_epi32(side, numbers));
    _mm512_storeu_si512(no + (k - there), _mm512_maskz_compress_epi32(lanes & static_cast<__mmask16>(~side), numbers));
    there += __builtin_popcount(side);
    numbers = _mm512_add_epi32(numbers, step);
  }
  return there;
}

template <class T>
void part(const uint8_t* pred, bool is_yes, int64_t n, const void* from, void* out) {
  constexpr int kLanes = sizeof(T) == 4 ? kFour : kEight;
  const T* values = static_cast<const T*>(from);
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < n; k += kLanes) {
    const __mmask16 lanes = first(n - k < kLanes ? n - k : kLanes), yes = taken(pred + k, lanes);
    const __mmask16 side = is_yes ? yes : static_cast<__mmask16>(lanes & ~yes);
    // Not a whole vector: the next column may hold what an earlier phase wrote.
    const int count = __builtin_popcount(side);
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_epi32(to, first(count),
                               _mm512_maskz_compress_epi32(side, _mm512_maskz_loadu_epi32(lanes, values + k)));
    else
      _mm512_mask_storeu_epi64(
          to, static_cast<__mmask8>(first(count)),
          _mm512_maskz_compress_epi64(static_cast<__mmask8>(side),
                                      _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), values + k)));
    to += count;
  }
}

template <class T>
void meet(const uint8_t* pred, int64_t n, const void* yes, bool one_yes, const void* no, bool one_no, void* out) {
  constexpr int kLanes = sizeof(T) == 4 ? kFour : kEight;
  const T *a = static_cast<const T*>(yes), *b = static_cast<const T*>(no);
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < n; k += kLanes) {
    const __mmask16 lanes = first(n - k < kLanes ? n - k : kLanes), side = taken(pred + k, lanes);
    const __mmask16 other = static_cast<__mmask16>(lanes & ~side);
    const int here = __builtin_popcount(side), there = __builtin_popcount(other);
    if constexpr (sizeof(T) == 4) {
      const auto next = [](const T* from, bool is_one, __mmask16 where, int count) {
        if (is_one) return _mm512_set1_epi32(static_cast<int>(*from));
        return _mm512_maskz_expand_epi32(where, _mm512_maskz_loadu_epi32(first(count), from));
      };
      const __m512i found = _mm512_mask_mov_epi32(next(b, one_no, other, there), side, next(a, one_yes, side, here));
      _mm512_mask_storeu_epi32(to + k, lanes, found);
    } else {
      const auto next = [](const T* from, bool is_one, __mmask16 where, int count) {
        if (is_one) return _mm512_set1_epi64(static_cast<long long>(*from));
        return _mm512_maskz_expand_epi64(static_cast<__mmask8>(where),
                                         _mm512_maskz_loadu_epi64(static_cast<__mmask8>(first(count)), from));
      };
      const __m512i found = _mm512_mask_mov_epi64(next(b, one_no, other, there), static_cast<__mmask8>(side),
                                                  next(a, one_yes, side, here));
      _mm512_mask_storeu_epi64(to + k, static_cast<__mmask8>(lanes), found);
    }
    if (!one_yes) a += here;
    if (!one_no) b += there;
  }
}

#else

int64_t divide(const uint8_t* pred, int64_t n, int32_t* yes, int32_t* no) {
  int64_t there = 0;
  for (int64_t k = 0; k < n; ++k) {
    yes[there] = no[k - there] = static_cast<int32_t>(k);
    there += pred[k] != 0;
  }
  return there;
}

template <class T>
void part(const uint8_t* pred, bool is_yes, int64_t n, const void* from, void* out) {
  const T* values = static_cast<const T*>(from);
  T* to = static_cast<T*>(out);
  while (n > 0 && (pred[n - 1] != 0) != is_yes) --n;  // behind the last one nothing may be written
  for (int64_t k = 0; k < n; ++k) {
    *to = values[k];
    to += (pred[k] != 0) == is_yes;
  }
}

template <class T>
void meet(const uint8_t* pred, int64_t n, const void* yes, bool one_yes, const void* no, bool one_no, void* out) {
  const T* sides[2] = {static_cast<const T*>(no), static_cast<const T*>(yes)};
  const int64_t steps[2] = {one_no ? 0 : 1, one_yes ? 0 : 1};
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) {
    const int side = pred[k] != 0;
    to[k] = *sides[side];
    sides[side] += steps[side];
  }
}

#endif

}  // namespace

extern const LaneFunctions kLaneFunctions = {
    &divide, {&part<uint32_t>, &part<uint64_t>}, {&meet<uint32_t>, &meet<uint64_t>}};

}  // namespace undertow::UNDERTOW_ISA
