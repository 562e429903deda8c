"""Systems of linear equations and factorisations of matrices; leading axes are batches.

An operator has one result, so factors stand in one array, in which each column holds what belongs together. Column k
of `eigh` is the k-th eigenvalue above its eigenvector, of `svd` the k-th singular value above the columns of U and V,
of `qr` the k-th column of Q above the k-th row of R. The functions take them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops import factor_slopes as slopes
from undertow.ops.attributes import LOWER
from undertow.ops.gradient import Derivative, single
from undertow.ops.op import Op, Value
from undertow.ops.rules import FLOATS, check_dtypes, meet, shapes_differ
from undertow.types import Dim, Shape, Type

# -- types ---------------------------------------------------------------------------------------------------


def _matrix(name: str, x: Type) -> tuple[Shape, Dim, Dim]:
    """The batch axes, and the numbers of rows and columns."""
    if x.rank < 2:
        raise TypeMismatch(
            f"{name} takes a matrix, not {x}", hint="a matrix has at least two axes; leading ones are batches"
        )
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _square(name: str, x: Type) -> tuple[Shape, Dim]:
    batch, rows, columns = _matrix(name, x)
    if rows is not None and columns is not None and rows != columns:
        raise TypeMismatch(
            f"{name} takes square matrices, not {x}", hint="the last two axes must be as long as each other"
        )
    return batch, columns if rows is None else rows


def _plus(*lengths: Dim) -> Dim:
    known = [n for n in lengths if isinstance(n, int)]
    return sum(known) if len(known) == len(lengths) else None


def _solve_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    a, b = types
    dtype = check_dtypes("solve", types, FLOATS)
    batch, n = _square("solve", a)
    others, rows, columns = _matrix("solve", b)
    if len(batch) != len(others):
        raise TypeMismatch(f"solve of {a} and {b}: the numbers of batch axes differ", hint="broadcast one of them")
    try:
        shape = [meet("solve", x, y) for x, y in zip((*batch, n), (*others, rows), strict=True)]
    except TypeMismatch as fault:
        raise TypeMismatch(
            f"solve of {a} and {b}: {fault.what}", hint="the right side has a row for each row of the matrix"
        ) from None
    return (Type(dtype, (*shape, columns)),)


def _slogdet_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("slogdet", types, FLOATS)
    return (Type(dtype, (*_square("slogdet", types[0])[0], 2)),)


def _cholesky_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("cholesky", types, FLOATS)
    batch, n = _square("cholesky", types[0])
    return (Type(dtype, (*batch, n, n)),)


def _qr_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("qr", types, FLOATS)
    batch, rows, columns = _matrix("qr", types[0])
    if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
        raise TypeMismatch(
            f"qr takes at least as many rows as columns, not {types[0]}", hint="factor the first columns"
        )
    return (Type(dtype, (*batch, _plus(rows, columns), columns)),)


def _eigh_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("eigh", types, FLOATS)
    batch, n = _square("eigh", types[0])
    return (Type(dtype, (*batch, _plus(n, 1), n)),)


def _svd_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("svd", types, FLOATS)
    batch, rows, columns = _matrix("svd", types[0])
    fewest = min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
    return (Type(dtype, (*batch, _plus(1, rows, columns), fewest)),)


def _pinv_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("pinv", types, FLOATS)
    if types[1].shape:
        raise TypeMismatch(f"the cut-off of pinv is a single number, not {types[1]}", hint="call it for each matrix")
    batch, rows, columns = _matrix("pinv", types[0])
    return (Type(dtype, (*batch, columns, rows)),)


# -- kernels -------------------------------------------------------------------------------------------------


def _kernel(
    name: str, function: Callable[..., Any], hint: str, is_square: bool = False
) -> Callable[[Sequence[Value], Attrs], tuple[Value, ...]]:
    """LAPACK, as NumPy calls it. What it cannot do is a fault, which is NumPy's LinAlgError too."""

    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        x = values[0]
        if is_square and x.shape[-2] != x.shape[-1]:
            raise shapes_differ(name, values[:1])
        try:
            return (function(*values, **attrs.without("device")),)
        except np.linalg.LinAlgError as fault:
            raise Fault(str(fault), hint=hint, kind=np.linalg.LinAlgError) from None

    return kernel


