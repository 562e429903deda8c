"""`x[rows, columns]`: several arrays of integers in one key, which NumPy broadcasts and reads element by element.

The axes that they index are moved to the front and joined, where each element has one number. Reading takes rows,
writing puts them, and so both have the gradients of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.array import check_static_indices
from undertow.frontend.functions.reduction import product
from undertow.frontend.values.operands import as_operand, convert, dim, dims, is_static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, Traced, emit
from undertow.types import i64


@dataclass(frozen=True, slots=True)
class Gather:
    """Where the elements are that the arrays of a key name."""

    order: tuple[int, ...]  # the axes of the array, those that are indexed in front
    count: int  # how many are indexed
    numbers: Any  # the elements by their numbers among the indexed axes, in the shape of the broadcast indices
    front: int  # how many axes of the result stand before those of the indices


def gather(x: Any, indices: Sequence[tuple[int, Any]], front: int) -> Gather:
    """The elements of x at some indices, each of an axis."""
    value = as_operand(x)
    axes = [axis for axis, _ in indices]
    places = [_from_front(value, axis, which) for axis, which in indices]
    _broadcast(places)
    numbers = places[0]
    for axis, place in zip(axes[1:], places[1:], strict=True):
        numbers = FUNCTIONS["add"](FUNCTIONS["multiply"](numbers, dim(value, axis)), place)
    order = (*axes, *(axis for axis in range(type_of(value).rank) if axis not in axes))
    return Gather(order, len(axes), numbers, front)


def read(x: Any, at: Gather) -> Any:
    """The elements, with the axes of the indices where the key says.

    >>> read(np.arange(6).reshape(2, 3), gather(np.arange(6).reshape(2, 3), [(0, [0, 1]), (1, [2, -1])], 0))
    array([2, 5])
    """
    (found,) = emit("take", [_rows(as_operand(x), at), at.numbers], axis=0)
    return _moved(found, 0, at.front, type_of(at.numbers).rank)


def written(x: Any, at: Gather, fresh: Any) -> Any:
    """A copy of x with other elements there, which have the shape of what is read: the last one wins."""
    rows, numbers, updates = _updates(x, at, fresh)
    return _unrowed(emit("put_rows", [rows, updates, numbers], axis=0)[0], as_operand(x), at)


def added(x: Any, at: Gather, fresh: Any) -> Any:
    """A copy of x with values added there: an element that is named twice gets both."""
    rows, numbers, updates = _updates(x, at, fresh)
    sums = convert(functions.scatter_add(rows, numbers, updates), type_of(rows).dtype)
    return _unrowed(sums, as_operand(x), at)


def _updates(x: Any, at: Gather, fresh: Any) -> tuple[Any, Any, Any]:
    rows, rank = _rows(as_operand(x), at), type_of(at.numbers).rank
    numbers = functions.reshape(at.numbers, (-1,))
    updates = _moved(fresh, at.front, 0, rank)
    return rows, numbers, functions.reshape(updates, (dim(numbers, 0), *dims(updates)[rank:]))


def _rows(value: Any, at: Gather) -> Any:
    """The array with one axis for all that are indexed, in front."""
    lengths = [dim(value, axis) for axis in at.order]
    joined = product(tuple(lengths[: at.count]))
    return functions.reshape(_permuted(value, at.order), (joined, *lengths[at.count :]))


def _unrowed(rows: Any, value: Any, at: Gather) -> Any:
    whole = functions.reshape(rows, tuple(dim(value, axis) for axis in at.order))
    return _permuted(whole, tuple(int(k) for k in np.argsort(at.order)))


def _permuted(value: Any, order: tuple[int, ...]) -> Any:
    return value if order == tuple(range(len(order))) else functions.permute_dims(value, order)


def _moved(value: Any, source: int, target: int, count: int) -> Any:
    """A block of axes elsewhere."""
    axes = list(range(type_of(value).rank))
    block = axes[source : source + count]
    del axes[source : source + count]
    axes[target:target] = block
    return _permuted(value, tuple(axes))


def _from_front(value: Any, axis: int, which: Any) -> Any:
    """Indices of an axis counted from its front; one that it does not have is a fault."""
    indices, length = as_operand(which), dim(value, axis)
    check_static_indices(indices, type_of(value).shape[axis], axis)
    if not isinstance(indices, Traced) and is_static_int(length):
        numbers = np.asarray(indices, np.int64)
        return np.where(numbers < 0, numbers + length, numbers)
    # Looked up in 0, 1, 2, ..., which lie along an axis of the same number: a fault names it.
    table = functions.reshape(functions.arange(length), (*(1,) * axis, length))
    shape = dims(indices)
    (found,) = emit("take", [table, indices], axis=axis)
    return convert(functions.reshape(found, shape), i64)


def _broadcast(places: Sequence[Any]) -> None:
    """The shapes of indices must fit one another, as far as they are known."""
    shapes = [type_of(place).shape for place in places]
    try:
        np.broadcast_shapes(*(tuple(d if isinstance(d, int) else 1 for d in shape) for shape in shapes))
    except ValueError:
        shown = " ".join(str(tuple(d if isinstance(d, int) else "?" for d in shape)) for shape in shapes)
        raise TypeMismatch(
            f"the arrays of an index have shapes {shown.replace(chr(39), '')}, which do not broadcast",
            hint="np.ix_(rows, columns) selects all that stand in these rows and columns",
            kind=IndexError,
        ) from None
