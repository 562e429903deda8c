"""A simulator of quantum circuits: a state of n qubits is a vector of 2**n complex amplitudes.

The quantum Fourier transform calls itself on all qubits but the first; a variational circuit is trained by gradients.
"""

import numpy as np

import undertow as ut

QUBITS = 3


@ut.function
def apply(gate: ut.c128[2, 2], state: ut.c128[None], qubit: int) -> ut.c128[None]:
    """A gate on one qubit; the first one is the most significant bit."""
    pairs = state.reshape(2**qubit, 2, -1)
    return np.einsum("ij,ajb->aib", gate, pairs).reshape(-1)


@ut.function
def controlled_phase(angle: float, state: ut.c128[None], one: int, other: int) -> ut.c128[None]:
    bits = np.arange(len(state))
    both = (bits >> (QUBITS - 1 - one)) & (bits >> (QUBITS - 1 - other)) & 1
    return np.where(both == 1, np.exp(1j * angle), 1) * state


@ut.function
def fourier(state: ut.c128[None], first: int = 0) -> ut.c128[None]:
    if first == QUBITS:
        return state
    hadamard = np.array([[1, 1], [1, -1]], dtype=complex) / np.sqrt(2)
    state = apply(hadamard, state, first)
    for other in range(first + 1, QUBITS):
        state = controlled_phase(np.pi / 2 ** (other - first), state, other, first)
    return fourier(state, first + 1)


@ut.function
def failure(angles: ut.f64[QUBITS, 2]) -> ut.f64:
    """How far the circuit is from the state |111>."""
    state = np.zeros(2**QUBITS, dtype=complex)
    state[0] = 1
    for qubit in range(QUBITS):
        turn, phase = angles[qubit]
        c, s = np.cos(turn / 2), np.exp(1j * phase) * np.sin(turn / 2)
        state = apply(np.array([[c, -s.conj()], [s, c]]), state, qubit)
    return 1 - abs(state[-1]) ** 2


amplitudes = np.exp(1j * np.arange(8.0)) / np.sqrt(8)
reversed_bits = [0, 4, 2, 6, 1, 5, 3, 7]
assert np.allclose(fourier(amplitudes)[reversed_bits], np.fft.ifft(amplitudes, norm="ortho"))
print("chances after the transform:", np.round(np.abs(fourier(amplitudes)) ** 2, 3))

angles, slope = np.full((QUBITS, 2), 1.5), ut.value_and_grad(failure)
for _ in range(60):
    angles -= 1.0 * slope(angles)[1]
print("distance from |111> after training:", round(float(failure(angles)), 6))
assert failure(angles) < 1e-3
