"""Sums: a result that is only ever added up, on the way to an entry, is collected there instead.

In a loss at every node of a tree, `own + a + b`, nobody looks at the losses of the parts. So the own ones are
collected, as gradients are, and what was a tree of additions becomes a tree of order tokens, node by node: an addition
joins two, a Merge takes that of the side that was taken, and a call gives one when all below it have collected. Nobody
waits for an own loss any more, so engines may compute those of all nodes together. Sums of floats are then added in
another order.

Only recursions that collect already are changed, those with gradients; and only where arrays lead to what is added.

>>> from undertow.ir.text import dump, parse
>>> library, count = collect_sums(parse('''
... library 1 main=main
... main main(x: f64[2], n: i64) -> (f, d.w)
...   f: f64 = call n, x callee="f.grad"
...   d.f: ctl = resume f phase=1
...   d.w: f64[2] = collected f, x index=0 ^d.f
... function f.grad(n: i64, w: f64[2]) -> (r) group=f.grad hoisted=1
...   own: f64 = sum w axes=[0] keepdims=false
...   p: bool = less_equal n, 0:i64
...   branch if1 p ^start.if
...   own.if: f64, f64 = switch p, own
...   n.if: i64, i64 = switch p, n
...   m: i64 = subtract n.if#1, 1:i64
...   below: f64 = call m callee="f.grad"
...   both: f64 = add own.if#1, below
...   r: f64 = merge own.if#0, both
...   phase 1() -> (d.all)
...   d.own: ctl = collect w index=0 ^start~1
...   start.if: ctl, ctl = switch p, start~1
...   d.below: ctl = resume below phase=1 ^start.if#1
...   d.there: ctl = merge start.if#0, d.below
...   d.all: ctl = identity d.own ^d.there
... '''))
>>> print("\\n".join(line for line in dump(library).split("\\n") if " = " in line and "d." not in line))
  f: ctl      = call n, x, 0.0:f64 callee="f.grad"
  f.sum: f64  = collected f, 0.0:f64 index=1 ^f
  own: f64           = sum w axes=[0] keepdims=false
  p: bool            = less_equal n, 0:i64
  own.if: f64, f64   = switch p, own
  n.if: i64, i64     = switch p, n
  m: i64             = subtract n.if#1, 1:i64
  below: ctl         = call m callee="f.grad"
  own.if_2: ctl      = collect own.if#1 index=1
  both: ctl          = identity own.if_2 ^below
  own.if_3: ctl      = collect own.if#0 index=1 in if1.then
  r: ctl             = merge own.if_3, both
  start.if: ctl, ctl = switch p, start~1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from undertow.ir.draft import Copy, Draft
from undertow.ir.facts import LINKED
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.walk import ENTERS, node_phases, port_regions
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, Type

Result = tuple[str, int]  # a graph, and which of its results


def collect_sums(library: Library) -> tuple[Library, Counter[str]]:
    """The library with what is only added up collected, and how many results that were."""
    known = _Sums(library)
    if not known.classes:
        return library, Counter()
    functions = {name: _rebuild(known, graph) for name, graph in library.functions.items()}
    return Library(functions, library.main), Counter({"collected result": len(known.trees)})


# --------------------------------------------------------------------------------------------------------------
# What is only added up


@dataclass(slots=True, eq=False)
class _Tree:
    """How a result is made of what is added."""

    root: Operand
    type: Type
    inner: set[Port] = field(default_factory=set)  # additions, merges, sums over the lanes of a map
    own: list[Operand] = field(default_factory=list)  # what stands at the ends
    parts: dict[Port, Result] = field(default_factory=dict)  # and what calls and maps give


class _Sums:
    """The results of a library that are only added up, in classes: what is added up together."""

    def __init__(self, library: Library) -> None:
        self.library = library
        collecting = {
            graph.group
            for graph in library.functions.values()
            if graph.group and any(node.op in ("collect", "collect_rows") for node in graph.nodes)
        }
        self.graphs = {name: graph for name, graph in library.functions.items() if graph.group in collecting}
        self.uses = {name: _uses(graph) for name, graph in self.graphs.items()}
        self.trees: dict[Result, _Tree] = {}
        for name, graph in self.graphs.items():
            for index, root in enumerate(graph.results if graph.kind != "loop" else ()):
                tree = self._tree(name, root)
                if tree is not None:
                    self.trees[name, index] = tree
        self._drop_others()
        self.classes = self._classes()

    def target(self, graph: FunctionGraph, node: Node) -> FunctionGraph:
        return self.library.functions[node.attrs.text(ENTERS[node.op])]

    def _tree(self, name: str, root: Port) -> _Tree | None:
        graph, uses = self.graphs[name], self.uses[name]
        type_ = graph.type_of(root)
        if type_.dtype.kind != "float" or not type_.is_static or uses[root] != 1:
            return None
        tree = _Tree(root, type_)
        todo: list[Operand] = [root]
        while todo:
            operand = todo.pop()
            node = graph.nodes[operand.node] if isinstance(operand, Port) and uses[operand] == 1 else None
            if node is None or not isinstance(operand, Port):
                tree.own.append(operand)
            elif node.op == "add" and all(graph.type_of(x) == type_ for x in node.inputs):
                tree.inner.add(operand)
                todo += node.inputs
            elif node.op == "merge":
                if _sides(graph, node) is None:
                    return None
                tree.inner.add(operand)
                todo += node.inputs
            elif node.op == "call" and self._is_inside(graph, node):
                tree.parts[operand] = node.attrs.text("callee"), operand.index
            elif (lanes := self._lanes(name, node)) is not None:
                tree.inner.add(operand)
                tree.parts[lanes] = graph.nodes[lanes.node].attrs.text("body"), lanes.index
            else:
                tree.own.append(operand)
        return tree

    def _is_inside(self, graph: FunctionGraph, node: Node) -> bool:
        return self.target(graph, node).group == graph.group

    def _lanes(self, name: str, node: Node) -> Port | None:
        """What a sum over all lanes of a map takes."""
        graph = self.graphs[name]
        lanes = node.inputs[0] if node.op == "sum" else None
        if not isinstance(lanes, Port) or graph.nodes[lanes.node].op != "map" or self.uses[name][lanes] != 1:
            return None
        is_whole = node.attrs["axes"] == (0,) and not node.attrs["keepdims"]
        return lanes if is_whole and self._is_inside(graph, graph.nodes[lanes.node]) else None

    def _drop_others(self) -> None:
        """Leave what is added up wherever it comes back to a graph of the group."""
        has_changed = True
        while has_changed:
            added = {(name, port) for (name, _), tree in self.trees.items() for port in tree.parts}
            gone = {
                result
                for result, tree in self.trees.items()
                if any(part not in self.trees or self.trees[part].type != tree.type for part in tree.parts.values())
            }
            for name, graph in self.graphs.items():
                for number, node in enumerate(graph.nodes):
                    if node.op in ENTERS and self._is_inside(graph, node):
                        target = self.target(graph, node).name
                        gone |= {
                            (target, index)
                            for index in range(len(node.types))
                            if (target, index) in self.trees and (name, Port(number, index)) not in added
                        }
            self.trees = {result: tree for result, tree in self.trees.items() if result not in gone}
            has_changed = bool(gone)

    def _classes(self) -> dict[Result, int]:
        """A number for each result, equal for those that are added up together: within the group, from zero on."""
        linked: dict[Result, list[Result]] = {result: [] for result in self.trees}
        for result, tree in self.trees.items():
            for part in tree.parts.values():
                linked[result].append(part)
                linked[part].append(result)
        found: dict[Result, int] = {}
        counts: Counter[str] = Counter()
        seen: set[Result] = set()
        for first in linked:
            if first in seen:
                continue
            members, todo = {first}, [first]
            while todo:
                for other in linked[todo.pop()]:
                    if other not in members:
                        members.add(other)
                        todo.append(other)
            seen |= members
            group = self.graphs[first[0]].group
            is_good = len({name for name, _ in members}) == len(members) and self._is_worth_it(members)
            for member in members:
                if is_good:
                    found[member] = counts[group]
                else:
                    self.trees.pop(member, None)
            counts[group] += is_good
        return found

    def _is_worth_it(self, members: set[Result]) -> bool:
        """Does an array lead to something that is added in a recursion?"""
        for result in members:
            graph, tree = self.graphs[result[0]], self.trees[result]
            if not tree.parts:
                continue
            todo = list(tree.own)
            seen: set[int] = set()
            while todo:
                x = todo.pop()
                if not isinstance(x, Port) or x.node in seen:
                    continue
                seen.add(x.node)
                node = graph.nodes[x.node]
                if node.op in CATALOGUE and any(graph.type_of(y).rank for y in node.inputs):
                    return True
                if node.op in CATALOGUE or node.op == "switch":
                    todo += node.inputs
        return False


def _uses(graph: FunctionGraph) -> Counter[Operand]:
    """How often a value is used; links to calls are no uses."""
    found: Counter[Operand] = Counter()
    for node in graph.nodes:
        found.update(node.inputs[1:] if node.op in LINKED else node.inputs)
        found.update(node.controls)
    for phase in graph.phases:
        found.update(phase.results)
    found.update(graph.shared)
    found.update(region.pred for region in graph.regions if region.pred is not None)
    return found


def _sides(graph: FunctionGraph, merge: Node) -> tuple[int, int] | None:
    """The regions that the values of a branch's Merge come from; None where no value tells."""
    homes = port_regions(graph)
    for x in merge.inputs:
        if isinstance(x, Port):
            region = graph.regions[homes(x)]
            if region.pred is not None and region.parent is not None:
                return graph.branches()[region.pred, region.parent]
    return None


