"""Every kernel of the C++ core against the reference kernel of its operator, lane by lane.

Shared operands and those of each lane, broadcasting, edge values, faults; on each instruction set that the machine
has. Integers, booleans and exact float operations must be equal, functions to 4 ulp, sums to a stated tolerance.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tests.support.kernels import (
    ELEMENTWISE,
    ISAS,
    OPS,
    WITHOUT,
    attrs_of,
    edges,
    is_naming,
    lane_of,
    near,
    run,
    spread,
)
from tests.support.op_examples import ALL, EXAMPLES, FAULTS, FLOATS, INTS, NUMBERS

from undertow import _core
from undertow.errors import Fault
from undertow.ir.graph import Attrs
from undertow.ops.op import CATALOGUE, evaluate
from undertow.types import DTYPES, type_of

# Functions that are rounded differently: units in the last place, against NumPy's own 1 to 3.
ULPS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"), 4),
    **dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), 4),
    **dict.fromkeys(("cbrt", "erfc"), 4),
    **dict.fromkeys(("erf", "sigmoid", "softplus", "power", "atan2"), 4),
}
# Sums are added up in another order: relative to the sum of the sizes of what is added.
SUMS = {"sum", "sum_to", "prod", "matmul", "logsumexp", "softmax", "log_softmax", "random_normal", "fft"}
SUMS |= {"solve", "slogdet", "cholesky", "qr", "eigh", "svd", "pinv", "gamma", "lgamma", "polygamma", "recurrence"}


def ulps(a: Any, b: Any) -> Any:
    """How many floats lie between two; 0 for two nans."""
    whole = np.int32 if a.dtype == np.float32 else np.int64
    least = int(np.iinfo(whole).min)
    x, y = (np.asarray(v).view(whole) for v in (a, b))
    x, y = (np.where(v < 0, least - v, v) for v in (x, y))
    with np.errstate(all="ignore"):
        apart = np.abs(x - y)
    far = (x < 0) != (y < 0)  # the difference may not fit
    apart = np.where(far, np.abs(x.astype(np.float64) - y.astype(np.float64)).astype(np.float64), apart)
    return np.where(np.isnan(a) & np.isnan(b), 0, apart)


def check(name: str, got: Any, wanted: Any, note: Any = None) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype, (name, note)
    assert got.shape == wanted.shape, (name, note)
    if got.dtype.kind == "f":  # the sign of a nan says nothing
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]), err_msg=str((name, note)))
    if got.dtype.kind == "f" and name in ULPS:
        assert (ulps(got, wanted) <= ULPS[name]).all(), (name, got, wanted, note)
    elif got.dtype.kind in "fc" and name in SUMS:
        small = 2e-5 if got.real.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(got, wanted, rtol=small, atol=small, err_msg=str((name, note)))
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=str((name, note)))


def compare(
    name: str, lanes: Sequence[Any], shared: Sequence[bool], given: dict[str, Any], some: Sequence[int], isa: str = ""
) -> list[Any]:
    got = run(name, lanes, shared, given, isa)
    for lane in some:
        with np.errstate(all="ignore"):
            wanted = evaluate(name, lane_of(lanes, shared, lane), attrs_of(given))
        assert len(got) == len(wanted)
        for mine, theirs in zip(got, wanted, strict=True):
            check(name, mine[lane], theirs, (lane, lane_of(lanes, shared, lane), given, isa))
    return got


# -- every operator, on the examples of its row --------------------------------------------------------------------


def sharings(operands: int) -> list[tuple[bool, ...]]:
    if operands <= 3:
        return [s for s in itertools.product((False, True), repeat=operands) if not all(s)]
    return [(False,) * operands, (True,) + (False,) * (operands - 1), (False,) + (True,) * (operands - 1)]


def test_every_operator_has_a_kernel() -> None:
    where = "rows stand in core/src/isa/each for operators on each element, else in core/src/kernel; then `make core`"
    assert set(_core.kernel_names()) == set(OPS), where
    assert set(EXAMPLES) >= set(OPS)


@pytest.mark.parametrize("name", OPS)
def test_examples(name: str) -> None:
    for values, given in EXAMPLES[name]:
        if not values:
            continue
        for shared in sharings(len(values)):
            compare(name, spread(name, values, shared, 3), shared, given, range(3))
        together = spread(name, values, (False,) * len(values), 64)
        compare(name, together, (False,) * len(values), given, (0, 31, 63))
        every = (True,) * len(values)
        compare(name, [np.asarray(v) for v in values], every, given, (0,))


@pytest.mark.parametrize("name", OPS)
def test_no_lanes(name: str) -> None:
    for values, given in EXAMPLES[name]:
        shared = tuple(is_naming(name, k) for k in range(len(values)))
        if values and not all(shared):
            (out,) = run(name, spread(name, values, shared, 0), shared, given)
            with np.errstate(all="ignore"):
                (one,) = evaluate(name, values, attrs_of(given))
            assert out.shape == (0, *np.shape(one))


@pytest.mark.parametrize("name", OPS)
def test_the_same_bits_for_any_number_of_lanes(name: str) -> None:
    for values, given in EXAMPLES[name][-3:]:
        if not values:
            continue
        for shared in ((False,) * len(values), (False,) + (True,) * (len(values) - 1)):
            many = spread(name, values, shared, 1000)
            (all_lanes,) = run(name, many, shared, given)
            for first, count in ((0, 1), (1, 1), (999, 1), (0, 3), (5, 17), (64, 64), (1, 999)):
                part = [v if s else v[first : first + count] for v, s in zip(many, shared, strict=True)]
                (some,) = run(name, part, shared, given)
                if name == "matmul" and some.dtype.kind == "f":
                    np.testing.assert_allclose(some, all_lanes[first : first + count], rtol=1e-5)
                else:
                    assert some.tobytes() == all_lanes[first : first + count].tobytes(), (name, given, first, count)


# -- edge values ---------------------------------------------------------------------------------------------------


def fitting(name: str, x: Any, y: Any) -> Any:
    """Which pairs do not fault."""
    if name == "to_integer":
        return (y >= -(2.0**63)) & (y < 2.0**63)
    if name == "within":
        return ~(y < 0)
    if x.dtype.kind != "i":
        return np.full(x.shape, True)
    if name in ("floor_divide", "remainder"):
        return y != 0
    if name in ("power", "bitwise_left_shift", "bitwise_right_shift"):
        return y >= 0
    return np.full(x.shape, True)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", sorted(n for n in ELEMENTWISE if CATALOGUE[n].arity == 1 and n != "cast"))
def test_edges_of_one_operand(name: str, isa: str) -> None:
    for dtype in {type_of(v[0]).dtype.name for v, _ in EXAMPLES[name]}:
        x = near(dtype)
        (got,) = run(name, [x], [False], {}, isa)
        with np.errstate(all="ignore"):
            (wanted,) = evaluate(name, [x], Attrs())
        check(name, got, wanted)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", sorted(n for n in ELEMENTWISE if CATALOGUE[n].arity == 2))
def test_edges_of_two_operands(name: str, isa: str) -> None:
    for dtype in {type_of(v[0]).dtype.name for v, _ in EXAMPLES[name]}:
        x, y = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
        keep = fitting(name, x, y)
        x, y = x[keep], y[keep]
        with np.errstate(all="ignore"):
            (wanted,) = evaluate(name, [x, y], Attrs())
        (got,) = run(name, [x, y], [False, False], {}, isa)
        check(name, got, wanted)
        for one in edges(dtype)[fitting(name, edges(dtype), edges(dtype))]:  # and as single values, on both sides
            with np.errstate(all="ignore"):
                (wanted,) = evaluate(name, [x, np.full_like(x, one)], Attrs())
            if fitting(name, x, np.full_like(x, one)).all():
                check(name, run(name, [x, np.asarray(one)], [False, True], {}, isa)[0], wanted, one)
        for one in edges(dtype):
            rest = y[fitting(name, np.full_like(y, one), y)]
            with np.errstate(all="ignore"):
                (wanted,) = evaluate(name, [np.full_like(rest, one), rest], Attrs())
            check(name, run(name, [np.asarray(one), rest], [True, False], {}, isa)[0], wanted, one)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("source", ALL)
def test_casts(source: str, to: str, isa: str) -> None:
    x = np.concatenate([edges(source), edges(source)[::-1]])
    with np.errstate(all="ignore"):
        (wanted,) = evaluate("cast", [x], Attrs(dtype=to))
    check("cast", run("cast", [x], [False], {"dtype": to}, isa)[0], wanted)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "logsumexp", "softmax", "log_softmax"])
@pytest.mark.parametrize("length", [1, 2, 5, 31, 32, 33, 100, 5000])
def test_rows_of_any_length(name: str, length: int, isa: str) -> None:
    random = np.random.default_rng(length)
    for dtype in {type_of(v[0]).dtype.name for v, _ in EXAMPLES[name]}:
        if dtype in INTS:
            x = random.integers(-(2**40), 2**40, (3, length, 2)).astype(DTYPES[dtype].numpy)
        else:
            x = (random.normal(1, 0.01, (3, length, 2))).astype(DTYPES[dtype].numpy)
        for axes in ((0,), (1,), (0, 1)):
            given: dict[str, Any] = {"axes": axes}
            if "softmax" not in name:
                given["keepdims"] = False
            (got,) = run(name, [x], [False], given, isa)
            for lane in range(3):
                with np.errstate(all="ignore"):
                    (wanted,) = evaluate(name, [x[lane]], attrs_of(given))
                small = 1e-12 if dtype == "f64" else 2e-4
                np.testing.assert_allclose(got[lane], wanted, rtol=small if dtype in FLOATS else 0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_with_edges(dtype: str, isa: str) -> None:
    inf, nan = np.inf, np.nan
    rows = [
        [1, nan, 2],
        [-inf, -inf, -inf],
        [inf, 1, 2],
        [-inf, 0, 1],
        [inf, -inf, 0],
        [1e30, 1e30, -1e30],
        [0, -0.0, 0],
    ]
    x = np.array(rows, DTYPES[dtype].numpy)
    x = np.concatenate([x, np.tile(x, (1, 12))], axis=1)  # long enough for whole vectors
    for name in ("sum", "prod", "max", "min", "logsumexp", "softmax", "log_softmax", "argmax", "argmin", "cumsum"):
        given: dict[str, Any] = {"axes": (0,), "keepdims": False}
        if "softmax" in name:
            given = {"axes": (0,)}
        elif name.startswith("arg"):
            given = {"axis": 0, "keepdims": False}
        elif name == "cumsum":
            given = {"axis": 0}
        compare(name, [x], [False], given, range(len(rows)), isa)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("descending", [False, True])
def test_orders_are_stable(dtype: str, descending: bool) -> None:
    random = np.random.default_rng(3)
    x = random.integers(0, 5, (4, 6, 50)).astype(DTYPES[dtype].numpy)
    if dtype in FLOATS:
        x[:, 1, ::7] = np.nan
        x[:, 2, ::5] = -0.0
        x[:, 3, ::5] = np.inf
    for name in ("sort", "argsort"):
        for axis in (0, 1):
            compare(name, [x], [False], {"axis": axis, "descending": descending}, range(4))


@pytest.mark.slow
def test_many_axes() -> None:
    x = np.arange(3 * 2 * 3 * 2 * 3 * 2, dtype=np.float64).reshape(3, 2, 3, 2, 3, 2)
    for axes in itertools.chain.from_iterable(itertools.combinations(range(5), n) for n in range(6)):
        compare("sum", [x], [False], {"axes": axes, "keepdims": True}, range(3))
        compare("max", [x], [False], {"axes": axes, "keepdims": False}, range(3))
        compare("softmax", [x], [False], {"axes": axes}, range(3))
        compare("flip", [x], [False], {"axes": axes}, range(3))
    for axes in itertools.permutations(range(5)):
        compare("transpose", [x], [False], {"axes": axes}, (1,))


def test_sizes_of_zero_in_reductions() -> None:
    x = np.zeros((2, 0, 3))
    for name in ("sum", "prod", "logsumexp"):
        for axes in ((0,), (1,), (0, 1), ()):
            compare(name, [x], [False], {"axes": axes, "keepdims": False}, (0, 1))
    compare("max", [x], [False], {"axes": (1,), "keepdims": False}, (0, 1))


# -- lanes that differ in where they look --------------------------------------------------------------------------


@pytest.mark.slow
def test_each_lane_looks_where_it_says() -> None:
    random = np.random.default_rng(1)
    table = random.normal(size=(7, 4))
    tables = random.normal(size=(1000, 7, 4))
    for x, shared in ((table, True), (tables, False)):
        for dtype in (np.int32, np.int64):
            one, other = random.integers(-7, 7, 1000).astype(dtype), random.integers(-4, 4, 1000).astype(dtype)
            some = range(0, 1000, 37)
            compare("index", [x, one], [shared, False], {"axes": (0,)}, some)
            compare("index", [x, other], [shared, False], {"axes": (1,)}, some)
            compare("index", [x, one, other], [shared, False, False], {"axes": (0, 1)}, some)
            compare("index", [x, other, one], [shared, False, False], {"axes": (1, 0)}, some)
            compare("take", [x, np.stack([one, one[::-1]], 1)], [shared, False], {"axis": 0}, some)
            starts = random.integers(0, 4, 1000).astype(dtype)
            compare("slice_at", [x, starts], [shared, False], {"axis": 0, "size": 3}, some)
            ends = starts + dtype(3)
            compare("slice_between", [x, starts, ends], [shared, False, False], {"axis": 0, "step": 2}, some)
            compare("slice_between", [x, ends, starts], [shared, False, False], {"axis": 0, "step": -1}, some)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, 2**62, -(2**63), 2**63 - 1])
def test_slices_are_clamped(step: int) -> None:
    x = np.arange(5.0)
    far = [-(2**63), -7, -6, -5, -2, 0, 1, 4, 5, 6, 2**63 - 1]
    for start, stop in itertools.product([None, *far], repeat=2):
        given = {"starts": (start,), "stops": (stop,), "steps": (step,)}
        compare("slice", [x], [True], given, (0,))
        if start is not None and stop is not None:
            bounds = [np.int64(start), np.int64(stop)]
            compare("slice_between", [x, *bounds], [True] * 3, {"axis": 0, "step": step}, (0,))
        (cut,) = evaluate("slice", [x], attrs_of(given))
        compare("unslice", [cut], [True], {**given, "shape": (5,)}, (0,))


def test_lanes_of_different_sizes_are_asked_one_by_one() -> None:
    starts = np.arange(4, dtype=np.float32)
    compare("arange", [starts, starts + 3, np.float32(1)], [False, False, True], {}, range(4))
    with pytest.raises(ValueError, match="do not run together"):
        run("arange", [starts, starts + starts, np.float32(1)], [False, False, True], {})


def test_random_numbers_have_the_same_bits() -> None:
    keys = np.array([0, 1, -1, 2**63 - 1, -(2**63), 12345678901234567], np.int64)
    for name, dtypes in (("random_bits", INTS), ("random_uniform", FLOATS), ("random_normal", FLOATS)):
        for dtype in dtypes:
            compare(name, [keys], [False], {"shape": (3, 100), "dtype": dtype}, range(len(keys)))
    compare("fold_in", [keys, np.int64(3)], [False, True], {}, range(len(keys)))


# -- matrix products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "isa"), [*itertools.product(FLOATS, ISAS), ("i32", ""), ("i64", "")])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 12, 13, 40])
def test_products(dtype: str, lanes: int, isa: str) -> None:
    random = np.random.default_rng(lanes)
    numpy = DTYPES[dtype].numpy

    def make(*shape: int) -> Any:
        return random.integers(-3, 4, shape).astype(numpy)  # exact in floats too, in any order

    for k, n in ((1, 1), (3, 5), (17, 33), (40, 100), (100, 31), (64, 129)):
        vectors, matrices, w = make(lanes, k), make(lanes, 4, k), make(k, n)
        turned, many = np.ascontiguousarray(w.T), make(lanes, k, n)
        cases = [
            ((vectors, w), (False, True)), ((matrices, w), (False, True)), ((turned, vectors), (True, False)),
            ((vectors, many), (False, False)), ((matrices, many), (False, False)), ((turned, many), (True, False)),
            ((vectors, make(k)), (False, True)), ((vectors, make(lanes, k)), (False, False)),
            ((matrices, vectors), (False, False)), ((make(k), many), (True, False)),
        ]  # fmt: skip
        for operands, shared in cases:
            (got,) = run("matmul", operands, shared, {}, isa)
            left, right = (v[None] if s else v for v, s in zip(operands, shared, strict=True))
            left = left[:, None, :] if operands[0].ndim - (not shared[0]) == 1 else left
            right = right[:, :, None] if operands[1].ndim - (not shared[1]) == 1 else right
            wanted = np.matmul(left.astype(np.int64), right.astype(np.int64))
            np.testing.assert_array_equal(got.reshape(wanted.shape), wanted.astype(numpy))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("transposed", [False, True])
def test_packed_products(dtype: str, transposed: bool, isa: str) -> None:
    random = np.random.default_rng(0)
    for m, k, n in (
        (1, 7, 3),
        (1, 30, 200),
        (2, 9, 70),
        (3, 5, 65),
        (13, 40, 36),
        (40, 100, 100),
        (5, 0, 4),
        (0, 3, 2),
    ):
        x, w = (random.integers(-3, 4, shape).astype(DTYPES[dtype].numpy) for shape in ((m, k), (k, n)))
        given = np.ascontiguousarray(w.T) if transposed else w
        np.testing.assert_array_equal(_core.packed_product(x, given, transposed, isa)[0], x @ w)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_row_of_a_product_has_the_same_bits_among_any_others(dtype: str) -> None:
    random = np.random.default_rng(0)
    x, w = (random.normal(size=shape).astype(DTYPES[dtype].numpy) for shape in ((300, 100), (100, 100)))
    all_rows = _core.packed_product(x, w)[0]
    for first, count in ((0, 1), (7, 2), (3, 5), (200, 13), (0, 128)):
        assert (
            _core.packed_product(x[first : first + count], w)[0].tobytes() == all_rows[first : first + count].tobytes()
        )
    (as_lanes,) = run("matmul", [x, w], [False, True], {})
    assert as_lanes.tobytes() == all_rows.tobytes()  # packed or not


@pytest.mark.slow
def test_very_wide_products() -> None:
    random = np.random.default_rng(0)
    x, w = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((1500, 700), (700, 300)))
    wanted = x @ w
    np.testing.assert_array_equal(_core.packed_product(x, w)[0], wanted)
    np.testing.assert_array_equal(_core.packed_product(x, np.ascontiguousarray(w.T), transposed=True)[0], wanted)
    np.testing.assert_array_equal(run("matmul", [x, w], [False, True], {})[0], wanted)
    np.testing.assert_array_equal(run("matmul", [w.T, x], [True, False], {})[0], wanted)
    many = random.integers(-3, 4, (6000, 300)).astype(np.float32)
    left = random.integers(-3, 4, (6000, 200)).astype(np.float32)
    start = np.ones((200, 300), np.float32)
    np.testing.assert_array_equal(_core.outer_sum(left, many, start)[0], start + left.T @ many)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lanes", [0, 1, 2, 7, 64, 300])
def test_the_gradient_of_weights_is_one_product(dtype: str, lanes: int, isa: str) -> None:
    random = np.random.default_rng(0)
    for k, n in ((1, 1), (3, 5), (13, 36), (100, 100)):
        x, g, start = (random.integers(-3, 4, s).astype(DTYPES[dtype].numpy) for s in ((lanes, k), (lanes, n), (k, n)))
        np.testing.assert_array_equal(_core.outer_sum(x, g, start, isa)[0], start + x.T @ g)
        if lanes:  # one of them shared by all lanes
            total = g.sum(axis=0)
            np.testing.assert_array_equal(_core.outer_sum(x[0], g, start, isa)[0], start + np.outer(x[0], total))
            total = x.sum(axis=0)
            np.testing.assert_array_equal(_core.outer_sum(x, g[0], start, isa)[0], start + np.outer(total, g[0]))


# -- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "values", "given"), FAULTS, ids=lambda x: x if isinstance(x, str) else "")
def test_faults(name: str, values: list[Any], given: dict[str, Any]) -> None:
    if name in WITHOUT:
        return
    shared = (True,) * len(values)
    with np.errstate(all="ignore"), pytest.raises(Fault):
        evaluate(name, values, attrs_of(given))
    types = [type_of(np.asarray(v)) for v in values]
    outs = CATALOGUE[name].type([t.with_shape((None,) * t.rank) for t in types], attrs_of(given))
    wanted = [("bool" if t.dtype.kind == "ctl" else t.dtype.name, t.rank) for t in outs]
    with pytest.raises(_core.KernelFault) as stop:
        _core.run_kernel(name, given, [np.asarray(v) for v in values], list(shared), wanted)
    assert stop.value.args[1] == 0
    lanes = [np.stack([np.asarray(v)] * 2) for v in values]
    with pytest.raises(_core.KernelFault) as stop:
        _core.run_kernel(name, given, lanes, [False] * len(values), wanted)
    assert stop.value.args[1] == 0


GOOD_AND_BAD: list[tuple[str, list[Any], list[Any], dict[str, Any], str]] = [
    ("floor_divide", [7, 2], [7, 0], {}, "division by zero"),
    ("remainder", [7, 2], [7, 0], {}, "division by zero"),
    ("power", [2, 3], [2, -3], {}, "negative power"),
    ("bitwise_left_shift", [2, 3], [2, -3], {}, "negative shift"),
    ("bitwise_right_shift", [2, 3], [2, -3], {}, "negative shift"),
    ("floor_divide", [[7, 7], [1, 2]], [[7, 7], [2, 0]], {}, "division by zero"),
    ("index", [[1, 2, 3], 2], [[1, 2, 3], 3], {"axes": (0,)}, "out of range"),
    ("index", [[1, 2, 3], -3], [[1, 2, 3], -4], {"axes": (0,)}, "out of range"),
    ("take", [[1, 2, 3], [0, -1]], [[1, 2, 3], [0, 5]], {"axis": 0}, "out of range"),
    ("take_along_axis", [[1, 2, 3], [0, -1]], [[1, 2, 3], [0, 5]], {"axis": 0}, "out of range"),
    ("scatter_add", [[1, 2], [0, 1], [5, 6]], [[1, 2], [0, 2], [5, 6]], {"axis": 0}, "out of range"),
    ("add_along_axis", [[1, 2], [0, 1], [5, 6]], [[1, 2], [0, -3], [5, 6]], {"axis": 0}, "out of range"),
    ("slice_at", [[1, 2, 3], 1], [[1, 2, 3], 2], {"axis": 0, "size": 2}, "out of range"),
    ("fill", [1, 2], [1, -2], {"shape": (None,)}, "negative size"),
    ("arange", [0, 3, 1], [0, 3, 0], {}, "zero step"),
    ("assert", [[True, True]], [[True, False]], {"template": "no"}, "assertion"),
    ("to_integer", [1.5, 1.5], [1.5, np.nan], {}, "no integer"),
]


@pytest.mark.parametrize("bad_lane", [0, 1, 68, 99])
@pytest.mark.parametrize(("name", "good", "bad", "given", "kind"), GOOD_AND_BAD)
def test_a_fault_names_the_first_lane(
    name: str, good: list[Any], bad: list[Any], given: dict[str, Any], kind: str, bad_lane: int
) -> None:
    lanes = [
        np.stack([np.asarray(b if lane in (bad_lane, 99) else g) for lane in range(100)])
        for g, b in zip(good, bad, strict=True)
    ]
    shared = [False] * len(lanes)
    with pytest.raises(_core.KernelFault) as stop:
        run(name, lanes, shared, given)
    assert stop.value.args == (kind, bad_lane)
    with pytest.raises(Fault):  # which makes the message
        evaluate(name, lane_of(lanes, shared, bad_lane), attrs_of(given))
    run(name, [v[:bad_lane] for v in lanes], shared, given) if bad_lane > 0 else None


@pytest.mark.slow
def test_the_environment_chooses_the_instruction_set() -> None:
    code = "from undertow import _core; print(_core.isa())"
    for wanted in (*ISAS, "unheard of"):
        environment = {**os.environ, "UNDERTOW_ISA": wanted}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == (wanted if wanted in ISAS else ISAS[-1])


# -- properties ------------------------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(0, 4), max_size=4)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@drawn(
    shape=SIZES,
    cut=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    ones=st.tuples(st.lists(st.booleans(), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4)),
    shared=st.sampled_from([(False, False), (True, False), (False, True)]),
    lanes=st.integers(0, 5),
    name=st.sampled_from(["add", "less", "floor_divide", "maximum", "power", "fold_in"]),
)
def test_broadcasting(
    shape: list[int],
    cut: tuple[int, int],
    ones: tuple[list[bool], list[bool]],
    shared: tuple[bool, bool],
    lanes: int,
    name: str,
) -> None:
    random = np.random.default_rng(0)
    operands = []
    for front, single, is_shared in zip(cut, ones, shared, strict=True):
        own = [1 if one else size for size, one in zip(shape, single, strict=False)][front:]
        operands.append(random.integers(1, 5, own if is_shared else [lanes, *own]))
    compare(name, operands, shared, {}, range(lanes))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@drawn(shape=SIZES, lanes=st.integers(1, 4), shared=st.lists(st.booleans(), min_size=3, max_size=3), data=st.data())
def test_choice_broadcasts(shape: list[int], lanes: int, shared: list[bool], data: st.DataObject) -> None:
    random = np.random.default_rng(0)
    operands = []
    for is_shared in shared:
        own = [data.draw(st.sampled_from([1, size])) for size in shape][data.draw(st.integers(0, len(shape))) :]
        operands.append(random.normal(size=own if is_shared else [lanes, *own]))
    condition = operands[0] > 0
    compare("where", [condition, *operands[1:]], shared, {}, range(1 if all(shared) else lanes))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@drawn(shape=st.lists(st.integers(0, 4), min_size=1, max_size=4), lanes=st.integers(1, 3), data=st.data())
def test_axes(shape: list[int], lanes: int, data: st.DataObject) -> None:
    x = np.random.default_rng(0).normal(size=(lanes, *shape))
    axes = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    compare("sum", [x], [False], {"axes": axes, "keepdims": data.draw(st.booleans())}, range(lanes))
    compare("softmax", [x], [False], {"axes": axes}, range(lanes))
    compare("cumsum", [x], [False], {"axis": axis}, range(lanes))
    compare("prod_others", [x], [False], {"axis": axis}, range(lanes))
    compare("concat", [x, x], [False, False], {"axis": axis}, range(lanes))
    compare("stack", [x, x], [False, False], {"axis": axis}, range(lanes))
    compare("take", [x, np.zeros((2, 1), int)], [False, True], {"axis": axis}, range(lanes)) if 0 not in shape else None


# --------------------------------------------------------------------------------------------------------------
# Operands that are worked on in several steps, with looks up in between

_DRAWS = np.random.default_rng(0)


def _floats(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers of which many are equal, with some that are special."""
    x = _DRAWS.integers(-9999, 9999, size=shape) / 64
    return np.where(x == 0, -0.0, np.where(x > 156, np.inf, np.where(x < -156, -np.inf, x)))


