"""The functions of the front end: NumPy is the oracle, for values at once and for traced ones.

A traced call is captured into a graph, whose nodes are then evaluated in order. Every value that a node gives must
be of the type that the graph says. That is done twice: with static shapes, and with run-time dimensions only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.errors import Fault, TypeMismatch
from undertow.frontend.functions import creation
from undertow.frontend.functions import public as ut
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.values.assignment import At
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import Context, Traced, capturing, numpy_names
from undertow.ir.graph import Const, Port
from undertow.ops.op import evaluate
from undertow.types import CTL, DTYPES, Type, bool_, dtype_of, f32, f64, i32, i64, promote, type_of

ALL = ("bool", "i32", "i64", "f32", "f64")
N = np.int64


# -- a capture without Python functions --------------------------------------------------------------------


class Session:
    """As much of a capture session as `emit` and `effect` ask for."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def resolve(self, value: Traced) -> Port:
        return value.port

    def effect_token(self) -> Port:
        return self.builder.effect or START


def trace(function: Callable[..., Any], *types: Type) -> tuple[Builder, Any]:
    """The graph of a function of traced values, and what the function returned."""
    builder = Builder("f", "function")
    context = Context(Session(builder))
    context.builder = builder
    with capturing(context):
        params = [Traced(builder, builder.param(t, f"x{k}")) for k, t in enumerate(types)]
        return builder, function(*params)


def types_of(values: Any, runtime: bool) -> list[Type]:
    found = [type_of(np.asarray(v)) for v in values]
    return [Type(t.dtype, (None,) * t.rank) for t in found] if runtime else found


def replay(builder: Builder, result: Any, values: Any) -> Any:
    """What the graph computes. Checks that every node gives what its type says."""
    given = iter(values)
    known: dict[Port, Any] = {}
    for number, node in enumerate(builder.nodes):
        if node.op == "start":
            results: tuple[Any, ...] = (np.True_,)
        elif node.op == "param":
            results = (np.asarray(next(given))[()],)
        else:
            operands = [i.value if isinstance(i, Const) else known[i] for i in node.inputs]
            with np.errstate(all="ignore"):
                results = evaluate(node.op, operands, node.attrs)
        for k, (value, type) in enumerate(zip(results, node.types, strict=True)):
            assert type == CTL or type.accepts(type_of(value)), (node, type_of(value))
            known[Port(number, k)] = value

    def look_up(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [look_up(i) for i in item]
        return known[item.port] if isinstance(item, Traced) else item

    return look_up(result)


def traced(function: Callable[..., Any], *values: Any, runtime: bool = False) -> Any:
    builder, result = trace(function, *types_of(values, runtime))
    return replay(builder, result, values)


def ops(function: Callable[..., Any], *types: Type) -> list[str]:
    """The operators of the graph, for tests of what is written."""
    return [n.op for n in trace(function, *types)[0].nodes if n.op not in ("start", "param")]


def check(function: Callable[..., Any], oracle: Callable[..., Any], *values: Any, rtol: float = 1e-6) -> None:
    """Function and oracle agree: at once, traced, and traced with run-time dimensions."""
    with np.errstate(all="ignore"):
        wanted = oracle(*values)
        for got in (function(*values), traced(function, *values), traced(function, *values, runtime=True)):
            same(got, wanted, rtol)


def same(got: Any, wanted: Any, rtol: float = 1e-6) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            same(g, w, rtol)
        return
    assert np.shape(got) == np.shape(wanted)
    if np.asarray(wanted).dtype.kind == "f":
        assert np.asarray(got).dtype.kind == "f"
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-12, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, wanted)


def random(dtype: str, *shape: int, seed: int = 0, low: float = -3, high: float = 3) -> Any:
    source = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return np.asarray(source.random(shape) < 0.5)[()]
    return np.asarray(source.uniform(low, high, shape), DTYPES[dtype].numpy)[()]


# -- each element ------------------------------------------------------------------------------------------

# Name -> (NumPy's function, smallest and largest argument)
UNARY: dict[str, tuple[Any, float, float]] = {
    "negative": (np.negative, -3, 3), "positive": (np.positive, -3, 3), "abs": (np.abs, -3, 3),
    "sign": (np.sign, -3, 3), "square": (np.square, -3, 3), "round": (np.round, -3, 3), "floor": (np.floor, -3, 3),
    "ceil": (np.ceil, -3, 3), "trunc": (np.trunc, -3, 3), "relu": (lambda x: np.maximum(x, 0), -3, 3),
}  # fmt: skip
FLOAT: dict[str, tuple[Any, float, float]] = {
    "sqrt": (np.sqrt, 0, 9), "reciprocal": (lambda x: 1 / x, 1, 9), "exp": (np.exp, -3, 3), "exp2": (np.exp2, -3, 3),
    "expm1": (np.expm1, -3, 3), "log": (np.log, 1, 9), "log2": (np.log2, 1, 9), "log10": (np.log10, 1, 9),
    "log1p": (np.log1p, 0, 9), "sin": (np.sin, -3, 3), "cos": (np.cos, -3, 3), "tan": (np.tan, -1, 1),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -3, 3), "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3), "tanh": (np.tanh, -3, 3), "asinh": (np.arcsinh, -3, 3), "acosh": (np.arccosh, 1, 9),
    "atanh": (np.arctanh, -0.9, 0.9), "erf": (np.vectorize(math.erf, otypes=[float]), -3, 3),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -3, 3), "softplus": (lambda x: np.log1p(np.exp(x)), -3, 3),
}  # fmt: skip
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": np.logical_not}
ARITHMETIC: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "pow": np.power,
}  # fmt: skip
COMPARISONS = {
    name: getattr(np, name) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
}
LOGIC = {name: getattr(np, name) for name in ("logical_and", "logical_or", "logical_xor")}
SHAPES: list[tuple[int, ...]] = [(), (4,), (2, 3), (0, 2)]
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((3,), (2, 3)), ((2, 1), (3,)), ((0,), (1,))]


