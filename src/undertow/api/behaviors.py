"""`ut.behaviors`: all outcomes of a small stateful program, over every order of firings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.api.function import Function
from undertow.api.options import settings
from undertow.api.program import Program, apart, begin
from undertow.engines.contract import Result
from undertow.engines.reference import Reference
from undertow.engines.reference.behaviors import Outcome, explore
from undertow.errors import TypeMismatch, UndertowError, brief
from undertow.frontend.values import tree
from undertow.frontend.values.state import values_of
from undertow.tracebacks import boundary

BUDGET = 10_000


@dataclass(frozen=True)
class Behavior:
    """One outcome of a program, and one schedule that produces it."""

    result: Any  # of the program; None if it fails
    variables: dict[str, Any]  # their values afterwards
    printed: str  # the program's output
    error: str  # the error of the run, or ""
    schedule: tuple[str, ...]  # the firings on variables and on the world, in order: node and tag

    def __str__(self) -> str:
        parts = [f"error: {self.error}" if self.error else f"result: {self.result}"]
        parts += [f"{name}: {value}" for name, value in self.variables.items()]
        parts += [f"printed: {self.printed!r}"] * bool(self.printed)
        return f"{', '.join(parts)}\n  by {' -> '.join(self.schedule) or 'any schedule'}"


@dataclass(frozen=True)
class Behaviors(Sequence[Behavior]):
    """All outcomes found, without duplicates. `is_complete` is False if the budget cut the search short."""

    outcomes: tuple[Behavior, ...]
    is_complete: bool
    runs: int  # how many schedules were tried, in part or to the end

    def __getitem__(self, index: Any) -> Any:
        return self.outcomes[index]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __str__(self) -> str:
        count = f"{len(self.outcomes)} outcome{'s' * (len(self.outcomes) != 1)}"
        said = count if self.is_complete else f"at least {count}: the budget of {self.runs} runs is used up"
        return "\n".join([said, *map(str, self.outcomes)])


@boundary
def behaviors(program: Function, /, *args: Any, budget: int = BUDGET) -> Behaviors:
    """Every possible outcome of a function for these arguments: its result, its variables, its output.

    Tries all orders of firings of the reference engine that can make a difference, in at most `budget` runs.
    The variables start from their current values, and keep them.
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
        return find_behaviors(captured, captured.inputs(leaves, settings()), state, budget)

    return apart(search)


def find_behaviors(
    program: Program,
    inputs: Sequence[Result],
    state: dict[str, Any],
    budget: int,
    result: Callable[[Sequence[Any]], Any] | None = None,
) -> Behaviors:
    """All outcomes of a captured program, starting from these values of its variables."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise UndertowError(f"budget must be a number of runs, not {brief(budget)}", hint="write e.g. budget=1000")
    chosen = settings()
    graph = program.static(program.library(Reference(), chosen.simplify, chosen.is_checked))
    explored = explore(graph, inputs, state, budget, chosen.limits)
    captured = program.captured

    def unflatten(values: Sequence[Any]) -> Any:
        return tree.unflatten(captured.result, list(values[: captured.result_count]))

    def behavior(outcome: Outcome) -> Behavior:
        value = None if outcome.error else (result or unflatten)(outcome.results)
        schedule = tuple(str(step) for step in outcome.schedule if step.touches)
        return Behavior(value, outcome.variables, outcome.printed, outcome.error, schedule)

    return Behaviors(tuple(map(behavior, explored.outcomes)), explored.is_complete, explored.runs)
