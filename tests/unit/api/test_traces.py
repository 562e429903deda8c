"""Behaviors as sequences of states, and shortest schedules: section 3.2 of Abadi, Isard and Murray."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.support.interleavings import LOG, X, as_python, brute_force, graph, random_program

import undertow as ut
import undertow.compat.v1 as tf
from undertow.engines.checks import GO
from undertow.engines.contract import Options
from undertow.engines.reference.frame import NONE
from undertow.engines.reference.state_graph import StateGraph, state_graph
from undertow.ir.graph import StaticGraph

START = {"x": np.int64(5), "y": np.int64(7)}


def histories(states: StateGraph) -> dict[Any, set[Any]]:
    """By outcome, the values that variables have had on the way there, without repetitions."""
    assert states.is_complete
    found: dict[Any, set[Any]] = {}
    for path in states.paths():
        values = [as_python((), states.vertices[number].snapshot.variables, "")[1] for _, number in path]
        end = states.vertices[path[-1][1]].outcome
        assert end is not None
        history = tuple(v for n, v in enumerate(values) if n == 0 or v != values[n - 1])
        found.setdefault(as_python(end.results, end.variables, end.error), set()).add(history)
    return found


def all_states(static: StaticGraph, inputs: list[Any], every: bool = False, **state: Any) -> StateGraph:
    held = {name: np.asarray(value)[()] for name, value in state.items()}
    return state_graph(static, inputs, held, 50_000, Options(), every=every)


# --------------------------------------------------------------------------------------------------------------
# Against brute force: every order of every firing


@pytest.mark.parametrize("seed", range(40))
def test_brute_force_finds_the_same_histories(seed: int) -> None:
    static = graph(random_program(random.Random(seed)))
    expected = brute_force(static, [], START)
    assert histories(all_states(static, [], **START)) == expected
    assert histories(all_states(static, [], every=True, **START)) == expected


def test_with_every_firing_a_path_is_an_order_of_firings() -> None:
    """n -> 3 chains of 2: 6! / 2**3 orders, and `start` fires anywhere, or not before the end."""
    lines = "\n".join(f"  a{k}: i64 = add n, {k}:i64\n  b{k}: i64 = add a{k}, 1:i64" for k in range(3))
    static = graph(f"main main(n: i64) -> (b0, b1, b2)\n{lines}\n")
    orders = [tuple(step.node for step, _ in path if step) for path in all_states(static, [1], every=True).paths()]
    start = next(number for number, node in enumerate(static.nodes) if node.op == "start")
    assert len(orders) == len(set(orders)) == 90 * 8
    assert len({tuple(number for number in order if number != start) for order in orders}) == 90


def test_every_token_is_somewhere() -> None:
    """n -> add -> set x: a state has the token on exactly one edge, as InTransit of the paper."""
    static = graph(f'main main(n: i64) -> (w#0)\n  a: i64 = add n, 1:i64\n  w: i64, ctl = assign a how="set" {X}\n')
    states = all_states(static, [4], every=True, x=0)
    names = [node.short_name for node in static.nodes]
    edges = set()
    for vertex in states.vertices:
        data = [token for token in vertex.snapshot.in_transit if token.value is not GO]
        assert len(data) == 1 and data[0].value is not NONE
        source, target = data[0].source, data[0].target
        edges.add((source and names[source.node], None if target is None else names[target], int(data[0].value)))
        assert vertex.snapshot.variables == {"x": 5 if target is None else 0}
    assert edges == {(None, "n", 4), ("n", "a", 4), ("a", "w", 5), ("w", None, 5)}


def test_two_orders_of_independent_steps_are_two_behaviors() -> None:
    body = f"""main main() -> (p#0, q#0)
  p: i64, ctl = assign 1:i64 how="set" {X} ^start
  q: i64, ctl = assign 2:i64 how="set" {X.replace('"x"', '"y"')} ^start
"""
    states = all_states(graph(body), [], x=0, y=0)
    assert len(list(states.paths())) == 2 and len(states.vertices) == 4


def test_states_that_meet_are_one_vertex() -> None:
    """Ten appends of nothing to one log, in any order: 10! behaviors, and far fewer states."""
    names = [f"p{k}" for k in range(5)]
    lines = "\n".join(f'  {n}: i64[?], ctl = assign {k}:i64 how="concat" {LOG} ^start' for k, n in enumerate(names))
    zeros = lines.replace('how="concat"', 'how="set"').replace(LOG, X).replace("[?]", "")
    fetches = ", ".join(f"{name}#1" for name in names)
    log = all_states(graph(f"main main() -> ({fetches})\n{lines}\n"), [], x=np.zeros(0, np.int64))
    last = all_states(graph(f"main main() -> ({fetches})\n{zeros}\n"), [], x=9)
    assert len(list(log.paths())) == len(list(last.paths())) == 120
    assert len(last.vertices) < len(log.vertices) == sum([1, 5, 20, 60, 120, 120])


# --------------------------------------------------------------------------------------------------------------
# The public face

total = ut.Variable(0, name="total")


@ut.function
def read_add_write(n):
    total.assign(total + n)
    return n


@ut.function
def both(ns):
    ut.map(read_add_write, ns)
    return total.read()


def test_the_lost_update() -> None:
    found = ut.behaviors(both, np.array([1, 2]), traces=True)
    assert found.is_complete and str(found).startswith("6 behaviors, 3 outcomes")
    assert {o.result.item() for o in found} == {o.result.item() for o in ut.behaviors(both, np.array([1, 2]))}
    assert {tuple(v["total"].item() for v in trace.history) for trace in found.traces} == {
        (0, 1, 3), (0, 2, 3), (0, 1, 2), (0, 2, 1),
    }  # fmt: skip
    for trace in found.traces:
        assert len(trace.states) == len(trace.firings) + 1
        assert trace.states[-1].variables == trace.outcome.variables
        assert trace.outcome in found.outcomes
    # Figure 4: a state in which two values are in transit towards two Write nodes.
    figure_4 = [
        [t.value for t in state.in_transit if t.kind == "data" and t.edge.endswith("-> read_add_write/total.set")]
        for trace in found.traces
        for state in trace.states
    ]
    assert [1, 2] in figure_4
    assert total.value == 0


def test_the_shortest_schedule_that_loses_an_update() -> None:
    found = ut.behaviors(both, np.array([1, 2]), traces=True)
    schedule = found.shortest(lambda outcome: outcome.result < 3)
    assert len(schedule) == 5 and schedule.outcome.result < 3
    assert [firing.did.split(":")[0] for firing in schedule][:2] == ["reads total", "reads total"]
    assert all(firing.line.endswith("total.assign(total + n)") for firing in schedule[:4])
    assert str(schedule).splitlines()[0].startswith("1. read_add_write/total [")
    assert str(schedule).splitlines()[-1] == schedule.outcome.describe()
    for outcome in found:
        assert found.schedule_to(outcome).outcome is outcome


def test_the_shortest_schedule_changes_lanes_as_seldom_as_possible() -> None:
    found = ut.behaviors(both, np.array([1, 2]), traces=True)
    tags = [firing.tag for firing in found.shortest(lambda outcome: outcome.result == 3)]
    assert sum(a != b for a, b in pairwise(tags)) == 2  # a lane, the other, main


def test_the_shortest_schedule_is_short() -> None:
    """A run that fails early ends after fewer steps."""
    x = ut.Variable(0, name="x")

    @ut.function
    def lane(n):
        seen = x.read()
        assert seen == 0, "too late"
        x.assign(1)
        x.assign(0)
        return n

    @ut.function
    def f(ns):
        return ut.map(lane, ns)

    found = ut.behaviors(f, np.array([1, 2]), traces=True)
    late = found.shortest(lambda outcome: outcome.error)
    assert len(late) == 5  # read, assert, assign 1; read, assert
    assert late.outcome.error == "Fault: too late" and late.outcome.variables == {"x": 0}
    assert [firing.did for firing in late] == [
        "reads x: 0", "asserts", "x becomes 1", "reads x: 1", "asserts; the run fails",
    ]  # fmt: skip


def test_a_fault_of_an_assignment_and_what_is_printed() -> None:
    x = ut.Variable(np.zeros(2), name="x")

    @ut.function
    def f(n):
        print("n is", n)
        x.assign_add(ut.zeros(n))
        return n

    (trace,) = ut.behaviors(f, 3, traces=True).traces
    assert [firing.did for firing in trace.firings] == ["prints 'n is 3\\n'", "assigns x; the run fails"]
    assert [state.printed for state in trace.states] == ["", "n is 3\n", "n is 3\n"]
    assert "cannot be assigned" in trace.outcome.error and len(trace.history) == 1


def test_a_budget_bounds_states_and_behaviors() -> None:
    few = ut.behaviors(both, np.array([1, 2, 3]), traces=True, budget=20)
    assert not few.is_complete and few.runs == 20
    paths = ut.behaviors(both, np.array([1, 2, 3]), traces=True, budget=40)
    assert not paths.is_complete and len(paths.traces) <= 40
    assert "at least" in str(paths)


@pytest.mark.slow
def test_a_search_that_was_cut_short_looks_for_no_ways_to_nowhere() -> None:
    """Six lanes: very many ways through the states that were found, none of which ends."""
    few = ut.behaviors(both, np.arange(6), traces=True, budget=150)
    assert not few.is_complete and few.traces == () and len(few) == 0
    assert str(few) == "at least 0 behaviors, 0 outcomes: the budget of 150 runs is used up"
    some = ut.behaviors(both, np.array([1, 2]), traces=True, budget=30)
    assert some.is_complete and len(some.traces) == 6
    kept = ut.behaviors(both, np.array([1, 2, 3]), traces=True, budget=400)
    assert len(kept.traces) <= 400 and (kept.is_complete or "is used up" in str(kept))


def test_a_program_without_variables_has_one_behavior() -> None:
    found = ut.behaviors(ut.function(lambda n: n * n), 3, traces=True)
    (trace,) = found.traces
    assert trace.firings == () and trace.history == ({},) and trace.outcome.result == 9
    assert str(trace).splitlines()[0] == "0. the start" and not any(line.isspace() for line in str(trace).splitlines())


def test_wrong_uses() -> None:
    with pytest.raises(ut.UndertowError, match="traces must be True, False or 'all'"):
        ut.behaviors(both, np.array([1]), traces="some")
    with pytest.raises(ut.UndertowError, match="the schedules have not been kept"):
        ut.behaviors(both, np.array([1])).shortest(bool)
    with pytest.raises(ut.UndertowError, match="none of the 1 outcome is like that"):
        ut.behaviors(both, np.array([1]), traces=True).shortest(lambda outcome: outcome.result == 7)


def test_a_session_has_traces_too() -> None:
    """B -> Write(x); Read(x) -> out: without the control edge, the two orders are two behaviors."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable(1, name="x")
        session.run(tf.global_variables_initializer())
        fetches = [tf.assign(x, 7), x.read_value()]
        found = session.behaviors(fetches, traces=True)
        assert len(found.traces) == 2
        assert {tuple(v["x"].item() for v in trace.history) for trace in found.traces} == {(1, 7)}
        stale = found.shortest(lambda outcome: outcome.result[1] == 1)
        assert [firing.did for firing in stale] == ["reads x: 1", "x becomes 7"]
        assert "x.read_value()" in stale[0].line
