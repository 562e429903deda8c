"""Every gradient and tangent row: against finite differences, against each other, and differentiated again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.op_examples import EXAMPLES, OF_COMPLEX, ROWS
from tests.support.tape import Hides, Tape

from undertow.errors import Fault
from undertow.ir.graph import Attrs, Const, Port
from undertow.ops.gradient import Applied, NoGradient, RowCotangent, dense, zero_gradient
from undertow.ops.op import find
from undertow.ops.term import Term, apply
from undertow.types import Type, type_of

N = np.int64


class Case(NamedTuple):
    op: str
    values: list[Any]
    attrs: dict[str, Any]


def f(*shape: int, seed: int = 0) -> Any:
    """Floats from 0.35 to 0.75, all different."""
    numbers = np.random.default_rng([seed, *shape]).permutation(math.prod(shape)) + 0.5
    return (0.35 + 0.4 * (numbers / max(math.prod(shape), 1)) + 0.003 * seed).reshape(shape)[()]


# Cases that the examples do not have, or in which they stand where there is no derivative.
MORE: dict[str, list[tuple[list[Any], dict[str, Any]]]] = {
    "acosh": [([f(2, 3) + 1], {})],
    "arange": [
        ([np.float64(a), np.float64(b), np.float64(c)], {})
        for a, b, c in [(0.25, 5.1, 1), (5.3, 0, -2), (1.5, 1, 1)]
    ],
    "broadcast_to": [
        ([f(*a), *sizes], {"shape": b})
        for a, b, sizes in [
            ((), (2, 3), []), ((3,), (2, 3), []), ((1, 3), (2, 3), []), ((3,), (None, 3), [N(2)]), ((), (), []),
            ((1,), (0,), []), ((1, 1), (None, None), [N(2), N(0)]), ((2, 1), (4, None, 3), [N(2)]),
        ]
    ],
    "power": [
        *(([f(2, 3), Const(np.float64(e))], {}) for e in (0, 1, 2, -1.5)),
        *(([f(3), np.float64(e)], {}) for e in (0, 2)),
        ([-f(3), Const(np.float64(3))], {}),
        ([Const(f(2, 1)), f(3)], {}),
        ([f(2, 1), np.array([0.0, 2.0, -1.0])], {}),
        ([f(2, 1), Const(np.array([0.0, 2.0, -1.0]))], {}),
    ],
    "multiply": [([f(2, 1), Const(f(3))], {})],
    "prod": [
        ([np.array(x)], {"axes": axes, "keepdims": len(x) == 2})
        for x, axes in [
            ([0.5, 0.0, 2.0], (0,)), ([0.0, 0.0, 2.0, 3.0], (0,)), ([[0.0, 1.5], [2.0, 0.0]], (0, 1)),
            ([[[0.0, 1.5], [2.0, 0.0]], [[1.0, 2.0], [3.0, -4.0]]], (0, 2)), ([[0.0, 0.0], [0.0, 3.0]], (1,)),
        ]
    ],
    "prod_others": [([np.array([[0.5, 0.0, 2.0], [0.0, 0.0, 3.0]])], {"axis": axis}) for axis in (0, 1)],
    "sort": [([f(2, 3, 2)], {"axis": axis, "descending": d}) for axis in (0, 1, 2) for d in (False, True)]
    + [([f(0)], {"axis": 0, "descending": True})],
    "matmul": [
        ([f(*a), f(*b, seed=1)], {})
        for a, b in [
            ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (1, 4, 3, 2)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
            ((3,), (5, 3, 4)), ((0, 2, 3), (3, 4)), ((1, 1), (1, 1)), ((0, 2, 3), (1, 3, 4)),
        ]
    ],
    "concat": [([f(2, 3), f(0, 3), f(4, 3, seed=1)], {"axis": 0}), ([f(2)], {"axis": 0})],
    "stack": [([f(2, seed=k) for k in range(3)], {"axis": 1})],
    "slice": [
        ([f(5, 4)], {"starts": (4, None), "stops": (None, -1), "steps": (-2, 3)}),
        ([f(3)], {"starts": (7,), "stops": (None,), "steps": (None,)}),
        ([np.float64(2)], {"starts": (), "stops": (), "steps": ()}),
    ],
    "slice_at": [([f(3), np.int32(k)], {"axis": 0, "size": n}) for k, n in [(-3, 3), (-1, 1), (3, 0), (1, 2)]],
    "index": [
        ([f(2, 3, 4), *[N(1)] * len(axes)], {"axes": axes})
        for axes in [(0,), (2,), (1, 2), (2, 0), (0, 1, 2), (2, 1)]
    ],
    "take": [([f(1, 3), np.array([0, 0, -1])], {"axis": 0}), ([f(0, 3), np.zeros(0, int)], {"axis": 0})],
    "take_along_axis": [([f(2, 3), np.array([[0, 0, -1, 2], [1, 1, 1, -2]])], {"axis": 1})],
    "scatter_add": [([f(0, 2), np.zeros(0, int), f(0, 2)], {"axis": 0}), ([f(3), N(-1), f()], {"axis": 0})],
    "where": [([np.array([[True], [False]]), f(3), f(2, 1, seed=1)], {})],
    "logsumexp": [([np.array([[0.5, -np.inf], [0.25, 1.0]])], {"axes": (1,), "keepdims": False})],
    "sum": [([f(2, 1, 3)], {"axes": (0, 2), "keepdims": k}) for k in (False, True)],
    "max": [([f(2, 2, 3)], {"axes": (0, 2), "keepdims": k}) for k in (False, True)],
    "cumsum": [([f(2, 3)], {"axis": 1})],
}  # fmt: skip
INSTEAD = {"acosh", "arange"}


def is_float(value: Any) -> bool:
    """Is it a float that can change?"""
    return not isinstance(value, Const) and bool(np.asarray(value).dtype.kind == "f")


def as_case(op: str, values: list[Any], attrs: dict[str, Any]) -> Case | None:
    """The example with f64 for floats, moved to where all is smooth; None if no float comes out or none goes in."""
    moved = []
    for value in values:
        floats = np.asarray(value).dtype.kind == "f"
        moved.append((0.3 + 0.5 * np.asarray(value, np.float64))[()] if floats else value)
    types = [type_of(v) for v in moved]
    out = ROWS[op].type(types, Attrs(**attrs))[0].dtype.name
    return Case(op, moved, attrs) if out == "f64" and any(t.dtype.kind == "float" for t in types) else None


def mirrored(case: Case) -> list[Case]:
    """The case with its first float negated, and with all of them, where the operator has finite results there."""
    floats = [k for k, value in enumerate(case.values) if is_float(value)]
    made = []
    for signs in {tuple(floats[:1]), tuple(floats)}:
        values = [-value if k in signs else value for k, value in enumerate(case.values)]
        with np.errstate(all="ignore"):
            try:
                results = find(case.op).eval(values, Attrs(**case.attrs))
            except Fault:
                continue
        if all(np.isfinite(result).all() for result in results):
            made.append(Case(case.op, values, case.attrs))
    return made


def cases() -> dict[str, list[Case]]:
    table: dict[str, list[Case]] = {}
    for op, examples in EXAMPLES.items():
        if op == "stop_gradient":  # what it gives is not the derivative, on purpose
            continue
        found = [case for values, attrs in examples if (case := as_case(op, values, attrs)) and op not in INSTEAD]
        # Examples that differ in dtype only are one case.
        unique = {
            (tuple(np.shape(v) if is_float(v) else repr(v) for v in case.values), repr(case.attrs)): case
            for case in found
        }
        negated = mirrored(next(iter(unique.values()))) if unique else []
        table[op] = [*unique.values(), *negated, *(Case(op, values, attrs) for values, attrs in MORE.get(op, []))]
    return {op: rows for op, rows in table.items() if rows}


CASES = cases()
DIFFERENTIABLE = [op for op in CASES if ROWS[op].grad is not zero_gradient]


HIDDEN: dict[str, Hides] = {
    "none": lambda leaf, axis: False,
    "all": lambda leaf, axis: True,
    "even": lambda leaf, axis: (leaf + axis) % 2 == 0,
    "odd": lambda leaf, axis: (leaf + axis) % 2 == 1,
}


class Tower:
    """s0 = <g, f(x)>, s1 = <v1, ds0/dx>, s2 = <v2, ds1/dx>, ... on a tape; g is a leaf like x."""

    def __init__(self, case: Case, order: int, shift: Any = 0.0, hides: Hides = HIDDEN["none"]) -> None:
        self.tape = tape = Tape(hides)
        random = np.random.default_rng(len(case.op))
        operands = [v + shift * self.direction(v, k) if is_float(v) else v for k, v in enumerate(case.values)]
        self.x = [Term(tape, v) if isinstance(v, Const) else tape.leaf(v) for v in operands]
        self.y = apply(case.op, *self.x, **case.attrs)
        seed = random.uniform(0.5, 1.5, np.shape(tape.value(self.y)))[()]
        self.g = tape.leaf(seed + shift * self.direction(seed, 99))
        self.leaves = [*(x for x, v in zip(self.x, operands, strict=True) if is_float(v)), self.g]
        self.names = [*(k for k, v in enumerate(operands) if is_float(v)), 99]
        self.s = tape.inner(self.g, self.y)
        for _ in range(order):
            found = self.gradient()
            parts = [
                tape.inner(d, tape.leaf(random.uniform(-1, 1, np.shape(tape.value(x)))[()]))
                for d, x in zip(found, self.leaves, strict=True)
                if d is not None
            ]
            self.s = sum(parts, start=tape.leaf(np.float64(0)))

    @staticmethod
    def direction(value: Any, k: int) -> Any:
        return np.random.default_rng([k, *np.shape(value)]).uniform(-1, 1, np.shape(value))[()]

    def gradient(self) -> list[Term | None]:
        one = self.tape.leaf(np.float64(1))
        return self.tape.pull([(self.s, one)], self.leaves)

    @property
    def value(self) -> float:
        return float(self.tape.value(self.s))

    def slope(self) -> float:
        """The derivative of s along the direction in which `shift` moves, by the gradient rows."""
        return sum(
            float(np.sum(self.tape.value(d) * self.direction(self.tape.value(x), k)))
            for d, x, k in zip(self.gradient(), self.leaves, self.names, strict=True)
            if d is not None
        )


def difference(function: Callable[[float], Any], step: float = 2e-3) -> Any:
    """The derivative at 0, by differences of the fourth order."""
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


# -- the catalogue is complete -----------------------------------------------------------------------------


def test_every_row_says_what_its_derivative_is() -> None:
    for row in ROWS.values():
        if row.state is None:
            assert row.grad is not None and row.tangent is not None, row.name
            assert isinstance(row.grad, NoGradient) == isinstance(row.tangent, NoGradient), row.name


def test_rows_without_a_gradient_have_no_float_that_depends_on_a_float() -> None:
    for op, examples in EXAMPLES.items():
        if isinstance(ROWS[op].grad, NoGradient):
            for values, attrs in examples:
                out = ROWS[op].type([type_of(v) for v in values], Attrs(**attrs))
                assert not any(t.dtype.kind == "float" for t in out) or not any(map(is_float, values)), op
        else:
            assert op in {*CASES, *OF_COMPLEX, "stop_gradient", "to_integer"}, f"{op} has a gradient and no case"


# -- against finite differences ----------------------------------------------------------------------------


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_are_what_differences_say(op: str, order: int) -> None:
    for case in CASES[op]:
        got = Tower(case, order - 1).slope()
        wanted = difference(lambda shift, case=case: Tower(case, order - 1, shift).value)  # type: ignore[misc]
        assert got == pytest.approx(wanted, rel=1e-6, abs=1e-7), case


@pytest.mark.parametrize("op", CASES)
def test_tangents_are_what_differences_say(op: str) -> None:
    for case in CASES[op]:
        tower = Tower(case, 0)
        tape = tower.tape
        seeds = [
            (x, tape.leaf(tower.direction(v, k)))
            for k, (x, v) in enumerate(zip(tower.x, case.values, strict=True))
            if is_float(v)
        ]
        wanted = difference(lambda shift, case=case: _result(Tower(case, 0, shift)))  # type: ignore[misc]
        (got,) = tape.push(seeds, [tower.y])
        np.testing.assert_allclose(np.zeros_like(wanted) if got is None else tape.value(got), wanted, 1e-6, 1e-7)
        # One operand after the other: the others have no tangent.
        parts = [tape.push([seed], [tower.y])[0] for seed in seeds]
        together = sum((tape.value(part) for part in parts if part is not None), np.zeros_like(wanted))
        np.testing.assert_allclose(together, wanted, 1e-6, 1e-7)


def _result(tower: Tower) -> Any:
    return tower.tape.value(tower.y)


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_gradient_and_tangent_are_transposes(op: str) -> None:
    """<g, J t> == <J' g, t>, for the operator and for the graph of its gradient (forward over reverse)."""
    for case in CASES[op]:
        for order in (0, 1):
            tower = Tower(case, order)
            tape = tower.tape
            seeds = [(x, tape.leaf(tower.direction(tape.value(x), k))) for k, x in enumerate(tower.leaves)]
            (forward,) = tape.push(seeds, [tower.s])
            pairs = zip(tower.gradient(), seeds, strict=True)
            backward = sum(float(np.sum(tape.value(d) * tape.value(t))) for d, (_, t) in pairs if d is not None)
            assert (0.0 if forward is None else float(tape.value(forward))) == pytest.approx(
                backward, rel=1e-9, abs=1e-12
            )


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("hides", ["all", *(pytest.param(some, marks=pytest.mark.slow) for some in ("even", "odd"))])
def test_run_time_dimensions_change_nothing(op: str, hides: str) -> None:
    """Types that know no dimension, or some: every node that a row writes has a type, and the numbers are the same."""
    for case in CASES[op]:
        towers = [Tower(case, 1, hides=HIDDEN[name]) for name in ("none", hides)]
        known, hidden = (tower.slope() for tower in towers)
        assert hidden == pytest.approx(known, rel=1e-9, abs=1e-12)
        pushed = []
        for tower in towers:
            seeds = [(x, tower.tape.leaf(tower.direction(tower.tape.value(x), 7))) for x in tower.leaves]
            pushed.append([tower.tape.value(t) for t in tower.tape.push(seeds, [tower.y, tower.s]) if t is not None])
        for a, b in zip(*pushed, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# -- where there is a choice -------------------------------------------------------------------------------


def gradient(op: str, *values: Any, g: Any = None, **attrs: Any) -> list[Any]:
    """The cotangents of the operands, dense; g is 1 unless told."""
    tape = Tape()
    x = [tape.leaf(np.asarray(v)[()]) for v in values]
    y = apply(op, *x, **attrs)
    shape = np.shape(tape.value(y))
    seed = tape.leaf(np.broadcast_to(1.0 if g is None else g, shape).astype(tape.value(y).dtype)[()])
    found = tape.pull([(y, seed)], [v for v in x if is_float(tape.value(v))])
    return [None if d is None else tape.value(d).tolist() for d in found]


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("op", "values", "attrs", "wanted"),
    [
        ("maximum", [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], {}, [[0, 0.5, 1], [1, 0.5, 0]]),
        ("minimum", [[1.0, 2.0, 3.0], 2.0], {}, [[1, 0.5, 0], 1.5]),
        ("max", [[3.0, 1.0, 3.0, 3.0]], {"axes": (0,), "keepdims": False}, [[1 / 3, 0, 1 / 3, 1 / 3]]),
        ("min", [[[1.0, 1.0], [2.0, 3.0]]], {"axes": (1,), "keepdims": True}, [[[0.5, 0.5], [1, 0]]]),
        ("abs", [[-1.0, 0.0, 2.0]], {}, [[-1, 0, 1]]),
        ("relu", [[-1.0, 0.0, 2.0]], {}, [[0, 0, 1]]),
        ("sqrt", [0.0], {}, [INF]),
        ("power", [0.0, 0.0], {}, [0, 0]),
        ("power", [[0.0, 0.0], [1.0, 2.0]], {}, [[1, 0], [0, 0]]),
        ("power", [-2.0, 3.0], {}, [12, 0]),
        ("prod", [[0.0, 2.0, 3.0]], {"axes": (0,), "keepdims": False}, [[6, 0, 0]]),
        ("prod", [[0.0, 0.0, 3.0]], {"axes": (0,), "keepdims": False}, [[0, 0, 0]]),
        ("prod", [np.zeros((0, 2))], {"axes": (0,), "keepdims": False}, [[]]),
        ("logsumexp", [[-INF, -INF]], {"axes": (0,), "keepdims": False}, [[0, 0]]),
        ("take", [[1.0, 2.0, 3.0], np.array([1, 1, -1])], {"axis": 0}, [[0, 2, 1]]),
        ("sort", [[2.0, 1.0, 2.0]], {"axis": 0, "descending": False}, [[1, 1, 1]]),
        ("floor", [1.5], {}, [None]),
        ("sign", [0.0], {}, [None]),
        ("floor_divide", [5.0, 2.0], {}, [None, None]),
    ],
)  # fmt: skip
def test_corners(op: str, values: list[Any], attrs: dict[str, Any], wanted: list[Any]) -> None:
    for got, expected in zip(gradient(op, *values, **attrs), wanted, strict=True):
        if expected is None:
            assert got is None
        else:
            np.testing.assert_allclose(got, expected)


