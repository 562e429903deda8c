"""NumPy's reductions with a mask of the elements that count, and a value to begin with; those that ufuncs have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import elementwise, plain
from undertow.frontend.functions import reduction as along
from undertow.frontend.functions.numpy_arranging import rank_of
from undertow.frontend.values.operands import (
    as_bool,
    as_operand,
    dims,
    is_static_int,
    numbers,
    one_axis,
    static_int,
    type_of,
)
from undertow.types import bool_, dtype_of, said

_LEFT_OUT = (None, True)  # what `where` says if all elements count


def _counting(a: Any, where: Any, neutral: Any) -> Any:
    """The array with a neutral element where the mask is false."""
    if any(where is no for no in _LEFT_OUT):
        return a
    value = as_operand(a)
    return plain.where(arrays.broadcast_to(as_bool(where), dims(value)), value, neutral)


def summing(function: Callable[..., Any], joined: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    """np.sum, np.prod."""

    def reduce(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        found = function(_counting(a, where, neutral), axis=axis, dtype=dtype, keepdims=keepdims)
        if initial is None:
            return found
        return elementwise.astype(joined(found, initial), type_of(as_operand(found)).dtype)

    return reduce


def extreme(function: Callable[..., Any], joined: Callable[..., Any], name: str) -> Callable[..., Any]:
    """np.max, np.min: of no elements there is only the initial one."""

    def reduce(a: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        value = as_operand(a)
        if initial is None:
            if not any(where is no for no in _LEFT_OUT):
                raise TypeMismatch(f"np.{name} with a mask has no value for no elements", hint="pass initial=")
            if type_of(value).dtype != bool_:
                return function(value, axis=axis, keepdims=keepdims)
            return elementwise.astype(function(numbers(value)[0], axis=axis, keepdims=keepdims), bool_)
        if type_of(value).dtype == bool_:
            raise CaptureError(
                f"np.{name} of booleans with `initial` cannot be captured", hint="use np.any(x) or np.all(x)"
            )
        first = elementwise.astype(initial, type_of(value).dtype)
        value = _counting(value, where, first)
        axes = range(type_of(value).rank) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
        # One more element along an axis, so that there is always one.
        for each in list(axes)[:1]:
            at = one_axis(each, type_of(value).rank, f"np.{name}")
            lengths = dims(value)
            room = arrays.broadcast_to(first, (*lengths[:at], 1, *lengths[at + 1 :]))
            value = arrays.concat([value, room], axis=at)
        found = function(value, axis=axis, keepdims=keepdims)
        return joined(found, first) if any(n == 0 for n in type_of(as_operand(found)).shape) else found

    return reduce


def testing(function: Callable[..., Any], neutral: bool) -> Callable[..., Any]:
    """np.any, np.all."""

    def reduce(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
        return function(_counting(as_bool(a), where, neutral), axis=axis, keepdims=keepdims)

    return reduce


def mean(a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any) -> Any:
    """np.mean."""
    value = a if dtype is None else elementwise.astype(a, dtype_of(dtype))
    if any(where is no for no in _LEFT_OUT):
        found = along.mean(value, axis=axis, keepdims=keepdims)
    else:
        mask = arrays.broadcast_to(as_bool(where), arrays.shape(value))
        total = along.sum(_counting(value, mask, 0), axis=axis, keepdims=keepdims)
        found = plain.divide(total, along.sum(mask, axis=axis, keepdims=keepdims))
    return found if dtype is None else elementwise.astype(found, dtype_of(dtype))


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """np.std, np.var."""

    def reduce(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, correction: Any) -> Any:
        value = a if dtype is None else elementwise.astype(a, dtype_of(dtype))
        found = function(value, axis=axis, correction=ddof if correction is None else correction, keepdims=keepdims)
        return found if dtype is None else elementwise.astype(found, dtype_of(dtype))

    return reduce


# -- the methods of ufuncs ---------------------------------------------------------------------------------


def _reduced(name: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    if name in ("add", "multiply"):
        compute = summing(along.sum, plain.add, 0) if name == "add" else summing(along.prod, plain.multiply, 1)
        return compute(a, axis, dtype, keepdims, initial, where)
    if name in ("maximum", "minimum"):
        best = (plain.max, plain.maximum) if name == "maximum" else (plain.min, plain.minimum)
        return extreme(*best, f"{name}.reduce")(a, axis, keepdims, initial, where)
    test = testing(plain.any, False) if name == "logical_or" else testing(plain.all, True)
    return test(a, axis, keepdims, where)


_REDUCING = frozenset(("add", "multiply", "maximum", "minimum", "logical_or", "logical_and"))


def _accumulated(name: str, a: Any, axis: Any, dtype: Any) -> Any:
    if name in ("add", "multiply"):
        return (along.cumulative_sum if name == "add" else along.cumulative_prod)(a, axis=axis, dtype=dtype)
    value = numbers(a)[0]
    at = one_axis(axis, type_of(value).rank, f"np.{name}.accumulate")
    length = dims(value)[at]
    if not is_static_int(length):
        raise CaptureError(
            f"np.{name}.accumulate of a length known only at run time cannot be captured",
            hint=f"write the loop: for i in range(1, len(x)): x[i] = np.{name}(x[i - 1], x[i])",
        )
    reach, join = 1, plain.maximum if name == "maximum" else plain.minimum
    while reach < length:  # each element knows those before it, twice as many each time
        earlier = arrays.slice_between(value, None, -reach, axis=at)
        first = arrays.slice_between(value, None, reach, axis=at)
        value = arrays.concat([first, join(arrays.slice_between(value, reach, None, axis=at), earlier)], axis=at)
        reach *= 2
    return elementwise.astype(value, bool_) if type_of(as_operand(a)).dtype == bool_ else value


def _refuse(ufunc: Any, method: str, hint: str) -> CaptureError:
    return CaptureError(f"np.{ufunc.__name__}.{method} cannot be captured", hint=hint)


def ufunc_method(apply: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`np.add.reduce(x)`, `np.maximum.accumulate(x)`, `np.multiply.outer(x, y)`."""
    name = ufunc.__name__
    if method == "outer" and ufunc.nin == 2 and not kwargs:
        first, second = (as_operand(x) for x in inputs)
        ones = tuple(range(rank_of(first), rank_of(first) + rank_of(second)))
        return apply(ufunc, arrays.expand_dims(first, ones) if ones else first, second)
    if method == "accumulate" and name in ("add", "multiply", "maximum", "minimum"):
        given = _bound(ufunc, method, ("array", "axis", "dtype", "out"), (0, None, None), inputs, kwargs)
        return _accumulated(name, given["array"], static_int(given["axis"], "the axis"), given["dtype"])
    if method == "reduce" and name in _REDUCING:
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        given = _bound(ufunc, method, names, (0, None, None, False, None, True), inputs, kwargs)
        return _reduced(
            name, given["array"], given["axis"], given["dtype"], given["keepdims"], given["initial"], given["where"]
        )
    if method == "at":
        raise _refuse(ufunc, method, "np.add.at and np.subtract.at can; for others write x[i] = f(x[i], v) in a loop")
    raise _refuse(ufunc, method, f"write a loop, or np.{name} of parts of the array")


def _bound(
    ufunc: Any, method: str, names: tuple[str, ...], defaults: tuple[Any, ...], inputs: Any, kwargs: dict[str, Any]
) -> dict[str, Any]:
    given = dict(zip(names[1:], defaults, strict=True)) | dict(zip(names, inputs, strict=False)) | kwargs
    if len(inputs) > len(names) or set(given) - set(names):
        raise _refuse(ufunc, f"{method} with {', '.join(sorted(set(kwargs) - set(names)))}", "leave it out")
    if given["out"] not in (None, (None,)):
        raise _refuse(ufunc, f"{method} with out=", f"assign the result instead: y = np.{ufunc.__name__}.{method}(x)")
    if not isinstance(given["axis"], (int, np.integer, tuple, type(None))):
        raise TypeMismatch(f"an axis must be known at capture time, not {said(type_of(as_operand(given['axis'])))}")
    return given
