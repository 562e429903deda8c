"""What NumPy's functions and methods do differently from the functions of ut: their arguments come in NumPy's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, linalg, parts, plain, selecting
from undertow.frontend.functions import reduction as along
from undertow.frontend.functions.numpy_arranging import at_least, flattened, listed, rank_of
from undertow.frontend.values.operands import as_operand, is_static_int, one_axis, static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, effect
from undertow.types import bool_, dtype_of, said


def dtype_in(x: Any) -> Any:
    return type_of(as_operand(x)).dtype


def refuse_booleans(name: str, x: Any, gives: str) -> None:
    if dtype_in(x) == bool_:
        raise TypeMismatch(
            f"{name} of booleans is {gives} in NumPy, which graphs do not have",
            hint="convert them first, as in x.astype(np.int64)",
        )


def without_booleans(name: str, operands: Any) -> Any:
    """Operands, of which not all are booleans: NumPy's arithmetic on these is an error, or gives booleans."""
    given = [x for x in operands if not isinstance(x, (list, tuple))]
    if given and all(dtype_in(x) == bool_ for x in given):
        raise TypeMismatch(
            f"{name} of booleans cannot be captured: NumPy refuses it, or gives booleans",
            hint="convert them first, as in x.astype(np.int64)",
        )
    return operands


def no_booleans(name: str, function: Callable[..., Any], first: int = 0) -> Callable[..., Any]:
    """A function that is arithmetic on its array, the first argument, or on the arguments from there on."""

    def compute(*given: Any) -> Any:
        without_booleans(name, given[first:] if first else given[:1])
        return function(*given)

    return compute


def average(a: Any, axis: Any, weights: Any, keepdims: bool) -> Any:
    if weights is None:
        return along.mean(a, axis=axis, keepdims=keepdims)
    rank = rank_of(a)
    if rank > 1 and rank_of(weights) == 1 and is_static_int(axis):
        after = rank - 1 - one_axis(axis, rank, "np.average")
        wide = arrays.expand_dims(weights, tuple(range(1, 1 + after))) if after else as_operand(weights)
        weights = arrays.broadcast_to(wide, arrays.shape(a))
    if rank != rank_of(weights):
        raise TypeMismatch(
            "np.average takes weights of the shape of the array", hint="write ut.sum(a * w, axis=0) / ut.sum(w)"
        )
    total = along.sum(plain.multiply(a, weights), axis=axis, keepdims=keepdims)
    return plain.divide(total, along.sum(weights, axis=axis, keepdims=keepdims))


def ordered(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def in_order(a: Any, axis: Any) -> Any:
        return function(flattened(a), axis=0) if axis is None else function(a, axis=axis)

    return in_order


def in_sorted_order(a: Any, axis: Any) -> Any:
    """np.sort and x.sort: booleans stay booleans."""
    inner = ordered(plain.sort)(a, axis)
    return elementwise.astype(inner, bool_) if dtype_in(a) == bool_ else inner


def clipped(a: Any, a_min: Any, a_max: Any, low: Any, high: Any) -> Any:
    return elementwise.clip(a, low if a_min is None else a_min, high if a_max is None else a_max)


def rounded(a: Any, decimals: Any) -> Any:
    refuse_booleans("np.round", a, "float16")
    return elementwise.round(a, static_int(decimals, "the number of decimals"))


def swapped(a: Any, axis1: Any, axis2: Any) -> Any:
    order = list(range(rank_of(a)))
    first, second = (static_int(axis, "an axis of np.swapaxes") for axis in (axis1, axis2))
    if not all(-len(order) <= axis < len(order) for axis in (first, second)):
        raise TypeMismatch(
            f"axis {first} or {second} is out of range for {said(type_of(as_operand(a)))}",
            hint="count axes from 0, or from -1 backwards",
        )
    order[first], order[second] = order[second], order[first]
    return arrays.permute_dims(a, tuple(order))


def moved(a: Any, source: Any, destination: Any) -> Any:
    if is_static_int(source) and is_static_int(destination):
        return arrays.moveaxis(a, source, destination)
    rank = rank_of(a)
    froms, tos = ([one_axis(axis, rank, "np.moveaxis") for axis in np.atleast_1d(of)] for of in (source, destination))
    if len(froms) != len(tos) or len(set(froms)) != len(froms) or len(set(tos)) != len(tos):
        raise TypeMismatch("np.moveaxis takes as many axes as places for them, each once", hint="count them")
    order = [axis for axis in range(rank) if axis not in froms]
    for to, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, axis)
    return arrays.permute_dims(a, tuple(order))


def rolled(a: Any, shift: Any, axis: Any) -> Any:
    if not isinstance(shift, (tuple, list)) and not isinstance(axis, (tuple, list)):
        return arrays.roll(a, shift, axis=axis)
    if axis is None:
        raise TypeMismatch("several shifts of np.roll need an axis each", hint="name them: axis=(0, 1)")
    axes = axis if isinstance(axis, (tuple, list)) else [axis] * len(shift)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(axes) != len(shifts):
        raise TypeMismatch(f"np.roll by {len(shifts)} shifts along {len(axes)} axes", hint="give one for each axis")
    for each, at in zip(shifts, axes, strict=True):
        a = arrays.roll(a, each, axis=at)
    return a