def test_what_where_does_not_choose_gets_zero_and_not_nan() -> None:
    """sqrt(where(x > 0, x, 1)) is the old trick; here where(x > 0, sqrt(x), 0) loses nothing but at the kink."""
    for g in (1.0, INF):
        assert gradient("where", np.array([True, False]), [1.0, INF], [NAN, 2.0], g=g) == [[g, 0.0], [0.0, g]]


def test_casts_between_floats_pass_and_others_stop() -> None:
    tape = Tape()
    x, n = tape.leaf(np.float32(2)), tape.leaf(N(3))
    y = apply("cast", x, dtype="f64") * apply("cast", n, dtype="f64")
    (d,) = tape.pull([(y, tape.leaf(np.float64(1)))], [x])
    assert d is not None and tape.value(d) == 3 and d.type == Type(x.type.dtype)
    (t,) = tape.push([(x, tape.leaf(np.float32(1)))], [y])
    assert t is not None and tape.value(t) == 3
    z = apply("cast", apply("cast", x, dtype="i32"), dtype="f32")
    assert tape.pull([(z, tape.leaf(np.float32(1)))], [x]) == [None]
    assert tape.push([(x, tape.leaf(np.float32(1)))], [z]) == [None]


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op != "cast"])
def test_cotangents_of_f32_are_f32(op: str) -> None:
    for case in CASES[op]:
        tape = Tape()
        values = [v.value if isinstance(v, Const) else v for v in case.values]
        x = [tape.leaf(v.astype(np.float32) if is_float(v) else v) for v in values]
        y = apply(op, *x, **case.attrs)
        floats = [v for v in x if is_float(tape.value(v))]
        ones = tape.leaf(np.ones(np.shape(tape.value(y)), np.float32)[()])
        for d in tape.pull([(y, ones)], floats):  # the tape compares dtypes with those of the operands
            assert d is None or tape.value(d).dtype == np.float32


