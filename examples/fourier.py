"""The fast Fourier transform of Cooley and Tukey on complex numbers: two halves, transformed by the function itself.

Twice: as lists of Python's numbers suggest it, one frequency at a time with `cmath`, and as NumPy does, whole rows at
once. Then it multiplies polynomials, and a gradient goes through it.
"""

import cmath

import numpy as np

import undertow as ut


@ut.function
def fft(x: ut.c128[None]) -> ut.c128[None]:
    n = len(x)
    if n == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


@ut.function
def fft_in_python(x: ut.c128[None]) -> ut.c128[None]:
    n = len(x)
    if n == 1:
        return x.copy()
    even, odd = fft_in_python(x[::2]), fft_in_python(x[1::2])
    out = np.zeros(n, dtype=complex)
    for k in range(n // 2):
        t = cmath.exp(-2j * cmath.pi * k / n) * odd[k]
        out[k] = even[k] + t
        out[k + n // 2] = even[k] - t
    return out


@ut.function
def product(a: ut.f64[8], b: ut.f64[8]) -> ut.f64[None]:
    """The product of two polynomials of small degree, by their values at the roots of unity."""
    return np.fft.ifft(fft(a + 0j) * fft(b + 0j)).real


@ut.function
def energy(x: ut.c128[None]) -> ut.f64:
    return sum(abs(z) ** 2 for z in fft(x))


signal = np.random.default_rng(0).normal(size=16) + 1j
assert np.allclose(fft(signal), np.fft.fft(signal)) and np.allclose(fft_in_python(signal), np.fft.fft(signal))
print("fft([1, 2j, -1, 1 + 1j]) =", np.round(fft(np.array([1, 2j, -1, 1 + 1j])), 3))

p, q = np.array([1.0, 2, 0, 0, 0, 0, 0, 0]), np.array([3.0, -1, 4, 0, 0, 0, 0, 0])  # 1 + 2x, 3 - x + 4x**2
assert np.allclose(product(p, q)[:4], np.convolve(p[:2], q[:3]))
print("(1 + 2x) (3 - x + 4x**2) has the coefficients", np.round(product(p, q)[:4], 6))

# Parseval: the energy is 16 times that of the signal, so its gradient is 32 times the conjugate (JAX's convention).
assert np.allclose(ut.grad(energy)(signal), 32 * signal.conj())
