"""Linear algebra: equations and factorisations, of one matrix and of batches; in recursion, loops, maps, gradients."""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def block_inverse(a: ut.f64[None, None]) -> ut.f64[None, None]:
    """By halves, as in every textbook; the matrix gets smaller at each call."""
    n = len(a)
    if n <= 2:
        return np.linalg.inv(a)
    h = n // 2
    p, q, r, s = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    pi = block_inverse(p)
    si = block_inverse(s - r @ pi @ q)
    return np.block([[pi + pi @ q @ si @ r @ pi, -pi @ q @ si], [-si @ r @ pi, si]])


@ut.function
def kalman(x: ut.f64[2], cov: ut.f64[2, 2], seen: ut.f64[None, 1], k: ut.i64) -> tuple[ut.f64[2], ut.f64[2, 2]]:
    """A step for each observation: prediction, then correction by a solution of equations."""
    if k >= len(seen):
        return x, cov
    step = np.array([[1.0, 0.1], [0.0, 1.0]])
    look = np.array([[1.0, 0.0]])
    x, cov = step @ x, step @ cov @ step.T + 0.01 * np.eye(2)
    gain = np.linalg.solve(look @ cov @ look.T + 0.1, look @ cov).T
    return kalman(x + gain @ (seen[k] - look @ x), cov - gain @ look @ cov, seen, k + 1)


@ut.function
def qr_steps(a: ut.f64[3, 3], n: ut.i64) -> ut.f64[3]:
    """Eigenvalues by repeated factorisation."""
    for _ in range(n):
        q, r = np.linalg.qr(a)
        a = r @ q
    return np.sort(np.diag(a))


@ut.function
def spectrum(a: ut.f64[3, 3]) -> tuple[ut.f64[3], ut.f64[3], ut.f64, ut.f64, ut.f64]:
    w, v = np.linalg.eigh(a @ a.T)
    u, s, vh = np.linalg.svd(a)
    return w, s, np.abs(v.T @ v - np.eye(3)).max(), np.abs(u * s @ vh - a).max(), np.linalg.cond(a)


@ut.function
def batches(a: ut.f64[None, 3, 3], b: ut.f64[3]) -> tuple[ut.f64[None, 3], ut.f64[None], ut.f64[None, 3, 3]]:
    """A batch whose length is known only at run time."""
    s = a @ np.swapaxes(a, 1, 2) + np.eye(3)
    return np.linalg.solve(s, b), np.linalg.det(a), np.linalg.cholesky(s)


@ut.function
def fitted(a: ut.f64[None, 2], b: ut.f64[None]) -> tuple[ut.f64[2], ut.f64[None], ut.i32, ut.f64[None]]:
    return np.linalg.lstsq(a, b, rcond=None)


@ut.function
def norms(a: ut.f64[2, 3], n: ut.i64) -> ut.f64:
    """Different norms in the branches of a recursion."""
    if n == 0:
        return np.linalg.norm(a, "nuc")
    if n % 2 == 0:
        return np.linalg.norm(a, 2) + norms(a / 2, n - 1)
    return np.linalg.norm(a) + np.linalg.norm(a, axis=1).sum() + norms(np.linalg.pinv(a).T, n - 1)


@ut.function
def likelihood(cov: ut.f64[2, 2], x: ut.f64[2], n: ut.i64) -> ut.f64:
    """The logarithm of a Gaussian density, for covariances that grow."""
    if n == 0:
        return 0.0
    sign, log = np.linalg.slogdet(cov)
    return -0.5 * (x @ np.linalg.solve(cov, x) + sign * log) + likelihood(cov + np.eye(2), x, n - 1)


@ut.function
def singular_somewhere(a: ut.f64[2, 2], n: ut.i64) -> ut.f64[2, 2]:
    if n == 0:
        return np.linalg.inv(a - a)
    return singular_somewhere(np.linalg.inv(a), n - 1)


A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.25, -0.5, 2.0]])
BATCH = np.stack([A, A.T - 1, A @ A])
WIDE = np.array([[1.0, 2.0, 0.5], [-1.0, 0.25, 3.0]])
BIG = np.arange(25.0).reshape(5, 5) % 7 + 5 * np.eye(5)

PROGRAMS = [
    program(block_inverse, (A[:2, :2],), (BIG,), tags="recursive arrays"),
    program(kalman, (np.zeros(2), np.eye(2), np.array([[0.5], [0.75], [1.25]]), 0), tags="recursive arrays"),
    program(qr_steps, (A, 0), (A, 7), tags="loop arrays"),
    program(spectrum, (A,), tags="arrays"),
    program(spectrum, (BATCH,), tags="map arrays", by="map", name="spectrum_mapped"),
    program(batches, (BATCH, A[0]), (BATCH[:0], A[0]), tags="arrays"),
    program(fitted, (np.ones((1, 2)), np.ones(1)), (WIDE.T, A[1]), (np.ones((4, 2)), np.arange(4.0)), tags="arrays"),
    program(norms, (WIDE, 0), (WIDE, 3), tags="recursive arrays"),
    program(likelihood, (A[:2, :2], A[2, :2], 3), tags="recursive arrays"),
    program(singular_somewhere, (A[:2, :2], 2), tags="recursive arrays fault"),
]