# -- what is written ---------------------------------------------------------------------------------------


def rows_of(op: str, *values: Any, wanted: tuple[bool, ...] | None = None, **attrs: Any) -> tuple[Tape, Applied, Any]:
    tape = Tape()
    x = tuple(tape.leaf(np.asarray(v)[()]) for v in values)
    y = apply(op, *x, **attrs)
    floats = tuple(is_float(v) for v in values)
    at = Applied(op, x, (y,), Attrs(**attrs), floats if wanted is None else wanted)
    row = find(op).grad
    assert row is not None and not isinstance(row, NoGradient)
    return tape, at, row(at, (tape.leaf(np.ones(np.shape(tape.value(y)))[()]),))


def written(tape: Tape) -> list[str]:
    return [entry.op for entry in tape.entries if entry.op]


def test_the_gradient_of_a_row_look_up_is_sparse() -> None:
    table = np.zeros((1000, 3))
    tape, at, (d, _) = rows_of("take", table, np.array([[1, -1], [1, 7]]), axis=0)
    assert isinstance(d, RowCotangent) and d.indices == at.x[1] and d.rows.operand == Port(3)
    assert tape.value(dense(d, at.x[0]))[[1, 7, 999]].tolist() == [[2.0] * 3, [1.0] * 3, [1.0] * 3]
    tape, at, (d, _) = rows_of("index", table, N(4), axes=(0,))
    assert isinstance(d, RowCotangent) and written(tape) == ["index"]
    tape, at, (d, *_) = rows_of("index", table, N(4), N(2), axes=(0, 1))
    assert isinstance(d, RowCotangent) and tape.value(d.rows).tolist() == [0, 0, 1]
    tape, at, (d, _) = rows_of("take", table, np.array([1, 1]), axis=1)
    assert isinstance(d, Term)


