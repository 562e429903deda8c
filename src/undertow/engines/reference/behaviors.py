"""Every way in which a stateful graph can end: all interleavings of the reference engine's firings.

An execution is replayed from the start along a schedule (`replay`); where the schedule ends and several steps are
possible, each is tried.

Two reductions keep the number small. Equal states are explored once: a state is the steps taken, what each of them saw,
and the values of the variables. And of two steps that touch different things, or only read, one order is enough (sleep
sets; Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996, ch. 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from undertow.engines.contract import Options, Result, State
from undertow.engines.reference.replay import Outcome, Replayer, Step
from undertow.errors import RunError
from undertow.ir.budget import check
from undertow.ir.graph import StaticGraph


@dataclass(slots=True)
class Explored:
    """The outcomes found. `is_complete`: the budget was large enough to find all."""

    outcomes: list[Outcome] = field(default_factory=list)
    runs: int = 0
    is_complete: bool = True


def explore(
    graph: StaticGraph,
    inputs: Sequence[Result],
    state: State,
    budget: int,
    options: Options,
    is_awaited: bool = False,
) -> Explored:
    """All outcomes, or those that `budget` runs find."""
    program = Replayer(graph, inputs, state, options, is_awaited)
    explored = Explored()
    outcomes: dict[object, Outcome] = {}
    asleep_in: dict[object, frozenset[Step]] = {}  # visited state -> its sleep set: steps that need not be tried
    todo: list[tuple[tuple[Step, ...], frozenset[Step]]] = [((), frozenset())]
    while todo:
        if explored.runs == budget:
            explored.is_complete = False
            break
        check()
        schedule, asleep = todo.pop()
        explored.runs += 1
        end = program.replay(schedule)
        if end.outcome is not None:
            outcomes.setdefault(end.key, end.outcome)
            continue
        ready, state_key = end.ready, end.key
        if state_key in asleep_in:
            before = asleep_in[state_key]
            trying = [step for step in ready if step in before and step not in asleep]
            asleep_in[state_key] = before & asleep
        else:
            trying = [step for step in ready if step not in asleep]
            asleep_in[state_key] = asleep
        tried = set(asleep)
        branches = []
        for step in trying:
            branches.append(((*schedule, step), frozenset(s for s in tried if not s.conflicts(step))))
            tried.add(step)
        todo += reversed(branches)
    explored.outcomes = list(outcomes.values())
    return explored


def replay(
    graph: StaticGraph, inputs: Sequence[Result], state: State, schedule: Sequence[Step], options: Options | None = None
) -> Outcome:
    """The outcome of a schedule that `explore` found."""
    program = Replayer(graph, inputs, state, options or Options())
    end = program.replay(tuple(schedule))
    if end.outcome is None:
        raise RunError(f"the schedule ends before the run; the next step could be {', '.join(map(str, end.ready))}")
    return end.outcome
