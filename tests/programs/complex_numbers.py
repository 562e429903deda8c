"""Complex numbers: literals, `cmath`, arrays, transforms, circuits, and derivatives."""

from __future__ import annotations

import cmath

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def fourier(x: ut.c128[None]) -> ut.c128[None]:
    """Cooley and Tukey."""
    n = len(x)
    if n == 1:
        return x
    even, odd = fourier(x[::2]), fourier(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


@ut.function
def escape(c: complex, z: complex, n: int) -> int:
    if n == 40 or abs(z) > 2:
        return n
    return escape(c, z * z + c, n + 1)


@ut.function
def polynomial(coefficients: ut.c128[None], z: complex, n: int) -> complex:
    if n == 0:
        return 0j
    return polynomial(coefficients, z, n - 1) * z + coefficients[n - 1]


@ut.function
def roots_of_unity(n: int):
    total, product = 0j, complex(1, 0)
    for k in range(n):
        root = cmath.exp(2j * cmath.pi * k / n)
        total += root
        product = product * root
    return total, product, product.real, total.imag, (total + 1).conjugate()


@ut.function
def newton(z: complex, n: int) -> complex:
    """Towards a root of z**3 - 1."""
    return z if n == 0 else newton(z - (z**3 - 1) / (3 * z**2), n - 1)


@ut.function
def elementary(z: complex):
    return (
        cmath.sqrt(z), cmath.log(z), cmath.sin(z), cmath.cos(z), cmath.tanh(z), cmath.phase(z), cmath.polar(z),
        cmath.rect(2.0, z.real), cmath.log(z, 2), cmath.atan(z), z**0.5, 1j**z, 2 - z, 1 / z, z == z.conjugate(),
        complex(z.imag, z.real), -z, +z, bool(z), isinstance(z, complex), cmath.isclose(z, z + 1e-13), abs(z),
    )  # fmt: skip


@ut.function
def of_arrays(x: ut.c64[None], m: ut.c128[2, 2]):
    return (
        x.sum(), x.prod(), x.mean(), np.cumsum(x), np.abs(x), np.angle(x), x.conj(), x.real, x.imag, x[::-1] * 2j,
        m @ m, np.vdot(x, x), np.kron(m, m), np.trace(m), np.where(x.real > 0, x, 0), np.stack([x, x]), x / 3 + 1,
        np.einsum("ij,jk,kl->il", m, m.conj().T, m), np.linalg.norm(m), x.std(), np.outer(x, x), x == x[0],
        np.roll(x, 1), np.tensordot(m, m, axes=([0], [1])), np.zeros(2, complex), np.ones(2, np.complex64) * 1j,
        np.exp(1j * x.real), x.astype(np.complex128), np.take(x, np.array([1, 0])), np.eye(2) * (1 + 1j),
        m.reshape(-1)[1:3], np.isnan(x),
    )  # fmt: skip


@ut.function
def changed(x: ut.c128[None], n: int) -> ut.c128[None]:
    """A table that is written in place, in a loop and down a recursion."""
    if n == 0:
        return x
    for k in range(len(x)):
        if k % 2 == 0:
            x[k] += 1j * n
        else:
            x[k] = x[k - 1].conjugate()
    return changed(x, n - 1)


@ut.function
def listed(n: int):
    found = []
    for k in range(n):
        if k % 3:
            found.append(complex(k, -k))
    return sum(found), len(found)


@ut.function
def apply(state: ut.c128[8], gate: ut.c128[2, 2], qubit: int, at: int = 0) -> ut.c128[8]:
    """A gate on one of three qubits."""
    if qubit == at:
        cube = np.tensordot(gate, state.reshape(2, 4), axes=1)
        return cube.reshape(8)
    turned = np.moveaxis(state.reshape(2, 2, 2), 0, -1).reshape(8)
    back = apply(turned, gate, qubit, at + 1)
    return np.moveaxis(back.reshape(2, 2, 2), -1, 0).reshape(8)


@ut.function
def circuit(angles: ut.f64[None], layers: int) -> ut.f64[8]:
    hadamard = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    state = np.zeros(8, dtype=complex)
    state[0] = 1
    for layer in range(layers):
        for qubit in range(3):
            turn = np.array([[1, 0], [0, 0]]) + np.exp(1j * angles[layer]) * np.array([[0, 0], [0, 1]])
            state = apply(state, hadamard @ turn, qubit)
    return np.abs(state) ** 2


@ut.function
def power_of(z: complex, n: int) -> complex:
    return 1 + 0j if n == 0 else z * power_of(z, n - 1)


@ut.function
def modulus(z: complex, n: int) -> float:
    return abs(power_of(z, n))


@ut.function
def modulus_slope(z: complex, n: int):
    return ut.grad(modulus)(z, n)


@ut.function
def energy(x: ut.c128[None]) -> ut.f64:
    y = fourier(x)
    return (np.abs(y[1:]) ** 2).sum() + y[0].real


@ut.function
def energy_slope(x: ut.c128[None]):
    return ut.grad(energy)(x)


@ut.function
def turned(angle: ut.f64) -> ut.f64:
    """One qubit between two Hadamard gates."""
    hadamard = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    state = hadamard @ (np.exp(1j * angle * np.arange(2)) * (hadamard @ np.array([1, 0])))
    return (state[1] * state[1].conj()).real


@ut.function
def turned_slope(angle: ut.f64):
    return ut.grad(turned)(angle)


@ut.function
def convolved(a: ut.f64[None], b: ut.f64[None]):
    n = len(a) + len(b) - 1
    return np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)


