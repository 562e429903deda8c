"""One execution of a stateful graph along a schedule, from the start to its end or to where the schedule ends.

Only operators that print, assert, or touch a variable that is written can observe the order of firings; and those that
produce a fetch decide when a run ends. All others may fire as soon as they are ready: their results do not depend on
what fires first. So an execution is determined by the order of these *steps*. With `every`, each live firing is a step.
"""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, Result, State
from undertow.engines.reference.frames import Ready
from undertow.engines.reference.plan import number_graph
from undertow.engines.reference.rows import NumberedGraph
from undertow.engines.reference.run import Run
from undertow.engines.reference.watched import Transit, WatchedRun
from undertow.errors import RunError, Timeout
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag, show_tag
from undertow.ir.walk import ports_of
from undertow.ops.effects import variables_of
from undertow.ops.op import CATALOGUE

WORLD = "\0world"  # what print and assert touch: no variable has this name


@dataclass(frozen=True, slots=True)
class Step:
    """One firing that can observe the order of firings, or end the run."""

    node: int
    tag: Tag
    name: str  # of the node
    touches: tuple[str, ...]  # the variables, or WORLD
    writes: bool
    brings: bool  # it produces a fetch: the run may end with it

    def conflicts(self, other: Step) -> bool:
        """Can it matter which of the two comes first?"""
        if not set(self.touches).isdisjoint(other.touches) and (self.writes or other.writes):
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
        values = tuple((name, bits_of(value)) for name, value in sorted(self.variables.items()))
        return tuple(map(bits_of, self.results)), values, self.printed, self.error


class Snapshot(NamedTuple):
    """The state of an execution: VarValue, InTransit, and what has been printed."""

    variables: dict[str, Value]
    in_transit: tuple[Transit, ...]
    printed: str

    def key(self) -> object:
        """The same for equal states."""
        variables = tuple((name, bits_of(value)) for name, value in sorted(self.variables.items()))
        return variables, frozenset((*token[:3], _token_bits(token.value)) for token in self.in_transit), self.printed


class End(NamedTuple):
    """Where a schedule leads: to an outcome, or to a state in which these steps are ready."""

    outcome: Outcome | None
    ready: list[Step]
    key: object  # equal states have equal ones, and states with equal ones equal futures
    snapshot: Snapshot | None  # if the run is watched


class _Pause(BaseException):
    """The schedule has ended, and the run has not. (Not an Exception: those are faults of kernels.)"""


class Replayer:
    """A graph, its inputs and its initial variables. `is_awaited`: no run ends before an effect that it makes."""

    def __init__(
        self,
        graph: StaticGraph,
        inputs: Sequence[Result],
        state: State,
        options: Options,
        is_awaited: bool = False,
        is_watched: bool = False,
        every: bool = False,
    ) -> None:
        self.graph = graph
        self.rows: NumberedGraph = number_graph(graph)
        self.values = checks.check_inputs(graph, inputs)
        self.state = state
        self.options = options
        self.is_watched = is_watched
        rows = [(n, node, CATALOGUE[node.op]) for n, node in enumerate(graph.nodes) if node.op in CATALOGUE]
        written = {name for _, node, row in rows if row.effect for name in variables_of(node.attrs)}
        brings = set() if is_awaited else {port.node for port in graph.fetches}
        self.steps: dict[
            int, tuple[tuple[str, ...], bool, bool]
        ] = {}  # node whose firings are steps -> touches, writes, brings
        for number, node, row in rows:
            if row.state is not None and not written.isdisjoint(variables_of(node.attrs)):
                self.steps[number] = variables_of(node.attrs), row.effect, number in brings
            elif row.state is None and row.effect:
                self.steps[number] = (WORLD,), True, number in brings
        if any(writes for _, writes, _ in self.steps.values()):
            self.steps |= {number: ((), False, True) for number in brings if number not in self.steps}
        # The last firings of a run: when only such are ready, their order makes no difference.
        used = {port.node for node in graph.nodes for port in ports_of((*node.inputs, *node.controls))}
        self.lasts = set[int]() if every else {n for n, (touches, *_) in self.steps.items() if not touches} - used
        if every:
            self.steps = {n: self.steps.get(n, ((), False, n in brings)) for n in range(len(graph.nodes))}

    def replay(self, schedule: tuple[Step, ...]) -> End:
        """Follow a schedule."""
        pool = _Pool(self, schedule)
        scheduler = pool, pool.popleft
        watched = WatchedRun(self.rows, self.values, self.options, self.state, scheduler) if self.is_watched else None
        run = watched or Run(self.rows, self.values, self.options, None, self.state, scheduler)
        pool.state = run.state
        printed = io.StringIO()
        error = ""

        def snapshot(variables: dict[str, Value]) -> Snapshot | None:
            return None if watched is None else Snapshot(variables, watched.in_transit(), printed.getvalue())

        try:
            with np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
                run.execute(drain=False)
        except _Pause:
            pool.note()
            values = tuple((name, bits_of(value)) for name, value in sorted(run.state.items()))
            key = frozenset(pool.seen), values, printed.getvalue()
            return End(None, pool.steps(), key, snapshot(run.state))
        except Timeout:
            raise
        except RunError as fault:
            error = f"{type(fault).__name__}: {fault.what}"
        results = () if error else tuple(checks.own(value) for value in run.results)
        variables = dict(self.state if error else run.state)
        outcome = Outcome(results, variables, printed.getvalue(), error, schedule)
        return End(outcome, [], outcome.key(), snapshot(variables))


class _Pool(deque[Ready]):
    """The ready nodes. Steps wait until nothing else is ready, and then fire in the order of the schedule."""

    def __init__(self, program: Replayer, schedule: tuple[Step, ...]) -> None:
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
        if self.waiting and all(step.node in self.program.lasts for step in self.waiting):
            return self.waiting.pop(next(iter(self.waiting)))
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
            self.seen.append((self.last, tuple(bits_of(self.state.get(name)) for name in self.last.touches)))
            self.last = None

    def steps(self) -> list[Step]:
        return sorted(self.waiting, key=lambda step: (step.node, show_tag(step.tag)))


def _token_bits(value: Value) -> object:
    return tuple(map(bits_of, value)) if isinstance(value, list) else bits_of(value)


def bits_of(value: Value) -> object:
    """The same for values that are the same to the last bit."""
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes() if array.dtype.kind != "O" else value
