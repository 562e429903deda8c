"""NumPy's functions and methods on traced values, with NumPy's parameters.

A row is a name of NumPy's, its parameters in NumPy's order, and a function of those that are left. `axis=None` is a
parameter with its default. `!out` is one that has no counterpart: it is refused unless it is left out, or asks for
what happens anyway (`order="C"`). What has no row is refused: nothing of NumPy's runs on traced values.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, linalg, plain
from undertow.frontend.functions import reduction as along
from undertow.frontend.values.operands import as_operand, is_static_int, numbers, one_axis, static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, NUMPY, Traced, numpy_names
from undertow.types import DTYPES, bool_, dtype_of, f64, said

_LEFT_OUT = object()
# What a parameter without a counterpart may say: it changes nothing here. None is always right.
_HARMLESS: Mapping[str, tuple[Any, ...]] = {
    "order": ("C", "K", "A"), "where": (True,), "mode": ("raise",), "casting": ("same_kind", "unsafe"),
    "kind": ("quicksort", "stable", "mergesort", "heapsort"), "stable": (True, False), "copy": (True, False),
    "subok": (True, False), "device": ("cpu",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A function of NumPy's on traced values."""

    name: str
    parameters: inspect.Signature
    refused: frozenset[str]
    compute: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as fault:
            raise CaptureError(
                f"{self.name} cannot be captured like this: {fault}", hint=f"on traced values it takes {self.taken}"
            ) from None
        bound.apply_defaults()
        left: list[Any] = []
        for name, value in bound.arguments.items():
            kind = self.parameters.parameters[name].kind
            if name not in self.refused:
                left += value if kind is inspect.Parameter.VAR_POSITIONAL else [value]
            elif value is not _LEFT_OUT and value is not None and not _is_one_of(value, self._harmless(name)):
                raise CaptureError(
                    f"{self.name} with `{name}` cannot be captured",
                    hint="assign the result instead: y = " + self.taken
                    if name == "out"
                    else f"on traced values it takes {self.taken}",
                )
        return self.compute(*left)

    def _harmless(self, name: str) -> tuple[Any, ...]:
        # "A" and "K" go by memory: that moves the elements of these, and of others only where they are stored.
        reads_in_order = self.name.rpartition(".")[2] in ("flatten", "ravel", "reshape")
        return ("C",) if name == "order" and reads_in_order else _HARMLESS.get(name, ())

    @property
    def taken(self) -> str:
        shown = [str(p) for n, p in self.parameters.parameters.items() if n not in self.refused]
        return f"{self.name}({', '.join(shown)})"


def _is_one_of(value: Any, harmless: Sequence[Any]) -> bool:
    return isinstance(value, (str, bool)) and value in harmless


def _row(name: str, parameters: str, compute: Callable[..., Any]) -> Row:
    made: list[inspect.Parameter] = []
    refused: set[str] = set()
    for text in parameters.split():
        named, equals, default = text.partition("=")
        if named.startswith("*"):
            made.append(inspect.Parameter(named[1:], inspect.Parameter.VAR_POSITIONAL))
            continue
        is_last = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in made)
        kind = inspect.Parameter.KEYWORD_ONLY if is_last else inspect.Parameter.POSITIONAL_OR_KEYWORD
        if named.startswith("!"):
            named = named[1:]
            refused.add(named)
            made.append(inspect.Parameter(named, kind, default=_LEFT_OUT))
        elif equals:
            made.append(inspect.Parameter(named, kind, default=ast.literal_eval(default)))
        else:
            made.append(inspect.Parameter(named, kind))
    return Row(name, inspect.Signature(made), frozenset(refused), compute)


# -- what NumPy does differently from the functions of ut --------------------------------------------------


def _flat(x: Any) -> Any:
    return arrays.reshape(x, (-1,))


def _dtype(x: Any) -> Any:
    return type_of(as_operand(x)).dtype