@ut.function
def transforms(x: ut.c128[None], m, n: int):
    return (
        np.fft.fft(x), np.fft.ifft(x, norm="ortho"), np.fft.fft(x, n), np.fft.fft(x, 5, norm="forward"), np.fft.rfft(m),
        np.fft.irfft(x), np.fft.irfft(x, n), np.fft.fft2(m), np.fft.ifft2(m, s=(2, 3)), np.fft.fftn(m), np.fft.ifftn(m),
        np.fft.rfft2(m), np.fft.irfft2(m), np.fft.rfftn(m), np.fft.irfftn(m), np.fft.fft(m, axis=0), np.fft.fftfreq(n),
        np.fft.rfftfreq(n, 0.1), np.fft.fftshift(x), np.fft.ifftshift(m, axes=1), np.fft.fft(m.astype(np.float32)),
    )  # fmt: skip


@ut.function
def cubed(a: ut.f64[None], b: ut.f64[None]) -> ut.f64:
    return (convolved(a, b) ** 3).sum()


@ut.function
def convolved_slope(a: ut.f64[None], b: ut.f64[None]):
    return ut.grad(cubed)(a, b)


def _energy_slope(x: np.ndarray) -> np.ndarray:
    """With JAX's convention, (d/da) - i (d/db) at a + ib."""
    y = np.fft.fft(x)
    y[0] = 0
    return 2 * np.fft.fft(np.conj(y)) + 1


_SIGNAL = np.array([1, 2j, -1.5 + 1j, 0.5, 3, -2j, 1 + 1j, 0.25])
_MATRIX = np.array([[1, 1j], [0.5 - 1j, 2]])


@ut.function
def equations(a: ut.c128[None, None], b: ut.c128[None]):
    hermitian = a @ a.conj().T + 2 * np.eye(len(a))
    tall = a[:, :2] + 0.5j
    solved = np.linalg.solve(hermitian, b), np.linalg.inv(hermitian), np.linalg.pinv(tall), np.linalg.lstsq(tall, b)[0]
    return solved, np.linalg.cholesky(hermitian), np.linalg.cholesky(hermitian, upper=True), np.linalg.eigvalsh(a)


@ut.function
def determinants(a: ut.c128[2, 3, 3]):
    sign, size = np.linalg.slogdet(a)
    values = np.linalg.eigvalsh(a, UPLO="U"), np.linalg.svdvals(a[:, :2]), np.linalg.matrix_rank(a)
    return (
        np.linalg.det(a),
        sign,
        size,
        values,
        np.linalg.norm(a[0], 2),
        np.linalg.cond(a[0]),
        np.linalg.det(a[:, :0, :0]),
    )


