"""Encodes templates as rows of integers for the core. Names and attributes stay in Python.

`core/src/expand/decode.cpp` reads what is written here, in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from undertow.engines.expand.events import AGAIN, ALIVE, DECIDED, DONE, ENTERED, NODE, PASSED, RESULT, Event
from undertow.engines.expand.templates import Cell, Move, Place, Template, Templates, Up, Wake, sorted_values
from undertow.engines.native import Encoded, Encoder, type_row
from undertow.ir.budget import paced
from undertow.ir.graph import Const, Port, StaticGraph
from undertow.ir.structure import BODIES, COLLECTED, COLLECTS
from undertow.ir.walk import grouped
from undertow.plan.lower import acts_on_world, kernel_of
from undertow.plan.plan import NO_SLOT
from undertow.types import CTL

VERSION = 3
_CELL = 8  # bytes: a larger number, a c128, is an array of its own
_KINDS = {kind: number for number, kind in enumerate(BODIES)}
_OP, _BRANCH, _ENTER, _AGAIN, _COLLECT, _COLLECTED, _PASS = range(7)
_READY, _COUNT, _MOVE, _UP = range(4)  # actions of programs


def encode(graph: StaticGraph) -> Encoded:
    """A graph as the core reads it."""
    return _TemplateEncoder(graph).run()


class _TemplateEncoder(Encoder):
    def __init__(self, graph: StaticGraph) -> None:
        super().__init__()
        self.graph = graph
        self.templates = Templates(graph)
        self.index = self.templates.index
        self.order = {key: number for number, key in enumerate(self.templates.by_phase)}
        self.slots = {key: self._slots(template) for key, template in self.templates.by_phase.items()}
        self.records = {body: self._arranged(values) for body, values in self.templates.records.items()}
        self.has_path = self.templates.has_path()
        self.steps: dict[Event, int] = {}  # of the current template
        self.counts: dict[Event, int] = {}  # step that waits for several events -> number of its counter
        self.tails: dict[Event, Event] = {}  # event -> the step that follows it directly
        self.last: set[Event] = set()  # steps that go after what is ready at the same time
        self.backs: dict[Event, list[int]] = {}  # entering of a site -> the nodes that take its results
        self.template: Template

    def run(self) -> Encoded:
        out: list[int] = [len(self.order)]
        for template in self.templates.by_phase.values():
            out += self.write_template(template)
        main = self.slots[0, 0]
        out += [len(self.graph.inputs), *(main.get(Port(number), NO_SLOT) for number in self.graph.inputs)]
        out.append(len(self.graph.fetches))
        for port in self.graph.fetches:
            type_ = self.graph.type_of(port)
            out += [0] if type_ == CTL else [1, *type_row(type_)]
        return self.encoded([VERSION, len(self.graph.nodes)], out)

    # -- slots ---------------------------------------------------------------------------------------------

    def _kind(self, value: Port | Cell) -> int:
        """0 for an array, 1 for an entry, 2 for a scalar."""
        if isinstance(value, Cell):
            return 1 if value.kind == "entry" else 2
        type_ = self.graph.type_of(value)
        return 0 if type_.shape or type_.dtype.size > _CELL else 2

    def _arranged(self, values: Iterable[Port | Cell]) -> dict[Port | Cell, int]:
        """Numbers for values: arrays first, then entries, then scalars."""
        return {value: number for number, value in enumerate(sorted(values, key=self._kind))}

    def _slots(self, template: Template) -> dict[Port | Cell, int]:
        """A slot for each value that is used or that an operator computes."""
        values: dict[Port | Cell, None] = {}
        for event in template.steps:
            if event[0] == NODE:
                types = self.graph.nodes[event[1]].types
                values.update({Port(event[1], k): None for k, type_ in enumerate(types) if type_ != CTL})
        values.update(dict.fromkeys(sorted_values(template.uses)))
        return self._arranged(values)

    def counts_of(self, values: Iterable[Port | Cell]) -> list[int]:
        """The numbers of arrays, of entries, and of all values."""
        kinds = [self._kind(value) for value in values]
        return [kinds.count(0), kinds.count(1), len(kinds)]

    def place(self, value: Place) -> int:
        """The number of an operand: of a slot, or below zero of a constant."""
        if isinstance(value, Const):
            return self.constant(value)
        return self.slots[self.template.body, self.template.phase][value]

    def at(self, value: Port | Cell) -> int:
        """The slot of a value, or NO_SLOT."""
        return self.slots[self.template.body, self.template.phase].get(value, NO_SLOT)

    # -- templates -----------------------------------------------------------------------------------------

    def write_template(self, template: Template) -> list[int]:
        self.template = template
        key = template.body, template.phase
        slots, record = self.slots[key], self.records[template.body]
        # In the order in which Python would come to them; what only joins others can stand anywhere.
        numbers = template.timing.numbers
        in_order = sorted(template.steps, key=lambda event: numbers.get(event, len(numbers)))
        self.steps = {event: number for number, event in enumerate(in_order)}
        several = (event for event, waits in template.steps.items() if len(waits) > 1)
        self.counts = {event: number for number, event in enumerate(several)}
        self.last = self._find_last(template)
        self.tails = self._find_tails(template)
        self.backs = grouped(
            (event_before, event[1])
            for event, waits in template.timing.waits.items()
            if event[0] == RESULT and len(waits) == 1
            for event_before in waits
        )
        row = [template.body, template.phase, int(self.graph.regions[template.body].kind == "function")]
        row += self.counts_of(slots)
        for value in slots:
            row += [2, 0] if isinstance(value, Cell) else type_row(self.graph.type_of(value))
        row += self.counts_of(record)
        row += pairs((record[value], slots[value]) for value in template.loads)
        row += pairs((slots[value], record[value]) for value in template.saves)
        row += pairs((slots[value], *self.source_of_read(value)) for value in template.reads)
        row += [len(self.counts), *(len(template.steps[event]) for event in self.counts)]
        row += [*self.program(None), len(self.steps)]
        for event in paced(self.steps):
            row += self.write_step(event)
        return row

    def source_of_read(self, value: Port) -> tuple[int, int]:
        """What a hoist_read reads: (index of the entry's argument, 0), or (slot of main, 1)."""
        source = self.graph.nodes[value.node].inputs[0]
        assert isinstance(source, Port)
        maker = self.graph.nodes[source.node]
        if maker.op == "hoist":
            return maker.attrs.integer("index"), 0
        value_of_main = self.index.value_of(source)
        assert isinstance(value_of_main, Port)
        return self.slots[0, 0][value_of_main], 1

    def _find_last(self, template: Template) -> set[Event]:
        """Steps that only compute what is collected: until the calls below have ended, it would only take memory.

        A contribution to the gradient of a matrix is as large as that; computed right before it is added to what comes
        from below, it is still in the cache.
        """
        last: set[Event] = set()
        for event in reversed(self.steps):
            program = template.programs.get(event, ())
            if event[0] == NODE and (
                self.graph.nodes[event[1]].op in COLLECTS
                or (program and all(isinstance(action, Wake) and action.step in last for action in program))
            ):
                last.add(event)
        return last

    def _find_tails(self, template: Template) -> dict[Event, Event]:
        """Event -> the step that it alone makes ready, the first one: it follows directly, without a token."""
        actions = (action for program in template.programs.values() for action in program)
        woken = Counter(action.step for action in actions if isinstance(action, Wake))
        tails: dict[Event, Event] = {}
        for event, program in template.programs.items():
            if event is None or (event not in template.steps and event[0] != ALIVE):
                continue
            steps = (action.step for action in program if isinstance(action, Wake))
            alone = [step for step in steps if woken[step] == 1 and step not in self.counts]
            if alone:
                tails[event] = min(alone, key=self._turn)
        return tails

    def _turn(self, step: Event) -> tuple[bool, int]:
        """Which of the steps that become ready together goes first: the least."""
        return step in self.last, self.steps[step]

    def program(self, event: Event | None) -> list[int]:
        """The actions that an event triggers, and the step that follows it directly."""
        row: list[int] = []
        tail = None if event is None else self.tails.get(event)
        actions = self.template.programs.get(event, ())
        # Steps come last, and the first of them at the very end: what is made ready last goes first (`lifo`), so a run
        # does what Python would do first.
        wakes = sorted((a for a in actions if isinstance(a, Wake)), key=lambda a: self._turn(a.step), reverse=True)
        for action in [*(a for a in actions if not isinstance(a, Wake)), *wakes]:
            if isinstance(action, Up):
                row += [_UP, action.index, NO_SLOT if action.value is None else self.place(action.value)]
            elif isinstance(action, Move):
                if action.source is not None and self.at(action.merge) != NO_SLOT:
                    row += [_MOVE, self.place(action.source), self.at(action.merge)]
            elif action.step in self.counts:
                row += [_COUNT, self.counts[action.step], self.steps[action.step]]
            elif action.step != tail:
                row += [_READY, self.steps[action.step], 0]
        return [len(row) // 3, *row, -1 if tail is None else self.steps[tail]]

    # -- steps ---------------------------------------------------------------------------------------------

    def write_step(self, event: Event) -> list[int]:
        node_of = self.index.node_of(event)
        program = [self.index.ahead[node_of] if node_of >= 0 else 0, *self.program(event)]
        if event[0] == NODE:
            node = self.graph.nodes[event[1]]
            if node.op in COLLECTS:
                values = [self.place(self.index.value_of(x)) for x in node.inputs]
                index = node.attrs.integer("index")
                return [_COLLECT, *program, event[1], index, len(values) - 1, values[0], values[-1]]
            if node.op in COLLECTED:
                return [_COLLECTED, *program, *self.write_collected(event[1])]
            return [_OP, *program, *self.write_op(event[1])]
        if event[0] == DECIDED:
            pred = Port(event[1], event[2])
            row = [_BRANCH, *program, self.place(self.index.value_of(pred))]
            for side in self.index.branches[pred, event[3]]:
                row += self.program((ALIVE, side))
            return row
        if event[0] == ENTERED:
            return [_ENTER, *program, *self.write_entering(event[1], event[2])]
        if event[0] == AGAIN:
            nexts = [n for n in self.index.nexts[event[1]] if self.graph.nodes[n].types[0] != CTL]
            moved = [(self.value(n), self.at(self.templates.arguments[n])) for n in nexts]
            moved += [(slot, slot) for n in self.index.outers.get(event[1], ()) for slot in [self.at(Port(n))]]
            return [_AGAIN, *program, *pairs(pair for pair in moved if pair[1] != NO_SLOT)]
        assert event[0] == PASSED
        return [_PASS, *program]

    def value(self, number: int) -> int:
        """The place of the first operand of a node."""
        return self.place(self.index.value_of(self.graph.nodes[number].inputs[0]))

    def write_op(self, number: int) -> list[int]:
        node = self.graph.nodes[number]
        inputs = [self.place(self.index.value_of(x)) for x in node.inputs]
        outputs = [self.at(Port(number, k)) for k in range(len(node.types))]
        kernel = -1 if acts_on_world(node.op) else self.kernel(*kernel_of(self.graph, node))
        return [number, kernel, len(inputs), *inputs, len(outputs), *outputs]

    def write_collected(self, number: int) -> list[int]:
        node = self.graph.nodes[number]
        to = [self.at(Port(number, k)) for k in range(len(node.types))]
        cell = self.at(Cell("entry", node.attrs.integer("site")))
        return [cell, node.attrs.integer("index"), self.value(number), to[0], to[1] if len(to) > 1 else NO_SLOT]

    def write_entering(self, number: int, phase: int) -> list[int]:
        graph, nodes, templates = self.graph, self.graph.nodes, self.templates
        site, visit = graph.sites[number - 1], self.index.visits[number, phase]
        callee = self.slots[site.callee, phase]
        arguments: list[tuple[int, int]] = []
        mapped: list[tuple[int, int]] = []
        counted = first = NO_SLOT
        if site.kind == "map":
            counted = self.value(visit.start) if phase == 0 else NO_SLOT
            first = self.at(Port(visit.start, 1))
        for n in visit.arguments:
            if nodes[n].types[0] == CTL or nodes[n].op == "hoist":
                continue
            if site.kind == "map":  # unread arrays, too: their lengths are checked
                mapped.append((self.value(n), callee.get(templates.arguments[n], NO_SLOT)))
            elif templates.arguments.get(n) in callee:
                arguments.append((self.value(n), callee[templates.arguments[n]]))
        hoist_nodes = self.index.hoists.get(number, {}) if phase == 0 else {}
        hoists = [self.value(n) for _, n in sorted(hoist_nodes.items()) if nodes[n].types[0] != CTL]
        if phase == 0:
            for n in self.index.outers.get(number, ()):
                if Port(n) in callee:
                    arguments.append((self.value(n), callee[Port(n)]))
        row = [visit.start, _KINDS[site.kind], number, phase]
        row += [self.order[site.callee, phase], int(site.callee in self.has_path)]
        row += [len(hoists), *hoists, self.at(Cell("entry", number))]
        row += pairs(arguments) + pairs(mapped)
        row += [counted, self.at(Cell("lanes", number)), first]
        row += self.write_results(number, phase)
        row += self.program((DONE, number, phase))
        visits = self.index.visited(number)
        return [*row, len(visits), *visits]

    def write_results(self, site: int, phase: int) -> list[int]:
        """For each result of the entered body: its slot, and the program that its arrival triggers."""
        graph = self.graph
        backs = self.backs.get((ENTERED, site, phase), ())
        taken = {graph.nodes[number].attrs.integer("index"): number for number in backs}
        row = [max(taken, default=-1) + 1]
        for index in range(row[0]):
            if index not in taken:
                row += [0]
                continue
            n = taken[index]
            row += [1, n, int(graph.nodes[n].types[0] == CTL), self.at(Port(n)), *self.program((RESULT, n))]
        return row


def pairs(rows: Iterable[Sequence[int]]) -> list[int]:
    """The number of rows, then their elements."""
    listed = list(rows)
    return [len(listed), *(x for row in listed for x in row)]
