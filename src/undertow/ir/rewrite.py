"""The rewrite engine: a local pass is a table of rows (name, pattern, result), and this runs it over a graph.

Nodes are visited once, in topological order, with their operands already rewritten, so one visit is enough. Every table
also gets: common subexpression elimination; inlining of branches whose predicate is known; joining of branches on one
predicate. A rule never changes a type, and never reaches across a branch: the engine checks both. Applied rules are
counted, and their number is bounded by the size of the graph. The engine itself knows no operators but Switch, Merge
and identity.

>>> from undertow.ir.graph import Library
>>> from undertow.ir.pattern import form
>>> from undertow.ir.text import dump, parse
>>> X = Var("x")
>>> TABLE = Table("signs", [("double negation", form("negative", form("negative", X)), X)])
>>> library = parse('''
... library 1 main=main
... main main(x: f32) -> (b)
...   a: f32 = negative x
...   b: f32 = negative a
... ''')
>>> same = Operators(is_pure=lambda op: True, types=lambda op, types, attrs: (types[0],))
>>> main, counts = rewrite(library.functions["main"], TABLE, same)
>>> print(dump(Library({"main": main})), end="")
library 1 main=main
<BLANKLINE>
main main(x: f32) -> (x)
  a: f32 = negative x
>>> counts
Counter({'double negation': 1})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from undertow.errors import UndertowError
from undertow.ir.budget import paced
from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, Const, FunctionGraph, Node, Operand, Port
from undertow.ir.pattern import Form, Known, Match, Output, Table, Var, operand_key
from undertow.ir.structure import ENTERING, SOURCES, is_primitive
from undertow.ir.walk import port_regions, ports_of
from undertow.types import Type


@dataclass(frozen=True, slots=True)
class Operators:
    """What the engine must know of operators."""

    is_pure: Callable[[str], bool]  # equal operands give equal results, and it has no effects
    types: Callable[[str, Sequence[Type], Attrs], tuple[Type, ...]]  # of the outputs; raises an UndertowError


def rewrite(
    graph: FunctionGraph, table: Table, operators: Operators, keeps_order: bool = False
) -> tuple[FunctionGraph, Counter[str]]:
    """The graph with the rules of a table applied wherever they match, and how often each did.

    A data edge also orders: a value comes after what it was computed from. If that orders state operators
    (`keeps_order`), a rule must not make a result independent of a value: x - x does not become 0.
    """
    if _is_settled(graph, table, operators):
        return graph, Counter()
    engine = _Engine(graph, table, operators, keeps_order)
    return engine.run(), +engine.count


class _Settled:
    """A graph as rows are matched against it, before anything has changed."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.nodes = graph.nodes
        self.type_of = graph.type_of
        self.is_pivot = frozenset(graph.regions[0].starts).__contains__


def _is_settled(graph: FunctionGraph, table: Table, operators: Operators) -> bool:
    """Does no rule apply? Only graphs without branches are looked at: of long ones, most are such.

    As long as no rule has applied to the nodes before, the operands of a node are those of the old graph.
    """
    if len(graph.regions) > 1:
        return False
    view, seen, purity = _Settled(graph), set[object](), dict[str, bool]()
    for node in paced(graph.nodes):
        if node.op in SOURCES:
            continue
        for _, pattern, result in table.likely(view, node):
            match = Match(view, node)
            if match.fits_inputs(pattern, node) and not (callable(result) and result(match) is None):
                return False
        is_pure = purity.get(node.op)
        if is_pure is None:
            is_pure = purity[node.op] = operators.is_pure(node.op)
        if is_pure:
            count = len(seen)
            seen.add(_node_key(node))
            if len(seen) == count:  # perhaps the same expression
                return False
    return True