def wide(x: Any, floats: bool = False) -> Any:
    """The oracle's argument: booleans as i64, and for functions of floats integers as f64."""
    kind = np.asarray(x).dtype.kind
    if floats and kind != "f":
        return np.asarray(x, np.float64)
    return np.asarray(x, np.int64) if kind == "b" else x


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", [*UNARY, *FLOAT])
def test_unary(name: str, dtype: str) -> None:
    is_float = name in FLOAT
    oracle, low, high = FLOAT[name] if is_float else UNARY[name]
    for shape in SHAPES:
        x = random(dtype, *shape, low=low, high=high)
        check(getattr(ut, name), lambda v: oracle(wide(v, is_float)), x, rtol=1e-5 if dtype == "f32" else 1e-12)
        kept = DTYPES[dtype].kind == "float" or (not is_float and dtype != "bool")
        wanted = DTYPES[dtype] if kept else f64 if is_float else i64
        assert dtype_of(getattr(ut, name)(x).dtype) == wanted


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", PREDICATES)
def test_predicates(name: str, dtype: str) -> None:
    x = random(dtype, 5)
    if DTYPES[dtype].kind == "float":
        x[:3] = [np.nan, np.inf, 0]
    check(getattr(ut, name), PREDICATES[name], x)


@pytest.mark.parametrize("other", ALL)
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS, *LOGIC, "divide", "atan2"])
def test_binary(name: str, dtype: str, other: str) -> None:
    oracle = {**ARITHMETIC, **COMPARISONS, **LOGIC, "divide": np.divide, "atan2": np.arctan2}[name]
    common = promote(DTYPES[dtype], DTYPES[other])
    if name in ("divide", "atan2"):
        common = common if common.kind == "float" else f64
    elif name in ARITHMETIC and common == bool_:
        common = i64
    for a, b in PAIRS:
        x, y = random(dtype, *a, low=1, high=5), random(other, *b, seed=1, low=1, high=5)
        if other == "bool":
            y = y | True  # nothing is divided by 0
        exact = (lambda u, v: oracle(u, v)) if name in LOGIC else lambda u, v: oracle(
            np.asarray(u, common.numpy), np.asarray(v, common.numpy)
        )  # fmt: skip
        check(getattr(ut, name), exact, x, y, rtol=1e-5)
        result = bool_ if name in {**COMPARISONS, **LOGIC} else common
        assert dtype_of(getattr(ut, name)(x, y).dtype) == result


@pytest.mark.parametrize("dtype", ["bool", "i32", "i64"])
def test_bits(dtype: str) -> None:
    x, y = random(dtype, 2, 3, low=0, high=9), random(dtype, 3, seed=1, low=0, high=9)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        check(getattr(ut, name), getattr(np, name), x, y)
    check(ut.bitwise_invert, np.invert, x)
    for name, oracle in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift)):
        check(getattr(ut, name), lambda u, v, o=oracle: o(wide(u), wide(v)), x, y)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (np.int32(1), 2, i32),
        (np.int32(1), 2.5, f64),
        (np.float32(1), 2, f32),
        (np.float32(1), 2.5, f32),
        (np.float32(1), np.float64(2.5), f64),
        (np.int64(1), np.float32(2.5), f32),
        (np.True_, 2, i64),
        (np.True_, True, i64),
        (2, 3, i64),
        (2, 3.0, f64),
        (np.int32(1), True, i32),
        ([1, 2], np.float32(1), f32),
        (np.uint8(3), 1, i32),
    ],
)
def test_promotion(x: Any, y: Any, expected: Any) -> None:
    assert dtype_of(ut.add(x, y).dtype) == expected
    assert dtype_of(ut.add(y, x).dtype) == expected
    if not isinstance(x, (int, list, np.uint8)):
        assert dtype_of(np.asarray(traced(lambda v: ut.add(v, y), x)).dtype) == expected


