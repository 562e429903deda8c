// The functions of LAPACK that kernels call, from the library that OpenBLAS comes in, by dtype.
//
// Matrices are column-major. A Fortran compiler passes the lengths of characters behind all other arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow::lapack {

using Int = int32_t;

#define UNDERTOW_LAPACK(T, letter)                                                                                   \
  extern "C" {                                                                                                       \
  void scipy_##letter##gesv_(const Int* n, const Int* k, T* a, const Int* lda, Int* pivots, T* b, const Int* ldb,    \
                             Int* info);                                                                             \
  void scipy_##letter##getrf_(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);             \
  void scipy_##letter##potrf_(const char* half, const Int* n, T* a, const Int* lda, Int* info, size_t);              \
  void scipy_##letter##geqrf_(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work, const Int* lwork,   \
                              Int* info);                                                                            \
  void scipy_##letter##orgqr_(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, T* work, \
                              const Int* lwork, Int* info);                                                          \
  void scipy_##letter##syevd_(const char* job, const char* half, const Int* n, T* a, const Int* lda, T* values,      \
                              T* work, const Int* lwork, Int* whole, const Int* lwhole, Int* info, size_t, size_t);  \
  void scipy_##letter##gesdd_(const char* job, const Int* m, const Int* n, T* a, const Int* lda, T* values, T* u,    \
                              const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Int* whole,         \
                              Int* info, size_t);                                                                    \
  }                                                                                                                  \
  inline void gesv(Int n, Int k, T* a, Int* pivots, T* b, Int& info) {                                               \
    scipy_##letter##gesv_(&n, &k, a, &n, pivots, b, &n, &info);                                                      \
  }                                                                                                                  \
  inline void getrf(Int n, T* a, Int* pivots, Int& info) { scipy_##letter##getrf_(&n, &n, a, &n, pivots, &info); }   \
  inline void potrf(Int n, T* a, Int& info) { scipy_##letter##potrf_("L", &n, a, &n, &info, 1); }                    \
  inline void geqrf(Int m, Int n, T* a, T* tau, T* work, Int lwork, Int& info) {                                     \
    scipy_##letter##geqrf_(&m, &n, a, &m, tau, work, &lwork, &info);                                                 \
  }                                                                                                                  \
  inline void orgqr(Int m, Int n, T* a, const T* tau, T* work, Int lwork, Int& info) {                               \
    scipy_##letter##orgqr_(&m, &n, &n, a, &m, tau, work, &lwork, &info);                                             \
  }                                                                                                                  \
  inline void syevd(bool lower, Int n, T* a, T* values, T* work, Int lwork, Int* whole, Int lwhole, Int& info) {     \
    scipy_##letter##syevd_("V", lower ? "L" : "U", &n, a, &n, values, work, &lwork, whole, &lwhole, &info, 1, 1);    \
  }                                                                                                                  \
  inline void gesdd(Int m, Int n, Int fewest, T* a, T* values, T* u, T* vt, T* work, Int lwork, Int* whole,          \
                    Int& info) {                                                                                     \
    scipy_##letter##gesdd_("S", &m, &n, a, &m, values, u, &m, vt, &fewest, work, &lwork, whole, &info, 1);           \
  }

UNDERTOW_LAPACK(float, s)
UNDERTOW_LAPACK(double, d)
#undef UNDERTOW_LAPACK

}  // namespace undertow::lapack
