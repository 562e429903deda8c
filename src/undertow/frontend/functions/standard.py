"""What the array API standard has beside operators: grids, repeats, searching, sets, and questions about dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, plain, selecting
from undertow.frontend.functions import numpy_arranging as arranging
from undertow.frontend.functions import numpy_numbers as rarer
from undertow.frontend.functions import numpy_ordering as ordering
from undertow.frontend.functions import numpy_ufuncs as ufuncs
from undertow.frontend.values.operands import along, as_operand, common_dtype, is_weak, numbers, static_int, type_of
from undertow.tracebacks import boundaries
from undertow.types import DTYPES, DType, bool_, dtype_of, weak_dtype

__all__ = [
    "broadcast_arrays", "can_cast", "diff", "empty", "empty_like", "finfo", "hypot", "iinfo", "isdtype", "logaddexp",
    "meshgrid", "repeat", "result_type", "searchsorted", "signbit", "tile", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


# -- arrays ------------------------------------------------------------------------------------------------


def empty(shape: Any, /, dtype: Any = None) -> Any:
    """An array to be filled: here, of zeros."""
    return creation.zeros(shape, dtype)


def empty_like(x: Any, /, dtype: Any = None) -> Any:
    """An array to be filled, with the shape (and dtype) of x: here, of zeros."""
    return creation.zeros_like(x, dtype)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """The coordinates of a grid: for each vector an array of the shape of the grid."""
    return arranging.grids(*arrays, False, indexing)


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """The arrays, each repeated to the shape of all together."""
    return arranging.broadcast_arrays(*arrays)


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element of an axis so often, or as often as its count says; without an axis, of all elements.

    >>> repeat([1, 2], [1, 3])
    array([1, 2, 2, 2])
    """
    return selecting.repeated(x, repeats, axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """The whole array so often along each axis.

    >>> tile([1, 2], 2)
    array([1, 2, 1, 2])
    """
    return arranging.tiled(x, repetitions)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along an axis, n times; `prepend` and `append` are joined to it first.

    >>> diff([1, 4, 9])
    array([3, 5])
    """
    value, at = along(x, axis, "diff")
    given = [part for part in (prepend, value, append) if part is not None]
    are_booleans = all(type_of(as_operand(part)).dtype == bool_ for part in given)
    step = plain.not_equal if are_booleans else plain.subtract  # as in NumPy
    if len(given) > 1:
        given = numbers(*given)
        sizes = [*arrays.shape(value)[:at], 1, *arrays.shape(value)[at + 1 :]]
        value = arrays.concat([v if type_of(v).rank else arrays.broadcast_to(v, sizes) for v in given], axis=at)
    for _ in range(static_int(n, "the order of diff")):
        value = step(arrays.slice_between(value, 1, None, axis=at), arrays.slice_between(value, None, -1, axis=at))
    return value


def searchsorted(x: Any, values: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """How many elements of a sorted vector come before each value.

    >>> searchsorted([10, 20, 30], [20, 25])
    array([1, 2])
    """
    return ordering.search(x, values, side, sorter)


def hypot(x: Any, y: Any, /) -> Any:
    """sqrt(x * x + y * y), without overflow."""
    return ufuncs.hypot(x, y)


def logaddexp(x: Any, y: Any, /) -> Any:
    """log(exp(x) + exp(y)), without overflow."""
    return ufuncs.log_add(x, y)


def signbit(x: Any, /) -> Any:
    """Is the sign bit set? That of -0.0 is."""
    return rarer.signbit(x)


# -- sets --------------------------------------------------------------------------------------------------


@cache
def _named(name: str) -> Any:
    """The class of named tuples in which NumPy gives what a function of this name finds."""
    return type(getattr(np, name)(np.zeros(1)))


def unique_values(x: Any, /) -> Any:
    """The elements in order, each once; nan differs from nan."""
    return selecting.unique(x, False, False, False, None, False)


def unique_counts(x: Any, /) -> Any:
    """The elements in order, each once, and how often each occurs."""
    return _named("unique_counts")(*selecting.unique(x, False, False, True, None, False))


def unique_inverse(x: Any, /) -> Any:
    """The elements in order, each once, and which of them stands at each place."""
    return _named("unique_inverse")(*selecting.unique(x, False, True, False, None, False))


def unique_all(x: Any, /) -> Any:
    """The elements in order, each once; where each is first, which of them stands at each place, and their counts."""
    return _named("unique_all")(*selecting.unique(x, True, True, True, None, False))


# -- dtypes ------------------------------------------------------------------------------------------------


def result_type(*values: Any) -> DType:
    """The dtype that values and dtypes promote to.

    >>> result_type(np.float32(1), 2)
    f32
    """
    if not values:
        raise TypeMismatch("result_type needs a value or a dtype", hint="pass at least one")
    return common_dtype([v if is_weak(v) else _as_value(v) for v in values])


def _as_value(value: Any) -> Any:
    is_dtype = isinstance(value, (DType, np.dtype, type, str))
    return dtype_of(value).numpy.type(0) if is_dtype else as_operand(value)


def can_cast(x: Any, to: Any, /) -> bool:
    """May values of a dtype be converted to another without a loss of kind or range, by NumPy's rules?"""
    return bool(np.can_cast(_dtype(x).numpy, dtype_of(to).numpy))


def _dtype(x: Any) -> DType:
    if isinstance(x, (DType, np.dtype, type, str)):
        return dtype_of(x)
    return weak_dtype(x) if is_weak(x) else type_of(as_operand(x)).dtype


_KINDS = {
    "bool": ("bool",), "integral": ("int",), "signed integer": ("int",), "unsigned integer": (),
    "real floating": ("float",), "complex floating": (), "numeric": ("int", "float"),
}  # fmt: skip


def isdtype(dtype: Any, kind: Any, /) -> bool:
    """Is a dtype of a kind ("bool", "integral", "real floating", "numeric", ...), or one of several?"""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    unknown = [k for k in kinds if isinstance(k, str) and k not in _KINDS and k not in DTYPES]
    if unknown:
        raise TypeMismatch(f"{brief(unknown[0])} is not a kind of dtypes", hint=f"there are {', '.join(_KINDS)}")
    found = dtype_of(dtype)
    return any(found.kind in _KINDS[k] if isinstance(k, str) and k in _KINDS else found == dtype_of(k) for k in kinds)


def finfo(x: Any, /) -> Any:
    """The limits of a float dtype, or of that of an array: NumPy's `finfo`."""
    return np.finfo(_dtype(x).numpy)


def iinfo(x: Any, /) -> Any:
    """The limits of an integer dtype, or of that of an array: NumPy's `iinfo`."""
    return np.iinfo(_dtype(x).numpy)


boundaries(globals(), __all__)