def test_choices() -> None:
    x, y, c = random("f32", 3), random("i32", 2, 3), random("bool", 2, 1)
    check(lambda a, b, d: ut.where(d, a, b), lambda a, b, d: np.where(d, a, b), x, y, c)
    check(lambda a: ut.where(a > 0, a, 0), lambda a: np.where(a > 0, a, 0), x)
    check(lambda a: ut.clip(a, -1, 1), lambda a: np.clip(a, -1, 1), x)
    check(lambda a: ut.clip(a, max=1), lambda a: np.minimum(a, 1), y)
    check(lambda a: ut.round(a, 1), lambda a: np.round(a, 1), x)
    for to in ALL:
        check(lambda a, t=to: ut.astype(a, t), lambda a, t=to: np.asarray(a).astype(DTYPES[t].numpy), x)


def test_what_is_written() -> None:
    vector = f32[3]
    assert ops(lambda x: x + 1, vector) == ["add"]
    assert ops(lambda x: 2 * x + x**2, vector) == ["multiply", "square", "add"]
    assert ops(lambda x: x / 2, i64[3]) == ["cast", "divide"]
    assert ops(lambda x: ut.floor(x), i64[3]) == []
    assert ops(lambda x: x.astype(f32), vector) == []
    assert ops(lambda x: x[0], vector) == ["index"]
    assert ops(lambda x: x[1:, ::2], f32[4, 4]) == ["slice"]
    assert ops(lambda x: ut.zeros_like(x) + 1 + x, vector) == ["add"]
    assert ops(lambda x: ut.mean(x), vector) == ["sum", "divide"]
    assert ops(lambda x, y: ut.einsum("ij,jk->ik", x, y), f32[2, 3], f32[3, None]) == ["matmul"]
    assert ops(lambda x, y: ut.einsum("bij,bjk->bik", x, y), f32[None, 2, 3], f32[None, 3, 4]) == ["matmul"]
    assert ops(lambda x, y: ut.einsum("i,i", x, y), f32[None], f32[None]) == ["matmul"]
    assert ops(lambda x, y: ut.tensordot(x, y, 1), f32[None, 2, 3], f32[3, 4]) == ["reshape", "matmul", "reshape"]


# -- along axes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("dtype", ALL)
def test_reductions(dtype: str, axis: Any, keepdims: bool) -> None:
    x = random(dtype, 2, 3, 4)
    how: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    for name in ("sum", "prod", "max", "min", "any", "all", "mean", "std", "var", "count_nonzero"):
        if name == "count_nonzero" and keepdims and axis is None:
            continue  # NumPy ignores keepdims there
        oracle = getattr(np, name)
        check(
            lambda v, n=name: getattr(ut, n)(v, **how),
            lambda v, n=name, o=oracle: o(v if n in ("any", "all", "count_nonzero") else wide(v), **how),
            x,
            rtol=1e-4,
        )
    if axis != ():
        check(lambda v: ut.logsumexp(v, **how), lambda v: np.log(np.sum(np.exp(wide(v, True)), **how)), x, rtol=1e-5)


def test_sums_are_wide_enough() -> None:
    assert ut.sum(np.full(3, 2**30, np.int32)) == 3 * 2**30
    assert ut.sum(np.array([True, True])) == 2
    assert ut.sum(np.ones(3, np.float32)).dtype == np.float32
    assert ut.sum(np.ones(3, np.int32), dtype="f32").dtype == np.float32
    assert ut.cumsum(np.full(3, 2**30, np.int32)).tolist() == [2**30, 2**31, 3 * 2**30]


@pytest.mark.parametrize("dtype", ALL)
def test_positions_and_orders(dtype: str) -> None:
    x = random(dtype, 3, 4)
    for axis in (None, 0, -1):
        for name in ("argmax", "argmin"):
            for keep in (False, True):
                check(
                    lambda v, n=name, a=axis, k=keep: getattr(ut, n)(v, axis=a, keepdims=k),
                    lambda v, n=name, a=axis, k=keep: getattr(np, n)(v, axis=a, keepdims=k),
                    x,
                )
    for axis in (0, 1):
        check(lambda v, a=axis: ut.cumsum(v, axis=a), lambda v, a=axis: np.cumsum(wide(v), axis=a), x, rtol=1e-4)
        check(lambda v, a=axis: ut.sort(v, axis=a), lambda v, a=axis: np.sort(v, axis=a), x)
        check(lambda v, a=axis: ut.sort(v, axis=a, descending=True), lambda v, a=axis: -np.sort(-wide(v), axis=a), x)
        check(lambda v, a=axis: ut.argsort(v, axis=a), lambda v, a=axis: np.argsort(v, axis=a, kind="stable"), x)
        check(
            lambda v, a=axis: ut.argsort(v, axis=a, descending=True),
            lambda v, a=axis: np.argsort(-wide(v), axis=a, kind="stable"),
            x,
        )


def test_softmax() -> None:
    def oracle(v: Any, axis: Any) -> Any:
        e = np.exp(v)
        return e / e.sum(axis, keepdims=True)

    x = random("f64", 2, 3)
    for axis in (0, -1, (0, 1)):
        check(lambda v, a=axis: ut.softmax(v, axis=a), lambda v, a=axis: oracle(v, a), x)
        check(lambda v, a=axis: ut.log_softmax(v, axis=a), lambda v, a=axis: np.log(oracle(v, a)), x)