def _solve(a: Any, b: Any) -> Any:
    if a.shape[:-1] != b.shape[:-1]:
        raise shapes_differ("solve", (a, b))
    return np.linalg.solve(a, b)


def _slogdet(a: Any) -> Any:
    return np.stack(np.linalg.slogdet(a), -1)


def _qr(a: Any) -> Any:
    if a.shape[-2] < a.shape[-1]:
        raise shapes_differ("qr", (a,))
    q, r = np.linalg.qr(a)
    return np.concatenate([q, np.swapaxes(r, -1, -2)], -2)


def _refuse_infinite(a: Any, name: str) -> None:
    if not np.isfinite(a).all():  # LAPACK would loop, or give nan, as it likes
        raise np.linalg.LinAlgError(f"{name} did not converge")


def _eigh(a: Any, lower: bool) -> Any:
    _refuse_infinite(a, "Eigenvalues")
    w, v = np.linalg.eigh(a, "L" if lower else "U")
    return np.concatenate([w[..., None, :], v], -2)


def _svd(a: Any) -> Any:
    _refuse_infinite(a, "SVD")
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([s[..., None, :], u, np.swapaxes(vt, -1, -2)], -2)


def _pinv(a: Any, rcond: Any) -> Any:
    _refuse_infinite(a, "SVD")
    return np.linalg.pinv(a, rcond)


# -- rows ---------------------------------------------------------------------------------------------------

_INDEPENDENT = "test the matrix first, or use ut.linalg.pinv or ut.linalg.lstsq, which take any"
_DEFINITE = "the matrix must be symmetric, with positive eigenvalues; adding a small multiple of ut.eye(n) makes it so"
_FINITE = "test ut.all(ut.isfinite(x)) first"

ROWS: tuple[Op, ...] = (
    Op(
        "solve", 2, _solve_rule, _kernel("solve", _solve, _INDEPENDENT, True),
        "x where `a @ x = b`, of square matrices; a fault if one is singular; operands: a, b",
        Derivative(slopes.solve_grad, slopes.solve_tangent), faults=True, is_costly=True,
    ),
    Op(
        "slogdet", 1, _slogdet_rule, _kernel("slogdet", _slogdet, _FINITE, True),
        "the sign of the determinant, and the logarithm of its absolute value: a new last axis of length 2",
        single(slopes.slogdet_grad, slopes.slogdet_tangent), faults=True, is_costly=True,
    ),
    Op(
        "cholesky", 1, _cholesky_rule, _kernel("cholesky", np.linalg.cholesky, _DEFINITE, True),
        "the lower triangle whose product with its transpose is x; a fault if x is not positive definite",
        single(slopes.cholesky_grad, slopes.cholesky_tangent), faults=True, is_costly=True,
    ),
    Op(
        "qr", 1, _qr_rule, _kernel("qr", _qr, _FINITE),
        "orthogonal columns above a transposed upper triangle, whose product is x, with rows no fewer than columns",
        single(slopes.qr_grad, slopes.qr_tangent), faults=True, is_costly=True,
    ),
    Op(
        "eigh", 1, _eigh_rule, _kernel("eigh", _eigh, _FINITE, True),
        "the eigenvalues of symmetric matrices, ascending, each above its eigenvector; reads one triangle: `lower`?",
        single(slopes.eigh_grad, slopes.eigh_tangent), faults=True, is_costly=True, attrs=LOWER,
    ),
    Op(
        "svd", 1, _svd_rule, _kernel("svd", _svd, _FINITE),
        "the singular values, descending, each above its left and its right singular vector",
        single(slopes.svd_grad, slopes.svd_tangent), faults=True, is_costly=True,
    ),
    Op(
        "pinv", 2, _pinv_rule, _kernel("pinv", _pinv, _FINITE),
        "the pseudo-inverse; singular values up to `rcond` times the largest count as 0; operands: x, rcond",
        Derivative(slopes.pinv_grad, slopes.pinv_tangent), faults=True, is_costly=True,
    ),
)  # fmt: skip
