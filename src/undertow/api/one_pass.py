"""Fused optimizer updates in the core: one pass over a parameter, its slots and its gradient, as NumPy arrays.

For C-contiguous arrays of f32 or f64. Results are bit-identical to those of the rules in `update_rules` on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow import _core
from undertow.api.update_rules import IN_CORE, Update
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.traced import Traced

Array = npt.NDArray[Any]
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def fits(by: Update, gradient: Any, held: Sequence[Any]) -> bool:
    """Can the core update this parameter and its slots by this gradient? If so, the update cannot fail."""
    is_known = _name(by) is not None and all(isinstance(value, np.ndarray) for value in held)
    return is_known and _core.fits(_for_core(gradient, held), held)


def _name(by: Update) -> str | None:
    """What the core calls the rule; None if it does not have it, or settings are not known yet."""
    rule, settings = by
    for setting in settings:  # any() with a generator takes a twentieth of an update
        if isinstance(setting, Traced):
            return None
    return IN_CORE.get(rule)


def update(
    by: Update, gradients: Sequence[Any], held: list[Sequence[Any]], donate: bool
) -> list[Sequence[Array]] | None:
    """Each parameter and its slots after an update, in the memory of the old ones where all are donated.

    None, and nothing done, where one does not fit.
    """
    name, settings = _name(by), by[1]
    if name is None:
        return None
    given = [
        _for_core(g, values) if isinstance(g, IndexedRows) else g for g, values in zip(gradients, held, strict=True)
    ]
    if donate and _core.update(name, given, held, held, settings):
        return held
    if not all(isinstance(value, np.ndarray) for values in held for value in values):
        return None
    # A sparse gradient changes some rows of a copy; a dense one writes all that there is.
    places: list[Sequence[Array]] = [
        [
            np.array(value, subok=False) if isinstance(g, tuple) else np.empty_like(value, subok=False)
            for value in values
        ]
        for g, values in zip(given, held, strict=True)
    ]
    return places if _core.update(name, given, held, places, settings) else None


def _for_core(gradient: Any, held: Sequence[Any]) -> Any:
    """A gradient as the core takes it: an array, or row numbers and rows."""
    if isinstance(gradient, IndexedRows):
        return (gradient.indices, gradient.rows) if gradient.shape == getattr(held[0], "shape", None) else None
    return gradient


def square_sum(gradient: Any) -> float | None:
    """The sum of squares, in f64, of a gradient made of arrays; None for any other."""
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
    """The rows, with duplicates summed."""
    numbers = indices.reshape(-1) % max(length, 1)  # negative ones count from the end
    if numbers.size < 2:
        return rows
    order = np.argsort(numbers, kind="stable")
    is_first = np.diff(numbers[order], prepend=-1) != 0
    return np.add.reduceat(rows.reshape(numbers.size, -1)[order], np.flatnonzero(is_first), axis=0)
