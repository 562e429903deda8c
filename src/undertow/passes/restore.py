"""Arrays that are changed, handed on and restored are what they were, so what comes after need not wait.

    board[i] = player
    best = max(best, -play(board))      the next iteration gets the board from here, and waits for the call,
    board[i] = 0                        though it is the board from before

A result of a function may be equal to one of its arguments, and a variable of a loop may be the same in every
iteration. That holds if it holds wherever it is true of all calls and iterations further inside: so we assume it of all
candidates, drop those that do not follow (`array_terms`), and start over, until all do. Then whoever reads such a value
reads the one from before. A call that hands it on has a copy of its own; so this is done for small arrays alone, and
larger ones are changed in place. Devices: nothing moves.

>>> from undertow.ir.text import dump, parse
>>> library, count = restore_arrays(parse('''
... library 1 main=main
... main main(x: i64[9], n: i64) -> (r#0)
...   r: i64, i64[9] = call x, n callee="f"
... function f(x: i64[9], n: i64) -> (s, m)
...   c: bool = less n, 1:i64
...   branch if1 c
...   x.if: i64[9], i64[9] = switch c, x
...   n.if: i64, i64 = switch c, n
...   if1.else/old: i64 = index x.if#1, n.if#1 axes=[0]
...   if1.else/y: i64[9] = put x.if#1, 7:i64, n.if#1 axes=[0]
...   if1.else/k: i64 = subtract n.if#1, 1:i64
...   if1.else/r: i64, i64[9] = call if1.else/y, if1.else/k callee="f"
...   if1.else/z: i64[9] = put if1.else/r#1, if1.else/old, n.if#1 axes=[0]
...   if1.else/t: i64, i64[9] = call if1.else/z, if1.else/k callee="f"
...   if1.else/s: i64 = add if1.else/r#0, if1.else/t#0
...   m: i64[9] = merge x.if#0, if1.else/t#1
...   if1.then/first: i64 = index x.if#0, 0:i64 axes=[0]
...   s: i64 = merge if1.then/first, if1.else/s
... '''))
>>> print(dump(library).partition("function ")[2], end="")
f(x: i64[9], n: i64) -> (s)
  c: bool              = less n, 1:i64
  branch if1 c
  x.if: i64[9], i64[9] = switch c, x
  n.if: i64, i64       = switch c, n
  if1.else/y: i64[9]   = put x.if#1, 7:i64, n.if#1 axes=[0]
  if1.else/k: i64      = subtract n.if#1, 1:i64
  if1.else/r: i64      = call if1.else/y, if1.else/k callee="f"
  if1.else/t: i64      = call x.if#1, if1.else/k callee="f"
  if1.else/s: i64      = add if1.else/r, if1.else/t
  if1.then/first: i64  = index x.if#0, 0:i64 axes=[0]
  s: i64               = merge if1.then/first, if1.else/s
>>> count
Counter({'restored array': 5})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from undertow.ir.draft import Copy, way_down
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.walk import bodies_last, callees_first, entered_by, port_regions
from undertow.ops.effects import is_pure
from undertow.passes.array_terms import READS_OF, Known, Term, Terms
from undertow.passes.dead import remove_dead
from undertow.types import Type

_MAKING = frozenset({*READS_OF, "merge", "call", "loop"})
_LARGEST = 2048  # bytes of an array that each call may have a copy of: beyond 3 KB, calls in place are faster
_Fact = tuple[str, int]  # a function and a result of it, or the body of a loop and a variable


def restore_arrays(library: Library) -> tuple[Library, Counter[str]]:
    """The library with restored arrays replaced by what they were, and how many were."""
    count: Counter[str] = Counter()
    if not _changes_in_recursion(library):
        return library, count
    facts = _find_facts(library)
    if not facts.same and not facts.stays:
        return library, count
    functions = {name: _rewrite(facts.analyses[name], facts, count) for name in library.functions}
    if not count:
        return library, count
    return remove_dead(Library(functions, library.main))[0], count


def _changes_in_recursion(library: Library) -> bool:
    graphs = library.functions
    changing = [name for name, graph in graphs.items() if any(node.op in READS_OF for node in graph.nodes)]
    if not changing:
        return False
    for component in callees_first(library):
        is_recursive = any(other in component for name in component for other in entered_by(graphs[name]))
        if is_recursive and not set(component).isdisjoint(changing):
            return True
    return False


# --------------------------------------------------------------------------------------------------------------
# What is equal


@dataclass(slots=True, eq=False)
class _Analysis:
    """A graph with a term for each port."""

    graph: FunctionGraph
    terms: dict[Port, Term] = field(default_factory=dict)
    known: list[Known] = field(default_factory=list)  # by region


@dataclass(slots=True, eq=False)
class _Facts:
    """What is assumed so far, and the graphs analysed under that."""

    same: dict[_Fact, int]  # a result of a function -> the argument that it is equal to
    stays: set[_Fact]  # variables of loops that are the same in all iterations
    analyses: dict[str, _Analysis] = field(default_factory=dict)


def _find_facts(library: Library) -> _Facts:
    """The greatest set of facts each of which follows from the others, for calls and iterations further inside."""
    graphs = library.functions
    same: dict[_Fact, int] = {}
    stays: set[_Fact] = set()
    for graph in (graphs[name] for component in callees_first(library) for name in component):
        if graph.kind == "loop":
            types = [graph.nodes[param].types[0] for param in graph.params[: graph.carried]]
            stays.update((graph.name, index) for index, type_ in enumerate(types) if is_small(type_))
        elif graph.kind == "function":
            for index, port in enumerate(graph.results):
                if is_small(graph.type_of(port)) and (param := _root(graph, port, same)) is not None:
                    same[graph.name, index] = param
    facts = _Facts(same, stays)
    while same or stays:
        facts.analyses = _analyse(library, facts)
        wrong = [fact for fact in (*same, *stays) if not _holds(facts, fact)]
        if not wrong:
            break
        for fact in wrong:
            same.pop(fact, None)
            stays.discard(fact)
    return facts


def is_small(type_: Type) -> bool:
    """Is it an array that each call may have a copy of?"""
    sizes = [size for size in type_.shape if isinstance(size, int)]
    return type_.rank > 0 and type_.is_static and np.prod(sizes, dtype=float) * type_.dtype.numpy.itemsize <= _LARGEST


def _root(graph: FunctionGraph, port: Port, same: Mapping[_Fact, int]) -> int | None:
    """The parameter that an array is made from, if it is only changed on the way. Of calls, we know those in `same`."""
    todo: list[Operand] = [port]
    for operand in todo:  # it grows meanwhile
        if isinstance(operand, Const):
            continue
        node = graph.nodes[operand.node]
        if node.op == "param":
            return graph.params.index(operand.node)
        if node.op == "switch":
            todo.append(node.inputs[1])
        elif node.op in READS_OF:
            todo.append(node.inputs[0])
        elif node.op == "loop":
            todo.append(node.inputs[operand.index])
        elif node.op == "call" and (index := same.get((node.attrs.text("callee"), operand.index))) is not None:
            todo.append(node.inputs[index])
        elif node.op == "merge" and len(todo) < len(graph.nodes):
            todo += node.inputs
    return None


def _holds(facts: _Facts, fact: _Fact) -> bool:
    analysis = facts.analyses[fact[0]]
    graph, terms, index = analysis.graph, analysis.terms, fact[1]
    if graph.kind == "loop":
        return terms[graph.results[1 + index]] == terms[Port(graph.params[index])]
    return terms[graph.results[index]] == terms[Port(graph.params[facts.same[fact]])]


def _analyse(library: Library, facts: _Facts) -> dict[str, _Analysis]:
    """The graphs with the terms of their ports. What is known where a loop is entered is known in its body."""
    graphs, terms = library.functions, Terms()
    times = Counter(name for graph in graphs.values() for name in entered_by(graph))
    given: dict[str, tuple[list[Term], Known]] = {}  # for the bodies of loops and maps
    analyses: dict[str, _Analysis] = {}
    for name in bodies_last(graphs):
        analysis = analyses[name] = _Analysis(graphs[name])
        _Walk(analysis, terms, facts).run(*given.get(name, ([], {})))
        for node in graphs[name].nodes:
            if node.op in ("loop", "map") and times[body := node.attrs.text("body")] == 1:
                inputs = [_term(terms, analysis.terms, operand) for operand in node.inputs]
                given[body] = inputs, analysis.known[node.region]
    return analyses


def _term(terms: Terms, ports: Mapping[Port, Term], operand: Operand) -> Term:
    return terms.constant(operand) if isinstance(operand, Const) else ports[operand]


class _Walk:
    """Finds the terms of one graph."""

    def __init__(self, analysis: _Analysis, terms: Terms, facts: _Facts) -> None:
        self.analysis = analysis
        self.graph = analysis.graph
        self.table = terms
        self.facts = facts
        self.learned = {0}  # regions
        self.home = port_regions(analysis.graph)

    def run(self, arguments: list[Term], known: Known) -> None:
        graph, terms = self.graph, self.analysis.terms
        self.analysis.known = [known] + [{}] * (len(graph.regions) - 1)
        for number, node in enumerate(graph.nodes):
            if node.op == "param":
                terms[Port(number)] = self.parameter(node.attrs.integer("index"), arguments)
                continue
            self.learn(node.region)
            inputs = tuple(_term(self.table, terms, operand) for operand in node.inputs)
            results = self.results(node, inputs)
            for index in range(len(node.types)):
                found = results.get(index)
                if found is None:
                    found = self.table.opaque((graph.name, number, index))
                terms[Port(number, index)] = found
        for region in range(len(graph.regions)):
            self.learn(region)

    def learn(self, region: int) -> Known:
        """What is known in a region, once all predicates around it have terms."""
        for inner in reversed(way_down(self.graph.regions, region, self.learned)):
            row = self.graph.regions[inner]
            assert row.pred is not None and row.parent is not None
            more = self.table.learn(self.analysis.terms[row.pred], row.side)
            self.analysis.known[inner] = {**self.analysis.known[row.parent], **more}
            self.learned.add(inner)
        return self.analysis.known[region]

    def parameter(self, index: int, arguments: list[Term]) -> Term:
        is_same = index >= self.graph.carried or (self.graph.name, index) in self.facts.stays
        if index < len(arguments) and is_same and self.graph.kind in ("loop", "map"):
            return arguments[index]
        return self.table.opaque((self.graph.name, "param", index))

    def results(self, node: Node, inputs: tuple[Term, ...]) -> dict[int, Term]:
        """The terms of what a node computes, as far as something is known of it."""
        op, table = node.op, self.table
        if op == "switch":
            return {0: inputs[1], 1: inputs[1]}
        if op == "identity":
            return {0: inputs[0]}
        if op == "merge":
            return {0: self.merged(node, inputs)}
        if op in READS_OF:
            x, value, *places = inputs
            place = (READS_OF[op], node.attrs, *places)
            return {0: table.write(x, place, value, self.analysis.known[node.region])}
        if op in READS_OF.values():
            return {0: table.read(inputs[0], (op, node.attrs, *inputs[1:]))}
        if op == "loop":
            body = node.attrs.text("body")
            return {index: inputs[index] for index in range(len(node.types)) if (body, index) in self.facts.stays}
        if op == "call":
            same = ((k, self.facts.same.get((node.attrs.text("callee"), k))) for k in range(len(node.types)))
            return {index: inputs[param] for index, param in same if param is not None}
        if is_pure(op) and len(node.types) == 1:
            return {0: table.operator(op, node.attrs, node.types[0], inputs)}
        return {}

    def merged(self, node: Node, inputs: tuple[Term, ...]) -> Term:
        """One of two equal values; otherwise a choice by the predicate of the branch."""
        homes = [self.home(operand) for operand in node.inputs if isinstance(operand, Port)]
        sides = [self.learn(region).get(term, term) for region, term in zip(homes, inputs, strict=True)]
        if sides[0] == sides[1]:
            return sides[0]
        pred = self.graph.regions[homes[0]].pred
        assert pred is not None
        return self.table.operator("merge", node.attrs, node.types[0], (self.analysis.terms[pred], *sides))


# --------------------------------------------------------------------------------------------------------------
# Writing


def _rewrite(analysis: _Analysis, facts: _Facts, count: Counter[str]) -> FunctionGraph:
    """The graph with arrays replaced by earlier ones of the same term, where a call or loop was between them."""
    graph, terms = analysis.graph, analysis.terms
    copy, home = Copy(graph), port_regions(graph)
    first: dict[Term, dict[int, Port]] = {}  # small arrays, by region: where they are already
    order = _order(facts, graph.name, len(graph.params))
    sources = (
        [graph.regions[0].starts[0].node, *(graph.params[index] for index in order)] if graph.kind == "loop" else []
    )
    for number in (*sources, *(number for number in range(len(graph.nodes)) if number not in sources)):
        node = graph.nodes[number]
        ports = [Port(number, index) for index in range(len(node.types))]
        small = [is_small(graph.type_of(port)) for port in ports]
        is_made = node.op in _MAKING
        before = [
            known and _is_around(copy, first.get(terms[p]), home(p)) for p, known in zip(ports, small, strict=True)
        ]
        if node.op == "loop":
            _add_loop(copy, facts, number)
        elif number in sources and node.op == "param":
            copy.add(number, replace(node, attrs=Attrs(index=order.index(node.attrs.integer("index")))))
        elif node.op == "call" or not (is_made and all(before)):
            copy.add(number)
        for port, is_known, is_array in zip(ports, before, small, strict=True):
            region = copy.place(home(port))
            if is_made and is_known:
                copy.ports[port] = copy.draft.bring(first[terms[port]], region, node.short_name)
                count["restored array"] += 1
            elif is_array:
                first.setdefault(terms[port], {}).setdefault(region, copy.ports[port])
    phases = [copy.phase(number) for number in range(len(graph.phases))]
    carried = sum((graph.name, index) not in facts.stays for index in range(graph.carried))
    if graph.kind == "loop":
        pred, *following = phases[0].results
        kept = [port for index, port in enumerate(following) if (graph.name, index) not in facts.stays]
        phases = [Phase(tuple(phases[0].params[index] for index in order), (pred, *kept))]
    return copy.draft.freeze(graph, phases, carried, map(copy.port, graph.shared))


def _order(facts: _Facts, body: str, count: int) -> list[int]:
    """The parameters of a body, those last that are no variables any more."""
    return sorted(range(count), key=lambda index: (body, index) in facts.stays)


def _add_loop(copy: Copy, facts: _Facts, number: int) -> None:
    """A loop with what stays the same in it as a value from outside."""
    node = copy.graph.nodes[number]
    body, inputs = node.attrs.text("body"), [copy.operand(operand) for operand in node.inputs]
    kept = [index for index in range(len(node.types)) if (body, index) not in facts.stays]
    moved = tuple(inputs[index] for index in _order(facts, body, len(inputs)))
    copy.add_moved(number, replace(node, types=tuple(node.types[index] for index in kept)), moved, kept)


def _is_around(copy: Copy, seen: Mapping[int, Port] | None, region: int) -> bool:
    """Is a value already in a region, or one around it?"""
    at: int | None = copy.place(region)
    while seen is not None and at is not None and at not in seen:
        at = copy.draft.regions[at].parent
    return seen is not None and at is not None
