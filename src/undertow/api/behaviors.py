"""`ut.behaviors`: all outcomes of a small stateful program, over every order of firings, and the ways there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from undertow.api.function import Function
from undertow.api.options import settings
from undertow.api.program import Program, apart, begin
from undertow.api.traces import Behavior, Outcome, Schedule, Teller
from undertow.engines.contract import Result
from undertow.engines.reference import Reference
from undertow.engines.reference.behaviors import explore
from undertow.engines.reference.replay import Outcome as Reached
from undertow.engines.reference.state_graph import StateGraph, state_graph
from undertow.errors import TypeMismatch, UndertowError, brief
from undertow.frontend.values import tree
from undertow.frontend.values.state import values_of
from undertow.ir.graph import StaticGraph
from undertow.tracebacks import boundary

BUDGET = 10_000


@dataclass(frozen=True)
class Behaviors(Sequence[Outcome]):
    """All outcomes found, without duplicates. `is_complete` is False if the budget cut the search short.

    With `traces`, all behaviors too: sequences of states; and the shortest schedule to each outcome.
    """

    outcomes: tuple[Outcome, ...]
    is_complete: bool
    runs: int  # how many schedules were tried, in part or to the end
    traces: tuple[Behavior, ...] = ()
    _map: _Map | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, index: Any) -> Any:
        return self.outcomes[index]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __str__(self) -> str:
        said = _count(len(self.outcomes), "outcome")
        if self._map is not None:
            said = f"{_count(len(self.traces), 'behavior')}, {said}"
        if self._map is not None and self._map.states.is_complete and not self.is_complete:
            said = f"at least {said}: the budget of behaviors is used up"
        elif not self.is_complete:
            said = f"at least {said}: the budget of {self.runs} runs is used up"
        return "\n".join([said, *map(str, self.outcomes)])

    @boundary
    def shortest(self, is_wanted: Callable[[Outcome], Any]) -> Schedule:
        """A shortest schedule to an outcome of which `is_wanted` is true; it changes lanes as seldom as possible."""
        known = self._map
        if known is None:
            raise UndertowError("the schedules have not been kept", hint="write ut.behaviors(..., traces=True)")
        wanted = {number for number, outcome in enumerate(self.outcomes) if is_wanted(outcome)}
        ends = {vertex for vertex, number in known.ends.items() if number in wanted}
        path = known.states.shortest(ends)
        if path is None:
            raise UndertowError(
                f"none of the {_count(len(self.outcomes), 'outcome')} is like that"
                + ("" if self.is_complete else ", as far as the budget went"),
                hint="print the outcomes: print(ut.behaviors(...))" if self.is_complete else "try a larger budget=",
            )
        return Schedule(known.teller.firings(path), self.outcomes[known.ends[path[-1][1]]])

    @boundary
    def schedule_to(self, outcome: Outcome) -> Schedule:
        """A shortest schedule to one of the outcomes."""
        return self.shortest(lambda other: other is outcome)


@dataclass(frozen=True)
class _Map:
    """All states of a program, and its outcomes among them."""

    states: StateGraph
    teller: Teller
    ends: dict[int, int]  # vertex -> outcome


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@boundary
def behaviors(program: Function, /, *args: Any, budget: int = BUDGET, traces: bool | str = False) -> Behaviors:
    """Every possible outcome of a function for these arguments: its result, its variables, its output.

    Tries all orders of firings of the reference engine that can make a difference, in at most `budget` runs.
    The variables start from their current values, and keep them.

    With traces=True, `.traces` has every behavior: the sequence of states (values of the variables, and tokens in
    transit), and the firings between them, of operators on variables and on the world; all others fire as soon as they
    can. `.shortest(lambda outcome: ...)` is a shortest schedule to an outcome. With traces="all", each firing of any
    operator makes a state of its own, as in the paper; that is for very small programs.
    """
    if not isinstance(program, Function):
        raise TypeMismatch(
            f"behaviors takes a function decorated with @ut.function, not {brief(program)}",
            hint="for a graph of compat.v1, call session.behaviors(fetches)",
        )

    def search() -> Behaviors:
        begin(settings())
        arguments = program.__undertow_arguments__(args, {})
        captured, leaves = program.__undertow_program__(arguments)
        state = values_of(captured.captured.variables)
        return find_behaviors(captured, captured.inputs(leaves, settings()), state, budget, traces)

    return apart(search)


def find_behaviors(
    program: Program,
    inputs: Sequence[Result],
    state: dict[str, Any],
    budget: int,
    traces: bool | str = False,
    result: Callable[[Sequence[Any]], Any] | None = None,
) -> Behaviors:
    """All outcomes of a captured program, starting from these values of its variables."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise UndertowError(f"budget must be a number of runs, not {brief(budget)}", hint="write e.g. budget=1000")
    if not (isinstance(traces, bool) or traces == "all"):
        raise UndertowError(f"traces must be True, False or 'all', not {brief(traces)}", hint="write traces=True")
    chosen = settings()
    graph = program.static(program.library(Reference(), chosen.simplify, chosen.is_checked))
    captured = program.captured

    # A function ends after all that it does to the world, the run of a session perhaps before.
    is_awaited = result is None and captured.has_effect

    def unflatten(values: Sequence[Any]) -> Any:
        return tree.unflatten(captured.result, list(values[: captured.result_count]))

    def outcome(reached: Reached) -> Outcome:
        value = None if reached.error else (result or unflatten)(reached.results)
        schedule = tuple(str(step) for step in reached.schedule if step.touches)
        return Outcome(value, reached.variables, reached.printed, reached.error, schedule)

    if traces:
        return _traced(
            graph,
            state_graph(graph, inputs, state, budget, chosen.limits, is_awaited, traces == "all"),
            budget,
            outcome,
        )
    explored = explore(graph, inputs, state, budget, chosen.limits, is_awaited)
    return Behaviors(tuple(map(outcome, explored.outcomes)), explored.is_complete, explored.runs)


def _traced(graph: StaticGraph, states: StateGraph, budget: int, outcome: Callable[[Reached], Outcome]) -> Behaviors:
    """The outcomes among all states, and the ways that lead there, of which `budget` are kept."""
    teller = Teller(graph, states)
    numbers: dict[object, int] = {}
    outcomes: list[Outcome] = []
    ends: dict[int, int] = {}
    for number, vertex in enumerate(states.vertices):
        if vertex.outcome is not None:
            key = vertex.outcome.key()
            if key not in numbers:
                numbers[key] = len(outcomes)
                outcomes.append(outcome(vertex.outcome))
            ends[number] = numbers[key]
    paths = list(islice(states.paths(), budget + 1))
    traces = tuple(teller.behavior(path, outcomes[ends[path[-1][1]]]) for path in paths[:budget])
    is_complete = states.is_complete and len(paths) <= budget
    return Behaviors(tuple(outcomes), is_complete, states.runs, traces, _Map(states, teller, ends))
