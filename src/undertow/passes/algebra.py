"""Algebraic identities for `simplify` that are exact for every value (except the bits of a nan).

Integers wrap, floats are IEEE 754: so x + 0 is x for integers but not for floats (-0.0 + 0.0 is 0.0), while x - 0 and
x + -0.0 are x for both. Nothing here reorders float arithmetic. The engine checks that shape and dtype stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from undertow.ir.graph import Array, Attrs, Const, Port
from undertow.ir.pattern import LARGEST, Form, Known, Match, Output, Row, Table, Var, form
from undertow.types import Type

# -- pattern variables -------------------------------------------------------------------------------------

X, Y = Var("x"), Var("y")
N, M = Var("n", ("int",)), Var("m", ("int",))  # integers
B = Var("b", ("bool",))
BITS = Var("x", ("bool", "int"))


def _all(test: Callable[[Array], Any]) -> Callable[[Array], bool]:
    # np.all takes ten times as long as the test of a number.
    return lambda value: bool(test(value)) if value.ndim == 0 else bool(np.all(test(value)))


def _is_all_ones(value: Array) -> Any:
    return value if value.dtype == np.bool_ else value == -1


C, D = Known("c", lambda value: True, ("int",)), Known("d", lambda value: True, ("int",))
ZERO = Known("zero", _all(lambda v: v == 0), ("bool", "int"))
POSITIVE_ZERO = Known("zero", _all(lambda v: (v == 0) & ~np.signbit(v)), ("float",))
NEGATIVE_ZERO = Known("zero", _all(lambda v: (v == 0) & np.signbit(v)), ("float",))
ONE = Known("one", _all(lambda v: v == 1), ("int", "float"))
ONES = Known("ones", _all(_is_all_ones), ("bool", "int"))
TRUE, FALSE = Known("true", _all(lambda v: v), ("bool",)), Known("false", _all(np.logical_not), ("bool",))


both = partial(form, commutes=True)  # a commutative operator
add, multiply = partial(both, "add"), partial(both, "multiply")
subtract, negative, invert = partial(form, "subtract"), partial(form, "negative"), partial(form, "logical_not")

# -- computed results --------------------------------------------------------------------------------------


def _filled(value: int) -> Callable[[Match], Const | None]:
    """A constant of the node's type."""

    def result(match: Match) -> Const | None:
        (type_,) = match.node.types
        sizes = [d for d in type_.shape if isinstance(d, int)]
        if len(sizes) < type_.rank or np.prod(sizes, dtype=float) > LARGEST:
            return None
        return Const(np.full(sizes, value, type_.dtype.numpy))

    return result


def is_unstretched(kept: Type, dropped: Type) -> bool:
    """Does broadcasting against type `dropped` leave type `kept` as it is, whatever the run-time sizes?"""
    if dropped.rank > kept.rank:
        return False
    last = kept.shape[kept.rank - dropped.rank :]
    # A run-time dimension beside n > 1 can only be n or 1; beside another run-time dimension, anything.
    return all(
        d == 1 or (k is not None and k == d) or (k not in (None, 1) and d is None)
        for d, k in zip(dropped.shape, last, strict=True)
    )


def _chosen(name: str) -> Callable[[Match], Output | None]:
    """One operand of `where`, if neither the other nor the condition broadcasts it."""

    def result(match: Match) -> Output | None:
        kept = match[name]
        if isinstance(kept, Const):
            return kept
        others = [match.type(operand) for operand in match.node.inputs if operand != kept]
        return kept if all(is_unstretched(match.type(kept), other) for other in others) else None

    return result


def _constants(op: str, combine: Callable[[Any, Any], Any]) -> Callable[[Match], Form | None]:
    """(x op c) op d is x op (c combined with d)."""

    def result(match: Match) -> Form | None:
        c, d = match["c"], match["d"]
        assert isinstance(c, Const) and isinstance(d, Const)
        with np.errstate(all="ignore"):
            return form(op, match["n"], Const(np.asarray(combine(c.value, d.value), c.value.dtype)))

    return result


# (from, to): every value of the first dtype is exact in the second.
_LOSSLESS = {("bool", "i32"), ("bool", "i64"), ("bool", "f32"), ("bool", "f64")} | {
    ("i32", "i64"),
    ("i32", "f64"),
    ("f32", "f64"),
}


