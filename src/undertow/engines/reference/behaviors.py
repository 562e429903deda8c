"""Every way in which a stateful graph can behave: all interleavings of the reference engine's firings.

Only operators that print, assert, or touch a variable that is written can observe the order of firings; and those that
produce a fetch decide when a run ends. All others may fire as soon as they are ready: their results do not depend on
what fires first. So an execution is determined by the order of these *steps*. It is replayed from the start along a
schedule; where the schedule ends and several steps are possible, each is tried.

Two reductions keep the number small. Equal states are explored once: a state is the steps taken, what each of them saw,
and the values of the variables. And of two steps that touch different things, or only read, one order is enough (sleep
sets; Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996, ch. 5).
"""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, Result, State
from undertow.engines.reference.frames import Ready
from undertow.engines.reference.plan import number_graph
from undertow.engines.reference.rows import NumberedGraph
from undertow.engines.reference.run import Run
from undertow.errors import RunError, Timeout
from undertow.ir.budget import check
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag, show_tag
from undertow.ops.op import CATALOGUE

_WORLD = "\0world"  # what print and assert touch: no variable has this name


@dataclass(frozen=True, slots=True)
class Step:
    """One firing that can observe the order of firings, or end the run."""

    node: int
    tag: Tag
    name: str  # of the node
    touches: str  # the variable, or ""
    writes: bool
    brings: bool  # it produces a fetch: the run may end with it

    def conflicts(self, other: Step) -> bool:
        """Can it matter which of the two comes first?"""
        if self.touches == other.touches and (self.writes or other.writes):
            return True
        # A write that no fetch waits for is lost if the run ends before it.
        return (self.brings and other.writes and not other.brings) or (other.brings and self.writes and not self.brings)

    def __str__(self) -> str:
        return f"{self.name} {show_tag(self.tag)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which a run can end, and one schedule that leads to it."""

    results: tuple[Value, ...]  # empty if the run fails
    variables: dict[str, Value]  # afterwards
    printed: str
    error: str
    schedule: tuple[Step, ...]

    def key(self) -> tuple[object, ...]:
        values = tuple((name, _bits(value)) for name, value in sorted(self.variables.items()))
        return tuple(map(_bits, self.results)), values, self.printed, self.error


@dataclass(slots=True)
class Explored:
    """The outcomes found. `is_complete`: the budget was large enough to find all."""

    outcomes: list[Outcome] = field(default_factory=list)
    runs: int = 0
    is_complete: bool = True


def explore(graph: StaticGraph, inputs: Sequence[Result], state: State, budget: int, options: Options) -> Explored:
    """All outcomes, or those that `budget` runs find."""
    program = _Program(graph, checks.check_inputs(graph, inputs), state, options)
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
        if isinstance(end, Outcome):
            outcomes.setdefault(end.key(), end)
            continue
        ready, state_key = end
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
    program = _Program(graph, checks.check_inputs(graph, inputs), state, options or Options())
    end = program.replay(tuple(schedule))
    if not isinstance(end, Outcome):
        raise RunError(f"the schedule ends before the run; the next step could be {', '.join(map(str, end[0]))}")
    return end


class _Pause(BaseException):
    """The schedule has ended, and the run has not. (Not an Exception: those are faults of kernels.)"""


class _Program:
    """A graph, its inputs and its initial variables."""

    def __init__(self, graph: StaticGraph, values: list[Value], state: State, options: Options) -> None:
        self.graph = graph
        self.rows: NumberedGraph = number_graph(graph)
        self.values = values
        self.state = state
        self.options = options
        rows = [(n, node, CATALOGUE[node.op]) for n, node in enumerate(graph.nodes) if node.op in CATALOGUE]
        written = {node.attrs["variable"] for _, node, row in rows if row.state is not None and row.effect}
        brings = {port.node for port in graph.fetches}
        self.steps: dict[int, tuple[str, bool, bool]] = {}  # node whose firings are steps -> touches, writes, brings
        for number, node, row in rows:
            if row.state is not None and node.attrs["variable"] in written:
                self.steps[number] = node.attrs.text("variable"), row.effect, number in brings
            elif row.state is None and row.effect:
                self.steps[number] = _WORLD, True, number in brings
        if any(writes for _, writes, _ in self.steps.values()):
            self.steps |= {number: ("", False, True) for number in brings if number not in self.steps}

    def replay(self, schedule: tuple[Step, ...]) -> Outcome | tuple[list[Step], object]:
        """Follow a schedule; returns the outcome or, if the run continues, the possible next steps and the state."""
        pool = _Pool(self, schedule)
        run = Run(self.rows, self.values, self.options, None, self.state, (pool, pool.popleft))
        pool.state = run.state
        printed = io.StringIO()
        error = ""
        try:
            with np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
                run.execute(drain=False)
        except _Pause:
            pool.note()
            values = tuple((name, _bits(value)) for name, value in sorted(run.state.items()))
            return pool.steps(), (frozenset(pool.seen), values, printed.getvalue())
        except Timeout:
            raise
        except RunError as fault:
            error = f"{type(fault).__name__}: {fault.what}"
        results = () if error else tuple(checks.own(value) for value in run.results)
        variables = self.state if error else run.state
        return Outcome(results, dict(variables), printed.getvalue(), error, schedule)


class _Pool(deque[Ready]):
    """The ready nodes. Steps wait until nothing else is ready, and then fire in the order of the schedule."""

    def __init__(self, program: _Program, schedule: tuple[Step, ...]) -> None:
        super().__init__()
        self.program = program
        self.left = deque(schedule)
        self.waiting: dict[Step, Ready] = {}
        self.state: dict[str, Value] = {}
        self.last: Step | None = None
        self.seen: list[tuple[Step, object]] = []  # the steps taken, and what each of them saw

    def __bool__(self) -> bool:
        return bool(len(self) or self.waiting)

    def append(self, ready: Ready, /) -> None:
        frame, at = ready
        number = frame.rows[at].number
        if number in self.program.steps and frame.pend[at] == 0:  # dead ones touch nothing
            name = self.program.graph.nodes[number].name
            self.waiting[Step(number, frame.tag(), name, *self.program.steps[number])] = ready
        else:
            super().append(ready)

    def popleft(self) -> Ready:
        if len(self):
            return super().popleft()
        if not self.left:
            raise _Pause
        self.note()
        self.last = self.left.popleft()
        if self.last not in self.waiting:
            raise RunError(f"the schedule does not fit the run: {self.last} is not ready to fire")
        return self.waiting.pop(self.last)

    def note(self) -> None:
        """Remember what the last step saw: the value of its variable afterwards."""
        if self.last is not None:
            self.seen.append((self.last, _bits(self.state.get(self.last.touches))))
            self.last = None

    def steps(self) -> list[Step]:
        return sorted(self.waiting, key=lambda step: (step.node, show_tag(step.tag)))


def _bits(value: Value) -> object:
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes() if array.dtype.kind != "O" else value
