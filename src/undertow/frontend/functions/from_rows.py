"""Builds functions that only apply an operator to their arguments, from the operator's row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from undertow.frontend.values.operands import bools, compared, floats, numbers, one_axis, same_dtype, some_axes, type_of
from undertow.frontend.values.traced import emit
from undertow.ops.op import Op

_COERCIONS: dict[str | None, Callable[..., list[Any]]] = {
    "numbers": numbers, "floats": floats, "whole": numbers, "bools": bools, "same dtype": same_dtype,
    "choice": lambda condition, x, y: [*bools(condition), *same_dtype(x, y)],
}  # fmt: skip
_COMPARISONS = frozenset(("eq__", "ne__", "lt__", "le__", "gt__", "ge__"))


def function_of(row: Op) -> Callable[..., Any]:
    """A function with the signature and the docstring that the row asks for."""
    op, coerced = row.name, _COERCIONS[row.takes]
    if not _COMPARISONS.isdisjoint(row.names("__")):
        assert coerced is same_dtype, "true of all six"
        coerced = compared

    def of_one(x: Any, /) -> Any:
        return emit(op, coerced(x))[0]

    def of_whole(x: Any, /) -> Any:
        (value,) = coerced(x)
        return value if type_of(value).dtype.kind == "int" else emit(op, [value])[0]

    def of_two(x: Any, y: Any, /) -> Any:
        return emit(op, coerced(x, y))[0]

    def of_three(x: Any, y: Any, z: Any, /) -> Any:
        return emit(op, coerced(x, y, z))[0]

    def along_some(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
        (value,) = coerced(x)
        return emit(op, [value], axes=some_axes(axis, type_of(value).rank, op), keepdims=bool(keepdims))[0]

    def along_last(x: Any, /, axis: Any = -1) -> Any:
        (value,) = coerced(x)
        return emit(op, [value], axes=some_axes(axis, type_of(value).rank, op))[0]

    def in_order(x: Any, /, axis: int = -1, descending: bool = False) -> Any:
        (value,) = coerced(x)
        return emit(op, [value], axis=one_axis(axis, type_of(value).rank, op), descending=bool(descending))[0]

    def position(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
        (value,) = coerced(x)
        rank = type_of(value).rank
        if axis is not None:
            return emit(op, [value], axis=one_axis(axis, rank, op), keepdims=bool(keepdims))[0]
        (flat,) = emit("reshape", [value], shape=(-1,))
        (number,) = emit(op, [flat], axis=0, keepdims=False)
        return emit("reshape", [number], shape=(1,) * rank)[0] if keepdims else number

    by_arity: dict[int, Callable[..., Any]] = {1: of_whole if row.takes == "whole" else of_one, 2: of_two, 3: of_three}
    functions: dict[tuple[str, ...], Callable[..., Any]] = {
        (): by_arity[row.arity or 1],
        ("axes", "keepdims"): along_some,
        ("axes",): along_last,
        ("axis", "descending"): in_order,
        ("axis", "keepdims"): position,
    }
    function = functions[tuple(row.attrs)]
    function.__name__ = function.__qualname__ = row.public
    function.__doc__ = row.sentence("an axis, or in all elements row by row" if function is position else "an axis")
    if row.example:
        function.__doc__ += f"\n\n>>> {row.example}"
    if not row.attrs:
        parameters = zip(inspect.signature(function).parameters.values(), row.operands.split(), strict=False)
        shown = inspect.Signature([p.replace(name=name) for p, name in parameters], return_annotation="Any")
        function.__signature__ = shown  # type: ignore[attr-defined]
    return function