# --------------------------------------------------------------------------------------------------------------
# The graphs without them


class _Rebuilt:
    """A graph on its way: order tokens where sums were."""

    def __init__(self, known: _Sums, graph: FunctionGraph) -> None:
        self.known = known
        self.graph = graph
        self.copy = Copy(graph, Draft(graph.kind, graph.regions[0].name))
        self.phases = node_phases(graph)
        self.raw: dict[Port, Port] = {}  # what calls give, as they give it
        self.params: dict[int, int] = {}
        self.trees = {index: tree for (name, index), tree in known.trees.items() if name == graph.name}
        self.inner = {port: tree for tree in self.trees.values() for port in tree.inner}
        self.part_of = {port: result for tree in self.trees.values() for port, result in tree.parts.items()}
        self.types = _class_types(known, graph.group) if graph.name in known.graphs else []

    def run(self) -> FunctionGraph:
        graph, draft = self.graph, self.copy.draft
        new: list[int] = []
        for number, node in enumerate(graph.nodes):
            if self.types and not new and node.op not in ("start", "param"):
                new = self.add_params()
            if node.op in ENTERS:
                self.add_entering(number, node)
            elif node.op in LINKED:
                self.add_linked(number, node)
            elif Port(number) in self.inner:
                self.add_join(number, node)
            else:
                self.copy.add(number, node, phase=self.phases[number])
            if node.op == "param":
                self.params[number] = self.copy.ports[Port(number)].node
        made: list[Phase] = []
        for phase, visit in enumerate(graph.phases):
            results = [
                self.token(port, 0, self.known.classes[graph.name, index])
                if phase == 0 and index in self.trees
                else self.copy.ports[port]
                for index, port in enumerate(visit.results)
            ]
            params = (*(self.params[param] for param in visit.params), *(new if phase == 0 else ()))
            made.append(Phase(params, tuple(results)))
        shared = (self.copy.ports[port] for port in graph.shared)
        return replace(draft.freeze(graph, made, graph.carried, shared), hoisted=graph.hoisted + len(new))

    def add_params(self) -> list[int]:
        """The places at the entry where sums are collected."""
        first = len(self.graph.params)
        return [
            self.copy.draft.add(
                Node("param", (), (type_,), f"sum{k}", attrs=Attrs(index=first + k), span=self.graph.span)
            )
            for k, type_ in enumerate(self.types)
        ]

    def token(self, operand: Operand, region: int, number: int) -> Port:
        """The token that says that all of a value has been collected, or that it is collected now."""
        if isinstance(operand, Port) and (operand in self.inner or operand in self.part_of):
            return self.copy.ports[operand]
        draft = self.copy.draft
        name = self.graph.nodes[operand.node].name if isinstance(operand, Port) else self.graph.regions[region].name
        span = self.graph.nodes[operand.node].span if isinstance(operand, Port) else self.graph.span
        attrs = Attrs(index=self.graph.hoisted + number)
        node = Node("collect", (self.copy.operand(operand),), (CTL,), name, self.copy.place(region), attrs, span=span)
        return Port(draft.add(draft.triggered(node, 0)))

    def add_join(self, number: int, node: Node) -> None:
        tree = self.inner[Port(number)]
        index = next(index for index, other in self.trees.items() if other is tree)
        sort = self.known.classes[self.graph.name, index]
        sides = (_sides(self.graph, node) if node.op == "merge" else None) or (node.region, node.region)
        tokens = [self.token(x, side, sort) for x, side in zip(node.inputs, sides, strict=False)]
        if node.op == "sum":
            self.copy.ports[Port(number)] = tokens[0]
            return
        region = self.copy.place(node.region)
        made = Node("merge", tuple(tokens), (CTL,), node.name, region, span=node.span)
        if node.op == "add":
            made = replace(made, op="identity", inputs=(tokens[0],), controls=(tokens[1],))
        self.copy.ports[Port(number)] = Port(self.copy.draft.add(made))

    def add_entering(self, number: int, node: Node) -> None:
        """A call: tokens come back where sums did; from outside, what was collected is taken at once."""
        target = self.known.target(self.graph, node)
        classes = {
            index: self.known.classes[target.name, index]
            for index in range(len(node.types))
            if (target.name, index) in self.known.classes
        }
        is_entry = target.name in self.known.graphs and target.group != self.graph.group
        sums = _class_types(self.known, target.group) if is_entry else []
        zeros = tuple(Const(np.zeros(type_.shape, type_.dtype.numpy)) for type_ in sums)  # type: ignore[arg-type]
        types = tuple(CTL if index in classes else type_ for index, type_ in enumerate(node.types))
        node = replace(node, inputs=(*node.inputs, *zeros), types=types)
        self.copy.add(number, node, phase=self.phases[number])
        for index in range(len(node.types)):
            self.raw[Port(number, index)] = self.copy.ports[Port(number, index)]
        if not is_entry:
            return
        draft = self.copy.draft
        for index, sort in classes.items():
            call = self.raw[Port(number, index)]
            attrs = Attrs(index=target.hoisted + sort)
            name, region, span = f"{node.name}.sum", draft.nodes[call.node].region, node.span
            made = draft.add(Node("collected", (call, zeros[sort]), (sums[sort],), name, region, attrs, (call,), span))
            self.copy.ports[Port(number, index)] = Port(made)

    def add_linked(self, number: int, node: Node) -> None:
        """A resume and the like: it goes on with the call itself."""
        link, *others = node.inputs
        assert isinstance(link, Port)
        copy = self.copy
        moved = replace(
            node,
            inputs=(self.raw[link], *map(copy.operand, others)),
            controls=tuple(copy.ports[port] for port in node.controls),
            region=copy.place(node.region),
        )
        made = copy.draft.add(copy.draft.triggered(moved, self.phases[number]))
        for index in range(len(node.types)):
            copy.ports[Port(number, index)] = self.raw[Port(number, index)] = Port(made, index)


def _class_types(known: _Sums, group: str) -> list[Type]:
    """The types of what is added up in a group, class by class."""
    found: Mapping[int, Type] = {
        number: known.trees[result].type
        for result, number in known.classes.items()
        if known.graphs[result[0]].group == group
    }
    return [found[number] for number in sorted(found)]


def _rebuild(known: _Sums, graph: FunctionGraph) -> FunctionGraph:
    return _Rebuilt(known, graph).run()
