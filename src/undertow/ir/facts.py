"""Facts about one graph: what the rules of `spec` look up, each derived once.

The derived facts rely on rules, so the rows that ask for them come after the rows that they rely on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from undertow.ir.graph import Const, FunctionGraph, Graph, Library, Node, Operand, Phase, Port, Site, StaticGraph
from undertow.ir.walk import BACK, INWARD, STARTS, body_of, is_inward, node_phases, phase_of, port_regions
from undertow.types import Type


class Form(NamedTuple):
    """What an operator of libraries or static graphs looks like; the catalogue's operators have no row."""

    inputs: int | None = None  # None: any number
    outputs: int | None = None
    integers: tuple[str, ...] = ()  # attributes that it must have
    strings: tuple[str, ...] = ()
    is_phased: bool = False  # may it say that it belongs to a later phase?


LIBRARY_FORMS = {
    "start": Form(0, 1, is_phased=True),
    "param": Form(0, 1, ("index",), is_phased=True),
    "switch": Form(2, 2),
    "merge": Form(2, 1),
    "call": Form(strings=("callee",)),
    "resume": Form(integers=("phase",), is_phased=True),
    "loop": Form(strings=("body",)),
    "map": Form(strings=("body",)),
    "gradient": Form(),
    "shared": Form(0, 1, ("index",)),
    "collect": Form(1, 1, ("index",)),
    "collect_rows": Form(2, 1, ("index",)),
    "collected": Form(2, 1, ("index",)),
    # A call that takes the tangents of the arguments `given`, and gives those of the results `wanted`, besides.
    "tangent": Form(strings=("callee",)),
    "collected_rows": Form(2, 2, ("index",)),
}
STATIC_FORMS = {
    "start": Form(0, 1),
    "input": Form(0, 1, ("index",)),
    "switch": Form(2, 2),
    "merge": Form(None, 1),
    "call_start": Form(0, 2, ("site",), is_phased=True),
    "call": Form(1, 1, ("site", "index"), is_phased=True),
    "hoist": Form(1, 1, ("site", "index")),
    "hoist_read": Form(None, 1),
    "collect": Form(1, 1, ("index",)),
    "collect_rows": Form(2, 1, ("index",)),
    "collected": Form(1, 1, ("site", "index")),
    "collected_rows": Form(1, 2, ("site", "index")),
    "return": Form(1, 1, ("site", "index"), is_phased=True),
    "enter_start": Form(0, 2, ("site",)),
    "enter": Form(1, 1, ("site", "index")),
    "next": Form(1, 1, ("site",)),
    "exit": Form(1, 1, ("site", "index")),
    "outer": Form(1, 1, ("site",)),
    "fan_start": Form(1, 2, ("site",), is_phased=True),
    "fan": Form(1, 1, ("site", "index"), is_phased=True),
    "gather": Form(1, 1, ("site", "index"), is_phased=True),
}
_PRIMITIVE = Form()

# In a library: what their first input goes on with is a call.
LINKED = ("resume", "gradient", "collected", "collected_rows")
SITED = {**STARTS, **INWARD, **BACK}  # operator -> kind of its site
ENTERS = {  # attribute, kind of graph
    "call": ("callee", "function"),
    "loop": ("body", "loop"),
    "map": ("body", "map"),
    "tangent": ("callee", "function"),
}


def is_primitive(op: str) -> bool:
    """Is it an operator of the catalogue, rather than one of the form itself?"""
    return op not in LIBRARY_FORMS and op not in STATIC_FORMS


def ports_of(node: Node) -> Iterator[Port]:
    """What a node waits for."""
    yield from (operand for operand in node.inputs if isinstance(operand, Port))
    yield from node.controls


