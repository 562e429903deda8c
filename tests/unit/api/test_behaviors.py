"""`ut.behaviors` against the examples of Abadi, Isard and Murray, and against an enumerator without any reduction."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.support.interleavings import LOG, X, as_python, brute_force, graph, random_program

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference.behaviors import explore, replay
from undertow.ir.graph import StaticGraph


def outcomes(static: StaticGraph, inputs: list[Any], **state: Any) -> set[Any]:
    """(results, values of the variables), as plain Python."""
    held = {name: np.asarray(value)[()] for name, value in state.items()}
    found = explore(static, inputs, held, 10_000, Options())
    assert found.is_complete
    for outcome in found.outcomes:
        assert replay(static, inputs, held, outcome.schedule).key() == outcome.key()
    return {as_python(outcome.results, outcome.variables, outcome.error) for outcome in found.outcomes}


# --------------------------------------------------------------------------------------------------------------
# Section 3 of the paper


def test_write_then_read_with_the_control_edge() -> None:
    """B -> Write(x) ..> Read(x) -> out: section 3.1.2, the first program."""
    ordered = graph(
        f'main main(b: i64) -> (r#0)\n  w: i64, ctl = assign b how="set" {X}\n  r: i64, ctl = read {X} ^w#1\n'
    )
    assert outcomes(ordered, [7], x=1) == {((7,), (("x", 7),), "")}


def test_write_and_read_without_the_control_edge() -> None:
    """Without the edge, Read gives the old value or the new one; section 3.2.2."""
    free = graph(
        f'main main(b: i64) -> (r#0, w#0)\n  w: i64, ctl = assign b how="set" {X}\n  r: i64, ctl = read {X} ^start\n'
    )
    assert outcomes(free, [7], x=1) == {((7, 7), (("x", 7),), ""), ((1, 7), (("x", 7),), "")}


TWO = """main main(b: i64, d: i64, e: i64) -> (r#0)
  w: i64, ctl = assign b how="set" {X}
  p: i64, ctl = assign d how="{how}" {X} ^w#1
  q: i64, ctl = assign e how="{how}" {X} ^w#1
  r: i64, ctl = read {X} ^p#1, q#1
"""


def test_two_assign_adds_in_any_order_give_one_sum() -> None:
    """Figure 1: Add(Add(B, D), E) and Add(Add(B, E), D) are the same number."""
    assert outcomes(graph(TWO.format(X=X, how="add")), [10, 1, 2], x=0) == {((13,), (("x", 13),), "")}


def test_assign_concat_tells_the_order() -> None:
    body = TWO.format(X=LOG, how="concat").replace("b: i64", "b: i64[?]").replace("w: i64,", "w: i64[?],")
    body = body.replace("p: i64,", "p: i64[?],").replace("q: i64,", "q: i64[?],").replace("r: i64,", "r: i64[?],")
    found = outcomes(graph(body), [np.array([0]), 1, 2], x=np.zeros(0, np.int64))
    assert {results for results, _, _ in found} == {((0, 1, 2),), ((0, 2, 1),)}


def test_read_add_write_in_place_of_assign_add_loses_an_update() -> None:
    """Figure 4: both Adds may happen before either Write."""
    body = f"""main main(b: i64, d: i64, e: i64) -> (r#0)
  w: i64, ctl = assign b how="set" {X}
  p: i64, ctl = read {X} ^w#1
  q: i64, ctl = read {X} ^w#1
  pd: i64 = add p#0, d
  qe: i64 = add q#0, e
  pw: i64, ctl = assign pd how="set" {X}
  qw: i64, ctl = assign qe how="set" {X}
  r: i64, ctl = read {X} ^pw#1, qw#1
"""
    assert {results for results, _, _ in outcomes(graph(body), [10, 1, 2], x=0)} == {(13,), (11,), (12,)}


# --------------------------------------------------------------------------------------------------------------
# What the definition of a run adds


def test_a_write_that_no_fetch_waits_for_may_or_may_not_happen() -> None:
    body = f'main main(b: i64) -> (y)\n  w: i64, ctl = assign b how="set" {X}\n  y: i64 = add b, 1:i64\n'
    assert outcomes(graph(body), [7], x=1) == {((8,), (("x", 1),), ""), ((8,), (("x", 7),), "")}


def test_but_not_after_all_fetches_have_arrived() -> None:
    body = f'main main(b: i64) -> (y)\n  y: i64 = add b, 1:i64\n  w: i64, ctl = assign y how="set" {X}\n'
    assert outcomes(graph(body), [7], x=1) == {((8,), (("x", 1),), "")}


def test_a_failed_run_leaves_the_variables_as_they_were() -> None:
    body = f"""main main(b: i64) -> (r#0, a)
  w: i64, ctl = assign b how="set" {X}
  r: i64, ctl = read {X} ^start
  small: bool = less r#0, 5:i64
  a: ctl = assert small template="large"
"""
    assert outcomes(graph(body), [7], x=1) == {
        ((1, True), (("x", 7),), ""),
        ((1, True), (("x", 1),), ""),
        ((), (("x", 1),), "Fault: large"),
    }


def test_the_budget_says_when_it_was_cut_short() -> None:
    total = ut.Variable(0, name="total")

    @ut.function
    def add(n):
        return total.assign_add(n)

    @ut.function
    def all_of(ns):
        return ut.map(add, ns)

    few = ut.behaviors(all_of, np.arange(1, 5), budget=10)
    assert not few.is_complete and few.runs == 10
    assert "the budget of 10 runs is used up" in str(few)
    every = ut.behaviors(all_of, np.arange(1, 5))
    assert every.is_complete and len(every) == 24
    assert all(behavior.variables == {"total": 10} for behavior in every)
    assert total.value == 0
    with pytest.raises(ut.UndertowError, match="must be a number of runs"):
        ut.behaviors(all_of, np.arange(1, 5), budget=0)
    with pytest.raises(ut.TypeMismatch, match=r"@ut\.function"):
        ut.behaviors(len, [])  # type: ignore[arg-type]


def test_program_order_leaves_one_behavior() -> None:
    x = ut.Variable(1, name="x")

    @ut.function
    def f(b):
        before = x.read()
        x.assign(b)
        x.assign_add(1)
        print("x is", x.read())
        return before, x.read()

    (only,) = ut.behaviors(f, 7)
    assert only.result == (1, 8) and only.variables == {"x": 8} and only.printed == "x is 8\n"
    assert [step.split()[0].rsplit("/", 1)[1] for step in only.schedule] == [
        "before", "x.set", "x.add", "x", "print", "x_2",
    ]  # fmt: skip


def test_reads_of_a_variable_that_nobody_writes_are_no_steps() -> None:
    w = ut.Variable(2.0, name="w")

    @ut.function
    def f(xs):
        return ut.map(lambda x: x * w, xs)

    found = ut.behaviors(f, np.arange(50.0))
    assert len(found) == 1 and found.runs == 1


def test_independent_steps_are_tried_in_one_order() -> None:
    """Four variables with two writers each: 2**4 outcomes, and not the 8! = 40,320 schedules."""
    names = "pqrs"
    lines = [
        f'  {v}{k}: i64, ctl = assign {k}:i64 how="set" dtype="i64" shape=[] variable="{v}" ^start'
        for v in names
        for k in (1, 2)
    ]
    fetched = ", ".join(f"{v}{k}#0" for v in names for k in (1, 2))
    static = graph(f"main main() -> ({fetched})\n" + "\n".join(lines) + "\n")
    found = explore(static, [], dict.fromkeys(names, np.int64(0)), 10_000, Options())
    assert found.is_complete and len(found.outcomes) == 16
    assert found.runs < 1000


# --------------------------------------------------------------------------------------------------------------
# Against brute force: every order of every firing


@pytest.mark.parametrize("seed", range(60))
def test_brute_force_finds_the_same(seed: int) -> None:
    static = graph(random_program(random.Random(seed)))
    state = {"x": np.int64(5), "y": np.int64(7)}
    assert outcomes(static, [], **state) == set(brute_force(static, [], state))


@pytest.mark.parametrize("lanes", [0, 1, 2])
def test_brute_force_finds_the_same_in_a_map(lanes: int) -> None:
    static = graph(f"""main main(xs: i64[?]) -> (m#0)
  m: i64[?], ctl = map xs body="lane"

map lane(x: i64) -> (a, w#1) carried=1
  r: i64, ctl = read {X} ^start
  a: i64 = add r#0, x
  w: i64, ctl = assign a how="set" {X}
""")
    inputs, state = [np.arange(1, lanes + 1)], {"x": np.int64(5)}
    assert outcomes(static, inputs, **state) == set(brute_force(static, inputs, state))
