"""All states that a stateful graph can be in, and the steps that lead from one to the next.

A behavior, as Abadi, Isard and Murray define it, is a path through this graph from the first state to one in which the
run has ended. Its states are those in which nothing can fire but steps (`replay`): all other firings commute with
everything, so each behavior can be turned into one of these by having them fire as soon as they can, and the
variables have the same values in between. With `every`, each live firing is a step, and paths are the paper's.

Equal states are one vertex, so the graph is small where its paths are many. It has no cycles: every step is taken once.
No order is left out, unlike in `behaviors`, where outcomes alone are wanted: two orders of independent steps are two
paths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from undertow.engines.contract import Options, Result, State
from undertow.engines.reference.replay import Outcome, Replayer, Snapshot, Step
from undertow.ir.budget import check
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag
from undertow.ir.walk import grouped

Move = tuple[Step | None, int]  # a step, and the vertex that it leads to; None leads to the first
Path = tuple[Move, ...]


@dataclass(slots=True, eq=False)
class Vertex:
    """A state."""

    snapshot: Snapshot
    label: object  # the same for states that cannot be told apart
    outcome: Outcome | None  # if the run has ended
    moves: list[tuple[Step, int]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class StateGraph:
    """The states found. `is_complete`: the budget was large enough to find all."""

    vertices: list[Vertex]  # the first is where runs begin
    runs: int
    is_complete: bool

    def paths(self) -> Iterator[Path]:
        """Every sequence of states from the first to an end, once. Several vertices may be the same state."""
        leading = self._leading_to_an_end()
        path: list[tuple[Step | None, tuple[int, ...]]] = []
        todo: list[Iterator[tuple[Step | None, tuple[int, ...]]]] = [iter([(None, (0,))])]
        while todo:
            move = next(todo[-1], None)
            if move is None:
                todo.pop()
                if path:
                    path.pop()
                continue
            path.append(move)
            if any(self.vertices[number].outcome is not None for number in move[1]):
                check()
                yield tuple((step, numbers[0]) for step, numbers in path)
            after: dict[object, tuple[Step, list[int]]] = {}
            for number in move[1]:
                for step, target in self.vertices[number].moves:
                    if target not in leading:
                        continue
                    after.setdefault(self.vertices[target].label, (step, []))[1].append(target)
            todo.append(iter([(step, tuple(dict.fromkeys(targets))) for step, targets in after.values()]))

    def _leading_to_an_end(self) -> set[int]:
        """The vertices from which a run has been seen to end: of an incomplete graph, perhaps few."""
        before = grouped((target, number) for number, vertex in enumerate(self.vertices) for _, target in vertex.moves)
        todo = [number for number, vertex in enumerate(self.vertices) if vertex.outcome is not None]
        found = set(todo)
        while todo:
            fresh = set(before.get(todo.pop(), ())) - found
            found |= fresh
            todo += fresh
        return found

    def shortest(self, wanted: Container[int]) -> Path | None:
        """A shortest path to one of these vertices; of several, one that changes least often between activations."""
        # By vertex and the tag of the last step: how often it changes, and the way there.
        layer: dict[tuple[int, Tag | None], tuple[int, Path]] = {(0, None): (0, ((None, 0),))}
        while layer:
            reached = [ways for (number, _), ways in layer.items() if number in wanted]
            if reached:
                return min(reached, key=lambda ways: ways[0])[1]
            after: dict[tuple[int, Tag | None], tuple[int, Path]] = {}
            for (number, tag), (changes, path) in layer.items():
                for step, target in self.vertices[number].moves:
                    count, key = changes + (tag is not None and step.tag != tag), (target, step.tag)
                    if key not in after or count < after[key][0]:
                        after[key] = count, (*path, (step, target))
            layer = after
        return None


def state_graph(
    graph: StaticGraph,
    inputs: Sequence[Result],
    state: State,
    budget: int,
    options: Options,
    is_awaited: bool = False,
    every: bool = False,
) -> StateGraph:
    """The states that `budget` runs find, those after fewer steps first."""
    program = Replayer(graph, inputs, state, options, is_awaited, is_watched=True, every=every)
    vertices: list[Vertex] = []
    known: dict[object, int] = {}
    todo: deque[tuple[int, Step | None, tuple[Step, ...]]] = deque([(-1, None, ())])  # (from, by, the way there)
    runs = 0
    while todo and runs < budget:
        check()
        source, step, schedule = todo.popleft()
        runs += 1
        end = program.replay(schedule)
        assert end.snapshot is not None
        label = end.snapshot.key(), None if end.outcome is None else end.outcome.key()
        key = end.key if end.outcome is None else label
        if key not in known:
            known[key] = len(vertices)
            vertices.append(Vertex(end.snapshot, label, end.outcome))
            todo.extend((known[key], ready, (*schedule, ready)) for ready in end.ready)
        if step is not None:
            vertices[source].moves.append((step, known[key]))
    return StateGraph(vertices, runs, not todo)
