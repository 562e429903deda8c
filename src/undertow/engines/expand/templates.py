"""Templates: the contents of a copy of one phase of a body, and the order of its steps.

A *program* is what an event triggers: steps that become ready or have one event less to wait for, values that arrive at
a merge, results that go up to the caller. A merge is no step: it forwards what arrives, so the program of an event
contains those of the merges that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from undertow.engines.expand import events as kinds
from undertow.engines.expand.events import Event, Events, ExpandIndex, Timing
from undertow.ir.budget import paced
from undertow.ir.graph import Operand, Port, StaticGraph
from undertow.ir.structure import COLLECTED
from undertow.ir.walk import grouped, ports_of, reachable
from undertow.types import CTL

T = TypeVar("T")

FIRES = (kinds.NODE, kinds.ENTERED, kinds.DECIDED, kinds.AGAIN, kinds.PASSED)


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a caller that is not in the graph: the entry that a site has made, or its number of lanes."""

    kind: str  # "entry" or "lanes"
    site: int


Place = Operand | Cell


@dataclass(frozen=True, slots=True)
class Wake:
    """A step has one event less to wait for."""

    step: Event


@dataclass(frozen=True, slots=True)
class Move:
    """A value arrives at a merge; None is an order token."""

    source: Operand | None
    merge: Port


@dataclass(frozen=True, slots=True)
class Up:
    """A result goes up to the caller; None is an order token."""

    index: int
    value: Operand | None


Action = Wake | Move | Up
Programs = dict[Event | None, list[Action]]  # None: when a copy begins


@dataclass(slots=True, eq=False)
class Template:
    """One phase of a body."""

    body: int
    phase: int
    timing: Timing
    steps: dict[Event, list[Event]] = field(default_factory=dict)  # step -> the events that it waits for
    programs: Programs = field(default_factory=dict)
    uses: set[Port | Cell] = field(default_factory=set)  # values that need a slot, loads and saves included
    saves: list[Port | Cell] = field(default_factory=list)
    loads: list[Port | Cell] = field(default_factory=list)
    reads: list[Port] = field(default_factory=list)  # values of hoist_read


