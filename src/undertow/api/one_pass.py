"""One pass over a parameter, what is remembered of it, and its gradient: updates of NumPy arrays, in the core.

The bits are those of the formulas in `optim`. What is no array of f32 or f64 that stands row by row is left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undertow import _core
from undertow.frontend.values.rows import IndexedRows

Array = npt.NDArray[Any]
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Rule(NamedTuple):
    """An update that the core knows, and the numbers that it is given."""

    name: str
    settings: list[float]


def fits(gradient: Any, held: Sequence[Any]) -> bool:
    """Can the core update this parameter, and its slots, by this gradient? If so, that will not fail."""
    first = held[0]
    if not isinstance(first, np.ndarray) or first.dtype not in _DTYPES:
        return False
    dtype, shape = first.dtype, first.shape
    for value in held:
        is_like = isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape
        if not is_like or not value.flags.c_contiguous:
            return False
    if isinstance(gradient, np.ndarray):
        return bool(gradient.dtype == dtype) and gradient.shape == shape
    if not isinstance(gradient, IndexedRows) or gradient.shape != shape:
        return False
    numbers, rows = gradient.indices, gradient.rows
    if not isinstance(numbers, np.ndarray) or not isinstance(rows, np.ndarray) or rows.dtype != dtype:
        return False
    return numbers.size == 0 or bool(numbers.min() >= -shape[0] and numbers.max() < shape[0])


def update_in_place(rule: Rule, gradients: Sequence[Any], held: Sequence[Sequence[Any]]) -> bool:
    """All parameters and their slots, updated where they stand; False, and nothing done, where one does not fit."""
    given: list[Any] = []
    for gradient, places in zip(gradients, held, strict=True):
        if isinstance(gradient, IndexedRows):
            if gradient.shape != getattr(places[0], "shape", None):
                return False
            gradient = gradient.indices, gradient.rows
        given.append(gradient)
    return _core.update_all(rule.name, given, list(held), rule.settings)


def updated(rule: Rule, gradient: Any, held: Sequence[Any], donate: bool) -> list[Array]:
    """A parameter and its slots, which fit, after an update; in the memory of the old ones where they are donated."""
    in_place = donate and all(value.flags.writeable for value in held)
    if isinstance(gradient, IndexedRows):
        places = list(held) if in_place else [np.array(value, subok=False) for value in held]
        numbers = np.ascontiguousarray(gradient.indices, np.int64).reshape(-1)
        _core.update_rows(rule.name, numbers, np.ascontiguousarray(gradient.rows), places, rule.settings)
        return places
    places = list(held) if in_place else [np.empty_like(value, subok=False) for value in held]
    _core.update(rule.name, np.ascontiguousarray(gradient), list(held), places, rule.settings)
    return places


def square_sum(gradient: Any) -> float | None:
    """The sum of all squares, in f64, of a gradient that is made of arrays; None of another."""
    rows = gradient.rows if isinstance(gradient, IndexedRows) else gradient
    if not isinstance(rows, np.ndarray) or rows.dtype not in _DTYPES:
        return None
    if isinstance(gradient, IndexedRows):
        if not isinstance(gradient.indices, np.ndarray):
            return None
        rows = _summed(gradient.indices, rows, gradient.shape[0])
    flat = rows.reshape(-1)
    return float(np.einsum("i,i->", flat, flat, dtype=np.float64))


def _summed(indices: Array, rows: Array, length: int) -> Array:
    """The rows, where those with one number are one row, their sum."""
    numbers = indices.reshape(-1) % max(length, 1)  # negative ones count from the end
    if numbers.size < 2:
        return rows
    order = np.argsort(numbers, kind="stable")
    is_first = np.diff(numbers[order], prepend=-1) != 0
    return np.add.reduceat(rows.reshape(numbers.size, -1)[order], np.flatnonzero(is_first), axis=0)


def are_apart(arrays: Sequence[Any]) -> bool:
    """Has each array memory of its own? Others cannot be changed in place, one after the other."""
    spans = sorted(_span(value) for value in arrays if isinstance(value, np.ndarray))
    return all(one[1] <= next_[0] for one, next_ in pairwise(spans))


def _span(value: Array) -> tuple[int, int]:
    """Where an array begins and ends."""
    start: int = value.__array_interface__["data"][0]
    return start, start + value.nbytes
