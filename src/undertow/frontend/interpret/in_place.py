"""NumPy's functions and methods that write into an array: what it holds afterwards, as rows.

The first parameter of each is the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, plain
from undertow.frontend.functions.numpy_meanings import in_sorted_order
from undertow.frontend.functions.numpy_rows import Row, row
from undertow.frontend.functions.reduction import cumulative_sum
from undertow.frontend.values.assignment import replaced, summed
from undertow.frontend.values.operands import as_bool, as_operand, convert, dim, dims, integers, one_axis, type_of
from undertow.frontend.values.traced import Traced


def _flat(x: Any) -> Any:
    return arrays.reshape(as_operand(x), (-1,))


def _again(values: Any, places: Any, a: Any) -> Any:
    """The values at these places, from the front again where there are fewer, in the dtype of the array."""
    vector = convert(_flat(values), type_of(a).dtype)
    return arrays.take(vector, plain.remainder(places, dim(vector, 0)), axis=0)


def filled(a: Any, value: Any) -> Any:
    """x.fill."""
    return replaced(a, slice(None), value)


def copied(a: Any, src: Any, where: Any) -> Any:
    """np.copyto."""
    whole = replaced(a, slice(None), src)
    return whole if where is True else plain.where(as_bool(where), whole, a)


def put(a: Any, ind: Any, v: Any) -> Any:
    """np.put."""
    places = _flat(integers(ind, "the places of np.put"))
    values = _again(v, creation.arange(dim(places, 0)), a)
    return arrays.reshape(replaced(_flat(a), places, values), dims(a))


def put_masked(a: Any, mask: Any, values: Any) -> Any:
    """np.putmask: each value at its own place."""
    flat = _flat(a)
    new = _again(values, creation.arange(dim(flat, 0)), a)
    return arrays.reshape(plain.where(_flat(as_bool(mask)), new, flat), dims(a))


def placed(arr: Any, mask: Any, vals: Any) -> Any:
    """np.place: the values one after the other."""
    those = _flat(as_bool(mask))
    new = _again(vals, plain.maximum(plain.subtract(cumulative_sum(those), 1), 0), arr)
    return arrays.reshape(plain.where(those, new, _flat(arr)), dims(arr))


def with_diagonal(a: Any, val: Any) -> Any:
    """np.fill_diagonal, of a matrix."""
    if type_of(a).rank != 2:
        raise CaptureError("np.fill_diagonal can be captured for matrices", hint="write x[i, i, i] = v in a loop")
    rows, columns = (creation.arange(n) for n in dims(a))
    down = arrays.expand_dims(rows, 1)
    return plain.where(plain.equal(down, columns), _again(val, down, a), a)


def put_along(arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    """np.put_along_axis."""
    if axis is None:
        return arrays.reshape(replaced(_flat(arr), _flat(indices), values), dims(arr))
    rank = type_of(arr).rank
    at = one_axis(axis, rank, "np.put_along_axis")
    grid = [arrays.reshape(creation.arange(n), (*(1,) * k, n, *(1,) * (rank - 1 - k))) for k, n in enumerate(dims(arr))]
    grid[at] = integers(indices, "the indices of np.put_along_axis")
    return replaced(arr, tuple(grid), values)


_ROWS: dict[str, tuple[str, Callable[..., Any]]] = {
    "copyto": ("dst src !casting where=True", copied), "put": ("a ind v !mode", put),
    "putmask": ("a mask values", put_masked), "place": ("arr mask vals", placed),
    "fill_diagonal": ("a val !wrap", with_diagonal), "put_along_axis": ("arr indices values axis=-1", put_along),
}  # fmt: skip
_FUNCTIONS: dict[Any, Row] = {getattr(np, name): row(f"np.{name}", *how) for name, how in _ROWS.items()}
_AT = {
    np.add: row("np.add.at", "a indices b", summed),
    np.subtract: row("np.subtract.at", "a indices b", lambda a, indices, b: summed(a, indices, plain.negative(b))),
}
_METHODS: dict[str, Row] = {
    "fill": row("x.fill", "a value", filled),
    "sort": row("x.sort", "a axis=-1 !kind !order !stable", in_sorted_order),
    "put": row("x.put", *_ROWS["put"]),
}
_KINDS = frozenset(map(type, _FUNCTIONS))


def written_by(function: Any, args: Sequence[Any]) -> tuple[Row, Sequence[Any]] | None:
    """The row of a call that writes into an array, and its arguments, the array first; None if it is no such call."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc) and owner in _AT and function.__name__ == "at":
        return _AT[owner], args
    if isinstance(owner, (Traced, np.ndarray)):
        row = _METHODS.get(getattr(function, "__name__", ""))
        return None if row is None else (row, [owner, *args])
    if type(function) in _KINDS and function in _FUNCTIONS and args and isinstance(args[0], (Traced, np.ndarray)):
        return _FUNCTIONS[function], args
    return None
