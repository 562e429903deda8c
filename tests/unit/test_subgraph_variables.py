"""Variables that SubGraphs read: gradients with respect to them, and no more order than the program needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES
from undertow.ir import spec

W, TABLE = ut.Variable(2.0, name="w"), ut.Variable(np.arange(1.0, 5.0), name="table")


def reader() -> ut.SubGraph:
    """It reads variables in branches, in a loop, in a map, in a gradient, and below its own calls."""
    with ut.SubGraph() as f:
        n = f.input(ut.i32)

        def inner():
            looped = ut.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * W + TABLE.take(v[0])), (0, 1.0))[1]
            mapped = ut.sum(ut.map(lambda k: TABLE.take(k) * W + f(n - 1), ut.arange(3)))
            return looped + mapped + ut.grad(lambda x: x * x * W)(looped)

        f.output(ut.cond(n == 0, lambda: W.read(), inner))
    return f


@ut.function
def written(n: ut.i32) -> ut.f64:
    """The same as a function."""
    if n == 0:
        return W.read()
    looped = ut.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * W + TABLE.take(v[0])), (0, 1.0))[1]
    mapped = ut.sum(ut.map(lambda k: TABLE.take(k) * W + written(n - 1), ut.arange(3)))
    return looped + mapped + ut.grad(lambda x: x * x * W)(looped)


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_of_variables_that_it_reads(engine: str) -> None:
    f = reader()
    spec.check(f.library(2))
    assert f.run(2, engine=engine) == written(2)
    by_args = [ut.grad(g, variables={"w": W, "table": TABLE}).run(2, engine=engine) for g in (f, written)]
    assert by_args[0]["w"] == by_args[1]["w"] and by_args[0]["table"].tolist() == by_args[1]["table"].tolist()

    def second(h: Any) -> Any:
        return ut.grad(lambda n: ut.sum(ut.grad(h, variables=TABLE)(n)), variables=W).run(2, engine=engine)

    assert second(f) == second(written) != 0.0


def test_gradients_through_a_function_that_calls_it() -> None:
    f = reader()

    def sums(h: Any) -> Any:
        @ut.function
        def sums(n: ut.i32) -> ut.f64:
            total = 0.0
            for i in range(n):
                total = total * 0.1 + h(i)
            return total

        return sums

    found, wanted = (ut.grad(sums(h), variables=(W, TABLE))(3) for h in (f, written))
    assert found[0] == wanted[0] and found[1].tolist() == wanted[1].tolist()
    spec.check(ut.grad(sums(f), variables=(W, TABLE)).library(3))


@pytest.mark.parametrize("engine", ENGINES)
def test_reads_stay_in_order_where_somebody_assigns(engine: str) -> None:
    f = reader()
    assert "ctl" not in str(f.library(1)).split("function f")[1].split("\n")[0], "nothing assigns: calls do not wait"

    @ut.function
    def both(n):
        before = f(n)
        W.assign(3.0)
        between = f(n)
        W.assign(2.0)
        return before, between, f(n)

    assert both.run(1, engine=engine) == (113.0, 342.0, 113.0)


def test_a_declared_length_of_a_variable_may_be_unknown() -> None:
    v = ut.Variable(np.ones((2, 3)), shape=(None, 3))
    with ut.SubGraph() as f:
        n = f.input(ut.i32)
        f.output(ut.cond(n == 0, lambda: ut.sum(v), lambda: 2.0 * f(n - 1)))
    slopes = ut.grad(f, variables=v)
    assert slopes(2).tolist() == np.full((2, 3), 4.0).tolist()
    v.assign(np.ones((5, 3)))
    assert slopes(1).tolist() == np.full((5, 3), 2.0).tolist()


def test_a_variable_that_it_assigns_has_no_gradient() -> None:
    v, w = ut.Variable(1.0, name="v"), ut.Variable(2.0)
    with ut.SubGraph() as f:
        n = f.input(ut.i32)
        v.assign_add(1.0)
        f.output(ut.cond(n == 0, lambda: v * w, lambda: f(n - 1)))
    with pytest.raises(ut.CaptureError, match="`v` is assigned inside a function that is differentiated"):
        ut.grad(f, variables=v)(2)
    assert ut.grad(f, variables=w)(2) == 4.0 == v.value


def test_variables_of_subgraphs_that_are_declared_first() -> None:
    """Each block names the variables by itself, and both run in one program."""
    rate = ut.Variable(0.5)
    up, down = ut.SubGraph(returns=ut.f64), ut.SubGraph(returns=ut.f64)
    n, m = up.input(ut.i32), down.input(ut.i32)
    with up:
        up.output(ut.cond(n == 0, lambda: 1.0, lambda: down(n - 1) * rate))
    with down:
        down.output(ut.cond(m == 0, lambda: rate.read(), lambda: up(m - 1) + rate))
    assert up(3) == 0.125 + 0.25 and ut.grad(up, variables=rate)(3) == 3 * 0.25 + 2 * 0.5