class Templates:
    """All templates of a graph, by body and phase."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.index = ExpandIndex(graph)
        self.arguments = self._find_arguments()
        self.results = self._find_results()
        awaited = self._find_awaited()
        shared = (port for ports in awaited.values() for port in ports)
        self.shared = set(self._values(shared))  # values of main that other bodies read
        self.by_phase: dict[tuple[int, int], Template] = {}
        for body, count in enumerate(self.index.phase_count):
            if graph.regions[body].kind == "branch":
                continue
            for phase in range(count):
                timing = Timing(self.index, body, phase, awaited)
                self.by_phase[body, phase] = Template(body, phase, timing)
        for template in self.by_phase.values():
            self._find_steps(template)
            self._find_programs(template)
        self.records: dict[int, list[Port | Cell]] = {}  # body -> values that later phases read from earlier ones
        for body in {body for body, _ in self.by_phase}:
            self._find_uses(body)
            phases = range(self.index.phase_count[body])
            self.records[body] = [value for phase in phases for value in self.by_phase[body, phase].saves]

    # -- between bodies ------------------------------------------------------------------------------------

    def _find_arguments(self) -> dict[int, Port]:
        """Node that hands over an argument -> the parameter of the entered body."""
        params: dict[int, Port] = {}
        for number, node in self.index.of("merge"):
            if self.index.is_parameter(node):
                params.update({x.node: Port(number) for x in ports_of(node.inputs)})
        return params | {number: Port(number) for number, _ in self.index.of("fan")}

    def _find_results(self) -> dict[tuple[int, int], dict[int, Operand]]:
        """(body, phase) -> index -> the result for the caller; of main, for the run."""
        results: dict[tuple[int, int], dict[int, Operand]] = {(0, 0): dict(enumerate(self.graph.fetches))}
        for (site, phase), visit in self.index.visits.items():
            own = results.setdefault((self.graph.sites[site - 1].callee, phase), {})
            for node in (self.graph.nodes[n] for n in visit.backs):
                own[node.attrs.integer("index")] = node.inputs[0]
        return results

    def _find_awaited(self) -> dict[int, set[Port]]:
        """Body -> the values of main that it, or what it enters, reads: main waits for them before entering it."""
        graph, owner = self.graph, self.index.owner
        reads: dict[int, set[Port]] = {}
        for _, node in self.index.of("hoist_read"):
            source = ports_of(node.inputs)[0]
            if graph.nodes[source.node].op != "hoist":
                reads.setdefault(owner[node.region], set()).add(source)
        return closed(reads, self._callers())

    def _callers(self) -> dict[int, set[int]]:
        callers: dict[int, set[int]] = {}
        for site in self.graph.sites:
            callers.setdefault(site.callee, set()).add(self.index.owner[site.caller])
        return callers

    def has_path(self) -> set[int]:
        """The bodies whose copies must know their call path: those with later phases, and their callers."""
        again = {body: {0} for body, count in enumerate(self.index.phase_count) if count > 1}
        return set(closed(again, self._callers()))

    # -- within a template ---------------------------------------------------------------------------------

    def _find_steps(self, template: Template) -> None:
        waits = paced(template.timing.waits.items())
        template.steps = {event: template.timing.fewest(events) for event, events in waits if event[0] in FIRES}

    def _find_programs(self, template: Template) -> None:
        """Find what each event triggers; what arrives at a merge is forwarded at once."""
        timing, index = template.timing, self.index
        own: Programs = {}

        def attach(action: Action, events: Events) -> None:
            few = timing.fewest(events)
            if len(few) > 1:
                step = (kinds.PASSED, len(template.steps))
                template.steps[step] = few
                few = [step]
            own.setdefault(few[0] if few else None, []).append(action)

        for event, sides in timing.arrivals.items():
            node = self.graph.nodes[event[1]]
            for operand, events in zip(node.inputs, sides, strict=True):
                assert isinstance(operand, Port)
                source = None if node.types[0] == CTL else index.value_of(operand)
                attach(Move(source, Port(event[1])), events)
        for result, operand in self.results.get((template.body, template.phase), {}).items():
            source = None if self.graph.type_of(operand) == CTL else index.value_of(operand)
            attach(Up(result, source), timing.look(operand))
        for event, waits in paced(template.steps.items()):
            others: list[Event | None] = [*waits] or [None]
            for other in others:
                own.setdefault(other, []).append(Wake(event))
        # Later merges first, so that the program of a merge is complete before others include it.
        for event in sorted(timing.arrivals, key=lambda e: -timing.numbers[e]):
            own[event] = list(_expanded(own.get(event, []), own))
        for key in paced(list(own)):
            if key is None or key[0] != kinds.MERGED:
                template.programs[key] = list(_expanded(own[key], own))

    def _find_uses(self, body: int) -> None:
        """Liveness: find which values each phase reads, forwards, or keeps for later phases; the last phase first."""
        needed: set[Port | Cell] = set()  # by later phases
        for phase in reversed(range(self.index.phase_count[body])):
            template = self.by_phase[body, phase]
            template.saves = [value for value in sorted_values(needed) if self.phase_of_value(value) == phase]
            uses = template.uses
            uses.update(template.saves)
            if body == 0:
                uses.update(value for value in self.shared if isinstance(value, Port))
            for event in paced(template.steps):
                uses.update(x for x in self._operands(event) if isinstance(x, Port | Cell))
            actions = [action for program in template.programs.values() for action in program]
            uses.update(action.value for action in actions if isinstance(action, Up) and isinstance(action.value, Port))
            moves = grouped((action.merge, action.source) for action in actions if isinstance(action, Move))
            uses.update(reachable(uses, partial(_arrives, moves)))
            for value in sorted_values(uses):
                if isinstance(value, Port) and self.graph.nodes[value.node].op == "hoist_read":
                    template.reads.append(value)
                elif self.phase_of_value(value) < phase:
                    template.loads.append(value)
            needed.update(template.loads)

    def _operands(self, event: Event) -> Iterator[Place]:
        """The values and cells that a step reads. Order tokens are not values."""
        graph, index = self.graph, self.index
        if event[0] == kinds.NODE:
            node = graph.nodes[event[1]]
            yield from self._values(node.inputs)
            if node.op in COLLECTED:
                yield Cell("entry", node.attrs.integer("site"))
        elif event[0] == kinds.DECIDED:
            yield index.value_of(Port(event[1], event[2]))
        elif event[0] == kinds.AGAIN:
            for number in index.nexts[event[1]]:
                yield from self._values(graph.nodes[number].inputs)
            yield from (
                Port(number) for number in index.outers.get(event[1], ()) if graph.nodes[number].types[0] != CTL
            )
        elif event[0] == kinds.ENTERED:
            site, phase = event[1:]
            visit = index.visits[site, phase]
            for number in (visit.start, *visit.arguments):
                yield from self._values(graph.nodes[number].inputs)
            if site in index.hoists:
                yield Cell("entry", site)
            if phase == 0:
                for number in index.outers.get(site, ()):
                    yield from self._values(graph.nodes[number].inputs)
            elif graph.sites[site - 1].kind == "map":
                yield Cell("lanes", site)

    def _values(self, operands: Iterable[Operand]) -> Iterator[Operand]:
        for operand in operands:
            if self.graph.type_of(operand) != CTL:
                yield self.index.value_of(operand)

    def phase_of_value(self, value: Port | Cell) -> int:
        """The phase of its body that computes a value."""
        if isinstance(value, Cell):
            return self.index.phase_entered(value.site, 0)
        return self.index.waits_for(value)


def _arrives(moves: dict[Port, list[Operand | None]], value: Port | Cell) -> list[Port | Cell]:
    """The values that may arrive at a value, if it is a merge."""
    return [source for source in moves.get(value, ()) if isinstance(source, Port)] if isinstance(value, Port) else []


def _expanded(program: list[Action], own: Programs) -> Iterator[Action]:
    """A program with those of the merges that it reaches; their actions take the value that has arrived."""
    for action in program:
        yield action
        if not isinstance(action, Move):
            continue
        for then in own.get((kinds.MERGED, action.merge.node), ()):
            if isinstance(then, Move) and then.source == action.merge:
                yield Move(action.source, then.merge)
            elif isinstance(then, Up) and then.value == action.merge:
                yield Up(then.index, action.source)
            else:
                yield then


def sorted_values(values: Iterable[Port | Cell]) -> list[Port | Cell]:
    """The values in a deterministic order."""
    return sorted(values, key=lambda v: (1, v.site, v.kind) if isinstance(v, Cell) else (0, *v, ""))


def closed(own: dict[int, set[T]], callers: dict[int, set[int]]) -> dict[int, set[T]]:
    """Body -> its own items and those of all bodies that it enters, directly or not."""
    whole = {body: set(items) for body, items in own.items()}
    todo = list(whole)
    while todo:
        body = todo.pop()
        for caller in callers.get(body, ()):
            if not whole[body] <= whole.setdefault(caller, set()):
                whole[caller] |= whole[body]
                todo.append(caller)
    return whole
