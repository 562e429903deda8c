"""`numpy.linalg` in captured functions: values as NumPy's, gradients as differences, faults that are NumPy's errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.differences import check_gradient

import undertow as ut

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.25, -0.5, 2.0]])
TALL = np.array([[1.0, -1.0], [2.0, 0.25], [0.5, 3.0]])
B = np.array([1.0, -2.0, 0.5])


@ut.function
def solved(a: Any) -> Any:
    return (np.linalg.solve(a, B) ** 2).sum()


@ut.function
def determinant(a: Any) -> Any:
    return np.linalg.det(a)


@ut.function
def triangle(a: Any) -> Any:
    return (np.linalg.cholesky(a @ a.T) ** 3).sum()


@ut.function
def orthogonal(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return (q**3).sum() + (r**2 * r).sum()


@ut.function
def values_of(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return (w**3).sum() + (v**4).sum()


@ut.function
def singular(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (s**3).sum() + (u**4).sum() + (vh**4).sum()


@ut.function
def nuclear(a: Any) -> Any:
    return np.linalg.norm(a, "nuc")


@ut.function
def least(a: Any) -> Any:
    return (np.linalg.lstsq(a, B, rcond=None)[0] ** 3).sum()


@ut.function
def power(a: ut.f64[3, 3], n: ut.i64) -> ut.f64:
    """A recursion through an inverse."""
    return np.trace(a) if n == 0 else power(np.linalg.inv(a) @ a.T, n - 1)


@pytest.mark.parametrize("function", [solved, determinant, triangle, orthogonal, values_of, singular, nuclear])
def test_gradients(function: Any) -> None:
    check_gradient(function, A)


@pytest.mark.parametrize("function", [orthogonal, singular, nuclear, least])
@pytest.mark.parametrize("a", [TALL, TALL.T], ids=["tall", "wide"])
def test_gradients_of_oblong_matrices(function: Any, a: Any) -> None:
    if function is not least or a is TALL:
        check_gradient(function, a)


def test_gradient_in_a_recursion() -> None:
    ut.check_grads(power, (A, 3), order=2)


def test_gradients_of_values_alone_do_not_mind_equal_ones() -> None:
    np.testing.assert_allclose(ut.grad(nuclear)(np.eye(3)), np.eye(3), atol=1e-12)


@ut.function
def inverse(a: Any) -> Any:
    return np.linalg.inv(a)


@ut.function
def root(a: Any) -> Any:
    return ut.linalg.cholesky(a)


@ut.function
def parts(a: Any) -> Any:
    return ut.linalg.svdvals(a)


@pytest.mark.parametrize(
    ("function", "matrix", "text"),
    [
        (inverse, np.ones((2, 2)), "Singular matrix"),
        (root, -np.eye(2), "not positive definite"),
        (parts, np.full((2, 2), np.nan), "did not converge"),
    ],
)
def test_what_cannot_be_solved_is_numpys_error_too(function: Any, matrix: Any, text: str) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=text) as caught:
        function(matrix)
    assert isinstance(caught.value, ut.Fault) and caught.value.hint
    with pytest.raises(np.linalg.LinAlgError):
        raise pickle.loads(pickle.dumps(caught.value))
    with pytest.raises(np.linalg.LinAlgError):
        function.map(np.stack([np.eye(2), matrix]))


def test_outside_of_captures() -> None:
    np.testing.assert_allclose(ut.linalg.solve(A, B), np.linalg.solve(A, B))
    assert ut.linalg.matrix_rank(np.ones((3, 2))) == 1


@ut.function
def rank(a: ut.f64[None, None]) -> ut.i64:
    return np.linalg.matrix_rank(a)


@ut.function
def wide(a: ut.f64[None, None]) -> Any:
    return np.linalg.qr(a).R


def test_run_time_shapes() -> None:
    for a in (A, TALL, np.ones((4, 5))):
        assert rank(a) == np.linalg.matrix_rank(a)
    np.testing.assert_allclose(wide(TALL), np.linalg.qr(TALL).R)
    with pytest.raises(ut.Fault, match="qr"):
        wide(TALL.T)