# -- shapes and picking ------------------------------------------------------------------------------------

X = random("f64", 2, 3, 4)
ARRAYS: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("reshape", lambda x: ut.reshape(x, (4, -1)), lambda x: x.reshape(4, -1)),
    ("reshape all", lambda x: ut.reshape(x, -1), lambda x: x.reshape(-1)),
    ("reshape by own sizes", lambda x: ut.reshape(x, (x.shape[2], x.shape[0] * 3)), lambda x: x.reshape(4, 6)),
    ("method", lambda x: x.reshape(6, 4), lambda x: x.reshape(6, 4)),
    ("broadcast_to", lambda x: ut.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    ("broadcast_to own size", lambda x: ut.broadcast_to(1.5, ut.shape(x)), lambda x: np.full(x.shape, 1.5)),
    ("permute_dims", lambda x: ut.permute_dims(x, (2, 0, -2)), lambda x: x.transpose(2, 0, 1)),
    ("transpose", lambda x: ut.transpose(x), lambda x: x.T),
    ("T", lambda x: x.T, lambda x: x.T),
    ("matrix_transpose", ut.matrix_transpose, lambda x: x.swapaxes(-1, -2)),
    ("moveaxis", lambda x: ut.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1)),
    ("expand_dims", lambda x: ut.expand_dims(x, (0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    ("squeeze", lambda x: ut.squeeze(ut.sum(x, 1, keepdims=True), 1), lambda x: x.sum(1)),
    ("squeeze all", lambda x: ut.squeeze(ut.sum(x, 1, keepdims=True)), lambda x: x.sum(1)),
    ("flip", lambda x: ut.flip(x, (0, 2)), lambda x: np.flip(x, (0, 2))),
    ("flip all", lambda x: ut.flip(x), lambda x: np.flip(x)),
    ("roll", lambda x: ut.roll(x, 5, axis=1), lambda x: np.roll(x, 5, axis=1)),
    ("roll back", lambda x: ut.roll(x, -1, axis=2), lambda x: np.roll(x, -1, axis=2)),
    ("roll all", lambda x: ut.roll(x, 7), lambda x: np.roll(x, 7)),
    ("tril", lambda x: ut.tril(x), np.tril),
    ("triu", lambda x: ut.triu(x, 1), lambda x: np.triu(x, 1)),
    ("concat", lambda x: ut.concat([x, x], axis=1), lambda x: np.concatenate([x, x], axis=1)),
    ("concat all", lambda x: ut.concat([x, [1]], axis=None), lambda x: np.concatenate([x, [1]], axis=None)),
    ("concat of one", lambda x: ut.concat([x]), lambda x: x),
    ("stack", lambda x: ut.stack([x, x * 2], axis=-1), lambda x: np.stack([x, x * 2], axis=-1)),
    ("split", lambda x: ut.split(x, [1, 2], axis=1), lambda x: np.split(x, [1, 2], axis=1)),
    ("take", lambda x: ut.take(x, [[0, 2], [-1, 1]], axis=1), lambda x: np.take(x, [[0, 2], [-1, 1]], axis=1)),
    ("slice_between", lambda x: ut.slice_between(x, 1, None, axis=2), lambda x: x[:, :, 1:]),
    ("slice_at", lambda x: ut.slice_at(x, 1, 2, axis=2), lambda x: x[:, :, 1:3]),
    ("list", lambda x: ut.asarray([[x[0, 0, 0], 1], [2, 3]]), lambda x: np.array([[x[0, 0, 0], 1], [2, 3]])),
    ("shape", lambda x: [ut.add(d, 0) for d in ut.shape(x)], lambda x: list(x.shape)),
    ("size", lambda x: ut.add(ut.size(x), 0), lambda x: x.size),
    ("length", lambda x: ut.add(ut.length(x, -1), 0), lambda x: 4),
    ("zeros_like", lambda x: ut.zeros_like(x), np.zeros_like),
    ("ones_like", lambda x: ut.ones_like(x, dtype="i32"), lambda x: np.ones_like(x, dtype="i4")),
    ("full_like", lambda x: ut.full_like(x, 7), lambda x: np.full_like(x, 7)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "oracle"), ARRAYS, ids=[a[0] for a in ARRAYS])
def test_arrays(name: str, function: Any, oracle: Any) -> None:
    check(function, oracle, X)


def test_equal_parts() -> None:
    parts = ut.split(np.arange(6), 3)
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3], [4, 5]]
    assert traced(lambda x: ut.unstack(x), np.arange(3)) == [0, 1, 2]
    assert traced(lambda x: list(x), np.arange(3)) == [0, 1, 2]


def test_gather_and_scatter() -> None:
    x, rows = random("f32", 4, 3), np.array([[0, 2], [1, 1], [2, 0], [0, 0]])
    check(lambda v, i: ut.take_along_axis(v, i, axis=1), lambda v, i: np.take_along_axis(v, i, 1), x, rows)

    def oracle(v: Any, i: Any, u: Any) -> Any:
        out = np.array(v)
        np.add.at(out, i, u)
        return out

    check(ut.scatter_add, oracle, x, np.array([0, 3, 3]), random("f32", 3, 3, seed=1))
    check(ut.scatter_add, oracle, x, N(2), random("f32", 3, seed=1))
    check(lambda v, i: ut.scatter_add(v, i, 1), lambda v, i: oracle(v, i, 1), x, np.array([1, 1]))