def transposed(a: Any, axes: Any) -> Any:
    return arrays.transpose(a, axes if axes is None or isinstance(axes, (tuple, list)) else (axes,))


def in_rows(values: Any, least: int) -> list[Any]:
    return [at_least(v, least) for v in listed(values)]


def each(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Of one array, its result; of several, a tuple of them."""
    return lambda *given: function(given[0]) if len(given) == 1 else tuple(map(function, given))


def beside(arrays_given: Any) -> Any:
    values = in_rows(arrays_given, 1)
    return arrays.concat(values, axis=0 if rank_of(values[0]) == 1 else 1)


def columns(arrays_given: Any) -> Any:
    columns = [arrays.expand_dims(at_least(v, 1), 1) if rank_of(v) < 2 else v for v in listed(arrays_given)]
    return arrays.concat(columns, axis=1)


def appended(arr: Any, values: Any, axis: Any) -> Any:
    return arrays.concat(
        [flattened(arr), flattened(values)] if axis is None else [arr, values], axis=0 if axis is None else axis
    )


def split_up(ary: Any, parts: Any, axis: Any) -> Any:
    return arrays.split(ary, list(parts) if isinstance(parts, np.ndarray) else parts, axis=axis)


def taken(a: Any, indices: Any, axis: Any, mode: Any) -> Any:
    if mode in ("clip", "wrap"):
        whole, at = (flattened(a), 0) if axis is None else (as_operand(a), one_axis(axis, rank_of(a), "np.take"))
        length = arrays.length(whole, at)
        if mode == "wrap":
            indices = plain.remainder(indices, length)
        else:
            indices = plain.minimum(plain.maximum(indices, 0), plain.subtract(length, 1))
    elif mode != "raise":
        raise CaptureError(f"np.take with mode={mode!r} cannot be captured", hint="use 'raise', 'clip' or 'wrap'")
    return arrays.take(flattened(a) if axis is None else a, indices, axis=0 if axis is None else axis)


def taken_along(arr: Any, indices: Any, axis: Any) -> Any:
    if axis is None:
        return arrays.take_along_axis(flattened(arr), indices, axis=0)
    return arrays.take_along_axis(arr, indices, axis=axis)


def _known_shape(x: Any, name: str) -> tuple[int, ...]:
    known = type_of(as_operand(x)).shape
    if not all(isinstance(d, int) for d in known):
        raise CaptureError(
            f"{name} of an array whose shape is known only at run time cannot be captured",
            hint="use ut.arange and ut.take",
        )
    return known  # type: ignore[return-value]


def vdot(a: Any, b: Any) -> Any:
    return linalg.dot(parts.conj(flattened(a)), flattened(b))


def inner(a: Any, b: Any) -> Any:
    if 0 in (rank_of(a), rank_of(b)):
        return plain.multiply(a, b)
    return linalg.tensordot(a, b, axes=([-1], [-1]))


def product(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def multiply(a: Any, b: Any, *more: Any) -> Any:
        if dtype_in(a) == bool_ and dtype_in(b) == bool_:
            refuse_booleans(name, a, "a boolean")
        return function(a, b, *more)

    return multiply


def no_eigenvalues(name: str, instead: str) -> Callable[..., Any]:
    def refuse(a: Any) -> Any:
        raise CaptureError(
            f"np.linalg.{name} cannot be captured: its values are real or complex, which is known only at run time",
            hint=f"of a symmetric matrix, np.linalg.{instead} gives the same values",
        )

    return refuse


def real(val: Any) -> Any:
    refuse_booleans("np.real", val, "an integer")
    return parts.real(val)


def imaginary(val: Any) -> Any:
    refuse_booleans("np.imag", val, "an integer")
    return parts.imag(val)


def conjugate(a: Any) -> Any:
    refuse_booleans("np.conj", a, "an integer")
    return parts.conj(a)


def angle(z: Any, deg: Any) -> Any:
    found = parts.angle(z)
    return plain.multiply(found, 180.0 / np.pi) if deg else found


def is_close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    bound = plain.add(atol, plain.multiply(rtol, plain.abs(b)))
    near = plain.logical_and(plain.isfinite(b), plain.less_equal(plain.abs(plain.subtract(a, b)), bound))
    close = plain.logical_or(near, plain.equal(a, b))
    return plain.logical_or(close, plain.logical_and(plain.isnan(a), plain.isnan(b))) if equal_nan else close


def is_equal(a1: Any, a2: Any) -> Any:
    if type_of(as_operand(a1)).shape != type_of(as_operand(a2)).shape:
        _known_shape(a1, "np.array_equal"), _known_shape(a2, "np.array_equal")
        return False
    return plain.all(plain.equal(a1, a2))


def as_array(object: Any, dtype: Any, ndmin: Any = 0) -> Any:
    return at_least(creation.asarray(object, dtype=dtype), static_int(ndmin, "ndmin"))


def finite_array(a: Any, dtype: Any) -> Any:
    value = creation.asarray(a, dtype=dtype)
    text = "array must not contain infs or NaNs"
    effect("raise", [plain.all(plain.isfinite(value))], template=text, error="ValueError")
    return value


def rolled_axis(a: Any, axis: Any, start: Any) -> Any:
    rank = rank_of(a)
    at, before = one_axis(axis, rank, "np.rollaxis"), static_int(start, "start")
    before += rank if before < 0 else 0
    return arrays.moveaxis(a, at, before - 1 if at < before else before)


def counted(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    return creation.arange(start, stop, 1 if step is None else step, dtype=dtype)


def spaced(start: Any, stop: Any, num: Any, endpoint: Any, dtype: Any) -> Any:
    if dtype is not None and not dtype_of(dtype).is_inexact:
        raise TypeMismatch("np.linspace of integers cannot be captured", hint="convert the result with ut.astype")
    return creation.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)


def spaced_by_powers(start: Any, stop: Any, num: Any, endpoint: Any, base: Any, dtype: Any) -> Any:
    return elementwise.pow(base, spaced(start, stop, num, endpoint, dtype))


def of_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that joins arrays, with the dtype of the result as its last argument."""

    def joined(values: Any, *given: Any) -> Any:
        *axis, dtype = given
        found = function(values, *axis) if not axis else function(values, axis=axis[0])
        return found if dtype is None else elementwise.astype(found, dtype_of(dtype))

    return joined


def filled(shape: Any, fill_value: Any, dtype: Any) -> Any:
    """np.full: the value may be an array that broadcasts."""
    if not rank_of(fill_value):
        return creation.full(shape, fill_value, dtype=dtype)
    value = as_operand(fill_value) if dtype is None else elementwise.astype(fill_value, dtype_of(dtype))
    return arrays.broadcast_to(value, shape if isinstance(shape, (tuple, list)) else (shape,))


def filled_like(a: Any, fill_value: Any, dtype: Any, shape: Any) -> Any:
    return filled(
        arrays.shape(a) if shape is None else shape, fill_value, dtype_in(a).numpy if dtype is None else dtype
    )


def shaped_like(function: Callable[..., Any]) -> Callable[..., Any]:
    """np.zeros_like and its kin."""

    def make(a: Any, dtype: Any, shape: Any) -> Any:
        return function(
            arrays.shape(a) if shape is None else shape, dtype=dtype_in(a).numpy if dtype is None else dtype
        )

    return make


def like(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, dtype: function(a, dtype=dtype)


def size_of(a: Any, axis: Any) -> Any:
    return along.size(a) if axis is None else arrays.length(a, axis)


def chosen(condition: Any, x: Any, y: Any) -> Any:
    if x is None and y is None:
        return selecting.nonzero(condition)
    if x is None or y is None:
        raise CaptureError("np.where takes both x and y, or neither", hint="write np.where(condition, x, y)")
    return plain.where(condition, x, y)


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis, keepdims: function(a, axis=axis, keepdims=keepdims)


def item_of(a: Any, *at: Any) -> Any:
    if not at:
        size = np.prod(_known_shape(a, "x.item()"), dtype=int)
        if size != 1:
            raise TypeMismatch(f"x.item() takes an array of one element, not {said(a.type)}", hint="name it: x[i]")
        return elementwise.python_number(arrays.reshape(a, ()))
    if len(at) == 1 and not isinstance(at[0], tuple):
        return elementwise.python_number(FUNCTIONS["__getitem__"](flattened(a), at[0]))
    return elementwise.python_number(FUNCTIONS["__getitem__"](a, at[0] if len(at) == 1 else at))


def nested(a: Any) -> Any:
    """x.tolist(): nested lists of scalars. (Recursion is as deep as an array has axes.)"""
    known = _known_shape(a, "x.tolist()")
    return [nested(part) for part in arrays.unstack(a)] if known else elementwise.python_number(a)


def reshaped_in(a: Any, shape: Any, order: Any) -> Any:
    """np.reshape: in Fortran's order, the first axis is that of neighbours."""
    if order in ("C", None):
        return arrays.reshape(a, shape)
    if order != "F":
        raise CaptureError(f"reshape with order={order!r} cannot be captured", hint="use 'C' or 'F'")
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return arrays.permute_dims(
        arrays.reshape(_backwards(a), tuple(reversed(sizes))), tuple(reversed(range(len(sizes))))
    )


def _backwards(a: Any) -> Any:
    return arrays.permute_dims(a, tuple(reversed(range(rank_of(a)))))


def flattened_in(a: Any, order: Any) -> Any:
    """np.ravel, x.flatten."""
    if order not in ("C", "F", None):
        raise CaptureError(f"an array cannot be flattened with order={order!r}", hint="use 'C' or 'F'")
    return flattened(_backwards(a) if order == "F" else a)


def reshaped(a: Any, *given: Any) -> Any:
    *shape, order = given
    return reshaped_in(a, shape[0] if len(shape) == 1 else tuple(shape), order)


def turned(a: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not is_static_int(axes[0]) else axes or None
    return arrays.transpose(a, order)


def converted(a: Any, dtype: Any) -> Any:
    return elementwise.astype(a, dtype)
