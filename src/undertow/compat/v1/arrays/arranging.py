"""Shapes and parts: `tf.pad`, `tf.reverse_sequence`, `tf.diag`, `tf.meshgrid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.array import reverse, shape
from undertow.compat.v1.control import identity
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like, named, operands, wrap, writing
from undertow.compat.v1.values.static import constant_value
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.values.indexing import getitem
from undertow.types import said

__all__ = [
    "broadcast_dynamic_shape", "broadcast_static_shape", "depth_to_space", "diag", "diag_part", "identity_n",
    "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag", "matrix_transpose", "meshgrid", "pad",
    "parallel_stack", "repeat", "reverse_sequence", "reverse_v2", "roll", "shape_n", "space_to_depth",
]  # fmt: skip

_REFLECTS = {"REFLECT": 1, "SYMMETRIC": 0}


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0) -> Any:
    """More elements before and after each axis: a constant, or the tensor reflected."""
    kind = str(mode).upper()
    if kind != "CONSTANT" and kind not in _REFLECTS:
        raise TypeMismatch(f"mode={brief(mode)} is unknown", here(), hint='"CONSTANT", "REFLECT" or "SYMMETRIC"')
    with writing(tensor):
        value = as_tensor(tensor)
        known = constant_value(paddings) if not is_tensor_like(paddings) else constant_value(as_tensor(paddings))
        rows: list[Any] = []
        if known is None:
            amounts = as_tensor(paddings)
            rows = [[getitem(amounts, (k, side)) for side in (0, 1)] for k in np.arange(value.type.rank).tolist()]
        else:
            rows = known.tolist()
        if len(rows) != value.type.rank:
            raise TypeMismatch(
                f"{len(rows)} paddings for {said(value.type)}",
                here(),
                hint="write a pair for each axis: [[1, 1], [0, 0]]",
            )
        result: Any = value
        for axis, (before, after) in enumerate(rows):
            if kind == "CONSTANT":
                result = _around(result, axis, before, after, constant_values)
            else:
                result = _reflected(result, axis, before, after, _REFLECTS[kind])
        return named(wrap(result), name)


def _around(value: Any, axis: int, before: Any, after: Any, filler: Any) -> Any:
    sizes = functions.shape(value)
    parts = []
    for count in (before, after):
        block = (*sizes[:axis], count, *sizes[axis + 1 :])
        is_none = isinstance(count, int) and count == 0
        parts.append(None if is_none else functions.full(block, operands([value, filler])[1], dtype=value.dtype))
    filled = [part for part in (parts[0], value, parts[1]) if part is not None]
    return functions.concat(filled, axis=axis) if len(filled) > 1 else value


def _reflected(value: Any, axis: int, before: Any, after: Any, offset: int) -> Any:
    """The axis with its beginning and its end reflected; with an offset of 1 the border is not repeated."""
    size = functions.shape(value)[axis]
    parts = [
        functions.flip(functions.slice_between(value, offset, before + offset, axis=axis), axis=axis),
        value,
        functions.flip(functions.slice_between(value, size - after - offset, size - offset, axis=axis), axis=axis),
    ]
    return functions.concat(parts, axis=axis)


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: int | None = None, batch_axis: int | None = None, name: str | None = None,
    seq_dim: int | None = None, batch_dim: int | None = None,
) -> Any:  # fmt: skip
    """Each example reversed up to its length, along `seq_axis`; what follows stays."""
    along = seq_dim if seq_axis is None else seq_axis
    batch = (0 if batch_dim is None else batch_dim) if batch_axis is None else batch_axis
    if along is None:
        raise TypeMismatch("reverse_sequence needs seq_axis", here(), hint="write seq_axis=1")
    with writing(input, seq_lengths):
        value, lengths = as_tensor(input), as_tensor(seq_lengths)
        rank = value.type.rank
        places = functions.arange(0, functions.shape(value)[along], 1, dtype=lengths.dtype)
        places = functions.reshape(places, tuple(-1 if k == along % rank else 1 for k in np.arange(rank).tolist()))
        ends = functions.reshape(lengths, tuple(-1 if k == batch % rank else 1 for k in np.arange(rank).tolist()))
        turned = functions.where(functions.less(places, ends), ends - 1 - places, places)
        whole = functions.broadcast_to(turned, functions.shape(value))
        return named(wrap(functions.take_along_axis(value, whole, axis=along)), name)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    """Shifted along an axis; what leaves at one end comes in at the other."""
    along = tuple(axis) if isinstance(axis, list) else axis
    return apply(
        lambda x: functions.roll(x, tuple(shift) if isinstance(shift, list) else shift, axis=along), [input], name
    )


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Any:
    """Each element so often, along an axis."""
    return apply(lambda x: functions.repeat(x, repeats, axis=axis), [input], name)


def parallel_stack(values: Sequence[Any], name: str | None = None) -> Any:
    """Tensors joined along a new first axis."""
    with writing(*values):
        return named(wrap(functions.stack(operands(list(values)), axis=0)), name)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Any]:
    """The coordinates of a grid of points."""
    return list(apply(lambda *axes: functions.meshgrid(*axes, indexing=indexing), args, name))


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Any:
    """Blocks of an image as channels."""

    def moved(x: Any) -> Any:
        _, height, width, channels = x.type.shape
        cut = functions.reshape(x, (-1, height // block_size, block_size, width // block_size, block_size, channels))
        turned = functions.transpose(cut, (0, 1, 3, 2, 4, 5))
        return functions.reshape(turned, (-1, height // block_size, width // block_size, block_size**2 * channels))

    return apply(moved, [input], name)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Any:
    """Channels of an image as blocks: the inverse of space_to_depth."""

    def moved(x: Any) -> Any:
        _, height, width, channels = x.type.shape
        depth = channels // block_size**2
        cut = functions.reshape(x, (-1, height, width, block_size, block_size, depth))
        turned = functions.transpose(cut, (0, 1, 3, 2, 4, 5))
        return functions.reshape(turned, (-1, height * block_size, width * block_size, depth))

    return apply(moved, [input], name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """The same values."""
    return [identity(value) for value in input]


def shape_n(input: Sequence[Any], out_type: Any = "i32", name: str | None = None) -> list[Any]:
    """The dimensions of several tensors."""
    return [shape(value, out_type=out_type) for value in input]


reverse_v2 = reverse


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape of the sum of arrays of these shapes."""
    return list(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape of the sum of arrays of these shapes, of equally many axes."""
    return apply(lambda x, y: functions.where(functions.equal(x, 1), y, x), [shape_x, shape_y])


# -- diagonals ---------------------------------------------------------------------------------------------


def _eye(value: Any, rows: Any, columns: Any) -> Any:
    return functions.eye(rows, columns, dtype=value.dtype)


def matrix_diag(diagonal: Any, name: str | None = None) -> Any:
    """A matrix with this diagonal, for each vector of the last axis."""
    return apply(lambda d: functions.expand_dims(d, axis=-1) * _eye(d, functions.shape(d)[-1], None), [diagonal], name)


def diag(diagonal: Any, name: str | None = None) -> Any:
    """The matrix with this diagonal."""
    return matrix_diag(diagonal, name)


def matrix_diag_part(input: Any, name: str | None = None) -> Any:
    """The diagonal of each matrix."""

    def part(x: Any) -> Any:
        rows, columns = functions.shape(x)[-2:]
        least = functions.minimum(rows, columns)
        least = int(least) if isinstance(rows, int) and isinstance(columns, int) else least
        square = functions.slice_between(functions.slice_between(x, None, least, axis=-2), None, least, axis=-1)
        return functions.sum(square * _eye(x, least, None), axis=-1, dtype=x.dtype)

    return apply(part, [input], name)


def diag_part(input: Any, name: str | None = None) -> Any:
    """The diagonal of a matrix."""
    return matrix_diag_part(input, name)


def matrix_set_diag(input: Any, diagonal: Any, name: str | None = None) -> Any:
    """The matrices with another diagonal."""

    def put(x: Any, d: Any) -> Any:
        rows, columns = functions.shape(x)[-2:]
        on = functions.astype(_eye(x, rows, columns), "bool")
        wide = functions.expand_dims(d, axis=-1) if _is_tall(x) else functions.expand_dims(d, axis=-2)
        return functions.where(on, wide, x)

    return apply(put, [input, diagonal], name)


def _is_tall(x: Any) -> bool:
    """Has the diagonal an element for each row? (Else for each column.)"""
    rows, columns = x.type.shape[-2:]
    return not (isinstance(rows, int) and isinstance(columns, int)) or rows <= columns


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Any:
    """The matrices with zeros outside of a band around the diagonal; -1 keeps a whole triangle."""

    def banded(x: Any, below: Any, above: Any) -> Any:
        rows, columns = functions.shape(x)[-2:]
        off = functions.expand_dims(functions.arange(0, rows, 1), axis=1) - functions.arange(0, columns, 1)
        low = functions.logical_or(functions.less(below, 0), functions.less_equal(off, below))
        high = functions.logical_or(functions.less(above, 0), functions.less_equal(-off, above))
        return functions.where(functions.logical_and(low, high), x, 0)

    with writing(input, num_lower, num_upper):
        bounds = [as_tensor(v) if is_tensor_like(v) else np.int64(v) for v in (num_lower, num_upper)]
        return named(wrap(banded(as_tensor(input), *bounds)), name)


def matrix_transpose(a: Any, name: str | None = None) -> Any:
    """The last two axes exchanged."""
    return apply(functions.matrix_transpose, [a], name)


boundaries(globals(), __all__)