class Facts:
    """One graph, and what can be derived from it."""

    def __init__(self, graph: Graph, library: Library | None = None) -> None:
        self.graph = graph
        self.library = library
        self.nodes = graph.nodes
        self.regions = graph.regions
        self.is_static = isinstance(graph, StaticGraph)
        self.forms = STATIC_FORMS if self.is_static else LIBRARY_FORMS
        self.sites = graph.sites if isinstance(graph, StaticGraph) else ()
        self._entry_sites: dict[int, frozenset[int]] = {}

    def form(self, node: Node) -> Form:
        return self.forms.get(node.op, _PRIMITIVE)

    def exists(self, operand: Operand) -> bool:
        if isinstance(operand, Const):
            return True
        return 0 <= operand.node < len(self.nodes) and 0 <= operand.index < len(self.nodes[operand.node].types)

    def type(self, operand: Operand) -> Type:
        return self.graph.type_of(operand)

    @cached_property
    def names(self) -> Counter[str]:
        return Counter(node.name for node in self.nodes)

    @cached_property
    def branches(self) -> dict[tuple[Port, int], tuple[int, int]]:
        return self.graph.branches()

    @cached_property
    def sides(self) -> Counter[tuple[Port | None, int | None, bool]]:
        return Counter((r.pred, r.parent, r.side) for r in self.regions if r.kind == "branch")

    @cached_property
    def _port_region(self) -> Callable[[Port], int]:
        return port_regions(self.graph)

    def home(self, port: Port) -> int:
        """The region that a port's tokens live in: that of its node, a branch, or where its tags lead."""
        node = self.nodes[port.node]
        return self.site(node).callee if self.is_static and is_inward(node, port.index) else self._port_region(port)

    def lives(self, operand: Operand, region: int) -> bool:
        return isinstance(operand, Const) or self.home(operand) == region

    def side(self, region: int) -> tuple[int | None, bool] | None:
        """What a branch region is a side of: (parent, which side); None for other regions."""
        found = self.regions[region]
        return (found.parent, found.side) if found.kind == "branch" else None

    # Libraries

    def callee(self, node: Node) -> FunctionGraph | None:
        """The graph that a call, resume, loop, map or tangent enters."""
        assert self.library is not None
        if node.op in LINKED:
            node = self.nodes[self.link(node).node]
        name = node.attrs.get(ENTERS.get(node.op, ("", ""))[0])
        return self.library.functions.get(name) if isinstance(name, str) else None

    def link(self, node: Node) -> Port:
        port = node.inputs[0]
        assert isinstance(port, Port)
        return port

    def visit(self, node: Node) -> Phase:
        """The phase that a call, resume, loop, map or tangent begins."""
        callee = self.callee(node)
        assert callee is not None
        return callee.phases[phase_of(node)]

    def params(self, node: Node) -> list[Type]:
        """What a call, resume, loop, map or tangent hands over: not what its entry was given already."""
        callee, graph = self.callee(node), self.graph
        assert callee is not None and isinstance(graph, FunctionGraph)
        types = [callee.nodes[param].types[0] for param in self.visit(node).params]
        if node.op == "tangent":
            return types + [types[index] for index in node.attrs.integers("given")]
        return types if node.op == "resume" else types[: len(types) - graph.omitted(callee)]

    def hoisted(self, graph: FunctionGraph) -> list[Type]:
        """The types of what an entry is given."""
        params = graph.params[len(graph.params) - graph.hoisted :]
        return [graph.nodes[param].types[0] for param in params]

    def shared(self, node: Node) -> Type | None:
        """The type of the value of the run that a node reads; None if there is none."""
        assert self.library is not None
        main, index = self.library.functions[self.library.main], node.attrs.integer("index")
        return main.type_of(main.shared[index]) if 0 <= index < len(main.shared) else None

    def results(self, node: Node) -> list[Type]:
        """The types that the callee gives; a loop's predicate is its own affair."""
        callee = self.callee(node)
        assert callee is not None
        given = [callee.type_of(port) for port in self.visit(node).results]
        if node.op == "tangent":
            return given + [given[index] for index in node.attrs.integers("wanted")]
        return given[1:] if node.op == "loop" else given

    @cached_property
    def gradients(self) -> Counter[int]:
        """How many gradients each call has."""
        return Counter(self.link(node).node for node in self.nodes if node.op == "gradient")

    def collected(self, node: Node) -> Type | None:
        """The type of what a collect adds to, or collected takes: a value that an entry is given."""
        graph = self.callee(node) if node.op in LINKED else self.graph
        assert isinstance(graph, FunctionGraph)
        found, index = self.hoisted(graph), node.attrs.integer("index")
        return found[index] if 0 <= index < len(found) else None

    @cached_property
    def resumes(self) -> dict[tuple[int, int], list[int]]:
        """The resume nodes of each (call or map, later phase)."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.op == "resume":
                found.setdefault((self.link(node).node, phase_of(node)), []).append(number)
        return found

    # Phases

    @cached_property
    def phases(self) -> list[int]:
        """For each node, the last phase of its frame that it waits for."""
        return node_phases(self.graph)

    def waits_for(self, port: Port) -> int:
        """The last phase, of the frame that a port's tokens arrive in, that they wait for."""
        node = self.nodes[port.node]
        return phase_of(node) if self.is_static and is_inward(node, port.index) else self.phases[port.node]

    def before(self, node: Node) -> int | None:
        """Of a later visit, by resume, call_start or fan_start: the node that makes the visit before it."""
        phase = phase_of(node) - 1
        if node.op == "resume":
            call = self.link(node).node
            return call if phase == 0 else self.resumes.get((call, phase), [None])[0]
        return self.starts.get((node.attrs["site"], phase), [None])[0]

    # Static graphs

    def site(self, node: Node) -> Site:
        return self.sites[node.attrs.integer("site") - 1]

    def visit_key(self, node: Node) -> tuple[object, ...]:
        return node.attrs["site"], phase_of(node)

    @cached_property
    def starts(self) -> dict[tuple[object, ...], list[int]]:
        """The start tokens of each (site, phase)."""
        found: dict[tuple[object, ...], list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.op in STARTS:
                found.setdefault(self.visit_key(node), []).append(number)
        return found

    @cached_property
    def arguments(self) -> Counter[tuple[object, ...]]:
        indexed = (n for n in self.nodes if n.op in SITED and "index" in self.form(n).integers)
        return Counter((n.op, *self.visit_key(n), n.attrs["index"]) for n in indexed)

    @cached_property
    def entered(self) -> Counter[int]:
        return Counter(site.callee for site in self.sites)

    @cached_property
    def hoists(self) -> dict[int, set[int]]:
        """The indices of what each site gives to the entry that it makes."""
        found: dict[int, set[int]] = {}
        for node in self.nodes:
            if node.op == "hoist":
                found.setdefault(node.attrs.integer("site"), set()).add(node.attrs.integer("index"))
        return found

    @cached_property
    def _sites_into(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, site in enumerate(self.sites, 1):
            found.setdefault(site.callee, []).append(number)
        return found

    @cached_property
    def _owner(self) -> list[int]:
        return body_of(self.graph)

    def entry_sites(self, region: int) -> frozenset[int]:
        """The sites that make the entries above a region; 0 stands for main, where there is none."""
        body = self._owner[region]
        if body not in self._entry_sites:
            found: set[int] = set()
            seen, todo = {body}, [body]
            while todo:
                at = todo.pop()
                if at == 0:
                    found.add(0)
                for number in self._sites_into.get(at, ()):
                    above = self._owner[self.sites[number - 1].caller]
                    if number in self.hoists:
                        found.add(number)
                    elif above not in seen:
                        seen.add(above)
                        todo.append(above)
            self._entry_sites[body] = frozenset(found)
        return self._entry_sites[body]

    @cached_property
    def uses(self) -> dict[Port, list[tuple[Node, bool]]]:
        """The consumers of what only some operators may consume, and whether as control."""
        found: dict[Port, list[tuple[Node, bool]]] = {}
        for node in self.nodes:
            for is_control, ports in ((False, node.inputs), (True, node.controls)):
                for port in ports:
                    if isinstance(port, Port) and self.nodes[port.node].op in SITED:
                        found.setdefault(port, []).append((node, is_control))
        return found

    def used(self, number: int, index: int = 0) -> list[tuple[Node, bool]]:
        return self.uses.get(Port(number, index), [])
