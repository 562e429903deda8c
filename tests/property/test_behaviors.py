"""No pass gives a stateful program a behavior that it did not have: section 4 of Abadi, Isard and Murray.

A behavior is an outcome, with the values that the variables have had on the way there, up to stuttering. Each pass is
compared with what it was given, on small random programs, all of whose interleavings are tried.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from tests.support.interleavings import as_python
from tests.support.placed import homes_by_chance
from tests.support.racy_programs import Racy, lanes, recursions, session_graph

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference.placed import PlacedPlan
from undertow.engines.reference.state_graph import state_graph
from undertow.ir.graph import FunctionGraph, Library, Port
from undertow.ops.effects import is_stateful
from undertow.passes.cut import cut
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import library_steps

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
KINDS: dict[str, Callable[[random.Random], Racy]] = {"session": session_graph, "lanes": lanes, "recursions": recursions}
MOST = 400  # runs of one program, and paths: the few that need more are left out
COUNTS = {"session": 60, "lanes": 24, "recursions": 8}
CHANGES = {
    "session": {"simplify"},
    "lanes": {"simplify"},
    "recursions": {"simplify", "delay", "hoist", "restore"},
}  # passes that act
Behaviors = set[tuple[Any, Any]]  # (outcome, the values of the variables)


def behaviors(library: Library, program: Racy, is_awaited: bool) -> Behaviors | None:
    """All behaviors; None if they are too many."""
    states = state_graph(flatten(library), program.inputs, program.state, MOST, Options(), is_awaited)
    if not states.is_complete:
        return None
    found: Behaviors = set()
    for number, path in enumerate(states.paths()):
        if number == MOST:
            return None
        values = [as_python((), states.vertices[vertex].snapshot.variables, "")[1] for _, vertex in path]
        end = states.vertices[path[-1][1]].outcome
        assert end is not None
        outcome = as_python(end.results, end.variables, end.error)
        found.add((outcome, tuple(value for value, _ in groupby(values))))
    return found


def options(seed: int) -> dict[str, bool]:
    """Engines ask for different passes."""
    every = {"takes_hoisted": seed % 2 == 0, "forms_waves": seed % 3 > 0, "reorders": seed % 6 == 5}
    return {**every, "is_checked": seed % 8 == 7}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_pass_adds_a_behavior(kind: str) -> None:
    changed: Counter[str] = Counter()
    racy = 0
    for seed in range(EXAMPLES or COUNTS[kind]):
        program = KINDS[kind](random.Random(seed))
        known = behaviors(program.library, program, kind != "session")
        if known is None:
            continue
        racy += len(known) > 1
        for step in library_steps(program.library, **options(seed)):
            if step.has_changed:
                changed[step.name] += 1
                after = behaviors(step.after, program, kind != "session")
                if after is None:
                    break  # checks of each operator are steps, too
                assert after, f"{kind} {seed}: {step.name} leaves no behavior"
                assert after <= known, f"{kind} {seed}: {step.name} adds {after - known}"
                known = after
    assert racy >= 4 and CHANGES[kind] <= changed.keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_parts_add_no_outcome(kind: str) -> None:
    """Cut into parts, in random places, with tokens that arrive in random orders."""
    for seed in range(EXAMPLES or COUNTS[kind] // 4):
        chance = random.Random(seed)
        program = KINDS[kind](chance)
        known = behaviors(program.library, program, kind != "session")
        if known is None:
            continue
        # Parts of a session's graph run on when its fetches are there, so its variables may be those of a longer run.
        seen = slice(1) if kind == "session" else slice(3)
        outcomes = {outcome[seen] for outcome, _ in known}
        graph = flatten(program.library)
        for _ in range(3):
            placed = cut(graph, homes_by_chance(graph, 3, chance), 3)
            state = dict(program.state)
            try:
                results, _ = PlacedPlan(placed, chance.randrange).run(program.inputs, None, state)
                outcome = as_python(results, state, "")
            except ut.RunError as fault:
                outcome = as_python((), program.state, f"{type(fault).__name__}: {fault.what}")
            assert outcome[seen] in outcomes, f"{kind} {seed}: {outcome}"


@pytest.mark.slow
def test_a_pass_that_forgets_an_order_is_caught() -> None:
    """Assignments and reads that wait for nothing but their operands have behaviors that programs do not have."""
    caught = 0
    for seed in range(8):
        program = lanes(random.Random(seed))
        known = behaviors(program.library, program, is_awaited=True)
        functions = {name: _unordered(graph) for name, graph in program.library.functions.items()}
        after = behaviors(Library(functions, program.library.main), program, is_awaited=True)
        caught += known is not None and after is not None and not after <= known
    assert caught > 1


def _unordered(graph: FunctionGraph) -> FunctionGraph:
    start = (Port(0),)
    nodes = (
        replace(node, controls=start) if is_stateful(node.op) and not node.region else node for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))
