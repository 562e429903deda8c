"""`x.update(f, v)`: Assign-f for any pure f, atomic on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.engines import EVERY, forced

import undertow as ut
from undertow.ir.graph import Library, StaticGraph
from undertow.ir.text import dump, parse
from undertow.types import Type, f64

best = ut.Variable(3.0, name="best")
rate = 0.5


@ut.function
def decay(old, x):
    """A branch, a global, and a parameter: it does not commute with itself."""
    if x > old:
        return x
    return rate * old


@ut.function
def lane(x):
    best.update(decay, x)
    return x


@ut.function
def every(xs):
    ut.map(lane, xs)
    return best.read()


@pytest.mark.parametrize("engine", EVERY)
def test_every_engine_applies_it_atomically(engine: str) -> None:
    """Lanes race, and each order of whole updates has its own result: a run ends in one of these."""
    xs = np.array([1.0, 5.0, 2.0])
    best.assign(3.0)
    possible = ut.behaviors(every, xs)
    assert {one.result.item() for one in possible} == {1.25, 2.5, 5.0}
    with forced():
        assert every.run(xs, engine=engine).item() in {one.result for one in possible}


@pytest.mark.parametrize("engine", EVERY)
def test_updates_that_commute_are_never_lost(engine: str) -> None:
    total = ut.Variable(0, name="total")

    @ut.function
    def add(n):
        return total.update(lambda old, v: old + v * v, n)

    @ut.function
    def f(ns):
        ut.map(add, ns)
        return total.read()

    with forced():
        assert f.run(np.arange(200), engine=engine) == sum(n * n for n in range(200))
    assert total.value == sum(n * n for n in range(200))


@pytest.mark.parametrize("engine", EVERY)
def test_what_f_may_contain(engine: str) -> None:
    """Recursion, a loop, a map, arrays, several values, and a value of the function around it."""
    x = ut.Variable(np.ones(3), name="x")

    @ut.function
    def power(base: f64[3], n: ut.i64) -> f64[3]:
        if n == 0:
            return ut.ones(3)
        return base * power(base, n - 1)

    @ut.function
    def f(n, ys):
        shift = n * 2

        def change(old, n, ys):
            total = old
            for k in range(n):
                total = total + k
            squares = ut.map(lambda y: y * y, ys)
            return power(total, 2) + ut.sum(squares) + shift

        first = x.update(change, n, ys)
        return first, x.update(lambda old: old - 1)

    def python(old: Any, n: int, ys: Any) -> Any:
        return (old + sum(range(n))) ** 2 + np.sum(ys * ys) + 2 * n

    ys = np.array([1.0, 2.0])
    with forced():
        first, second = f.run(3, ys, engine=engine)
    assert np.array_equal(first, python(np.ones(3), 3, ys))
    assert np.array_equal(second, first - 1) and np.array_equal(x.value, second)


def test_it_is_one_firing_and_two_lanes_lose_nothing() -> None:
    total = ut.Variable(0, name="total")

    @ut.function
    def add(n):
        total.update(lambda old, v: old + v, n)
        return n

    @ut.function
    def both(ns):
        ut.map(add, ns)
        return total.read()

    found = ut.behaviors(both, np.array([1, 2]), traces=True)
    assert [one.result for one in found] == [3] and len(found.traces) == 2
    assert all(len(trace.firings) == 3 for trace in found.traces)


def test_outside_a_capture_it_happens_at_once() -> None:
    x = ut.Variable(2, name="x")
    assert x.update(lambda old, v: old * v, 5) == 10
    assert x.update(lambda old: old + 1) == x.value == 11
    assert best.update(decay, 100.0) == 100.0
    with pytest.raises(ut.TypeMismatch):
        x.update(lambda old: 0.5)
    assert x.value == 11


def test_a_fault_in_f_leaves_the_variable_as_it_was() -> None:
    x = ut.Variable(2, name="x")

    @ut.function
    def f(n):
        x.assign(7)
        return x.update(lambda old, n: old // n, n)

    for engine in ("waves", "reference", "demand", "expand"):
        with pytest.raises(ut.Fault, match="division") as caught:
            f.run(0, engine=engine)
        assert caught.value.span is not None and "x.update" in caught.value.span.source()
        assert x.value == 2
    assert f(2) == 3


def test_a_variable_of_changing_length() -> None:
    log = ut.Variable(np.zeros(0, np.int64), shape=(None,), name="log")

    @ut.function
    def push(n):
        return log.update(lambda old, n: ut.concat([old, ut.reshape(n, (1,))]), n)

    assert push(3).tolist() == [3] and push(4).tolist() == [3, 4]


def test_the_text_of_its_graph_parses() -> None:
    static = every.graph(np.array([1.0])).static
    assert parse(dump(static)) == static
    assert isinstance(static, StaticGraph)
    (node,) = [node for node in static.nodes if node.op == "update"]
    held = parse(node.attrs.text("f"))
    assert isinstance(held, Library) and node.attrs["targets"] == ("best",)
    assert held.functions["main"].nodes[held.functions["main"].params[0]].types == (Type(f64),)


def test_a_derivative_knows_that_the_value_is_assigned() -> None:
    x = ut.Variable(1.0, name="x")

    @ut.function
    def f(v):
        x.update(lambda old, v: old * v, v)
        return x.read() * v

    with pytest.raises(ut.CaptureError, match="variable `x` is assigned a value"):
        ut.grad(f)(2.0)


def test_in_a_subgraph_whose_variable_gets_another_name() -> None:
    one, two = ut.Variable(1.0, name="x"), ut.Variable(10.0, name="x")
    with ut.SubGraph() as block:
        v = block.input(ut.f64)
        block.output(one.update(lambda old, v: old + v * 2, v))

    @ut.function
    def f(v):
        two.assign_add(100.0)
        return block(v), two.update(lambda old: old + 1)

    assert f(3.0) == (7.0, 111.0)
    assert (one.value, two.value) == (7.0, 111.0)


def test_a_jacobian_would_update_for_each_row() -> None:
    x = ut.Variable(1.0, name="x")

    @ut.function
    def f(v):
        x.update(lambda old: old + 1)
        return v * v

    with pytest.raises(ut.CaptureError, match="assigns a variable"):
        ut.jacobian(f)(np.ones(2))


OTHER = ut.Variable(1.0, name="other")
REFUSED = {
    "prints": (lambda old: print("x") or old, "acts on the world"),
    "asserts": (lambda old: ut.assert_(old > 0, "no") or old, "acts on the world"),  # noqa: PT009
    "assigns": (lambda old: OTHER.assign(old), "acts on the world"),
    "reads itself": (lambda old: best.read(), "acts on the world"),
    "reads another": (lambda old: old + OTHER.read(), "reads variable `other`"),
    "draws": (lambda old: old + ut.random.uniform(), "draws random numbers"),
    "returns two": (lambda old: (old, old), r"returns \(f64, f64\)"),
    "returns an array": (lambda old: ut.asarray([1.0, 2.0]) * old, r"the function returns f64\[2\]"),
    "returns another dtype": (lambda old: old > 0, "the function returns bool"),
    "holds an array": (lambda old: old + ut.sum(ut.asarray(np.arange(99.0)) * old), "contains a constant array"),
    "takes a derivative": (lambda old: ut.grad(lambda z: z * z)(old), "contains a `gradient`"),
    "is no function": (3, "is updated by a function, not by 3"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(kind: str) -> None:
    function, message = REFUSED[kind]

    @ut.function
    def f():
        return best.update(function)  # type: ignore[arg-type]

    best.assign(3.0)
    with pytest.raises(ut.UndertowError, match=message) as caught:
        f()
    assert caught.value.hint
    assert best.value == 3.0