def _cast(match: Match) -> Output | None:
    return match["x"] if match.type(match["x"]).dtype.name == match.node.attrs["dtype"] else None


def _cast_of_cast(match: Match) -> Form | None:
    source, between = match.type(match["x"]).dtype.name, match.nodes["inner"].attrs.text("dtype")
    if (source, between) not in _LOSSLESS:
        return None
    return Form("cast", (match["x"],), attrs=Attrs(dtype=match.node.attrs["dtype"]))


def _compose_axes(match: Match) -> Form:
    inner, outer = match.nodes["inner"].attrs.integers("axes"), match.node.attrs.integers("axes")
    return Form("transpose", (match["x"],), attrs=Attrs(axes=tuple(inner[axis] for axis in outer)))


def _transpose(match: Match) -> Output | None:
    axes = match.node.attrs.integers("axes")
    return match["x"] if axes == tuple(range(len(axes))) else None


def _same_type(match: Match) -> Output | None:
    """The first operand, if its type is static and equals the node's: nothing is rearranged, nothing can fault."""
    first = match.node.inputs[0]
    return first if match.node.types[0].is_static and len(match.node.inputs) == 1 else None


def _reshape_of_reshape(match: Match) -> Form | None:
    node = match.node
    inner = match.graph.nodes[node.inputs[0].node] if isinstance(node.inputs[0], Port) else None
    if inner is None or inner.op != "reshape" or inner.controls:
        return None
    if not (match.type(inner.inputs[0]).is_static and inner.types[0].is_static and len(inner.inputs) == 1):
        return None
    return Form("reshape", (inner.inputs[0], *node.inputs[1:]), attrs=Attrs(shape=node.attrs["shape"]))


def _cancelling_axes(match: Match) -> Output | None:
    """Two operators with the same `axes` that undo each other."""
    return match["x"] if match.nodes["inner"].attrs["axes"] == match.node.attrs["axes"] else None


def _no_axes(match: Match) -> Output | None:
    return match["x"] if match.node.attrs["axes"] == () else None


def _whole(match: Match) -> Output | None:
    attrs = match.node.attrs
    starts, stops, steps = attrs["starts"], attrs["stops"], attrs["steps"]
    assert isinstance(starts, tuple) and isinstance(stops, tuple) and isinstance(steps, tuple)
    is_whole = (
        all(s in (None, 0) for s in starts) and all(s is None for s in stops) and all(s in (None, 1) for s in steps)
    )
    return match["x"] if is_whole else None


def _dim(match: Match) -> Const | None:
    length = match.type(match["x"]).shape[match.node.attrs.integer("axis")]
    return Const(np.int64(length)) if isinstance(length, int) else None


# -- the table ---------------------------------------------------------------------------------------------

_OPPOSITE = {"equal": "not_equal", "less": "greater_equal", "less_equal": "greater"}
_NOT: list[Row] = []
for _a, _b in ((a, b) for pair in _OPPOSITE.items() for a, b in (pair, pair[::-1])):
    # For a nan neither x < y nor x >= y holds, but one of x == y and x != y always does.
    _left, _right = (X, Y) if "equal" in (_a, _b) else (N, M)
    _NOT.append((f"not {_a}", invert(form(_a, _left, _right)), form(_b, _left, _right)))

