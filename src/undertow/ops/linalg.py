"""Matrix products. Tensor products of other forms are lowered to this row by the front end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.gradient import Applied, Cotangents, Derivative, Tangents, the
from undertow.ops.op import Op
from undertow.ops.rules import NUMBERS, check_dtypes, fitting
from undertow.ops.term import Term, expand_dims, product, reshape, sizes, squeeze, sum_like, swapped
from undertow.types import Type, broadcast


def _matmul_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, y = types
    dtype = check_dtypes("matmul", types, NUMBERS)
    if not x.shape or not y.shape:
        raise TypeMismatch(f"matmul of {x} and {y}", hint="multiply scalars with *, not with @")
    inner = x.shape[-1], y.shape[-2 if y.rank > 1 else -1]
    if None not in inner and inner[0] != inner[1]:
        raise TypeMismatch(
            f"matmul of {x} and {y}: {inner[0]} columns do not fit {inner[1]} rows",
            hint="the last axis of x must be as long as the second to last of y; x.T transposes",
        )
    rows = x.shape[-2:-1]
    columns = y.shape[-1:] if y.rank > 1 else ()
    return (Type(dtype, broadcast(x.shape[:-2], y.shape[:-2]) + rows + columns),)


def _matrix(x: Term, vector_axis: int) -> Term:
    """A vector as a matrix, with a new axis at that position; anything else unchanged."""
    return expand_dims(x, vector_axis) if x.type.rank == 1 else x


def _swapped(x: Term, vector_axis: int) -> Term:
    """The transpose of such a matrix, or of each of a batch."""
    return expand_dims(x, 1 - vector_axis) if x.type.rank == 1 else swapped(x)


def _product(at: Applied, g: Term) -> Term:
    """The cotangent of the product of matrices: with the axes that vectors did not have."""
    x, y = at.x
    g = expand_dims(g, g.type.rank) if y.type.rank == 1 else g
    return expand_dims(g, g.type.rank - 1) if x.type.rank == 1 else g


def _flat(x: Term) -> Term:
    """All rows of a batch of matrices, as one matrix."""
    *before, columns = sizes(x)
    return reshape(x, [product(before), columns])


def _x_grad(at: Applied, g: Term) -> Term:
    x, y = at.x
    if x.type.rank == 1 and y.type.rank <= 2:
        return g * y if y.type.rank == 1 else y @ g
    found = sum_like(_product(at, g) @ _swapped(y, 1), _matrix(x, 0))
    return squeeze(found, 0) if x.type.rank == 1 else found


def _y_grad(at: Applied, g: Term) -> Term:
    x, y = at.x
    if y.type.rank == 1 and x.type.rank <= 2:
        return g * x if x.type.rank == 1 else g @ x
    if y.type.rank <= 2 < x.type.rank:  # one product over the whole batch, not a sum of products
        found = swapped(_flat(x)) @ _flat(_product(at, g))
    else:
        found = sum_like(_swapped(x, 0) @ _product(at, g), _matrix(y, 1))
    return squeeze(found, 1) if y.type.rank == 1 else found


def _matmul_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    rows = (_x_grad, _y_grad)
    return [row(at, the(g)) if wanted else None for row, wanted in zip(rows, at.wanted, strict=True)]


def _matmul_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    (x, y), (tx, ty) = at.x, t
    if tx is None or ty is None:
        return [x @ the((ty,)) if tx is None else tx @ y]
    return [tx @ y + x @ ty]


ROWS: tuple[Op, ...] = (
    Op(
        "matmul", 2, _matmul_rule, fitting("matmul", lambda values, attrs: np.matmul(*values)),
        "the matrix product x @ y; a vector is a row on the left and a column on the right; leading axes are batches",
        Derivative(_matmul_grad, _matmul_tangent), is_costly=True, takes="numbers", also="__matmul__",
        example="matmul([[1, 2], [3, 4]], [1, 10])\narray([21, 43])",
    ),
)  # fmt: skip