def test_rows_compute_what_is_wanted_and_no_more() -> None:
    tape, _, (dx, dy) = rows_of("power", np.ones(3), np.ones(3), wanted=(False, True))
    assert dx is None and dy is not None
    tape, _, (dx, dy) = rows_of("power", np.ones(3), np.ones(3), wanted=(True, False))
    assert dy is None and "log" not in written(tape)
    tape, _, parts = rows_of("concat", np.ones(2), np.ones(3), np.ones(4), wanted=(False, True, False), axis=0)
    assert [p is not None for p in parts] == [False, True, False] and written(tape) == ["concat", "slice"]
    tape, _, (dx, dy) = rows_of("matmul", np.ones((2, 3)), np.ones((3, 4)), wanted=(True, False))
    assert dy is None and written(tape) == ["matmul", "transpose", "matmul"]


def test_static_shapes_need_no_nodes() -> None:
    """What did not broadcast is not summed; what did is summed by plain sums."""
    assert written(rows_of("add", np.ones((2, 3)), np.ones((2, 3)))[0]) == ["add"]
    assert written(rows_of("add", np.ones((2, 3)), np.ones(3))[0]) == ["add", "sum"]
    assert written(rows_of("add", np.ones((2, 1)), np.ones(3))[0]) == ["add", "sum", "sum"]
    assert written(rows_of("exp", np.ones(3))[0]) == ["exp", "multiply"]
    assert (
        written(rows_of("matmul", np.ones((3, 4)), np.ones(4))[0]) == ["matmul"] + ["expand_dims"] * 2 + ["matmul"] * 2
    )
    assert "sum" not in written(rows_of("matmul", np.ones((5, 2, 3)), np.ones((3, 4)), wanted=(False, True))[0])


def test_run_time_shapes_that_cannot_broadcast_need_no_nodes() -> None:
    tape = Tape(HIDDEN["all"])
    x, c = tape.leaf(np.ones(3)), tape.leaf(np.float64(2))
    y = x * c
    tape.pull([(y, tape.leaf(np.ones(3)))], [x])
    tape.push([(x, tape.leaf(np.ones(3)))], [y])
    assert written(tape) == ["multiply"] * 3
    tape.pull([(x + y, tape.leaf(np.ones(3)))], [x])
    assert "sum_to" in written(tape)