ROWS: list[Row] = [
    ("x + 0", add(N, ZERO), N),
    ("x + -0.0", add(X, NEGATIVE_ZERO), X),
    ("x + -y", add(X, negative(Y)), subtract(X, Y)),
    ("x + c + d", add(add(N, C), D), _constants("add", lambda c, d: c + d)),
    ("x - 0", subtract(N, ZERO), N),
    ("x - 0.0", subtract(X, POSITIVE_ZERO), X),
    ("x - x", subtract(N, N), _filled(0)),
    ("x - -y", subtract(X, negative(Y)), add(X, Y)),
    ("x - c - d", subtract(subtract(N, C), D), _constants("subtract", lambda c, d: c + d)),
    ("0 - x", subtract(ZERO, N), negative(N)),
    ("x * 1", multiply(X, ONE), X),
    ("x * 0", multiply(N, ZERO), _filled(0)),
    ("x * c * d", multiply(multiply(N, C), D), _constants("multiply", lambda c, d: c * d)),
    ("x / 1", form("divide", X, ONE), X),
    ("x // 1", form("floor_divide", N, ONE), N),
    ("x % 1", form("remainder", N, ONE), _filled(0)),
    ("x ** 1", form("power", X, ONE), X),
    ("double negation", negative(negative(X)), X),
    ("sign lost", form("abs", negative(X)), form("abs", X)),
    ("sign lost", form("square", negative(X)), form("square", X)),
    *((f"{op} twice", form(op, form(op, X)), form(op, X)) for op in ("abs", "floor", "ceil", "trunc", "round", "sign")),
    ("relu twice", form("relu", form("relu", X)), form("relu", X)),
    ("smaller of x and x", form("minimum", X, X), X),
    ("larger of x and x", form("maximum", X, X), X),
    # Truth and bits
    ("not not", invert(invert(X)), X),
    *_NOT,
    ("x and true", both("logical_and", X, TRUE), X),
    ("x and false", both("logical_and", X, FALSE), _filled(0)),
    ("x or false", both("logical_or", X, FALSE), X),
    ("x or true", both("logical_or", X, TRUE), _filled(1)),
    ("x and x", form("logical_and", X, X), X),
    ("x or x", form("logical_or", X, X), X),
    ("x xor false", both("logical_xor", X, FALSE), X),
    ("x xor true", both("logical_xor", X, TRUE), invert(X)),
    ("x xor x", form("logical_xor", X, X), _filled(0)),
    ("~~x", form("bitwise_invert", form("bitwise_invert", X)), X),
    ("x & ones", both("bitwise_and", BITS, ONES), BITS),
    ("x & 0", both("bitwise_and", BITS, ZERO), _filled(0)),
    ("x | 0", both("bitwise_or", BITS, ZERO), BITS),
    ("x | ones", both("bitwise_or", BITS, ONES), Var("ones")),
    ("x & x", form("bitwise_and", X, X), X),
    ("x | x", form("bitwise_or", X, X), X),
    ("x ^ 0", both("bitwise_xor", BITS, ZERO), BITS),
    ("x ^ x", form("bitwise_xor", X, X), _filled(0)),
    ("x << 0", form("bitwise_left_shift", N, ZERO), N),
    ("x >> 0", form("bitwise_right_shift", N, ZERO), N),
    # Comparisons: a nan is not equal to itself
    ("x == x", form("equal", BITS, BITS), _filled(1)),
    ("x != x", form("not_equal", BITS, BITS), _filled(0)),
    ("x <= x", form("less_equal", BITS, BITS), _filled(1)),
    ("x >= x", form("greater_equal", BITS, BITS), _filled(1)),
    ("x < x", form("less", X, X), _filled(0)),
    ("x > x", form("greater", X, X), _filled(0)),
    ("b == true", both("equal", B, TRUE), B),
    ("b == false", both("equal", B, FALSE), invert(B)),
    ("b != false", both("not_equal", B, FALSE), B),
    ("b != true", both("not_equal", B, TRUE), invert(B)),
    # Choices
    ("where true", form("where", TRUE, X, Y), _chosen("x")),
    ("where false", form("where", FALSE, X, Y), _chosen("y")),
    ("where of one value", form("where", Var("c"), X, X), _chosen("x")),
    ("where not", form("where", invert(B), X, Y), form("where", B, Y, X)),
    ("where b, true, false", form("where", B, TRUE, FALSE), B),
    ("where b, false, true", form("where", B, FALSE, TRUE), invert(B)),
    # Dtypes and shapes
    ("cast to the same", form("cast", X), _cast),
    ("cast of cast", form("cast", form("cast", X, name="inner")), _cast_of_cast),
    ("transpose to the same", form("transpose", X), _transpose),
    ("transpose of transpose", form("transpose", form("transpose", X, name="inner")), _compose_axes),
    ("reshape to the same", Form("reshape", None), _same_type),
    ("reshape of reshape", Form("reshape", None), _reshape_of_reshape),
    ("broadcast to the same", Form("broadcast_to", None), _same_type),
    ("squeeze of expand_dims", form("squeeze", form("expand_dims", X, name="inner")), _cancelling_axes),
    ("flip of flip", form("flip", form("flip", X, name="inner")), _cancelling_axes),
    *((f"{op} of no axes", form(op, X), _no_axes) for op in ("expand_dims", "squeeze", "flip")),
    ("whole slice", form("slice", X), _whole),
    ("concat of one", form("concat", X), X),
    ("known length", form("dim", X), _dim),
]

ALGEBRA = Table("algebra", ROWS)
