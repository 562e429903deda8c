"""Linear algebra: the functions of `numpy.linalg` and of the array API's extension of that name.

Matrices are the last two axes, leading ones are batches. What cannot be solved is a fault that is a
`numpy.linalg.LinAlgError` too. `cholesky` and `eigh` read one triangle of their matrix, so their gradients have one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import complex_matrices as doubled
from undertow.frontend.functions import creation, elementwise, parts, plain
from undertow.frontend.functions import linalg as products
from undertow.frontend.functions import reduction as along
from undertow.frontend.functions.array import matrix_transpose
from undertow.frontend.functions.linalg import outer, tensordot, vecdot
from undertow.frontend.functions.numpy_arranging import cross as cross_of
from undertow.frontend.functions.numpy_arranging import diagonal as diagonal_of
from undertow.frontend.functions.plain import matmul
from undertow.frontend.values.operands import (
    as_operand,
    dim,
    dims,
    floats,
    is_static_int,
    number,
    one_axis,
    some_axes,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import Traced, emit
from undertow.tracebacks import boundaries
from undertow.types import i32

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def _matrix(x: Any, name: str) -> Any:
    value = floats(x)[0]
    if type_of(value).rank < 2:
        raise TypeMismatch(
            f"{name} takes a matrix, not {type_of(value)}",
            hint="a matrix has at least two axes; leading ones are batches",
        )
    return value


def _real_matrix(x: Any, name: str, hint: str) -> Any:
    value = _matrix(x, name)
    parts.refuse_complex(name, value, instead=hint)
    return value


@cache
def _named(name: str) -> Any:
    """The class of named tuples in which NumPy gives what a function of this name finds."""
    return type(getattr(np.linalg, name)(np.eye(1)))


# -- equations -------------------------------------------------------------------------------------------------


def solve(a: Any, b: Any, /) -> Any:
    """The x for which `a @ x = b`, for a square matrix a; b is a vector, or has a column for each system.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    array([1. , 0.5])
    """
    left, right = floats(a, b)
    left = _matrix(left, "solve")
    is_vector = type_of(right).rank == 1
    right = arrays.expand_dims(right, 1) if is_vector else _matrix(right, "solve")
    found = doubled.solve(left, right, _solved) if parts.is_complex(left) else _solved(left, right)
    return arrays.squeeze(found, -1) if is_vector else found


def _solved(left: Any, right: Any) -> Any:
    batches = _common_batch(left, right)
    return emit("solve", [_batched(left, batches), _batched(right, batches)])[0]


def _common_batch(x: Any, y: Any) -> tuple[Any, ...]:
    """The leading axes of two stacks of matrices, stretched to fit."""
    longer, shorter = sorted((dims(x)[:-2], dims(y)[:-2]), key=len, reverse=True)
    kept = len(longer) - len(shorter)
    return (*longer[:kept], *(n if is_static_int(m) and m == 1 else m if is_static_int(n) and n == 1 else _known(n, m)
                              for n, m in zip(longer[kept:], shorter, strict=True)))  # fmt: skip


def _known(n: Any, m: Any) -> Any:
    return n if is_static_int(n) else m


def _batched(x: Any, batches: tuple[Any, ...]) -> Any:
    own = type_of(x).shape[:-2]
    same = len(own) == len(batches) and all(
        mine is None or (is_static_int(n) and n == mine) for mine, n in zip(own, batches, strict=True)
    )
    return x if same else arrays.broadcast_to(x, (*batches, *dims(x)[-2:]))


def inv(x: Any, /) -> Any:
    """The inverse of a square matrix.

    >>> inv([[2.0, 0.0], [0.0, 4.0]])
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    value = _matrix(x, "inv")
    return solve(value, creation.eye(dim(value, type_of(value).rank - 1), dtype=type_of(value).dtype))


def pinv(x: Any, /, rcond: Any = None, rtol: Any = None) -> Any:
    """The pseudo-inverse: singular values up to `rcond` (or `rtol`) times the largest count as 0."""
    value = _matrix(x, "pinv")
    if parts.is_complex(value):
        return doubled.pseudo_inverse(value, lambda whole: pinv(whole, rcond, rtol))
    dtype = type_of(value).dtype
    cut = 1e-15 if rcond is None and rtol is None else rtol if rcond is None else rcond
    cut = number(cut, dtype) if isinstance(cut, (int, float)) else elementwise.astype(cut, dtype)
    return emit("pinv", [value, cut])[0]


