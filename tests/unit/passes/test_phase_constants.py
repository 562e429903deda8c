"""Arguments of later phases that are one constant wherever they are given."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import parse
from undertow.passes.phase_constants import propagate_constants
from undertow.passes.pipeline import make_library


@ut.function
def tree(w, n: ut.i64) -> (ut.f64[2], ut.f64):
    """Losses at every node, which are only added."""
    if n <= 1:
        state = ut.tanh(w[n])
        return state, ut.sum(state * state)
    left, a = tree(w, n - 1)
    right, b = tree(w, n - 2)
    state = ut.tanh(left + right)
    return state, ut.sum(state * state) + a + b


@ut.function
def losses(w, ns):
    return ut.sum(ut.map(lambda n: tree(w, n)[1], ns))


@ut.function
def scaled(w, ns):
    return ut.sum(ut.map(lambda n: tree(w, n)[1] * ut.astype(n, "f64"), ns))


W = np.random.default_rng(1).normal(size=(3, 2))


def later(library: Library) -> dict[str, int]:
    """How many arguments later phases take."""
    return {
        name: sum(len(phase.params) for phase in graph.phases[1:])
        for name, graph in library.functions.items()
        if len(graph.phases) > 1
    }


def test_the_cotangent_of_a_sum_goes_everywhere():
    library = make_library(ut.grad(losses).library(W, np.array([3, 4])), True, True)
    check(library)
    found = later(library)
    assert found.pop("tree.grad~2") == 1  # that of the state; the one of the loss is 1
    assert set(found.values()) == {0}


def test_what_differs_stays():
    library = make_library(ut.grad(scaled).library(W, np.array([3, 4])), True, True)
    assert later(library)["tree.grad~2"] == 2


@pytest.mark.parametrize("engine", ["reference", "waves", "expand", "demand"])
@pytest.mark.parametrize("function", [losses, scaled])
def test_gradients_are_the_same(function, engine):
    found = ut.grad(function).run(W, np.array([3, 4]), engine=engine)
    step = 1e-6
    for index in np.ndindex(W.shape):
        moved = W.copy()
        moved[index] += step
        above = function(moved, np.array([3, 4]))
        moved[index] -= 2 * step
        assert found[index] == pytest.approx((above - function(moved, np.array([3, 4]))) / (2 * step), abs=1e-6)


TWICE = """
library 1 main=main
main main(x: f64, y: f64) -> (d.f, d.g)
  f: f64   = call x callee="f.grad"
  g: f64   = call y callee="f.grad"
  d.f: f64 = resume f, 1.0:f64 phase=1
  d.g: f64 = resume g, {other} phase=1
function f.grad(x: f64) -> (y)
  y: f64   = multiply x, x
  phase 1(d.y: f64) -> (d.x)
  d.x: f64 = multiply d.y, x
"""


@pytest.mark.parametrize(("other", "count"), [("1.0:f64", 1), ("2.0:f64", 0), ("x", 0)])
def test_all_must_give_the_same(other, count):
    library, counted = propagate_constants(parse(TWICE.format(other=other)))
    check(library)
    assert sum(counted.values()) == count