LARGE: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "sort": ("sort", {"axis": 0, "descending": False}, [_floats(1, 70_001)]),
    "sort backwards": ("sort", {"axis": 0, "descending": True}, [_floats(1, 70_001)]),
    "argsort": ("argsort", {"axis": 0, "descending": False}, [_floats(1, 70_001)]),
    "argsort backwards": ("argsort", {"axis": 1, "descending": True}, [_floats(2, 3, 5001)]),
    "argmax": ("argmax", {"axis": 0, "keepdims": False}, [_floats(1, 600_001)]),
    "cumsum": ("cumsum", {"axis": 0}, [_DRAWS.integers(-9, 9, size=(1, 600_001))]),
    "cumsum of rows": ("cumsum", {"axis": 0}, [_DRAWS.integers(-9, 9, size=(1, 30_001, 20))]),
    "prod_others": ("prod_others", {"axis": 0}, [_DRAWS.choice([1, -1], size=(1, 400_001))]),
    "sum": ("sum", {"axes": (0,), "keepdims": False}, [_DRAWS.integers(-9, 9, size=(1, 600_001))]),
    "sum of columns": ("sum", {"axes": (0,), "keepdims": False}, [_DRAWS.integers(-9, 9, size=(1, 201, 4001))]),
    "max": ("max", {"axes": (0,), "keepdims": True}, [_floats(1, 600_001)]),
    "any": ("any", {"axes": (0,), "keepdims": False}, [np.arange(600_001)[None] == 600_000]),
    "logsumexp": ("logsumexp", {"axes": (0,), "keepdims": False}, [np.minimum(_floats(1, 600_001), 9.0)]),
    "softmax": ("softmax", {"axes": (0,)}, [np.minimum(_floats(1, 300_001), 9.0)]),
    "log_softmax": ("log_softmax", {"axes": (0,)}, [np.minimum(_floats(1, 300_001), 9.0)]),
    "softmax of inf": ("softmax", {"axes": (0,)}, [np.append(_floats(1, 300_001), np.inf)[None]]),
    "add": ("add", {}, [_floats(1, 600_001), _floats(1, 600_001)]),
    "add a row": ("add", {}, [_floats(1, 3001, 301), _floats(1, 301)]),
    "transpose": ("transpose", {"axes": (2, 0, 1)}, [_floats(3, 31, 101, 103)]),
    "flip": ("flip", {"axes": (0,)}, [_floats(1, 600_001)]),
    "concat": ("concat", {"axis": 1}, [_floats(2, 301, 901), _floats(2, 301, 13)]),
    "broadcast_to": ("broadcast_to", {"shape": (601, 1009)}, [_floats(2, 1009)]),
    "identity": ("identity", {}, [_floats(3, 400_001)]),
    "take": ("take", {"axis": 0}, [_floats(1, 1001), _DRAWS.integers(-1001, 1001, size=(1, 300_001))]),
    "take long rows": ("take", {"axis": 0}, [_floats(1, 5, 200_001), np.array([[4, -5, 1]])]),
    "index": ("index", {"axes": (0,)}, [_floats(1, 2, 700_001), np.array([-1])]),
    "matmul": ("matmul", {}, [_floats(1, 70, 9001) / 1e200, _floats(1, 9001, 90)]),
    "matmul of integers": ("matmul", {}, [_DRAWS.integers(-9, 9, size=(1, 99, 701)), np.ones((1, 701, 97), int)]),
    "fill": ("fill", {"shape": (900_001,)}, [np.array([-0.0])]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_what_takes_several_steps(name: str) -> None:
    op, attrs, operands = LARGE[name]
    (got,) = run(op, operands, [False] * len(operands), attrs)
    with np.errstate(all="ignore"):
        for lane, values in enumerate(zip(*operands, strict=True)):
            (wanted,) = evaluate(op, [np.asarray(v)[()] for v in values], attrs_of(attrs))
            if op in SUMS and np.asarray(wanted).dtype.kind == "f":
                np.testing.assert_allclose(got[lane], wanted, rtol=1e-9, atol=1e-300)
            else:
                np.testing.assert_array_equal(got[lane], wanted)
                np.testing.assert_array_equal(np.signbit(got[lane]), np.signbit(wanted))


@pytest.mark.slow
@pytest.mark.parametrize(("m", "k", "n"), [(60, 4001, 5003), (1031, 1033, 1039), (300, 70_001, 60), (3, 41, 300_007)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_in_blocks(m: int, k: int, n: int, transposed: bool) -> None:
    """Of small integers: exact in whatever order they are added."""
    x, w = (_DRAWS.integers(-3, 3, size=shape).astype(np.float32) for shape in ((m, k), (k, n)))
    product = (x @ w)[None]
    stored = np.ascontiguousarray(w.T) if transposed else w
    np.testing.assert_array_equal(_core.packed_product(x, stored, transposed), product)
    np.testing.assert_array_equal(_core.run_kernel("matmul", {}, [x[None], w], [False, True], [("f32", 2)])[0], product)