def _eps(value: Any) -> float:
    """The distance of 1 to the next float."""
    return float(np.spacing(np.abs(np.ones((), type_of(value).dtype.numpy))))


def _known_lengths(value: Any) -> tuple[int | None, int | None]:
    """The numbers of rows and columns, as far as they are known at capture."""
    rows, columns = (n if isinstance(n, int) else None for n in type_of(value).shape[-2:])
    return rows, columns


def _least(value: Any) -> Any:
    """The cut-off for ranks: the longer axis times that distance."""
    rows, columns = dims(value)[-2:]
    eps = _eps(value)
    if is_static_int(rows) and is_static_int(columns):
        return float(max(rows, columns) * eps)
    return plain.multiply(elementwise.astype(plain.maximum(rows, columns), type_of(parts.real(value)).dtype), eps)


def lstsq(a: Any, b: Any, /, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """The x for which the squares of `a @ x - b` add up to least; then these sums, the rank and the singular values."""
    left, right = floats(a, b)
    if type_of(left).rank != 2 or type_of(right).rank not in (1, 2):
        raise TypeMismatch(
            f"lstsq of {type_of(left)} and {type_of(right)}", hint="it takes one matrix, and a vector or a matrix"
        )
    cut = _least(left) if rcond is None else rcond
    if is_static_int(cut) or isinstance(cut, float):
        cut = float(cut) if cut >= 0 else float(_eps(left))
    x = matmul(pinv(left, cut), right)
    values = svdvals(left)
    rank = along.sum(plain.greater(values, plain.multiply(plain.max(values), cut)), dtype=i32)
    columns = arrays.expand_dims(right, 1) if type_of(right).rank == 1 else right
    apart = plain.subtract(matmul(left, arrays.expand_dims(x, 1) if type_of(right).rank == 1 else x), columns)
    sums = along.sum(plain.square(_size(apart)), axis=0)
    m, n = dims(left)
    is_unique = plain.logical_and(plain.equal(rank, n), plain.greater(m, n))
    return x, arrays.slice_between(sums, None, plain.where(is_unique, dim(sums, 0), 0)), rank, values


def tensorsolve(a: Any, b: Any, /, axes: Any = None) -> Any:
    """The x for which `tensordot(a, x, x.ndim) = b`."""
    left, right = floats(a, b)
    if axes is not None:
        rank = type_of(left).rank
        last = [one_axis(k, rank, "tensorsolve") for k in axes]
        left = arrays.permute_dims(left, [k for k in range(rank) if k not in last] + last)
    inner = dims(left)[type_of(right).rank :]
    count = along.product(inner)
    flat = solve(arrays.reshape(left, (count, count)), arrays.reshape(right, (-1,)))
    return arrays.reshape(flat, inner)


def tensorinv(x: Any, /, ind: int = 2) -> Any:
    """The inverse for `tensordot` over the first `ind` axes."""
    value = floats(x)[0]
    first, rest = dims(value)[: static_int(ind, "the number of axes")], dims(value)[ind:]
    count = along.product(rest)
    return arrays.reshape(inv(arrays.reshape(value, (count, count))), (*rest, *first))


# -- determinants and factors ----------------------------------------------------------------------------------


def slogdet(x: Any, /) -> Any:
    """The sign of the determinant, and the logarithm of its absolute value.

    >>> slogdet([[0.0, 1.0], [1.0, 0.0]])
    SlogdetResult(sign=np.float64(-1.0), logabsdet=np.float64(0.0))
    """
    value = _matrix(x, "slogdet")
    if parts.is_complex(value):
        found = doubled.determinant(value, "slogdet")
        size = plain.abs(found)
        is_zero = plain.equal(size, 0)
        sign = plain.where(is_zero, 0, plain.divide(found, plain.where(is_zero, 1, size)))
        return _named("slogdet")(sign, plain.log(size))
    both = emit("slogdet", [value])[0]
    return _named("slogdet")(*arrays.unstack(both, axis=-1))


def det(x: Any, /) -> Any:
    """The determinant. The gradient at a singular matrix is a fault: it needs the inverse."""
    value = _matrix(x, "det")
    if parts.is_complex(value):
        return doubled.determinant(value, "det")
    sign, logarithm = slogdet(value)
    return plain.multiply(sign, plain.exp(logarithm))


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The lower triangle whose product with its transpose is x, symmetric and positive definite; or the upper one.

    Of complex numbers the transpose is conjugated, and x is Hermitian.
    """
    value = _matrix(x, "cholesky")
    if parts.is_complex(value):
        given = parts.conj(matrix_transpose(value)) if upper else value
        found = doubled.from_blocks(emit("cholesky", [doubled.interleaved(given)])[0])
        return parts.conj(matrix_transpose(found)) if upper else found
    if not upper:
        return emit("cholesky", [value])[0]
    return matrix_transpose(emit("cholesky", [matrix_transpose(value)])[0])


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """Orthogonal columns Q and an upper triangle R whose product is x.

    With mode="complete", of a matrix with more rows than columns, Q would be square: that is not there.
    """
    value = _real_matrix(x, "qr", "r = np.linalg.cholesky(x.conj().T @ x, upper=True) is one; phases are open")
    rows, columns = _known_lengths(value)
    is_wide = rows is not None and columns is not None and rows < columns
    if mode not in ("reduced", "r") and not (mode == "complete" and (is_wide or rows == columns is not None)):
        raise CaptureError(f"qr with mode={brief(mode)} of {type_of(value)} cannot be captured", hint="use 'reduced'")
    square, rest = _columns(value, None, rows), _columns(value, rows, None)
    packed = emit("qr", [square if is_wide else value])[0]
    count = dim(value, type_of(value).rank - 2)
    q = arrays.slice_between(packed, None, count, axis=-2)
    r = matrix_transpose(arrays.slice_between(packed, count, None, axis=-2))
    if is_wide:
        r = arrays.concat([r, matmul(matrix_transpose(q), rest)], axis=-1)
    return r if mode == "r" else _named("qr")(q, r)


def _columns(x: Any, start: Any, stop: Any) -> Any:
    return arrays.slice_between(x, start, stop, axis=-1)


def eigh(x: Any, /, UPLO: str = "L") -> Any:
    """The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns; reads one triangle.

    >>> eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    array([1., 2.])
    """
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise CaptureError(f"eigh with UPLO={brief(UPLO)} cannot be captured", hint="use 'L' or 'U'")
    value = _real_matrix(x, "eigh", "ut.linalg.eigvalsh gives the eigenvalues; vectors are known but for a phase")
    packed = emit("eigh", [value], lower=UPLO.upper() == "L")[0]
    return _named("eigh")(_first_row(packed), arrays.slice_between(packed, 1, None, axis=-2))


def _first_row(packed: Any) -> Any:
    return emit("index", [packed, np.int64(0)], axes=(type_of(packed).rank - 2,))[0]


def eigvalsh(x: Any, /, UPLO: str = "L") -> Any:
    """The eigenvalues of a symmetric matrix, or of a Hermitian one, ascending; reads one triangle."""
    value = _matrix(x, "eigvalsh")
    if not parts.is_complex(value):
        return eigh(value, UPLO)[0]
    lower = arrays.tril(value) if UPLO == "L" else parts.conj(matrix_transpose(arrays.triu(value)))
    across = parts.conj(matrix_transpose(arrays.tril(lower, k=-1)))
    # The diagonal counts without its imaginary part.
    along_it = creation.eye(dim(value, type_of(value).rank - 1), dtype="bool")
    whole = plain.where(along_it, parts.real(lower), plain.add(lower, across))
    return doubled.each_once(eigh(doubled.real_form(whole))[0])


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values S, descending, and Vh, where `x = U @ diag(S) @ Vh`.

    With full_matrices=True, the default, x must be square: for others write full_matrices=False.

    >>> svd([[0.0, 3.0], [2.0, 0.0]]).S
    array([3., 2.])
    """
    value = _matrix(x, "svd")
    if parts.is_complex(value) and not compute_uv:
        return doubled.each_once(svd(doubled.real_form(value), compute_uv=False))
    _real_matrix(value, "svd", "ut.linalg.svdvals gives the singular values; vectors are known but for a phase")
    rows, columns = _known_lengths(value)
    if compute_uv and full_matrices and (rows is None or rows != columns):
        raise CaptureError(
            f"svd of {type_of(value)} with full_matrices=True cannot be captured", hint="pass full_matrices=False"
        )
    packed = emit("svd", [value])[0]
    if not compute_uv:
        return _first_row(packed)
    end = plain.add(dim(value, type_of(value).rank - 2), 1) if rows is None else rows + 1
    right = arrays.slice_between(packed, end, None, axis=-2)
    return _named("svd")(arrays.slice_between(packed, 1, end, axis=-2), _first_row(packed), matrix_transpose(right))


def svdvals(x: Any, /) -> Any:
    """The singular values, descending."""
    return svd(x, compute_uv=False)


# -- norms -----------------------------------------------------------------------------------------------------


def vector_norm(x: Any, /, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along an axis; over several axes, or all, their elements are one vector.

    >>> vector_norm([3.0, 4.0])
    np.float64(5.0)
    """
    value = plain.abs(floats(x)[0])
    axes = some_axes(axis, type_of(value).rank, "vector_norm")
    how: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if not axes:
        return elementwise.astype(plain.not_equal(value, 0), type_of(value).dtype) if ord == 0 else value
    if isinstance(ord, Traced):
        return _power_norm(value, ord, how)
    if ord in (np.inf, -np.inf):
        return (plain.max if ord > 0 else plain.min)(value, **how)
    if ord == 0:
        return elementwise.astype(along.count_nonzero(value, **how), type_of(value).dtype)
    if ord == 1:
        return along.sum(value, **how)
    if ord == 2:
        return plain.sqrt(along.sum(plain.square(value), **how))
    if not isinstance(ord, (int, float, np.number)):
        raise TypeMismatch(f"{brief(ord)} is not the order of a norm of vectors", hint="use a number, such as 2")
    return _power_norm(value, float(ord), how)


def _power_norm(value: Any, ord: Any, how: dict[str, Any]) -> Any:
    return elementwise.pow(along.sum(elementwise.pow(value, ord), **how), 1.0 / ord)


_OF_VALUES: dict[Any, Callable[..., Any]] = {
    2: lambda values: plain.max(values, axis=-1),
    -2: lambda values: plain.min(values, axis=-1),
    "nuc": lambda values: along.sum(values, axis=-1),
}
_OF_LINES: dict[Any, tuple[int, Callable[..., Any]]] = {
    1: (-2, plain.max), -1: (-2, plain.min), np.inf: (-1, plain.max), -np.inf: (-1, plain.min),
}  # fmt: skip


def _size(value: Any) -> Any:
    """What has the same square; of complex numbers, their absolute values."""
    return plain.abs(value) if type_of(value).dtype.kind == "complex" else value


def matrix_norm(x: Any, /, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of each matrix: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    value = _matrix(x, "matrix_norm")
    if ord == "fro":
        return plain.sqrt(along.sum(plain.square(_size(value)), axis=(-2, -1), keepdims=keepdims))
    if isinstance(ord, Traced) or (ord not in _OF_VALUES and ord not in _OF_LINES):
        raise TypeMismatch(
            f"{brief(ord)} is not the order of a norm of matrices", hint='use "fro", "nuc", 1, -1, 2, -2, inf or -inf'
        )
    if ord in _OF_VALUES:
        found = _OF_VALUES[ord](svdvals(value))
    else:
        axis, extreme = _OF_LINES[ord]
        found = extreme(along.sum(plain.abs(value), axis=axis), axis=-1)
    return arrays.expand_dims(found, (-2, -1)) if keepdims else found


def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a vector or matrix, or of those along one or two axes; without an order, of all elements."""
    value = floats(x)[0]
    rank = type_of(value).rank
    if axis is None and (ord is None or (ord == 2 and rank == 1) or (ord == "fro" and rank == 2)):
        return vector_norm(value, keepdims=keepdims)
    if axis is None and rank not in (1, 2):
        raise TypeMismatch(f"a norm of order {brief(ord)} of {type_of(value)} needs an axis", hint="name it: axis=-1")
    given = tuple(range(rank)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [one_axis(k, rank, "norm") for k in given]
    if len(axes) == 1:
        if isinstance(ord, str):
            raise TypeMismatch(f"{brief(ord)} is not the order of a norm of vectors", hint="use a number, such as 2")
        return vector_norm(value, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise TypeMismatch("a norm is taken along one axis, or two", hint="ut.linalg.vector_norm takes any number")
    rest = [k for k in range(rank) if k not in axes]
    found = matrix_norm(arrays.permute_dims(value, (*rest, *axes)), ord="fro" if ord is None else ord)
    return arrays.expand_dims(found, tuple(sorted(axes))) if keepdims else found


def matrix_rank(x: Any, /, tol: Any = None, *, rtol: Any = None) -> Any:
    """The number of singular values above `tol`, or above `rtol` times the largest."""
    value = as_operand(x)
    if type_of(value).rank < 2:
        return elementwise.astype(plain.any(plain.not_equal(value, 0)), np.int64)
    values = svdvals(value)
    if tol is None:
        least = _least(floats(value)[0]) if rtol is None else _beside_values(rtol)
        tol = plain.multiply(plain.max(values, axis=-1, keepdims=True), least)
    else:
        tol = _beside_values(tol)
    return along.count_nonzero(plain.greater(values, tol), axis=-1)


def _beside_values(x: Any) -> Any:
    return x if isinstance(x, (int, float)) else arrays.expand_dims(x, -1)


def cond(x: Any, /, p: Any = None) -> Any:
    """How close a matrix is to a singular one: the product of its norm and that of its inverse."""
    value = _matrix(x, "cond")
    if p is None or p in (2, -2):
        values = svdvals(value)
        count = dim(values, type_of(values).rank - 1)
        first = arrays.take(values, 0, axis=-1)
        last = arrays.take(values, plain.subtract(count, 1) if isinstance(count, Traced) else count - 1, axis=-1)
        found = plain.divide(last, first) if p == -2 else plain.divide(first, last)
    else:
        found = plain.multiply(matrix_norm(value, ord=p), matrix_norm(inv(value), ord=p))
    return plain.where(plain.isnan(found), np.inf, found)


# -- products and parts ----------------------------------------------------------------------------------------


def matrix_power(x: Any, n: int, /) -> Any:
    """A square matrix multiplied with itself n times; negative powers are those of its inverse.

    >>> matrix_power([[1, 1], [0, 1]], 5)
    array([[1, 5],
           [0, 1]])
    """
    times = static_int(n, "the power of a matrix")
    value = as_operand(x)
    own = type_of(value)
    if own.rank < 2 or own.shape[-2] != own.shape[-1] or own.dtype.kind == "bool":
        raise TypeMismatch(
            f"matrix_power takes square matrices of numbers, not {own}",
            hint="the last two axes must be as long as each other",
        )
    value = inv(value) if times < 0 else value
    if times == 0:
        return arrays.broadcast_to(creation.eye(dim(value, own.rank - 1), dtype=own.dtype), dims(value))
    times = abs(times)
    if times == 3:  # as NumPy multiplies, to the bit
        return matmul(matmul(value, value), value)
    square = result = None
    while times:
        square = value if square is None else matmul(square, square)
        if times % 2:
            result = square if result is None else matmul(result, square)
        times //= 2
    return result


def multi_dot(matrices: Any, /) -> Any:
    """The product of several matrices, from the left."""
    first, *rest = matrices
    for matrix in rest:
        first = products.dot(first, matrix)
    return first


def cross(x: Any, y: Any, /, axis: int = -1) -> Any:
    """The cross product of vectors of three elements along an axis."""
    return cross_of(x, y, -1, -1, -1, axis)


def diagonal(x: Any, /, offset: int = 0) -> Any:
    """The diagonals of matrices (the offset-th above the main one)."""
    return diagonal_of(x, offset, -2, -1)


def trace(x: Any, /, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices."""
    return along.sum(diagonal(x, offset), axis=-1, dtype=dtype)


boundaries(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