@pytest.mark.parametrize("runtime", [False, True])
def test_arrays_that_depend_on_traced_numbers(runtime: bool) -> None:
    x = np.arange(10)

    def halves(v: Any, n: Any) -> Any:
        return [v[: n // 2], v[n // 2 :], v[n:1:-2], v[-n:], ut.slice_at(v, n, 3), ut.roll(v, n, axis=0)]

    n = 4
    wanted = [x[:2], x[2:], x[4:1:-2], x[-4:], x[4:7], np.roll(x, 4)]
    same(traced(halves, x, N(n), runtime=runtime), wanted)
    same(
        traced(lambda k: [ut.zeros(k), ut.ones((k, 2), dtype="i32"), ut.full((2, k), 7)], N(n), runtime=runtime),
        [np.zeros(4), np.ones((4, 2), int), np.full((2, 4), 7)],
    )
    same(
        traced(lambda k: [ut.arange(k), ut.arange(1, k), ut.arange(k, 0, -1), ut.eye(k), ut.eye(2, k, k=1)], N(n)),
        [np.arange(4), np.arange(1, 4), np.arange(4, 0, -1), np.eye(4), np.eye(2, 4, k=1)],
    )
    same(traced(lambda k, v: ut.one_hot(v, k), N(3), np.array([0, 2, 5]), runtime=runtime), np.eye(6)[[0, 2, 5], :3])
    same(traced(lambda k: creation.random_uniform(7, (k,)), N(3)), creation.random_uniform(7, (3,)))
    same(traced(lambda k: creation.random_normal(k, (3,), "f32"), N(3)), creation.random_normal(3, (3,), "f32"))
    same(traced(lambda k: creation.fold_in(k, 5), N(3)), creation.fold_in(3, 5))


def test_creation() -> None:
    same(ut.zeros((2, 3)), np.zeros((2, 3)))
    same(ut.ones(3, dtype="f32"), np.ones(3))
    same(ut.full((), 2.5), 2.5)
    same(ut.arange(5), np.arange(5))
    same(ut.arange(0.5, 3), np.arange(0.5, 3))
    same(ut.arange(3, dtype="f32"), np.arange(3.0))
    same(ut.linspace(1, 3, 7), np.linspace(1, 3, 7))
    same(ut.linspace(1, 3, 7, endpoint=False), np.linspace(1, 3, 7, endpoint=False))
    same(traced(lambda a: ut.linspace(a, 2 * a, 4), np.float64(3)), np.linspace(3, 6, 4))
    same(ut.eye(3, 4, k=-1), np.eye(3, 4, k=-1))
    same(ut.asarray(range(3)), np.arange(3))
    same(ut.asarray(2.7, dtype="i64"), 2)
    assert ut.zeros(2).dtype == np.float64
    assert ut.full(2, 3).dtype == np.int64
    assert ut.eye(2, dtype="bool").dtype == np.bool_
    assert creation.random_bits(3, (2,)).dtype == np.int64


# -- indexing ----------------------------------------------------------------------------------------------


@st.composite
def keys(draw: Any) -> tuple[Any, Any]:
    """An array, and a key for it that NumPy reads as we do."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    parts: list[Any] = []
    with_array = draw(st.booleans())
    together = draw(st.sampled_from([(0,), (1,), (3,), (2, 1), (2, 3)]))  # a shape that all arrays broadcast to
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["index", "slice", "slice", "array" if with_array else "slice"]))
        bound = st.none() | st.integers(-size - 1, size + 1)
        if kind == "index":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            its = together[draw(st.integers(0, len(together) - 1)) :]
            its = tuple(draw(st.sampled_from([n, 1])) if n else n for n in its)
            count = math.prod(its)
            numbers = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            parts.append(np.array(numbers, int).reshape(its))
        else:
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.sampled_from([1, 2, -1, -2]))))
    if draw(st.booleans()):
        parts.append(...)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return np.arange(math.prod(shape)).reshape(shape), tuple(parts)


def leaves(key: Any) -> list[Any]:
    """The numbers and arrays in a key."""
    out: list[Any] = []
    for part in key:
        bounds = [part.start, part.stop] if isinstance(part, slice) else [part]
        out += [b for b in bounds if isinstance(b, (int, np.ndarray))]
    return out


def with_leaves(key: Any, values: list[Any]) -> Any:
    rest = iter(values)

    def change(part: Any) -> Any:
        if isinstance(part, slice):
            return slice(change(part.start), change(part.stop), part.step)
        return next(rest) if isinstance(part, (int, np.ndarray)) else part

    return tuple(change(part) for part in key)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(keys())
def test_indexing_is_numpys(case: tuple[Any, Any]) -> None:
    x, key = case
    wanted = x[key]
    same(getitem(x, key), wanted)
    same(traced(lambda v: v[key], x), wanted)
    same(traced(lambda v: v[key], x, runtime=True), wanted)
    numbers = [np.asarray(v, np.int64)[()] for v in leaves(key)]
    for runtime in (False, True):
        same(traced(lambda v, *k: v[with_leaves(key, list(k))], x, *numbers, runtime=runtime), wanted)
    if numbers:
        same(traced(lambda *k: getitem(x, with_leaves(key, list(k))), *numbers), wanted)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(keys(), st.booleans())
def test_assignment_is_numpys(case: tuple[Any, Any], is_whole: bool) -> None:
    x, key = case
    value = -1 - np.arange(x[key].size).reshape(x[key].shape) if is_whole else np.int64(-1)
    wanted, summed = x.copy(), x.copy()
    wanted[key] = value
    np.add.at(summed, key, value)
    for runtime in (False, True):
        same(traced(lambda v, new: At(v)[key].set(new), x, value, runtime=runtime), wanted)
        same(traced(lambda v, new: At(v)[key].add(new), x, value, runtime=runtime), summed)
    numbers = [np.asarray(v, np.int64)[()] for v in leaves(key)]
    same(traced(lambda v, *k: At(v)[with_leaves(key, list(k))].set(value), x, *numbers, runtime=True), wanted)


@pytest.mark.parametrize(
    ("key", "match"),
    [
        (3, "out of range"),
        (-4, "out of range"),
        ((0, 0, 0), "3 indices"),
        ([0, 3], "out of range"),
        ((..., ...), "only one"),
        (True, "an index"),
        ("a", "an index"),
        (1.5, "an index"),
        (np.array([True, False, True, True]), "mask"),
        (([0, 1], [0, 1, 0]), "do not broadcast"),
        (slice(None, None, 0), "step"),
    ],
)
def test_wrong_indices(key: Any, match: str) -> None:
    for x in (lambda v: v, lambda v: np.zeros((3, 2))):
        with pytest.raises(TypeMismatch, match=match):
            trace(lambda v, x=x: getitem(x(v), key), f32[3, 2])


def test_wrong_traced_indices() -> None:
    for wrong in (f64, bool_, f64[3], bool_[4]):
        with pytest.raises(TypeMismatch, match=r"index|mask"):
            trace(lambda v, i: v[i], f32[3], wrong if isinstance(wrong, Type) else Type(wrong))
    with pytest.raises(Fault, match="index 4 is out of range for axis 2 of length 3"):
        traced(lambda v, i: v[i, :, [0, 1, 4]], np.ones((3, 3, 3)), N(1), runtime=True)
    with pytest.raises(Fault, match="out of range"):
        traced(lambda v, i: v[i], np.ones(3), N(3))


# -- products ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i32", "i64", "f32", "f64"])
@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (1, 3, 4)), ((0, 3), (3,))]
)
def test_matmul(dtype: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = random(dtype, *a), random(dtype, *b, seed=1)
    check(ut.matmul, np.matmul, x, y, rtol=1e-4)
    check(lambda u, v: u @ v, np.matmul, x, y, rtol=1e-4)
    check(ut.dot, np.dot, x, y, rtol=1e-4) if len(a) < 3 else None


def test_other_products() -> None:
    x, y = random("f64", 2, 3), random("f64", 2, 3, seed=1)
    check(ut.vecdot, lambda u, v: (u * v).sum(-1), x, y)
    check(ut.outer, np.outer, x, y)
    check(ut.dot, np.dot, x, np.float64(2))
    check(ut.dot, np.dot, x, random("f64", 2, 3, 4))
    check(lambda u, v: ut.tensordot(u, v), np.tensordot, x, y)
    check(lambda u, v: ut.tensordot(u, v, axes=0), lambda u, v: np.tensordot(u, v, axes=0), x, y)
    z = random("f64", 3, 4, 2)
    check(
        lambda u, v: ut.tensordot(u, v, axes=([0, 1], [2, 0])),
        lambda u, v: np.tensordot(u, v, axes=([0, 1], [2, 0])),
        x,
        z,
    )
    check(lambda u, v: ut.tensordot(u, v, axes=(1, 0)), lambda u, v: np.tensordot(u, v, axes=(1, 0)), x, z)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij,j", [(2, 3), (3,)]),
        ("i,i", [(3,), (3,)]), ("i,j", [(3,), (2,)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]), ("bi,bi->b", [(5, 3), (5, 3)]),
        ("bi,ij->bj", [(5, 3), (3, 4)]), ("ijk,kl,lm->ijm", [(2, 3, 4), (4, 5), (5, 2)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]), ("...i,...i", [(2, 3), (2, 3)]), ("i...->...i", [(2, 3, 4)]),
        ("...,...->...", [(2, 1), (3,)]), ("abc,cbd->ad", [(2, 3, 4), (4, 3, 5)]),
        ("i,ijk,k->j", [(2,), (2, 3, 4), (4,)]),
        ("iij,jkk->ik", [(2, 2, 3), (3, 4, 4)]), ("ba", [(2, 3)]), ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
        ("ab,cd->dacb", [(2, 3), (4, 5)]), ("bij,bj->bi", [(5, 2, 3), (5, 3)]), ("b,bij->bij", [(5,), (5, 2, 3)]),
        ("ij,ij->", [(0, 3), (0, 3)]), (",i->i", [(), (3,)]), ("abij,abjk->abik", [(2, 3, 2, 4), (2, 3, 4, 2)]),
    ],
)  # fmt: skip
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    values = [random("i64", *s, seed=k, low=-9, high=9) for k, s in enumerate(shapes)]
    check(lambda *v: ut.einsum(subscripts, *v), lambda *v: np.einsum(subscripts, *v), *values)


@st.composite
def einsums(draw: Any) -> tuple[str, list[Any]]:
    letters = "abcde"
    sizes = {a: draw(st.integers(1, 4)) for a in letters}
    hidden = draw(st.lists(st.integers(1, 3), max_size=2)) if draw(st.booleans()) else None
    terms, values = [], []
    for k in range(draw(st.integers(1, 3))):
        term = draw(st.text(letters, max_size=3))
        shape = [sizes[a] for a in term]
        if hidden is not None and draw(st.booleans()):
            shown = hidden[draw(st.integers(0, len(hidden))) :]
            shown = [1 if draw(st.booleans()) else n for n in shown]
            at = draw(st.integers(0, len(term)))
            term, shape = term[:at] + "..." + term[at:], [*shape[:at], *shown, *shape[at:]]
        terms.append(term)
        values.append(random("i64", *shape, seed=k, low=-9, high=9))
    spec = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({a for a in spec if a in letters})
        kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))] if used else []
        out = "".join(kept)
        if "..." in spec:
            at = draw(st.integers(0, len(out)))
            out = out[:at] + "..." + out[at:]
        spec += "->" + out
    return spec, values


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(einsums())
def test_einsum_is_numpys(case: tuple[str, list[Any]]) -> None:
    spec, values = case
    wanted = np.einsum(spec, *values)
    same(ut.einsum(spec, *values), wanted)
    same(traced(lambda *v: ut.einsum(spec, *v), *values), wanted)
    if not any(1 in np.shape(v) for v in values):  # a length of 1 stretches only where it is known at capture
        same(traced(lambda *v: ut.einsum(spec, *v), *values, runtime=True), wanted)


# -- misuse ------------------------------------------------------------------------------------------------

ONES = np.ones((2, 3))
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ut.matmul(ONES, ONES), "3 columns do not fit 2 rows"),
    (lambda: ut.matmul(ONES, 2), "matmul"),
    (lambda: ut.concat([]), "at least one array"),
    (lambda: ut.stack([]), "at least one array"),
    (lambda: ut.concat([1, 2]), "scalars"),
    (lambda: ut.concat([ONES, np.ones((2, 4))]), "concat"),
    (lambda: ut.stack([ONES, np.ones((2, 4))]), "stack"),
    (lambda: ut.sum(ONES, axis=2), "axis 2"),
    (lambda: ut.sum(ONES, axis=(0, -2)), "twice"),
    (lambda: ut.sum(ONES, axis=1.5), "integer"),
    (lambda: ut.max(np.zeros(0)), "no elements"),
    (lambda: ut.add(ONES, np.ones(4)), "broadcast"),
    (lambda: ut.add("a", 1), "str"),
    (lambda: ut.add(None, 1), "None is not a value"),
    (lambda: ut.add([[1], [1, 2]], 1), "cannot be converted to an array"),
    (lambda: ut.add(np.int32(1), 2**40), "does not fit"),
    (lambda: ut.pow(2, -1), "power"),
    (lambda: ut.bitwise_and(1.5, 1), "bitwise_and"),
    (lambda: ut.reshape(ONES, (4,)), "reshaped"),
    (lambda: ut.reshape(ONES, (2, 1.5)), "shape"),
    (lambda: ut.broadcast_to(ONES, (2, 4)), "broadcast"),
    (lambda: ut.squeeze(ONES, 0), "squeezed"),
    (lambda: ut.permute_dims(ONES, (0, 0)), "transposed"),
    (lambda: ut.split(ONES, 2, axis=1), "equal parts"),
    (lambda: ut.take(ONES, [0]), "axis"),
    (lambda: ut.take(ONES, [5], axis=0), "out of range"),
    (lambda: ut.take(ONES, [0.5], axis=0), "integers"),
    (lambda: ut.cumsum(ONES), "axis"),
    (lambda: ut.astype(ONES, "U8"), "dtype"),
    (lambda: ut.zeros((-1,)), "negative"),
    (lambda: ut.one_hot([0.5], 3), "integers"),
    (lambda: ut.einsum("ij,jk->ik", ONES), "2 subscripts"),
    (lambda: ut.einsum("ij,jk->ik", ONES, ONES), "must be equal"),
    (lambda: ut.einsum("ijk", ONES), "2 axes"),
    (lambda: ut.einsum("i", ONES), "2 axes"),
    (lambda: ut.einsum("ij->ijk", ONES), "result"),
    (lambda: ut.einsum("ij->ii", ONES), "result"),
    (lambda: ut.einsum("i1", ONES), "letter"),
    (lambda: ut.einsum("ii", ONES), "diagonal"),
    (lambda: ut.tensordot(ONES, ONES, axes=([0], [0, 1])), "as many"),
    (lambda: ut.print("{} {}", 1), "needs 2"),
    (lambda: ut.print("{a}", 1), "named fields"),
    (lambda: creation.random_uniform(1.5), "key"),
    (lambda: creation.random_uniform(1, (), "i32"), "dtype"),
]


@pytest.mark.parametrize(("wrong", "match"), WRONG, ids=[m for _, m in WRONG])
def test_misuse_is_a_type_mismatch(wrong: Callable[[], Any], match: str) -> None:
    with pytest.raises(TypeMismatch, match=match):
        wrong()


def test_faults_at_once() -> None:
    for wrong in (
        lambda: ut.floor_divide(1, 0),
        lambda: ut.remainder([1, 2], [1, 0]),
        lambda: traced(lambda x, n: x**n, N(2), N(-1)),
        lambda: ut.slice_at([1, 2], 1, 2),
        lambda: ut.assert_(False, "no"),  # noqa: PT009 - ours
        lambda: ut.arange(0, 2**60),
    ):
        with pytest.raises(Fault):
            wrong()


# -- effects and NumPy's names -----------------------------------------------------------------------------


def test_print_and_assert_in_order(capsys: Any) -> None:
    def body(x: Any, n: Any) -> Any:
        ut.print("x is", x)
        ut.assert_(n > 0, "n is {}", n)  # noqa: PT009 - ours
        ut.print("{:.1f} of {}", n / 3, x, sep="")
        return n

    builder, result = trace(body, i64[2], Type(i64))
    assert [node.op for node in builder.nodes if node.types == (CTL,)] == ["start", "print", "assert", "print"]
    assert replay(builder, result, [np.array([1, 2]), N(2)]) == 2
    assert capsys.readouterr().out == "x is [1 2]\n0.7 of [1 2]\n"
    with pytest.raises(Fault, match="n is -1"):
        replay(builder, result, [np.array([1, 2]), N(-1)])
    assert capsys.readouterr().out == "x is [1 2]\n"


def test_print_at_once(capsys: Any) -> None:
    ut.print("{braces} stay")
    ut.print("a", np.float32(0.5), [1, 2], sep=", ")
    ut.print()
    assert capsys.readouterr().out == "{braces} stay\na, 0.5, [1 2]\n\n"


def test_numpys_functions_find_ours() -> None:
    x = random("f64", 2, 3, low=0.1, high=0.9)
    for ufunc in (name for name in numpy_names() if isinstance(name, np.ufunc)):
        dtype = "bool" if ufunc.__name__.startswith(("logical", "bitwise", "invert")) else "f64"
        values = [random(dtype, 3, 3, seed=k, low=1.1, high=2) for k in range(ufunc.nin)]
        if ufunc in (np.left_shift, np.right_shift, np.gcd):
            values = [np.arange(3), np.arange(3)]
        with np.errstate(all="ignore"):
            same(traced(lambda *v, u=ufunc: u(*v), *values), ufunc(*values))
    one = [
        np.all, np.any, np.argmax, np.argmin, np.argsort, np.count_nonzero, np.cumsum, np.flip, np.max, np.mean, np.min,
        np.ones_like, np.prod, np.round, np.sort, np.squeeze, np.std, np.sum, np.transpose, np.tril, np.triu, np.var,
        np.zeros_like,
    ]  # fmt: skip
    for function in one:
        y = x[0] if function is np.cumsum else x
        same(traced(lambda v, f=function: f(v), y), function(y))
    for function in (np.concatenate, np.stack):
        same(traced(lambda v, f=function: f([v, v], axis=1), x), function([x, x], axis=1))
    same(traced(lambda v: np.where(v > 0.5, v, 0), x), np.where(x > 0.5, x, 0))
    same(traced(lambda v: np.clip(v, 0.2, 0.5), x), np.clip(x, 0.2, 0.5))
    same(traced(lambda v: np.reshape(v, (3, 2)), x), x.reshape(3, 2))
    same(traced(lambda v: np.einsum("ij,kj", v, x), x), x @ x.T)
    same(traced(lambda v: np.tensordot(v, x, axes=2), x), np.tensordot(x, x, axes=2))
    same(traced(lambda v: np.outer(v, x), x), np.outer(x, x))
    same(traced(lambda v: x + v, x), x + x)
    same(traced(lambda v: np.split(v, [1]), x), np.split(x, [1]))
    same(traced(lambda v: np.take(v, [0], axis=1), x), np.take(x, [0], axis=1))
    same(traced(lambda v: np.full_like(v, fill_value=2.0), x), np.full_like(x, 2.0))
    same(traced(lambda v: np.expand_dims(v, 1), x), np.expand_dims(x, 1))


def test_every_function_is_public_and_documented() -> None:
    for name, function in vars(ut).items():
        assert name.startswith("__") or (function.__doc__ or "").strip(), name
