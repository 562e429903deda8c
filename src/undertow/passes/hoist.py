"""Hoist: arguments that every recursive call passes on unchanged are passed once, to the entry, and read from there.

The argument then belongs to the *entry*, the activation that entered a set of mutually recursive graphs from outside
(found by `invariants`). If all entries are given the same constant, that replaces it; if all are given the same value
of the run, main *shares* that value; otherwise it becomes a hoisted parameter. Operators on such values alone follow
them (`code_motion`). Activations, and the values that they compute, stay the same; firings never increase. A graph
whose arguments all change is left as it is. Devices: what is read has none; operators that move keep theirs.

>>> from undertow.ir.text import dump, parse
>>> library, report = hoist(parse('''
... library 1 main=main
... main main(a: f64, b: f64, n: i64) -> (y, z)
...   y: f64 = call a, n callee="f"
...   z: f64 = call b, n callee="f"
... function f(w: f64, n: i64) -> (r)
...   p: bool = less_equal n, 0:i64
...   branch if1 p
...   w.if: f64, f64 = switch p, w
...   n.if: i64, i64 = switch p, n
...   if1.else/m: i64 = subtract n.if#1, 1:i64
...   if1.else/s: f64 = call w.if#1, if1.else/m callee="f"
...   r: f64 = merge w.if#0, if1.else/s
... '''))
>>> print(dump(library), end="")
library 1 main=main
<BLANKLINE>
main main(a: f64, b: f64, n: i64) -> (y, z)
  y: f64 = call n, a callee="f"
  z: f64 = call n, b callee="f"
<BLANKLINE>
function f(n: i64, w: f64) -> (r) group=f hoisted=1
  p: bool         = less_equal n, 0:i64
  branch if1 p
  w.if: f64, f64  = switch p, w
  n.if: i64, i64  = switch p, n
  if1.else/m: i64 = subtract n.if#1, 1:i64
  if1.else/s: f64 = call if1.else/m callee="f"
  r: f64          = merge w.if#0, if1.else/s
>>> print(report)
hoist: 15 nodes -> 15
  hoisted argument     1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import ports_of, reachable
from undertow.passes.array_terms import READS_OF
from undertow.passes.code_motion import move_operators
from undertow.passes.dead import remove_dead
from undertow.passes.invariants import Cycle, Invariants
from undertow.passes.report import Report, size


def hoist(library: Library) -> tuple[Library, Report]:
    """The library with what is invariant in its recursions hoisted, and what was done."""
    before = size(library)
    if any(graph.group or graph.shared for graph in library.functions.values()):
        return library, Report({}, before, before, "hoist")
    made, count = _hoist_arguments(library)
    if count:
        made, dead = remove_dead(made)  # Switches that only led arguments to recursive calls
        made, moved = move_operators(made)
        count += dead + moved
        if moved:
            made, dead = remove_dead(made)
            count += dead
    return made, Report(dict(count.most_common()), before, size(made), "hoist")


# --------------------------------------------------------------------------------------------------------------
# Decisions


@dataclass(slots=True, eq=False)
class _Change:
    """What becomes of the parameters of one graph."""

    group: str = ""
    values: dict[int, Const | int] = field(default_factory=dict)  # a constant, or the index of a shared value
    hoisted: list[int] = field(default_factory=list)  # read from the entry, in order
    kept: list[int] = field(default_factory=list)  # still handed over by calls within the group


def _hoist_arguments(library: Library) -> tuple[Library, Counter[str]]:
    known = Invariants(library)
    changes: dict[str, _Change] = {}
    shared: dict[Port, int] = {}
    count: Counter[str] = Counter()
    for cycle in known.cycles:
        if cycle.classes:
            _decide(known, cycle, changes, shared, count)
    if not changes:
        return library, count
    for name, graph in library.functions.items():
        change = changes.setdefault(name, _Change())
        gone = {*change.values, *change.hoisted}
        change.kept = [index for index in range(len(graph.params)) if index not in gone]
    functions = {
        name: _rebuild(graph, changes, list(shared) if name == library.main else [])
        for name, graph in library.functions.items()
    }
    return Library(functions, library.main), count


def _decide(
    known: Invariants, cycle: Cycle, changes: dict[str, _Change], shared: dict[Port, int], count: Counter[str]
) -> None:
    for name in cycle.graphs:
        changes[name] = _Change(cycle.graphs[0])
    for members in cycle.classes:
        first, index = next(iter(members.items()))
        graph = known.bodies[first].graph
        param = graph.params[index]
        value = known.value(first, Port(param))
        if isinstance(value, Const) and value.type != graph.nodes[param].types[0]:
            value = None  # its type is narrower than the one the graphs were written for
        if value is None and any(_is_changed(known.bodies[name].graph, index) for name, index in members.items()):
            continue  # the entry would hold the array, so that the first change would have to copy it
        if isinstance(value, Port):
            shared.setdefault(value, len(shared))
        kind = {Const: "constant argument", Port: "shared argument"}.get(type(value), "hoisted argument")
        count[kind] += 1
        for name, index in members.items():
            if value is None:
                changes[name].hoisted.append(index)
            else:
                changes[name].values[index] = value if isinstance(value, Const) else shared[value]


def _is_changed(graph: FunctionGraph, index: int) -> bool:
    """Does a function give an array that it takes back as a result, changed on some paths?"""
    param, nodes = graph.params[index], graph.nodes
    type_ = nodes[param].types[0]
    if graph.kind != "function" or not type_.rank:
        return False

    def made_of(port: Port) -> Iterable[Port]:
        node = nodes[port.node]
        if node.op == "call":
            return (x for x in ports_of(node.inputs) if graph.type_of(x) == type_)
        sources = {"switch": node.inputs[1:], "merge": node.inputs, "loop": node.inputs[port.index : port.index + 1]}
        return ports_of(sources.get(node.op, node.inputs[:1] if node.op in READS_OF else ()))

    for result in graph.results:
        reached = reachable([result], made_of) if graph.type_of(result) == type_ else {}
        if Port(param) in reached and any(nodes[port.node].op in (*READS_OF, "loop") for port in reached):
            return True
    return False


# --------------------------------------------------------------------------------------------------------------
# Rebuilding


def _rebuild(graph: FunctionGraph, changes: dict[str, _Change], shared: list[Port]) -> FunctionGraph:
    """A graph with its remaining parameters, whose calls hand over just what the callees still take."""
    own = changes[graph.name]
    copy = Copy(graph)
    start = graph.regions[0].starts[0].node
    first = [graph.params[index] for index in (*own.kept, *own.hoisted)]
    copy.add(start)
    params = [copy.add(param, replace(graph.nodes[param], attrs=Attrs(index=new))) for new, param in enumerate(first)]
    for index, value in own.values.items():
        param = graph.params[index]
        copy.add(param, _stand_in(graph.nodes[param], value, Port(start)))
    done = {start, *graph.params}
    for number, node in enumerate(graph.nodes):
        if number in done:
            continue
        if node.op in ENTERS:
            change = changes[node.attrs.text(ENTERS[node.op])]
            is_entry = change.group != own.group
            chosen = (*change.kept, *(change.hoisted if is_entry else ()))
            node = replace(node, inputs=tuple(node.inputs[index] for index in chosen))
        copy.add(number, node)
    phases = [copy.phase(number) for number in range(len(graph.phases))]
    phases[0] = replace(phases[0], params=tuple(params))
    made = copy.freeze(phases, (copy.ports[port] for port in shared))
    return replace(made, group=own.group if own.hoisted else "", hoisted=len(own.hoisted))


def _stand_in(param: Node, value: Const | int, start: Port) -> Node:
    """What replaces a parameter: a constant, which `simplify` propagates to its users, or a shared value."""
    if isinstance(value, Const):
        return replace(param, op="identity", inputs=(value,), attrs=Attrs(), controls=(start,))
    return replace(param, op="shared", attrs=Attrs(index=value), controls=(start,))