def _rank(x: Any) -> int:
    return type_of(as_operand(x)).rank


def _refuse_booleans(name: str, x: Any, gives: str) -> None:
    if _dtype(x) == bool_:
        raise TypeMismatch(
            f"{name} of booleans is {gives} in NumPy, which graphs do not have",
            hint="convert them first, as in x.astype(np.int64)",
        )


def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    value = a if dtype is None else elementwise.astype(a, dtype_of(dtype))
    mean = along.mean(value, axis=axis, keepdims=keepdims)
    return mean if dtype is None else elementwise.astype(mean, dtype_of(dtype))


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    def spread(a: Any, axis: Any, ddof: Any, keepdims: bool, correction: Any) -> Any:
        return function(a, axis=axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    return spread


def _average(a: Any, axis: Any, weights: Any, keepdims: bool) -> Any:
    if weights is None:
        return along.mean(a, axis=axis, keepdims=keepdims)
    if type_of(as_operand(a)).shape != type_of(as_operand(weights)).shape:
        raise TypeMismatch(
            "np.average takes weights of the shape of the array", hint="write ut.sum(a * w, axis=0) / ut.sum(w)"
        )
    total = along.sum(plain.multiply(a, weights), axis=axis, keepdims=keepdims)
    return plain.divide(total, along.sum(weights, axis=axis, keepdims=keepdims))


def _cumsum(a: Any, axis: Any, dtype: Any) -> Any:
    return along.cumulative_sum(_flat(a) if axis is None else a, axis=0 if axis is None else axis, dtype=dtype)


def _cumulative_sum(x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    if include_initial:
        raise CaptureError(
            "np.cumulative_sum with `include_initial` cannot be captured",
            hint="write ut.concat([[0], ut.cumulative_sum(x)])",
        )
    return along.cumulative_sum(x, axis=axis, dtype=dtype)


def _ordered(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def in_order(a: Any, axis: Any) -> Any:
        return function(_flat(a), axis=0) if axis is None else function(a, axis=axis)

    return in_order


def _clip(a: Any, a_min: Any, a_max: Any, low: Any, high: Any) -> Any:
    return elementwise.clip(a, low if a_min is None else a_min, high if a_max is None else a_max)


def _round(a: Any, decimals: Any) -> Any:
    _refuse_booleans("np.round", a, "float16")
    return elementwise.round(a, static_int(decimals, "the number of decimals"))


def _swap(a: Any, axis1: Any, axis2: Any) -> Any:
    order = list(range(_rank(a)))
    first, second = (static_int(axis, "an axis of np.swapaxes") for axis in (axis1, axis2))
    if not all(-len(order) <= axis < len(order) for axis in (first, second)):
        raise TypeMismatch(
            f"axis {first} or {second} is out of range for {said(type_of(as_operand(a)))}",
            hint="count axes from 0, or from -1 backwards",
        )
    order[first], order[second] = order[second], order[first]
    return arrays.permute_dims(a, tuple(order))


def _moved(a: Any, source: Any, destination: Any) -> Any:
    if not is_static_int(source) or not is_static_int(destination):
        raise CaptureError("np.moveaxis of several axes cannot be captured", hint="name the order: ut.permute_dims")
    return arrays.moveaxis(a, source, destination)


def _rolled(a: Any, shift: Any, axis: Any) -> Any:
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        raise CaptureError("np.roll along several axes cannot be captured", hint="call it once for each axis")
    return arrays.roll(a, shift, axis=axis)


def _transposed(a: Any, axes: Any) -> Any:
    return arrays.transpose(a, axes if axes is None or isinstance(axes, (tuple, list)) else (axes,))


def _in_rows(values: Any, least: int) -> list[Any]:
    items = values if isinstance(values, (list, tuple)) else list(values)
    return [_at_least(v, least) for v in items]


def _at_least(x: Any, rank: int) -> Any:
    value = as_operand(x)
    for _ in range(rank - _rank(value)):
        value = arrays.expand_dims(value, 0)
    return value


def _beside(arrays_given: Any) -> Any:
    values = _in_rows(arrays_given, 1)
    return arrays.concat(values, axis=0 if _rank(values[0]) == 1 else 1)


def _columns(arrays_given: Any) -> Any:
    items = arrays_given if isinstance(arrays_given, (list, tuple)) else list(arrays_given)
    return arrays.concat([arrays.expand_dims(_at_least(v, 1), 1) if _rank(v) < 2 else v for v in items], axis=1)


def _appended(arr: Any, values: Any, axis: Any) -> Any:
    return arrays.concat(
        [_flat(arr), _flat(values)] if axis is None else [arr, values], axis=0 if axis is None else axis
    )


def _split(ary: Any, parts: Any, axis: Any) -> Any:
    return arrays.split(ary, list(parts) if isinstance(parts, np.ndarray) else parts, axis=axis)


def _taken(a: Any, indices: Any, axis: Any) -> Any:
    return arrays.take(_flat(a) if axis is None else a, indices, axis=0 if axis is None else axis)


def _taken_along(arr: Any, indices: Any, axis: Any) -> Any:
    if axis is None:
        return arrays.take_along_axis(_flat(arr), indices, axis=0)
    return arrays.take_along_axis(arr, indices, axis=axis)


def _known_shape(x: Any, name: str) -> tuple[int, ...]:
    known = type_of(as_operand(x)).shape
    if not all(isinstance(d, int) for d in known):
        raise CaptureError(
            f"{name} of an array whose shape is known only at run time cannot be captured",
            hint="use ut.arange and ut.take",
        )
    return known  # type: ignore[return-value]


def _diagonal(a: Any, offset: Any, axis1: Any, axis2: Any) -> Any:
    if _rank(a) != 2 or (axis1, axis2) not in ((0, 1), (-2, -1)):
        raise CaptureError(
            "np.diagonal can be captured for a matrix alone", hint="write ut.einsum('...ii->...i', x) for the main one"
        )
    size = np.prod(_known_shape(a, "np.diagonal"), dtype=int)
    places = np.diagonal(np.arange(size).reshape(_known_shape(a, "np.diagonal")), static_int(offset, "the offset"))
    return arrays.take(_flat(a), places)


def _diag(v: Any, k: Any) -> Any:
    if _rank(v) == 2:
        return _diagonal(v, k, 0, 1)
    if _rank(v) != 1:
        raise TypeMismatch(f"np.diag takes a vector or a matrix, not {said(type_of(as_operand(v)))}", hint="reshape it")
    (length,) = _known_shape(v, "np.diag")
    offset = static_int(k, "the offset of np.diag")
    side = length + abs(offset)
    places = np.zeros((side, side), np.int64)
    rows = np.arange(length) + max(-offset, 0)
    places[rows, rows + offset] = np.arange(1, length + 1)
    zero = arrays.reshape(creation.zeros(1, dtype=_dtype(v)), (1,))
    return arrays.take(arrays.concat([zero, v]), places)


def _difference(a: Any, n: Any, axis: Any) -> Any:
    _refuse_booleans("np.diff", a, "whether they differ")
    value = a
    for _ in range(static_int(n, "the order of np.diff")):
        value = plain.subtract(
            arrays.slice_between(value, 1, None, axis=axis), arrays.slice_between(value, None, -1, axis=axis)
        )
    return value


def _repeated(a: Any, repeats: Any, axis: Any) -> Any:
    value = _flat(a) if axis is None else as_operand(a)
    at = 0 if axis is None else one_axis(axis, type_of(value).rank, "np.repeat")
    if isinstance(repeats, (Traced, list, tuple)) or not is_static_int(repeats):
        raise CaptureError("np.repeat can be captured with one number of times alone", hint="use ut.take")
    length = _known_shape(value, "np.repeat")[at]
    return arrays.take(value, np.repeat(np.arange(length), repeats), axis=at)


def _tiled(a: Any, reps: Any) -> Any:
    times = [static_int(r, "a repetition of np.tile") for r in (reps if isinstance(reps, (tuple, list)) else (reps,))]
    value = _at_least(a, len(times))
    times = [1] * (_rank(value) - len(times)) + times
    for axis, count in enumerate(times):
        if count != 1:
            length = _known_shape(value, "np.tile")[axis]
            value = arrays.take(value, np.tile(np.arange(length), count), axis=axis)
    return value


def _vdot(a: Any, b: Any) -> Any:
    return linalg.dot(_flat(a), _flat(b))


def _inner(a: Any, b: Any) -> Any:
    if 0 in (_rank(a), _rank(b)):
        return plain.multiply(a, b)
    return linalg.tensordot(a, b, axes=([-1], [-1]))


def _product(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def product(a: Any, b: Any, *more: Any) -> Any:
        if _dtype(a) == bool_ and _dtype(b) == bool_:
            _refuse_booleans(name, a, "a boolean")
        return function(a, b, *more)

    return product


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    value = numbers(x)[0]
    if axis is None and ord is None:
        value, axis, shape = _flat(value), 0, (1,) * _rank(x)
        total = plain.sqrt(along.sum(plain.square(value)))
        return arrays.reshape(total, shape) if keepdims else total
    if axis is None and _rank(value) == 1:
        axis = 0
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not is_static_int(axis) or not (ord is None or ord in (1, 2, np.inf)):
        raise CaptureError(
            f"np.linalg.norm with ord={brief(ord)} and axis={brief(axis)} cannot be captured",
            hint="write it with ut.sum, ut.abs, ut.max and ut.sqrt",
        )
    value = elementwise.astype(value, f64) if _dtype(value).kind == "int" else value
    if ord == np.inf:
        return plain.max(plain.abs(value), axis=axis, keepdims=keepdims)
    if ord == 1:
        return along.sum(plain.abs(value), axis=axis, keepdims=keepdims)
    return plain.sqrt(along.sum(plain.square(value), axis=axis, keepdims=keepdims))


def _real(val: Any) -> Any:
    _refuse_booleans("np.real", val, "an integer")
    return as_operand(val)


def _is_close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    bound = plain.add(atol, plain.multiply(rtol, plain.abs(b)))
    near = plain.logical_and(plain.isfinite(b), plain.less_equal(plain.abs(plain.subtract(a, b)), bound))
    close = plain.logical_or(near, plain.equal(a, b))
    return plain.logical_or(close, plain.logical_and(plain.isnan(a), plain.isnan(b))) if equal_nan else close


def _is_equal(a1: Any, a2: Any) -> Any:
    if type_of(as_operand(a1)).shape != type_of(as_operand(a2)).shape:
        _known_shape(a1, "np.array_equal"), _known_shape(a2, "np.array_equal")
        return False
    return plain.all(plain.equal(a1, a2))


def _array(object: Any, dtype: Any, ndmin: Any = 0) -> Any:
    return _at_least(creation.asarray(object, dtype=dtype), static_int(ndmin, "ndmin"))


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    return creation.arange(start, stop, 1 if step is None else step, dtype=dtype)


def _linspace(start: Any, stop: Any, num: Any, endpoint: Any, dtype: Any) -> Any:
    if dtype is not None and dtype_of(dtype).kind != "float":
        raise TypeMismatch("np.linspace of integers cannot be captured", hint="convert the result with ut.astype")
    return creation.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, dtype: function(a, dtype=dtype)


def _size(a: Any, axis: Any) -> Any:
    return along.size(a) if axis is None else arrays.length(a, axis)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if x is None or y is None:
        raise CaptureError(
            "np.where(condition) alone cannot be captured: how many elements are true is known only at run time",
            hint="write ut.where(condition, x, y)",
        )
    return plain.where(condition, x, y)


def _along(function: Callable[..., Any], of_booleans: Callable[..., Any] | None = None) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any, keepdims: bool) -> Any:
        is_boolean = of_booleans is not None and _dtype(a) == bool_
        return (of_booleans if is_boolean else function)(a, axis=axis, keepdims=keepdims)  # type: ignore[misc]

    return reduced


def _item(a: Any, *at: Any) -> Any:
    if not at:
        size = np.prod(_known_shape(a, "x.item()"), dtype=int)
        if size != 1:
            raise TypeMismatch(f"x.item() takes an array of one element, not {said(a.type)}", hint="name it: x[i]")
        return arrays.reshape(a, ())
    if len(at) == 1 and not isinstance(at[0], tuple):
        return FUNCTIONS["__getitem__"](_flat(a), at[0])
    return FUNCTIONS["__getitem__"](a, at[0] if len(at) == 1 else at)


def _nested(a: Any) -> Any:
    """x.tolist(): nested lists of scalars. (Recursion is as deep as an array has axes.)"""
    known = _known_shape(a, "x.tolist()")
    return [_nested(part) for part in arrays.unstack(a)] if known else a


def _reshaped(a: Any, *shape: Any) -> Any:
    return arrays.reshape(a, shape[0] if len(shape) == 1 else shape)


def _turned(a: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not is_static_int(axes[0]) else axes or None
    return arrays.transpose(a, order)


def _as_type(a: Any, dtype: Any) -> Any:
    return elementwise.astype(a, dtype)


_REDUCED = "a axis=None !out keepdims=False !initial !where"
_FUNCTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("a axis=None dtype=None !out keepdims=False !initial !where", along.sum),
    "prod": ("a axis=None dtype=None !out keepdims=False !initial !where", along.prod),
    "mean": ("a axis=None dtype=None !out keepdims=False !where", _mean),
    "average": ("a axis=None weights=None !returned keepdims=False", _average),
    "std": ("a axis=None !dtype !out ddof=0 keepdims=False !where !mean correction=None", _spread(along.std)),
    "var": ("a axis=None !dtype !out ddof=0 keepdims=False !where !mean correction=None", _spread(along.var)),
    "max": (_REDUCED, _along(plain.max, plain.any)), "min": (_REDUCED, _along(plain.min, plain.all)),
    "ptp": ("a axis=None !out keepdims=False", lambda a, axis, keepdims: plain.subtract(
        plain.max(a, axis=axis, keepdims=keepdims), plain.min(a, axis=axis, keepdims=keepdims))),
    "all": ("a axis=None !out keepdims=False !where", _along(plain.all)),
    "any": ("a axis=None !out keepdims=False !where", _along(plain.any)),
    "argmax": ("a axis=None !out keepdims=False", _along(plain.argmax)),
    "argmin": ("a axis=None !out keepdims=False", _along(plain.argmin)),
    "count_nonzero": ("a axis=None keepdims=False", _along(along.count_nonzero)),
    "cumsum": ("a axis=None dtype=None !out", _cumsum),
    "cumulative_sum": ("x axis=None dtype=None !out include_initial=False", _cumulative_sum),
    "sort": ("a axis=-1 !kind !order !stable", _ordered(plain.sort)),
    "argsort": ("a axis=-1 !kind !order !stable", _ordered(plain.argsort)),
    "clip": ("a a_min=None a_max=None !out min=None max=None !where !dtype !casting", _clip),
    "round": ("a decimals=0 !out", _round),
    "diff": ("a n=1 axis=-1 !prepend !append", _difference),
    "reshape": ("a shape !order !newshape !copy", arrays.reshape),
    "ravel": ("a !order", _flat), "copy": ("a !order !subok", as_operand),
    "squeeze": ("a axis=None", arrays.squeeze), "expand_dims": ("a axis", arrays.expand_dims),
    "transpose": ("a axes=None", _transposed), "matrix_transpose": ("x", arrays.matrix_transpose),
    "swapaxes": ("a axis1 axis2", _swap), "moveaxis": ("a source destination", _moved),
    "flip": ("m axis=None", arrays.flip),
    "fliplr": ("m", lambda m: arrays.flip(m, axis=1)), "flipud": ("m", lambda m: arrays.flip(m, axis=0)),
    "roll": ("a shift axis=None", _rolled), "broadcast_to": ("array shape !subok", arrays.broadcast_to),
    "atleast_1d": ("a", lambda a: _at_least(a, 1)), "atleast_2d": ("a", lambda a: _at_least(a, 2)),
    "concatenate": ("arrays axis=0 !out !dtype !casting", arrays.concat),
    "stack": ("arrays axis=0 !out !dtype !casting", arrays.stack),
    "hstack": ("tup !dtype !casting", _beside),
    "vstack": ("tup !dtype !casting", lambda tup: arrays.concat(_in_rows(tup, 2), axis=0)),
    "column_stack": ("tup", _columns), "append": ("arr values axis=None", _appended),
    "split": ("ary indices_or_sections axis=0", _split),
    "unstack": ("x axis=0", arrays.unstack),
    "repeat": ("a repeats axis=None", _repeated), "tile": ("A reps", _tiled),
    "take": ("a indices axis=None !out !mode", _taken),
    "take_along_axis": ("arr indices axis=-1", _taken_along),
    "where": ("condition x=None y=None", _where),
    "tril": ("m k=0", arrays.tril), "triu": ("m k=0", arrays.triu),
    "diag": ("v k=0", _diag), "diagonal": ("a offset=0 axis1=0 axis2=1", _diagonal),
    "trace": ("a offset=0 axis1=0 axis2=1 dtype=None !out", lambda a, offset, axis1, axis2, dtype: along.sum(
        _diagonal(a, offset, axis1, axis2), dtype=dtype)),
    "dot": ("a b !out", _product("np.dot", linalg.dot)), "vdot": ("a b", _product("np.vdot", _vdot)),
    "inner": ("a b", _product("np.inner", _inner)), "outer": ("a b !out", _product("np.outer", linalg.outer)),
    "tensordot": ("a b axes=2", _product("np.tensordot", linalg.tensordot)),
    "einsum": ("subscripts *operands !out !optimize !dtype !order !casting", linalg.einsum),
    "linalg.norm": ("x ord=None axis=None keepdims=False", _norm),
    "zeros": ("shape dtype=None !order !device !like", _like(creation.zeros)),
    "ones": ("shape dtype=None !order !device !like", _like(creation.ones)),
    "full": ("shape fill_value dtype=None !order !device !like", creation.full),
    "zeros_like": ("a dtype=None !order !subok !shape !device", _like(creation.zeros_like)),
    "ones_like": ("a dtype=None !order !subok !shape !device", _like(creation.ones_like)),
    "full_like": ("a fill_value dtype=None !order !subok !shape !device", creation.full_like),
    "eye": ("N M=None k=0 dtype=None !order !device !like", creation.eye),
    "identity": ("n dtype=None !like", lambda n, dtype: creation.eye(n, dtype=dtype)),
    "arange": ("start stop=None step=None dtype=None !device !like", _arange),
    "linspace": ("start stop num=50 endpoint=True !retstep dtype=None !axis !device", _linspace),
    "array": ("object dtype=None !copy !order !subok ndmin=0 !ndmax !like", _array),
    "asarray": ("a dtype=None !order !device !copy !like", _array),
    "asanyarray": ("a dtype=None !order !device !copy !like", _array),
    "astype": ("x dtype !copy !device", _as_type),
    "shape": ("a", arrays.shape), "size": ("a axis=None", _size), "ndim": ("a", _rank),
    "isclose": ("a b rtol=1e-05 atol=1e-08 equal_nan=False", _is_close),
    "allclose": ("a b rtol=1e-05 atol=1e-08 equal_nan=False", lambda *given: plain.all(_is_close(*given))),
    "array_equal": ("a1 a2 !equal_nan", _is_equal),
    "real": ("val", _real), "isscalar": ("element", lambda element: _rank(element) == 0),
}  # fmt: skip
# Methods that are not the function of their name with the array in front.
_METHODS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "reshape": ("a *shape !order !copy", _reshaped), "transpose": ("a *axes", _turned),
    "astype": ("a dtype !order !casting !subok !copy", _as_type),
    "flatten": ("a !order", _flat), "item": ("a *at", _item), "tolist": ("a", _nested),
    "conj": ("a", _real), "conjugate": ("a", _real),
    "is_integer": ("a", lambda a: plain.equal(plain.floor(a), a)),
}  # fmt: skip
_SHARED = (
    "all", "any", "argmax", "argmin", "argsort", "clip", "copy", "cumsum", "diagonal", "dot", "max", "mean", "min",
    "prod", "ravel", "repeat", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
_IN_PLACE = {
    "fill": "x = ut.full_like(x, value)", "sort": "x = ut.sort(x)", "partition": "x = ut.sort(x)",
    "put": "x = ut.where(ut.arange(n) == i, value, x)", "resize": "x = ut.reshape(x, shape)",
    "itemset": "x = ut.where(ut.arange(n) == i, value, x)",
}  # fmt: skip


# -- ufuncs ------------------------------------------------------------------------------------------------


def _degrees(x: Any) -> Any:
    return plain.multiply(x, 180.0 / np.pi)


def _radians(x: Any) -> Any:
    return plain.multiply(x, np.pi / 180.0)


def _log_add(x: Any, y: Any) -> Any:
    apart = plain.abs(plain.subtract(x, y))
    larger = plain.maximum(x, y)
    both = plain.add(larger, plain.log1p(plain.exp(plain.negative(apart))))
    return plain.where(plain.equal(x, y), plain.add(larger, np.log(2.0)), both)  # infinities of one sign


def _divmod(x: Any, y: Any) -> Any:
    return plain.floor_divide(x, y), plain.remainder(x, y)


def _known(which: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """np.fmax or np.fmin: the number, where the other is nan."""

    def pick(x: Any, y: Any) -> Any:
        return plain.where(plain.isnan(x), y, plain.where(plain.isnan(y), x, which(x, y)))

    return pick


_COMPOSED: Mapping[str, Callable[..., Any]] = {
    "fabs": plain.abs, "degrees": _degrees, "rad2deg": _degrees, "radians": _radians, "deg2rad": _radians,
    "logaddexp": _log_add, "divmod": _divmod, "fmax": _known(plain.maximum), "fmin": _known(plain.minimum),
    "conjugate": as_operand,
}  # fmt: skip


def _shadow(value: Any) -> Any:
    """What NumPy decides the dtype of a result by: a dtype, or the class of a Python number."""
    return type(value) if isinstance(value, (bool, int, float)) else type_of(value).dtype.numpy


@cache
def _dtypes_in_numpy(ufunc: Any, *shadows: Any) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the results of a ufunc. An empty array of each dtype stands for an operand."""
    empty = [np.zeros(0, s) if isinstance(s, np.dtype) else s(1) for s in shadows]
    results = ufunc(*empty)
    return tuple(r.dtype for r in (results if isinstance(results, tuple) else (results,)))


def _apply(ufunc: Any, function: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc of NumPy's on traced values: our function, with NumPy's dtypes where booleans or integers have others."""
    for name, value in kwargs.items():
        if value is not None and not _is_one_of(value, _HARMLESS.get(name, ())):
            raise CaptureError(
                f"np.{ufunc.__name__} with {name}= cannot be captured",
                hint=f"assign the result instead: y = np.{ufunc.__name__}(x)" if name == "out" else "use ut.where",
            )
    if len(inputs) != ufunc.nin:
        raise CaptureError(
            f"np.{ufunc.__name__} with {len(inputs)} arguments cannot be captured",
            hint=f"it takes {ufunc.nin}; assign the result instead of an output argument",
        )
    operands = [
        x if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic) else as_operand(x) for x in inputs
    ]
    kinds = {type_of(as_operand(x)).dtype.kind for x in operands}
    if "float" in kinds:
        return function(*operands)
    if ufunc.signature is not None:
        return _product(f"np.{ufunc.__name__}", function)(*operands)
    try:
        wanted = _dtypes_in_numpy(ufunc, *map(_shadow, operands))
    except TypeError as fault:
        raise TypeMismatch(
            f"np.{ufunc.__name__} does not take these operands: {' '.join(str(fault).split())}",
            hint="convert them with x.astype(np.int64), or use ut.logical_xor, ut.logical_not",
        ) from None
    ours = {dtype.numpy for dtype in DTYPES.values()}
    if not set(wanted) <= ours or ufunc is np.reciprocal:
        _refuse_small(ufunc, wanted[0])
    if wanted[0].kind == "f":
        operands = [elementwise.astype(x, wanted[0]) for x in operands]
    result = function(*operands)
    if wanted == (np.dtype(bool),) and _dtype(result) != bool_:
        return elementwise.astype(result, bool_)
    return result


def _refuse_small(ufunc: Any, dtype: np.dtype[Any]) -> None:
    raise TypeMismatch(
        f"np.{ufunc.__name__} of these operands is {dtype.name} in NumPy, which graphs do not compute",
        hint="convert them first, as in x.astype(np.float64)",
    )


# -- how calls get here ------------------------------------------------------------------------------------


def _named(name: str) -> Any:
    return operator.attrgetter(name)(np)


def _imaginary(x: Any) -> Any:
    _refuse_booleans("x.imag", x, "an integer")
    return creation.zeros_like(x)


# Attributes of arrays and of Python's numbers.
_ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {
    "real": _real, "imag": _imaginary, "mT": arrays.matrix_transpose,
    "itemsize": lambda x: x.type.dtype.size, "nbytes": lambda x: plain.multiply(along.size(x), x.type.dtype.size),
}  # fmt: skip


def _install() -> None:
    """Fill the table of NumPy's functions, and give traced values NumPy's methods."""
    for name, (parameters, compute) in _FUNCTIONS.items():
        NUMPY[_named(name)] = _row(f"np.{name}", parameters, compute)
    for name, (parameters, compute) in {**{n: _FUNCTIONS[n] for n in _SHARED}, **_METHODS}.items():
        method = _method(_row(f"x.{name}", parameters, compute))
        method.__name__ = name
        setattr(Traced, name, method)
    for name, attribute in _ATTRIBUTES.items():
        setattr(Traced, name, property(attribute))
    for name, instead in _IN_PLACE.items():
        setattr(Traced, name, _refused(name, instead))
    ours = {ufunc: FUNCTIONS[name] for ufunc, name in numpy_names().items() if isinstance(ufunc, np.ufunc)}
    for ufunc, function in {**{_named(name): function for name, function in _COMPOSED.items()}, **ours}.items():
        NUMPY[ufunc] = partial(_apply, ufunc, function)
    for scalar in (np.bool_, np.int32, np.int64, np.float32, np.float64):
        NUMPY[scalar] = _row(f"np.{scalar.__name__}", "x", partial(_of_type, scalar))


def _of_type(scalar: type, x: Any) -> Any:
    return elementwise.astype(x, scalar)


def _method(row: Row) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: row(self, *args, **kwargs)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refuse(self: Traced, *args: Any, **kwargs: Any) -> Any:
        raise CaptureError(f"x.{name}() changes an array in place, which a graph cannot do", hint=f"write {instead}")

    return refuse


_install()
