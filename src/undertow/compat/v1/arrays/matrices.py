"""Matrices: products, solutions and factors, as `tf.cholesky` and under the names of `tf.linalg`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from undertow.compat.v1.array import eye
from undertow.compat.v1.arrays.arranging import (
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
)
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.math import einsum, matmul, tensordot
from undertow.compat.v1.tensor import apply
from undertow.frontend.functions import matrices as ours
from undertow.frontend.functions import public as functions

__all__ = [
    "cholesky", "cholesky_solve", "cross", "linalg", "matrix_determinant", "matrix_inverse", "matrix_solve",
    "matrix_triangular_solve", "norm", "qr", "self_adjoint_eig", "self_adjoint_eigvals", "svd", "trace",
]  # fmt: skip


def cholesky(input: Any, name: str | None = None) -> Any:
    """The lower triangular L with L L^T = x."""
    return apply(ours.cholesky, [input], name)


def _turned(x: Any, adjoint: bool) -> Any:
    return functions.matrix_transpose(x) if adjoint else x


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """The inverse."""
    return apply(lambda x: ours.inv(_turned(x, adjoint)), [input], name)


def matrix_determinant(input: Any, name: str | None = None) -> Any:
    """The determinant."""
    return apply(ours.det, [input], name)


def log_matrix_determinant(input: Any, name: str | None = None) -> Any:
    """The sign and the logarithm of the determinant's absolute value."""
    return tuple(apply(lambda x: list(ours.slogdet(x)), [input], name))


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """X with matrix @ x = rhs."""
    return apply(lambda a, b: ours.solve(_turned(a, adjoint), b), [matrix, rhs], name)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """X with matrix @ x = rhs, where only one triangle of the matrix counts."""

    def solved(a: Any, b: Any) -> Any:
        triangle = functions.tril(a) if lower else functions.triu(a)
        return ours.solve(_turned(triangle, adjoint), b)

    return apply(solved, [matrix, rhs], name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """X with chol @ chol^T @ x = rhs."""
    return matrix_triangular_solve(chol, matrix_triangular_solve(chol, rhs), adjoint=True, name=name)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """Q with orthonormal columns and the upper triangular R with Q R = x."""
    return tuple(apply(lambda x: list(ours.qr(x, "complete" if full_matrices else "reduced")), [input], name))


def self_adjoint_eig(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors as columns, of symmetric matrices."""
    return tuple(apply(lambda x: list(ours.eigh(x)), [tensor], name))


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues of symmetric matrices in ascending order."""
    return apply(ours.eigvalsh, [tensor], name)


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """s, u, v with u @ diag(s) @ v^T = x; or s alone."""
    if not compute_uv:
        return apply(ours.svdvals, [tensor], name)
    u, s, vt = apply(lambda x: list(ours.svd(x, full_matrices)), [tensor], name)
    return s, u, matrix_transpose(vt)


def trace(x: Any, name: str | None = None) -> Any:
    """The sum of the diagonal."""
    return apply(ours.trace, [x], name)


def cross(a: Any, b: Any, name: str | None = None) -> Any:
    """The cross product of vectors of three elements."""
    return apply(ours.cross, [a, b], name)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None,
    keep_dims: Any = None,
) -> Any:  # fmt: skip
    """The norm of vectors, or with a pair of axes of matrices; by default the root of the sum of squares."""
    keep = bool(keepdims or keep_dims)
    along = tuple(axis) if isinstance(axis, list) else axis

    def computed(x: Any) -> Any:
        if ord in ("euclidean", "fro") or (ord == 2 and not isinstance(along, tuple)):
            return functions.sqrt(functions.sum(functions.square(x), axis=along, keepdims=keep))
        if along is None:
            return ours.norm(functions.reshape(x, (-1,)), ord=ord)
        return ours.norm(x, ord=ord, axis=along, keepdims=keep)

    return apply(computed, [tensor], name)


boundaries(globals(), [name for name in __all__ if name != "linalg"])

linalg = SimpleNamespace(
    band_part=matrix_band_part,
    cholesky=cholesky,
    cholesky_solve=cholesky_solve,
    cross=cross,
    det=matrix_determinant,
    diag=matrix_diag,
    diag_part=matrix_diag_part,
    eigh=self_adjoint_eig,
    eigvalsh=self_adjoint_eigvals,
    einsum=einsum,
    eye=eye,
    inv=matrix_inverse,
    logdet=lambda matrix, name=None: log_matrix_determinant(matrix, name)[1],
    matmul=matmul,
    matrix_transpose=matrix_transpose,
    norm=norm,
    qr=qr,
    set_diag=matrix_set_diag,
    slogdet=log_matrix_determinant,
    solve=matrix_solve,
    svd=svd,
    tensordot=tensordot,
    trace=trace,
    transpose=matrix_transpose,
    triangular_solve=matrix_triangular_solve,
)
