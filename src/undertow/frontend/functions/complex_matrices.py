"""Complex matrices as real ones of twice the size: what linear algebra finds of these, it finds of those.

A number a + bi is the matrix [[a, -b], [b, a]], so sums, products and inverses of the real matrices are those of the
complex ones; each eigenvalue of a Hermitian matrix, and each singular value, occurs twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, parts, plain
from undertow.frontend.functions import reduction as along
from undertow.frontend.values.operands import dim, dims, floats, is_static_int, type_of
from undertow.types import said

_LARGEST = 32  # rows that elimination is written out for


def real_form(z: Any) -> Any:
    """Real and imaginary parts side by side and below each other: [[a, -b], [b, a]]."""
    a, b = parts.real(z), parts.imag(z)
    above, below = arrays.concat([a, plain.negative(b)], axis=-1), arrays.concat([b, a], axis=-1)
    return arrays.concat([above, below], axis=-2)


def from_rows(x: Any, count: Any) -> Any:
    """The complex rows of which the real parts stand above the imaginary ones; there are so many of each."""
    return parts.joined(arrays.slice_between(x, None, count, axis=-2), arrays.slice_between(x, count, None, axis=-2))


def solve(left: Any, right: Any, solve_real: Callable[[Any, Any], Any]) -> Any:
    """The solution of equations with complex numbers."""
    left, right = floats(left, right)
    below = arrays.concat([parts.real(right), parts.imag(right)], axis=-2)
    return from_rows(solve_real(real_form(left), below), dim(left, type_of(left).rank - 2))


def pseudo_inverse(z: Any, invert: Callable[[Any], Any]) -> Any:
    """The pseudo-inverse: its left half is that of the complex matrix, above the imaginary part."""
    rows, columns = dims(z)[-2:]
    return from_rows(arrays.slice_between(invert(real_form(z)), None, rows, axis=-1), columns)


def each_once(values: Any) -> Any:
    """Values in order, of which each occurs twice, once."""
    return arrays.slice_between(values, None, None, axis=-1, step=2)


def interleaved(z: Any) -> Any:
    """The real form with a block of two rows and columns for each number: triangles stay triangles."""
    *batch, rows, columns = dims(z)
    a, b = parts.real(z), parts.imag(z)
    upper = arrays.stack([a, plain.negative(b)], axis=-1)
    lower = arrays.stack([b, a], axis=-1)
    blocks = arrays.stack([upper, lower], axis=-3)
    return arrays.reshape(blocks, (*batch, plain.multiply(rows, 2), plain.multiply(columns, 2)))


def from_blocks(x: Any) -> Any:
    """The complex matrix of an interleaved one."""
    first = arrays.slice_between(x, None, None, axis=-1, step=2)
    above = arrays.slice_between(first, None, None, axis=-2, step=2)
    return parts.joined(above, arrays.slice_between(first, 1, None, axis=-2, step=2))


def determinant(z: Any, name: str) -> Any:
    """The determinant by elimination, a node for each step: the largest number of a column is its pivot."""
    *batch, rows, columns = dims(z)
    if not is_static_int(rows) or rows != columns or rows > _LARGEST:
        raise CaptureError(
            f"{name} of {said(type_of(z))} cannot be captured",
            hint=f"complex matrices must be square, and have at most {_LARGEST} rows, as many as are known at capture",
        )
    count = along.product(tuple(batch))
    flat = arrays.reshape(z, (count, rows, rows))
    found = creation.ones((count,), dtype=type_of(z).dtype.numpy)
    for left in range(rows, 0, -1):
        sizes = plain.abs(flat[:, :, 0])
        at = plain.argmax(sizes, axis=1, keepdims=True)
        where = creation.arange(left)[None, :]
        is_pivot = plain.equal(where, at)
        chosen = along.sum(plain.where(is_pivot[:, :, None], flat, 0), axis=1)  # the pivot's row
        pivot = chosen[:, 0]
        is_singular = plain.equal(pivot, 0)
        # The row goes to the front past those before it, and each of these changes the sign.
        sign = plain.where(plain.equal(plain.remainder(at[:, 0], 2), 0), 1.0, -1.0)
        found = plain.multiply(found, plain.multiply(pivot, elementwise.astype(sign, type_of(z).dtype)))
        if left == 1:
            break
        order = plain.argsort(elementwise.astype(is_pivot, np.int64), axis=1)[:, : left - 1]  # the others, in order
        others = arrays.take_along_axis(flat, arrays.broadcast_to(order[:, :, None], (*dims(order), left)), axis=1)
        factors = plain.divide(others[:, :, 0], plain.where(is_singular, 1.0, pivot)[:, None])
        flat = plain.subtract(others[:, :, 1:], plain.multiply(factors[:, :, None], chosen[:, None, 1:]))
    return arrays.reshape(found, tuple(batch))
