"""`sparse_rows`: the gradient of what is only looked up by rows is IndexedRows, and equal to the dense one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.validity import parse_library

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference import Reference
from undertow.errors import GraphError
from undertow.frontend.trace.rows_only import only_rows
from undertow.ir import spec
from undertow.ir.text import dump, parse
from undertow.ops.vet import type_rule
from undertow.passes.flatten import flatten

LEFT = np.array([1, 3, -1, -1, -1])
RIGHT = np.array([2, 4, -1, -1, -1])
WORDS = np.array([0, 1, 3, -1, 3])  # of three leaves: row 3 twice, and the last one from the end
TABLE = np.random.default_rng(0).normal(size=(7, 2))

WAYS: list[dict[str, Any]] = [
    *({"engine": "reference", "scheduler": s} for s in ("fifo", "lifo", "random")),
    {"engine": "reference", "simplify": False},
    {"engine": "demand"},
    {"engine": "demand", "simplify": False},
    {"engine": "waves"},
    {"engine": "waves", "simplify": False},
    {"engine": "expand"},
    {"engine": "expand", "simplify": False},
]


@ut.function
def encode(table, left, right, words, node: ut.i64) -> ut.f64[2]:
    """A leaf is looked up by a scalar."""
    if left[node] < 0:
        return ut.tanh(table[words[node]])
    one = encode(table, left, right, words, left[node])
    return ut.tanh(one * 0.5 + encode(table, left, right, words, right[node]))


@ut.function
def loss(table, left, right, words):
    return ut.sum(encode(table, left, right, words, 0) ** 2)


@ut.function
def encode_any(table: ut.f64[None, None], left: ut.i64[None], words: ut.i64[None], node: ut.i64) -> ut.f64[None]:
    """The same with lengths that only the run knows, and several rows at a time: a chain."""
    if left[node] < 0:
        return ut.tanh(ut.sum(ut.take(table, words, axis=0), axis=0) * table[0, 1])
    return ut.tanh(encode_any(table, left, words, left[node]) * table[-2])


@ut.function
def loss_any(table, left, words):
    return ut.sum(encode_any(table, left, words, 0))


@ut.function
def loop(table, words):
    total = table[0] * 0
    for k in range(ut.shape(words)[0]):
        total = ut.tanh(total + table[words[k]])
    return ut.sum(total)


@ut.function
def lanes(table, words):
    return ut.sum(ut.map(lambda w: ut.sum(table[w] ** 2), words))


@ut.function
def pick(table: ut.f64[None, 2], k: ut.i64) -> ut.f64:
    return table[k, 0] if k <= 0 else table[k, 1] * pick(table, k - 1)


@ut.function
def two_tables(table, other, k):
    """Both go through one parameter, so neither belongs to the entry."""
    return pick(table, k) * pick(other, k)


@ut.function
def swapped(one: ut.f64[None], other: ut.f64[None], k: ut.i64) -> ut.f64:
    return one[0] * other[1] if k <= 0 else one[k] * swapped(other, one, k - 1)


@ut.function
def never(table, k):
    return 1.0 * k + ut.shape(table)[0]


@ut.function
def maybe(table, k):
    return ut.sum(table[k] * table[k]) if k >= 0 else 2.0


PROGRAMS: list[tuple[Any, tuple[Any, ...], int | None]] = [
    # a function, its arguments, how many rows are collected (None: not just those that were looked up)
    (loss, (TABLE, LEFT, RIGHT, WORDS), 3),
    (loss_any, (TABLE, np.array([1, 2, -1]), np.array([4, 4, -3])), 6),
    (loop, (TABLE, np.array([2, 2, -1])), 4),
    (loop, (TABLE, np.zeros(0, np.int64)), 1),
    (lanes, (TABLE, np.array([2, 2, -1])), 3),
    (lanes, (TABLE, np.zeros(0, np.int64)), 0),
    (two_tables, (TABLE, TABLE[::-1].copy(), 3), None),
    (swapped, (TABLE[:, 0].copy(), TABLE[:, 1].copy(), 3), None),
    (never, (TABLE, 2), 0),
    (maybe, (TABLE, 5), 1),  # equal look-ups are one
    (maybe, (TABLE, -1), 0),
]
NAMES = [f"{number}-{program[0].__name__}" for number, program in enumerate(PROGRAMS)]


def same(sparse: Any, dense: Any) -> None:
    assert isinstance(sparse, ut.IndexedRows) and sparse.shape == dense.shape and sparse.dtype.numpy == dense.dtype
    assert sparse.indices.dtype == np.int64 and sparse.indices.ndim == 1
    np.testing.assert_allclose(sparse.dense(), dense, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_equals_the_dense_gradient(program: Any, way: dict[str, Any]) -> None:
    function, args, _ = program
    same(ut.grad(function, sparse_rows=True).run(*args, **way), ut.grad(function)(*args))


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_one_row_for_each_look_up(program: Any) -> None:
    function, args, count = program
    found = ut.grad(function, sparse_rows=True)(*args)
    if count is not None:
        assert len(found.indices) == len(found.rows) == count


@pytest.mark.parametrize("is_simple", [True, False])
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_graphs_are_valid(program: Any, is_simple: bool) -> None:
    function, args, _ = program
    for derived in (ut.grad(function), ut.grad(function, sparse_rows=True)):
        view = derived.graph(*args, simplify=is_simple)
        spec.check(derived.library(*args), type_rule)
        spec.check(view.library, type_rule)
        spec.check(view.static, type_rule)


def test_value_and_several_arguments() -> None:
    args = TABLE, TABLE[::-1].copy(), 3
    value, (one, other) = ut.value_and_grad(two_tables, argnums=(0, 1), sparse_rows=True)(*args)
    expected, (dense_one, dense_other) = ut.value_and_grad(two_tables, argnums=(0, 1))(*args)
    assert value == expected
    same(one, dense_one)
    same(other, dense_other)


def test_f32() -> None:
    args = TABLE.astype(np.float32), np.array([2, 2, -1], np.int32)
    same(ut.grad(lanes, sparse_rows=True)(*args), ut.grad(lanes)(*args))


def test_what_is_used_otherwise_stays_dense() -> None:
    uses = [
        lambda x: ut.sum(x),
        lambda x: x[0] + ut.sum(x * x),
        lambda x: ut.sum(x[1:3]),
        lambda x: ut.max(ut.map(lambda row: row * 2, x)),
        lambda x: ut.sum(x) if x[0] > 9 else x[1],
        lambda x: ut.sum(x[::-1]),
        lambda x: ut.sum(ut.where(x[0] > 0, x, x)),
    ]
    x = np.arange(1.0, 5.0)
    for use in uses:
        found = ut.grad(use, sparse_rows=True)(x)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, ut.grad(use)(x))
    matrix = np.arange(6.0).reshape(3, 2)
    assert isinstance(ut.grad(lambda m: ut.sum(m[:, 0]), sparse_rows=True)(matrix), np.ndarray)
    assert isinstance(ut.grad(lambda m: ut.sum(ut.take(m, [0], axis=1)), sparse_rows=True)(matrix), np.ndarray)
    assert isinstance(ut.grad(lambda x: x * x, sparse_rows=True)(3.0), np.float64)


def test_a_result_and_what_a_loop_changes_are_dense() -> None:
    def returned(x, n):
        def inner(x, n):
            return x, x[n]

        return inner(x, n)[0][n] + inner(x, n)[1]

    def changed(x, n):
        y = x
        for _ in range(n):
            y = x
        return y[n]

    for function in (returned, changed):
        found = ut.grad(function, sparse_rows=True)(np.arange(4.0), 2)
        np.testing.assert_array_equal(np.asarray(found), ut.grad(function)(np.arange(4.0), 2))
    assert isinstance(ut.grad(changed, sparse_rows=True)(np.arange(4.0), 2), np.ndarray)


def test_only_rows_is_a_fixpoint() -> None:
    @ut.function
    def even(a: ut.f64[None], b: ut.f64[None], k: ut.i64) -> ut.f64:
        return a[0] if k <= 0 else odd(a, b, k - 1) + b[k]

    @ut.function
    def odd(a: ut.f64[None], b: ut.f64[None], k: ut.i64) -> ut.f64:
        return ut.sum(b) if k <= 0 else even(a, b, k - 1) + a[k]

    library = even.library(np.ones(3), np.ones(3), 2)
    assert [only_rows(library.functions, name) for name in library.functions if name != "main"] == [{0}, {0}]
    assert only_rows(library.functions, "elsewhere") == frozenset()
    one, other = ut.grad(even, argnums=(0, 1), sparse_rows=True)(np.ones(3), np.ones(3), 2)
    assert isinstance(one, ut.IndexedRows) and isinstance(other, np.ndarray)
    assert one.dense().tolist() == [1, 1, 0] and other.tolist() == [0, 0, 1]


@dataclass
class Params:
    embed: Any
    rest: dict[str, Any]


def test_containers() -> None:
    @ut.function
    def model(params, words):
        rows = ut.take(params.embed, words, axis=0)
        return ut.sum(ut.tanh(rows @ params.rest["W"] + params.rest["b"])) * params.rest["extra"][0][words[0]]

    params = Params(TABLE, {"W": np.ones((2, 2)), "b": np.ones(2), "extra": (np.arange(4.0), 1.0)})
    words = np.array([1, 1, 2])
    found = ut.grad(model, sparse_rows=True)(params, words)
    dense = ut.grad(model)(params, words)
    same(found.embed, dense.embed)
    same(found.rest["extra"][0], dense.rest["extra"][0])
    assert len(found.embed.rows) == 3 and len(found.rest["extra"][0].rows) == 1
    for name in "Wb":
        np.testing.assert_allclose(found.rest[name], dense.rest[name])
    assert found.rest["extra"][1] == 0


@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_variables_and_captured_arrays(engine: str) -> None:
    table, weight = ut.Variable(TABLE, name="table"), ut.Variable(np.ones(2), name="weight")
    array = np.arange(5.0)

    @ut.function
    def total(k: ut.i64) -> ut.f64:
        return (
            0.0 if k <= 0 else ut.sum(table.read()[k] * weight) * array[k] + ut.sum(table.take([0, k])) + total(k - 1)
        )

    targets = {"a": array, "v": (table, weight)}
    with ut.options(engine=engine):
        found = ut.grad(total, variables=targets, sparse_rows=True)(3)
        dense = ut.grad(total, variables=targets)(3)
    same(found["a"], dense["a"])
    same(found["v"][0], dense["v"][0])
    np.testing.assert_allclose(found["v"][1], dense["v"][1])
    if engine == "reference":
        assert len(found["a"].rows) == 3 and len(found["v"][0].rows) == 9


@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_lanes_of_a_map_give_whole_arrays(engine: str) -> None:
    """Each lane has its own gradient, from as many rows as it looked up."""

    def countdown(table, n):
        total = 0.0
        for k in range(n):
            total = total + ut.sum(table[k]) * k
        return total

    counts = np.array([1, 3, 0])
    with ut.options(engine=engine):
        found = ut.grad(countdown, sparse_rows=True).map(ut.shared(TABLE), counts)
        dense = ut.grad(countdown).map(ut.shared(TABLE), counts)
    assert found.shape == (3, 7, 2)
    np.testing.assert_array_equal(found, dense)

    @ut.function
    def outside(table, counts):
        return ut.map(lambda n: ut.grad(countdown, sparse_rows=True)(table, n), counts)

    np.testing.assert_array_equal(outside(TABLE, counts), dense)
    np.testing.assert_array_equal(ut.map(lambda n: ut.grad(countdown, sparse_rows=True)(TABLE, n), counts), dense)


def test_over_a_batch_of_trees() -> None:
    """What training does: the loss of all trees, each of its own size, has one sparse gradient."""

    @ut.function
    def batch(table, left, right, words, roots):
        each = ut.map(lambda root: ut.sum(encode(table, left, right, words, root) ** 2), roots)
        return ut.mean(each)

    args = TABLE, LEFT, RIGHT, WORDS, np.array([0, 1, 2])
    found = ut.grad(batch, sparse_rows=True)(*args)
    same(found, ut.grad(batch)(*args))
    assert len(found.rows) == 3 + 2 + 1


def test_inside_of_functions() -> None:
    @ut.function
    def step(table, words, is_twice):
        g = ut.grad(lanes, sparse_rows=True)(table, words)
        if is_twice:
            g = g + g
        return table - g, g

    words = np.array([2, 2, -1])
    dense = ut.grad(lanes)(TABLE, words)
    for factor, is_twice in ((1, False), (2, True)):
        table, g = step(TABLE, words, is_twice)
        np.testing.assert_allclose(table, TABLE - factor * dense)
        np.testing.assert_allclose(g.dense(), factor * dense)


@pytest.mark.parametrize("way", WAYS[2:], ids=str)
def test_second_derivatives(way: dict[str, Any]) -> None:
    def norm(table, words, is_sparse):
        g = ut.grad(loop, sparse_rows=is_sparse)(table, words)
        return ut.sum(ut.asarray(g) ** 2) if not is_sparse else ut.sum(g.dense() ** 2)

    words = np.array([2, 2, -1])
    with ut.options(**way):
        wanted = ut.grad(lambda t, w: norm(t, w, False))(TABLE, words)
        for sparse_rows in (False, True):
            found = ut.grad(lambda t, w: norm(t, w, True), sparse_rows=sparse_rows)(TABLE, words)
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-10)


def test_checkpointed_calls() -> None:
    @ut.function
    def deep(table, k: ut.i64) -> ut.f64:
        return 1.0 if k <= 0 else ut.checkpoint(deep)(table, k - 1) * table[k]

    found = ut.grad(deep, sparse_rows=True)(np.arange(1.0, 6.0), 4)
    same(found, ut.grad(deep)(np.arange(1.0, 6.0), 4))
    assert len(found.rows) == 4


@pytest.mark.parametrize(
    "optimizer",
    [ut.optim.SGD(0.1), ut.optim.Adagrad(0.1), ut.optim.Adam(0.1), ut.optim.SGD(0.1, momentum=0.9)],
    ids=str,
)
def test_training(optimizer: Any) -> None:
    """All rows are looked up in each step, so that what decays does so in all of them."""
    left, right = np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1])
    words = np.array([0, 0, 0, 1, 2])
    results = []
    for sparse_rows in (False, True):
        table, state = TABLE[:3], optimizer.init(TABLE[:3])
        step = ut.value_and_grad(loss, sparse_rows=sparse_rows)
        for _ in range(4):
            value, g = step(table, left, right, words)
            assert isinstance(g, ut.IndexedRows) == sparse_rows
            table, state = optimizer.update(g, state, table)
        results.append((value, table))
    np.testing.assert_allclose(results[0][0], results[1][0])
    np.testing.assert_allclose(results[0][1], results[1][1])


@pytest.mark.parametrize("optimizer", [ut.optim.SGD(0.5), ut.optim.Adagrad(0.5)], ids=str)
def test_training_of_variables_in_a_graph(optimizer: Any) -> None:
    def train(sparse_rows: bool) -> tuple[Any, Any]:
        table = ut.Variable(TABLE, name="table")
        updater = ut.optim.Updater(optimizer, {"table": table})

        @ut.function
        def model(words):
            return ut.sum(ut.tanh(table.take(words)))

        @ut.function
        def step(words):
            value, grads = ut.value_and_grad(model, variables={"table": table}, sparse_rows=sparse_rows)(words)
            updater.apply(grads)
            return value

        value = [step(np.array([1, 1, -1])) for _ in range(3)]
        return value, np.asarray(table)

    (value, table), (sparse_value, sparse_table) = train(False), train(True)
    np.testing.assert_allclose(sparse_value, value)
    np.testing.assert_allclose(sparse_table, table)


def test_saved_and_loaded(tmp_path: Path) -> None:
    derived = ut.grad(loss, sparse_rows=True)
    args = TABLE, LEFT, RIGHT, WORDS
    found = derived(*args)
    ut.save(derived, tmp_path / "g.ut")
    again = ut.load(tmp_path / "g.ut")(*args)
    assert again.indices.tolist() == found.indices.tolist() and np.array_equal(again.rows, found.rows)


def test_a_pair_stays_together() -> None:
    @ut.function
    def some(table, words):
        return ut.shape(ut.grad(lanes, sparse_rows=True)(table, words).rows)[0]

    assert some(TABLE, np.array([2, 2, -1])) == 3
    spec.check(some.graph(TABLE, np.array([2, 2, -1])).library, type_rule)


# --------------------------------------------------------------------------------------------------------------
# Validity: each rule about rows is broken once

GRADIENT = """\
library 1 main=main

