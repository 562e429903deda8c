"""Types of operator attributes: declared by rows, checked by `undertow.ops.vet` on graphs from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from undertow.ir.graph import Attr
from undertow.types import DTYPES

MOST_AXES = 32
# Arrays whose size is computed at run time may not have more elements than this.
MOST_ELEMENTS = 2**31

Kind = Callable[[Attr], bool]


def _whole(least: int, most: int) -> Kind:
    return lambda value: type(value) is int and least <= value <= most


is_integer = _whole(-(2**63), 2**63 - 1)
is_size = _whole(0, MOST_ELEMENTS)
_is_axis = _whole(0, MOST_AXES - 1)


def _is_flag(value: Attr) -> bool:
    return type(value) is bool


def _is_dtype(value: Attr) -> bool:
    return isinstance(value, str) and value in DTYPES and DTYPES[value].kind != "ctl"


def tuple_of(kind: Kind, or_none: bool = False, distinct: bool = False) -> Kind:
    def fits(value: Attr) -> bool:
        if not isinstance(value, tuple) or len(value) > MOST_AXES or (distinct and len(set(value)) < len(value)):
            return False
        return all((or_none and item is None) or kind(item) for item in value)

    return fits


AXIS: Mapping[str, Kind] = {"axis": _is_axis}
AXES: Mapping[str, Kind] = {"axes": tuple_of(_is_axis, distinct=True)}
SHAPE: Mapping[str, Kind] = {"shape": tuple_of(is_size, or_none=True)}
DTYPE: Mapping[str, Kind] = {"dtype": _is_dtype}
KEEPDIMS: Mapping[str, Kind] = {"keepdims": _is_flag}
DESCENDING: Mapping[str, Kind] = {"descending": _is_flag}
LOWER: Mapping[str, Kind] = {"lower": _is_flag}
INVERSE: Mapping[str, Kind] = {"inverse": _is_flag}
_BOUNDS = tuple_of(is_integer, or_none=True)
BOUNDS: Mapping[str, Kind] = {"starts": _BOUNDS, "stops": _BOUNDS, "steps": _BOUNDS}
TEMPLATE: Mapping[str, Kind] = {"template": lambda value: isinstance(value, str)}
