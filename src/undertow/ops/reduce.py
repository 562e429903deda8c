"""Reductions and scans: one number from many, along axes.

`axes` is a tuple of axes counted from the front, `keepdims` keeps them with length 1. Results keep the dtype: the
front end widens i32 before a sum, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops import term
from undertow.ops.attributes import AXES, AXIS, DESCENDING, KEEPDIMS
from undertow.ops.faults import unless_static
from undertow.ops.gradient import NONE, Applied, Cotangents, Derivative, Tangents, linear, single, the
from undertow.ops.op import Op, Value
from undertow.ops.rules import (
    BOOLS,
    FLOATS,
    NUMBERS,
    REALS,
    TAKES,
    Kinds,
    check_axes,
    check_axis,
    check_dtypes,
    check_kind,
    fitting,
    may_be_equal,
    meet,
    scalar,
    with_zeros,
)
from undertow.ops.term import Term
from undertow.types import Type, i64


def reduced(name: str, type: Type, axes: Sequence[int], keepdims: bool) -> Type:
    """The type that is left when axes are reduced."""
    check_axes(name, axes, type)
    kept = ((1 if axis in axes else d) for axis, d in enumerate(type.shape) if keepdims or axis not in axes)
    return type.with_shape(tuple(kept))


def _refuse_empty(name: str, type: Type, axes: Sequence[int]) -> None:
    if any(type.shape[axis] == 0 for axis in axes):
        raise TypeMismatch(
            f"{name} of no elements: {type} along {tuple(axes)}",
            hint="an empty array has no largest or smallest element",
        )


def _reduction(
    name: str,
    function: Callable[..., Any],
    kinds: Kinds,
    doc: str,
    derivative: Derivative,
    is_position: bool = False,
    empty: bool = True,
    **more: Any,
) -> Op:
    """`is_position`: it says where along one axis, in i64. `empty`: is there a result for no elements?"""

    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], kinds)
        axes = (attrs.integer("axis"),) if is_position else attrs.integers("axes")
        result = reduced(name, types[0], axes, bool(attrs["keepdims"]))
        if not empty:
            _refuse_empty(name, types[0], axes)
        return (result.with_dtype(i64) if is_position else result,)

    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        axis = attrs.integer("axis") if is_position else attrs.integers("axes")
        try:
            return (function(values[0], axis=axis, keepdims=bool(attrs["keepdims"])),)
        except ValueError:
            raise Fault(
                f"{name} of no elements", hint="test the length first: x.shape[0] > 0", kind=ValueError
            ) from None

    named = {**(AXIS if is_position else AXES), **KEEPDIMS}
    faults = False if empty else unless_static
    return Op(name, 1, rule, kernel, doc, derivative, faults, attrs=named, **{"takes": TAKES[kinds], **more})


def _scan(
    name: str, kernel: Callable[[Any, Attrs], Any], doc: str, derivative: Derivative, kinds: Kinds = REALS, **more: Any
) -> Op:
    """A result for each element; without a derivative, its position."""

    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], kinds)
        check_axis(name, attrs.integer("axis"), types[0])
        return (types[0].with_dtype(i64) if derivative is NONE else types[0],)

    return Op(name, 1, rule, lambda values, attrs: (kernel(values[0], attrs),), doc, derivative, **more)


def _sort(x: Any, attrs: Attrs) -> Any:
    axis = attrs.integer("axis")
    # Equal elements keep their order in both directions: 0.0 and -0.0 show it.
    return np.take_along_axis(x, _argsort(x, attrs), axis) if attrs["descending"] else np.sort(x, axis, kind="stable")


def _argsort(x: Any, attrs: Attrs) -> Any:
    axis = attrs.integer("axis")
    if not attrs["descending"]:
        return np.argsort(x, axis=axis, kind="stable")
    # Turned around twice, so that equal elements keep their order.
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def _extreme(function: Callable[..., Any], wins: Callable[[Any], Any], winner: float) -> Callable[..., Any]:
    """`np.max` or `np.min`. They leave open which zero they give: it is `winner`, if any of those that `wins` finds."""

    def kernel(x: Any, **how: Any) -> Any:
        out = function(x, **how)
        if x.dtype.kind != "f":
            return out
        return with_zeros(out, out == 0, lambda: np.where(np.any((x == 0) & wins(x), **how), winner, -winner))

    return kernel


def _logsumexp(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    out = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True, dtype=x.dtype)) + top
    return scalar(np.asarray(out if keepdims else np.squeeze(out, axis)))


def _prod_others(x: Any, attrs: Attrs) -> Any:
    x = np.moveaxis(x, attrs.integer("axis"), -1)
    before, after = np.ones_like(x), np.ones_like(x)
    np.cumprod(x[..., :-1], -1, x.dtype, out=before[..., 1:])
    after[..., :-1] = np.cumprod(x[..., :0:-1], -1, x.dtype)[..., ::-1]
    return np.moveaxis(before * after, -1, attrs.integer("axis"))


# -- derivatives -------------------------------------------------------------------------------------------


def _spread(at: Applied, reduced: Term) -> Term:
    """What belongs to the result, with the reduced axes back as axes of length 1."""
    return reduced if at.attrs["keepdims"] else term.expand_dims(reduced, *sorted(at.attrs.integers("axes")))


def _collected(at: Applied, parts: Term) -> Term:
    return term.apply("sum", parts, **at.attrs)


def _winners(at: Applied) -> tuple[Term, Term]:
    """Which elements are the largest (or smallest), and how many of them there are."""
    won = term.equal(at.x[0], _spread(at, at.y[0]))
    return won, term.total(term.cast(won, at.x[0].type.dtype), at.attrs.integers("axes"), keepdims=True)


def _extreme_grad(at: Applied, g: Term) -> Term:
    won, count = _winners(at)
    return term.where(won, _spread(at, g) / count, 0)


def _extreme_tangent(at: Applied, t: Term) -> Term:
    won, count = _winners(at)
    return _collected(at, term.where(won, t, 0) / count)


def _weights(at: Applied) -> Term:
    """The derivative of logsumexp: a softmax. All zero, not nan, where every x is -inf."""
    result = _spread(at, at.y[0])
    return term.apply("exp", at.x[0] - term.where(term.equal(result, -np.inf), 0, result))


def _products_of_others(at: Applied) -> Term:
    """For each element the product of all others that it is multiplied with: no division, so zeros are right."""
    (x,) = at.x
    axes = sorted(at.attrs.integers("axes"))
    if not axes:
        return term.filled(1, term.sizes(x), x)
    if len(axes) == 1:
        return term.apply("prod_others", x, axis=axes[0])
    order = [a for a in range(x.type.rank) if a not in axes] + axes
    moved = term.transpose(x, order)
    lengths, rest = term.sizes(moved), len(order) - len(axes)
    flat = term.reshape(moved, [*lengths[:rest], term.product(lengths[rest:])])
    others = term.reshape(term.apply("prod_others", flat, axis=rest), lengths)
    return term.transpose(others, sorted(range(len(order)), key=order.__getitem__))


def _prod_others_row(at: Applied, v: Term) -> Term:
    """Both rows: the matrix of the products of all but elements i and j is symmetric, and its diagonal is zero.

    It takes space for the square of the axis. Nobody meets it but in second derivatives.
    """
    (x,), axis = at.x, at.attrs.integer("axis")
    after = range(1, x.type.rank - axis)
    column = term.expand_dims(term.positions(term.size(x, axis), x), *after)
    row = term.expand_dims(column, 1)
    diagonal = term.equal(row, column)
    but_one = term.where(diagonal, 1, term.expand_dims(x, axis))
    but_two = term.where(diagonal, 0, term.apply("prod_others", but_one, axis=axis + 1))
    return term.total(but_two * term.expand_dims(v, axis + 1), (axis,))


def _along(op: str, at: Applied, *operands: Term) -> Term:
    """An operator along the axis that was sorted, which takes the order as its second operand."""
    x, *rest = operands
    return term.apply(op, x, term.apply("argsort", at.x[0], **at.attrs), *rest, axis=at.attrs.integer("axis"))


def _by_factors(factors: Callable[[Applied], Term]) -> Derivative:
    """The rows of a reduction, from its partial derivative by each element."""
    return single(lambda at, g: _spread(at, g) * factors(at), lambda at, t: _collected(at, t * factors(at)))


def _cumsum_transposed(at: Applied, g: Term) -> Term:
    axes = (at.attrs.integer("axis"),)
    return term.apply("flip", term.apply("cumsum", term.apply("flip", g, axes=axes), **at.attrs), axes=axes)


_SUM = linear(lambda at, g: term.broadcast_like(_spread(at, g), at.x[0]))
_EXTREME = single(_extreme_grad, _extreme_tangent)
_SORT = single(
    lambda at, g: _along("add_along_axis", at, term.zeros_like(at.x[0]), g),
    lambda at, t: _along("take_along_axis", at, t),
)


def _recurrence_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("recurrence", types, NUMBERS)
    check_axis("recurrence", attrs.integer("axis"), types[0])
    if not may_be_equal(types[0].shape, types[1].shape):
        raise TypeMismatch(f"recurrence of {types[0]} and {types[1]}: the shapes differ", hint="broadcast them")
    shape = tuple(meet("recurrence", a, b) for a, b in zip(types[0].shape, types[1].shape, strict=True))
    return (Type(dtype, shape),)


def _recurrence(values: Sequence[Value], attrs: Attrs) -> Value:
    if values[0].shape != values[1].shape:
        raise ValueError("the shapes differ")
    a, b = (np.moveaxis(v, attrs.integer("axis"), 0) for v in values)
    out = np.array(b)
    for k in range(1, len(out)):
        out[k] += a[k] * out[k - 1]
    return np.ascontiguousarray(np.moveaxis(out, 0, attrs.integer("axis")))


def _first(x: Term, axis: int) -> Term:
    """The first element of the axis, as an axis of length 1; nothing of nothing."""
    return _cut(x, axis, 1)


def _cut(x: Term, axis: int, stop: int) -> Term:
    whole = (None,) * x.type.rank
    stops = tuple(stop if k == axis else None for k in range(x.type.rank))
    return term.apply("slice", x, starts=whole, stops=stops, steps=whole)


def _shifted(x: Term, axis: int, first: Term) -> Term:
    """Each element is that before it on the axis; before all others stands `first`, of length 1 or 0."""
    return term.apply("concat", first, _cut(x, axis, -1), axis=axis)


def _previous(at: Applied) -> Term:
    """The result one place before; 0 at first."""
    axis = at.attrs.integer("axis")
    return _shifted(at.y[0], axis, term.zeros_like(_first(at.y[0], axis)))


def _recurrence_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    """The same recurrence from the back, in which each factor belongs to the element before it."""
    axis = at.attrs.integer("axis")
    factors, given = (term.apply("flip", x, axes=(axis,)) for x in (at.x[0], the(g)))
    back = at.again(_shifted(factors, axis, _first(factors, axis)), given)
    back = term.apply("flip", back, axes=(axis,))
    return [back * _previous(at) if at.wanted[0] else None, back if at.wanted[1] else None]


def _recurrence_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    ta, tb = t
    if ta is None:
        return [at.again(at.x[0], the((tb,)))]
    moved = ta * _previous(at)
    return [at.again(at.x[0], moved if tb is None else moved + tb)]


_SORTED: dict[str, Any] = {"attrs": {**AXIS, **DESCENDING}, "takes": "numbers"}

ROWS: tuple[Op, ...] = (
    _reduction(
        "sum", lambda x, **how: np.sum(x, dtype=x.dtype, **how), NUMBERS, "the sum along `axes`", _SUM,
        is_costly=True, takes=None, also=".sum tf.reduce_sum",
    ),
    _reduction(
        "prod", lambda x, **how: np.prod(x, dtype=x.dtype, **how), NUMBERS, "the product along `axes`",
        _by_factors(_products_of_others), takes=None, also=".prod tf.reduce_prod",
    ),
    _reduction(
        "max", _extreme(np.max, lambda x: ~np.signbit(x), 0.0), REALS,
        "the largest along `axes`; a fault if empty; nan if any is; 0.0 is above -0.0; equal ones share the gradient",
        _EXTREME,
        empty=False, is_costly=True, also=".max tf.reduce_max",
        example="max([[1, 5], [3, 4]], axis=1)\narray([5, 4])",
    ),
    _reduction(
        "min", _extreme(np.min, np.signbit, -0.0), REALS,
        "the smallest along `axes`; a fault if empty; nan if any is; -0.0 is below 0.0; equal ones share the gradient",
        _EXTREME,
        empty=False, is_costly=True, also=".min tf.reduce_min",
    ),
    _reduction("any", np.any, BOOLS, "is any true along `axes`?", NONE, also=".any tf.reduce_any"),
    _reduction("all", np.all, BOOLS, "are all true along `axes`?", NONE, also=".all tf.reduce_all"),
    _reduction(
        "logsumexp", _logsumexp, FLOATS, "log(sum(exp(x))) along `axes`, without overflow", _by_factors(_weights),
        also="tf.reduce_logsumexp",
    ),
    _reduction(
        "argmax", np.argmax, REALS, "the index of the (first) largest along `axis`, an i64", NONE, is_position=True,
        empty=False, also=".argmax", example="argmax([[1, 5], [3, 4]], axis=1)\narray([1, 1])",
    ),
    _reduction(
        "argmin", np.argmin, REALS, "the index of the (first) smallest along `axis`, an i64", NONE, is_position=True,
        empty=False, also=".argmin",
    ),
    _scan(
        "cumsum", lambda x, a: np.cumsum(x, a.integer("axis"), x.dtype), "the running sum along `axis`",
        linear(_cumsum_transposed), NUMBERS, attrs=AXIS,
    ),
    Op(
        "recurrence", 2, _recurrence_rule, fitting("recurrence", _recurrence),
        "each y[k] = a[k] * y[k - 1] + b[k] along `axis`, with y[0] = b[0]: running products, for one; operands: a, b",
        Derivative(_recurrence_grad, _recurrence_tangent), attrs=AXIS,
    ),
    _scan(
        "sort", _sort, "x sorted along `axis`, largest first if `descending`; nan counts as largest",
        _SORT, **_SORTED, example="sort([3, 1, 2], descending=True)\narray([3, 2, 1])",
    ),
    _scan(
        "argsort", _argsort, "the indices that sort x along `axis`, for `take_along_axis`; stable",
        NONE, **_SORTED,
    ),
    _scan(
        "prod_others", _prod_others, "for each element, the product of all others along `axis`: the derivative of prod",
        single(_prod_others_row, _prod_others_row), NUMBERS, attrs=AXIS,
    ),
)  # fmt: skip