@ut.function
def evolved(hamiltonian: ut.c128[2, 2], state: ut.c128[2], steps: ut.i64) -> ut.c128[2]:
    """Crank-Nicolson: each step is unitary."""
    if steps == 0:
        return state
    half = 0.05j * hamiltonian
    after = np.linalg.solve(np.eye(2) + half, (np.eye(2) - half) @ state)
    return evolved(hamiltonian, after, steps - 1)


@ut.function
def of_a_singular_matrix(a: ut.c128[2, 2]) -> ut.c128[2, 2]:
    return np.linalg.inv(a)


_PARTS = np.random.default_rng(0).normal(size=(2, 2, 3, 3))
_STACK = _PARTS[0] + 1j * _PARTS[1]

PROGRAMS = [
    program(fourier, (_SIGNAL,), (_SIGNAL[:1],), (_SIGNAL[:4],), tags="recursive arrays"),
    program(escape, (0.3 + 0.5j, 0j, 0), (1 + 1j, 0j, 0), (-0.1 + 0.65j, 0.1j, 3)),
    program(
        escape, (np.array([0.3 + 0.5j, 1 + 1j, -1]), np.zeros(3, complex), np.zeros(3, int)), name="escapes", by="map",
        tags="recursive map",
    ),
    program(polynomial, (_SIGNAL, 0.5 - 1j, 8), (_SIGNAL, 2, 0), tags="recursive arrays"),
    program(roots_of_unity, (3,), (8,), (1,), tags="loop"),
    program(newton, (1 + 1j, 8), (-2j, 3), (0.5, 4)),
    program(elementary, (0.3 - 0.7j,), (2 + 0.5j,), tags="branch"),
    program(of_arrays, (_SIGNAL.astype(np.complex64), _MATRIX), tags="arrays"),
    program(changed, (_SIGNAL, 3), (_SIGNAL[:1], 1), tags="recursive loop arrays"),
    program(listed, (0,), (7,), tags="loop branch"),
    program(circuit, (np.array([0.3, 1.1]), 2), (np.array([0.5]), 1), (np.zeros(0), 0), tags="recursive loop arrays"),
    program(
        modulus_slope, (1 + 1j, 3), (0.5j, 1), tags="gradient recursive",
        stated=[3 * np.sqrt(2) ** 2 * np.conj(1 + 1j) / np.sqrt(2), -1j],
    ),
    program(energy_slope, (_SIGNAL,), tags="gradient recursive arrays", stated=[_energy_slope(_SIGNAL)]),
    program(convolved, (np.arange(5.0), np.array([1.0, -2, 0.5])), tags="arrays"),
    program(
        convolved_slope, (np.arange(5.0), np.array([1.0, -2, 0.5])), tags="gradient arrays",
        stated=[np.correlate(3 * np.convolve(np.arange(5.0), [1, -2, 0.5]) ** 2, [1, -2, 0.5])],
    ),
    program(
        transforms, (_SIGNAL[:7], np.arange(12.0).reshape(3, 4) ** 2, 9),
        (_SIGNAL, np.cos(np.arange(10.0)).reshape(2, 5), 4), tags="arrays",
    ),
    program(turned_slope, (0.3,), tags="gradient", stated=[np.sin(0.3) / 2]),
    program(
        equations, (_STACK[0], np.array([1.0, 2j, -1])), (_STACK[1, 1:, 1:], np.array([1j, 0.5])), tags="arrays"
    ),
    program(determinants, (_STACK,), tags="arrays"),
    program(evolved, (np.array([[1.0, 2j], [-2j, 0.5]]), np.array([1.0 + 0j, 0.0]), 5), tags="recursive arrays"),
    program(of_a_singular_matrix, (np.array([[1.0, 1j], [1j, -1.0]]),), tags="fault arrays"),
]  # fmt: skip