main main(t: f64[?,2], w: f64) -> (dt#0, dt#1, dt#2)
  y: f64                     = call t, w callee="f"
  dt: i64[?], f64[?,2], f64  = gradient y, 1.0:f64 given=[0] sparse=[0] wanted=[0, 1]

function f(t: f64[?,2], w: f64) -> (y)
  x: f64 = index t, 0:i64, 1:i64 axes=[0, 1]
  y: f64 = multiply x, w
"""

COLLECTED = """\
library 1 main=main

main main(t: f64[?,2]) -> (y, rows#0, rows#1)
  y: f64[2]              = call t callee="f"
  done: ctl              = resume y, [1.0, 1.0]:f64[2] phase=1
  rows: i64[?], f64[?,2] = collected_rows y, t index=0 ^done

function f(t: f64[?,2]) -> (y) group=f hoisted=1
  y: f64[2]              = index t, 0:i64 axes=[0]
  phase 1(dy: f64[2]) -> (done)
  done: ctl              = collect_rows 0:i64, dy index=0
"""

NO_GRADIENT = "the operands of a gradient are not the cotangents"
NOT_COLLECTED = "a collected belongs to a call that makes no entry, or does not have the type"
LIBRARY_CASES = [
    (GRADIENT, "sparse=[0]", "sparse=[]", NO_GRADIENT),
    (GRADIENT, "sparse=[0]", "sparse=[1]", NO_GRADIENT),
    (GRADIENT, "sparse=[0]", "sparse=[0, 2]", NO_GRADIENT),
    (GRADIENT, "sparse=[0]", "sparse=0", NO_GRADIENT),
    (GRADIENT, " sparse=[0]", "", NO_GRADIENT),
    (GRADIENT, "dt: i64[?], f64[?,2], f64 ", "dt: i64[?], f64[3,2], f64 ", NO_GRADIENT),
    (GRADIENT, "dt: i64[?], f64[?,2], f64 ", "dt: i32[?], f64[?,2], f64 ", NO_GRADIENT),
    (COLLECTED, "collected_rows y, t index=0", "collected_rows y, t index=1", NOT_COLLECTED),
    (COLLECTED, "collected_rows y, t index=0", "collected_rows y, y index=0", NOT_COLLECTED),
    (COLLECTED, "rows: i64[?], f64[?,2]", "rows: i64[?], f64[?,3]", NOT_COLLECTED),
    (COLLECTED, "collected_rows y, t", "collected_rows t, t", "is not a call of the same region"),
]
STATIC_CASES = [
    ("collected_rows main/t index=0", "collected_rows main/t index=1", "a collected names an index that its site"),
    ("collected_rows main/t index=0 site=1", "collected_rows main/t index=0 site=2", "a collected names an index"),
    ("collected_rows main/t ", "collected_rows main/y ", "output does not accept the value that it carries"),
]


def assert_refused(text: str, old: str, new: str, rule: str) -> None:
    assert text.count(old) == 1, text
    with pytest.raises(GraphError) as error:
        spec.check(parse(text.replace(old, new)))
    assert rule in error.value.what


@pytest.mark.parametrize(("text", "old", "new", "rule"), LIBRARY_CASES, ids=lambda piece: piece[-30:].strip())
def test_broken_libraries_are_refused(text: str, old: str, new: str, rule: str) -> None:
    spec.check(parse(text), type_rule)
    assert_refused(text, old, new, rule)


@pytest.mark.parametrize(("old", "new", "rule"), STATIC_CASES, ids=lambda piece: piece[-30:].strip())
def test_broken_static_graphs_are_refused(old: str, new: str, rule: str) -> None:
    library = parse_library(COLLECTED)
    text = dump(flatten(library))
    spec.check(parse(text), type_rule)
    assert_refused(text, old, new, rule)


FIRST = "  done: ctl              = collect"
TWICE = "  d: f64[?,2]            = multiply t, 2.0:f64 ^start~1\n"


def test_what_was_collected_whole_counts_as_all_rows() -> None:
    whole = "collect d index=0\n"
    library = parse_library(
        COLLECTED.replace("collect_rows 0:i64, dy index=0\n", whole).replace(FIRST, f"{TWICE}{FIRST}")
    )
    spec.check(library, type_rule)
    plan = Reference().plan(flatten(library))
    (_, indices, rows), _ = plan.run([TABLE], Options(), {})
    assert indices.tolist() == list(range(7)) and np.array_equal(rows, 2 * TABLE)