class _Engine(Copy):
    """One rewrite of one graph.

    The main invariant: the new operand of an old port has the same type, and lives in the new place of the old port's
    region, or is a constant. Constants are gated again, by an identity node, only where a token is needed.
    The place of a region that never runs is -1.
    """

    def __init__(self, graph: FunctionGraph, table: Table, operators: Operators, keeps_order: bool) -> None:
        super().__init__(graph)
        self.table = table
        self.operators = operators
        self.keeps_order = keeps_order
        self.count: Counter[str] = Counter()
        self.left = 64 + 8 * len(graph.nodes)  # rules that may still be applied
        self.values: dict[Port, Operand] = {}  # old port -> new operand
        self.taken: dict[int, int] = {}  # old branch whose predicate is known, either side -> which side runs
        self.known: dict[object, int] = {}  # pure nodes by operator, operands and attributes
        self.gates: dict[Port, Port] = {}  # old port that is now a constant -> new token of it
        self.triggers: dict[int, Port] = {}  # old node that is now constants -> a new port in its region
        self.switched: dict[int, Port] = {}  # new region without a pivot -> a constant led there by a Switch
        self.reasons: dict[int, str] = {}  # old node that is now constants -> the rule that made it so
        self.home = port_regions(graph)
        # Branches from which a Merge takes a value of a narrower type: inlining one would change the type.
        self.narrow = {
            self.home(port)
            for node in graph.nodes
            if node.op == "merge"
            for port in node.inputs
            if isinstance(port, Port) and graph.type_of(port) != node.types[0]
        }

    def run(self) -> FunctionGraph:
        for number, node in enumerate(self.graph.nodes):
            region = self.place(node.region)
            if region < 0:
                self.count["never runs"] += 1
                continue
            if node.op in SOURCES:
                self.keep(number, self.draft.add(node))
            elif node.op == "switch":
                self.visit_switch(number, node, region)
            elif node.op == "merge":
                self.visit_merge(number, node, region)
            else:
                inputs = tuple(map(self.operand, node.inputs))
                controls = self.controls(node, region) if node.controls else ()
                # Not `replace`, which takes twice as long.
                new = Node(node.op, inputs, node.types, node.name, region, node.attrs, controls, node.span)
                self.normalize(number, new)
        return self.freeze()

    # -- from old to new -----------------------------------------------------------------------------------

    def open(self, number: int) -> None:
        """Keep a branch, join it with one on the same predicate, or inline it into its enclosing region."""
        region = self.graph.regions[number]
        assert region.pred is not None and region.parent is not None
        sides = self.branches[region.pred, region.parent]
        parent = self.places[region.parent]
        if parent < 0:
            self.places.update(dict.fromkeys(sides, -1))
            return
        value = self.values[region.pred]
        if isinstance(value, Const):
            taken = 0 if value.value else 1
            is_loop = self.graph.kind == "loop" and region.parent == 0 and region.pred == self.graph.results[0]
            if not is_loop and sides[taken] not in self.narrow:
                self.count["known branch"] += 1
                self.taken.update(dict.fromkeys(sides, taken))
                self.places.update({sides[taken]: parent, sides[1 - taken]: -1})
                return
        pred = self.port(region.pred)
        if (pred, parent) in self.draft.pairs:
            self.count["same branch"] += 1
        else:
            names = self.graph.regions[sides[0]].name, self.graph.regions[sides[1]].name
            self.draft.branch(pred, parent, names)
        self.places.update(zip(sides, self.draft.pairs[pred, parent], strict=True))

    def operand(self, operand: Operand) -> Operand:
        return operand if isinstance(operand, Const) else self.values[operand]

    def controls(self, old: Node, region: int) -> tuple[Port, ...]:
        return tuple(dict.fromkeys(self.control(port, region) for port in old.controls))

    def control(self, old: Port, region: int) -> Port:
        """A control edge. One from a constant only means that the region runs."""
        value = self.values[old]
        return value if isinstance(value, Port) else self.draft.pivot(region, self.phases[old.node]) or self.port(old)

    def port(self, port: Port) -> Port:
        """The new port of an old one: a constant is gated, with no more firings than the old node had."""
        value = self.values[port]
        if isinstance(value, Port):
            return value
        if port not in self.gates:
            self.gates[port] = self.gate(port, value)
        return self.gates[port]

    def gate(self, old: Port, value: Const) -> Port:
        """A token for a constant: triggered by the pivot or another port of its region, else by its own Switch."""
        node, region = self.graph.nodes[old.node], self.place(self.home(old))
        triggers = (
            self.draft.pivot(region, self.phases[old.node]),
            self.draft.pivot(region),
            self.triggers.get(old.node),
            self.switched.get(region),
        )
        trigger = next((port for port in triggers if port is not None), None)
        made = Node("identity", (value,), (value.type,), node.name, region, span=node.span)
        side = 0
        if trigger is not None:
            made = replace(made, controls=(trigger,))
        else:
            branch = self.draft.regions[region]
            assert branch.pred is not None and branch.parent is not None, "a body without a start"
            inputs, types = (branch.pred, value), (value.type, value.type)
            made, side = replace(made, op="switch", inputs=inputs, types=types, region=branch.parent), 1 - branch.side
        if made.op == node.op and old.node in self.reasons:
            self.count[self.reasons.pop(old.node)] -= 1  # the rule has removed nothing
        port = Port(self.make(made), side)
        if made.op == "switch":
            self.switched[region] = port
        return port

    def find_trigger(self, number: int, pred: Port | None) -> Port | None:
        """A port in the region of an old node that has become constants."""
        node, region = self.graph.nodes[number], self.place(self.graph.nodes[number].region)
        if node.op == "switch":
            return None
        for port in (*node.inputs, *node.controls):
            if isinstance(port, Port):
                value = self.values.get(port)
                found = value if isinstance(value, Port) else self.triggers.get(port.node)
                if found is not None and self.draft.home(found) == region:
                    return found
        return pred

    def keep(self, number: int, new: int) -> None:
        for index in range(len(self.graph.nodes[number].types)):
            self.values[Port(number, index)] = Port(new, index)

    # -- nodes ---------------------------------------------------------------------------------------------

    def visit_switch(self, number: int, node: Node, region: int) -> None:
        pred, value = node.inputs
        assert isinstance(pred, Port)
        then = self.branches[pred, node.region][0]
        place = self.place(then)
        if then in self.taken:
            self.values[Port(number, self.taken[then])] = self.operand(value)
            return
        new = self.draft.regions[place].pred
        assert new is not None
        controls = self.controls(node, region)
        self.normalize(number, replace(node, inputs=(new, self.operand(value)), controls=controls, region=region))

    def visit_merge(self, number: int, node: Node, region: int) -> None:
        then = self.home(ports_of(node.inputs)[0])
        place = self.place(then)
        if then in self.taken:
            self.values[Port(number)] = self.operand(node.inputs[self.taken[then]])
            return
        inputs = tuple(map(self.operand, node.inputs))
        self.normalize(number, replace(node, inputs=inputs, region=region), self.draft.regions[place].pred)

    def normalize(self, number: int, node: Node, pred: Port | None = None) -> None:
        """Apply rules to a node until none matches, then keep what it has become."""
        first = pred
        while self.left > 0:
            found = self.apply(node, pred)
            if found is None:
                break
            self.left -= 1
            name, became = found
            self.count[name] += 1
            if isinstance(became, Node):
                node, pred = became, None
                continue
            for index, operand in enumerate(became):
                self.values[Port(number, index)] = operand
            if all(isinstance(operand, Const) for operand in became):
                self.reasons[number] = name
                trigger = self.find_trigger(number, first)
                if trigger is not None:
                    self.triggers[number] = trigger
            return
        above = self.above(node)
        if above is not None:
            self.count["same expression"] += 1
            self.values[Port(number)] = above
            return
        before = len(self.draft.nodes)
        new = self.make(self.triggered(number, node))
        if new < before and self.draft.nodes[new].op == node.op:
            self.count["same expression"] += 1
        self.keep(number, new)

    def triggered(self, number: int, node: Node) -> Node:
        """The node with ports in place of constants where it needs them: in a Merge, or if nothing else triggers it."""
        old = self.graph.nodes[number]
        if node.op == "merge":
            return replace(node, inputs=tuple(self.port(port) for port in old.inputs if isinstance(port, Port)))
        phase = self.phases[number]
        is_triggered = bool(node.controls) or any(isinstance(operand, Port) for operand in node.inputs)
        if is_triggered or node.op in ENTERING or self.draft.pivot(node.region, phase) is not None:
            return self.draft.triggered(node, phase)
        # A gated operand costs no more than before; a new pivot might. (Calls, loops and maps need one anyway.)
        index, port = next((index, port) for index, port in enumerate(old.inputs) if isinstance(port, Port))
        return replace(node, inputs=(*node.inputs[:index], self.port(port), *node.inputs[index + 1 :]))

    def make(self, node: Node) -> int:
        """Add a node, unless there is an equal one."""
        if not (node.op in ("switch", "merge") or self.operators.is_pure(node.op)):
            return self.draft.add(node)
        key = _node_key(node)
        number = self.find(node, key)
        if number is None:
            number = self.known[key] = self.draft.add(node)
        return number

    def find(self, node: Node, key: object = None) -> int | None:
        """The number of an equal node, if there is one."""
        number = self.known.get(key or _node_key(node))
        return number if number is not None and _is_equal(self.draft.nodes[number], node) else None

    def above(self, node: Node) -> Port | None:
        """The same expression in the enclosing region, if a Switch already leads its value here."""
        region = self.draft.regions[node.region]
        if region.kind != "branch" or node.controls or not (is_primitive(node.op) and self.operators.is_pure(node.op)):
            return None
        assert region.pred is not None and region.parent is not None
        inputs: list[Operand] = []
        for operand in node.inputs:
            if isinstance(operand, Port):
                source = self.draft.nodes[operand.node]
                if source.op != "switch":
                    return None
                operand = source.inputs[1]
            inputs.append(operand)
        found = self.find(replace(node, inputs=tuple(inputs), region=region.parent))
        if found is None or len(node.types) != 1:
            return None
        value = (region.pred, Port(found)), node.types * 2
        switch = self.find(Node("switch", *value, "", region.parent))
        return None if switch is None else Port(switch, 1 - region.side)

    # -- rules ---------------------------------------------------------------------------------------------

    def apply(self, node: Node, pred: Port | None) -> tuple[str, Node | tuple[Operand, ...]] | None:
        """The first rule that matches, and what the node becomes: another node, or operands for its outputs."""
        if node.controls and any(not self.draft.is_pivot(control) for control in node.controls):
            return None
        for name, pattern, result in self.table.likely(self.draft, node):
            match = Match(self.draft, node, pred)
            if not match.fits_inputs(pattern, node):
                continue
            outputs = result(match) if callable(result) else result
            if outputs is None:
                continue
            became = self.become(outputs, match)
            if became is not None and not (self.keeps_order and _is_freed(match, became)):
                return name, became
        return None

    def become(self, outputs: Output | tuple[Output, ...], match: Match) -> Node | tuple[Operand, ...] | None:
        """The node or operands of a rule's result; None if it would change a type or reach across a branch."""
        node = match.node
        if isinstance(outputs, Form):
            made = self.build(outputs, match)
            return made if made is not None and made.types == node.types else None
        given = outputs if isinstance(outputs, tuple) and not isinstance(outputs, Port) else (outputs,)
        operands: list[Operand] = []
        homes = self.draft.pairs[node.inputs[0], node.region] if node.op == "switch" else (node.region,) * len(given)
        for output, type_, home in zip(given, node.types, homes, strict=True):
            operand = self.resolve(output, match)
            if operand is None or self.draft.type_of(operand) != type_:
                return None
            if isinstance(operand, Port) and self.draft.home(operand) != home:
                return None
            operands.append(operand)
        return tuple(operands)

    def resolve(self, output: Output, match: Match) -> Operand | None:
        """The operand for a part of a result; the node of a form is added. None if its types do not fit."""
        if isinstance(output, Form):
            made = self.build(output, match)
            return None if made is None else Port(self.make(made), output.index)
        return match[output.name] if isinstance(output, (Var, Known)) else output

    def build(self, form: Form, match: Match) -> Node | None:
        """The node of a form; the nodes of the forms inside it are added. None if their types do not fit."""
        node = match.node
        inputs: list[Operand] = []
        for part in form.inputs or ():
            operand = self.resolve(part, match)
            if operand is None:
                return None
            inputs.append(operand)
        ports = ports_of(inputs)
        if not ports or any(self.draft.home(port) != node.region for port in ports):
            return None
        attrs = form.attrs
        if "device" in node.attrs:
            attrs = Attrs(**attrs, device=node.attrs["device"])
        try:
            types = self.operators.types(form.op, [self.draft.type_of(operand) for operand in inputs], attrs)
        except UndertowError:
            return None
        return Node(form.op, tuple(inputs), tuple(types), node.name, node.region, attrs, span=node.span)


def _is_freed(match: Match, became: Node | tuple[Operand, ...]) -> bool:
    """Is the result independent of a value that the node depends on?"""
    before = {operand for operand in match.operands.values() if isinstance(operand, Port)}
    if match.node.op == "merge" and match.pred is not None:
        before.add(match.pred)
    return not before <= set(became.inputs if isinstance(became, Node) else became)


def _node_key(node: Node) -> object:
    return node.op, tuple(map(operand_key, node.inputs)), node.attrs, node.controls, node.region


def _is_equal(a: Node, b: Node) -> bool:
    return a.types == b.types and a.attrs == b.attrs
