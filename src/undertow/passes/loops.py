"""Turns loops into calls: a loop is a tail-recursive function, so passes that handle calls need not handle loops.

The function takes what the loop takes and gives the last value of each variable. Where the predicate is true it runs
the body and calls itself with the next values; where it is false the variables are the results. Values and effects
stay the same; each iteration is now an activation, and adds to the depth. Devices: the first call is where the loop is.

>>> from undertow.ir.text import dump, parse
>>> library = parse('''
... library 1 main=main
... main main(n: i64) -> (y#1)
...   y: i64, i64 = loop n, 1:i64 body="twice"
... loop twice(k: i64, x: i64) -> (p, if1.then/m, if1.then/d) carried=2
...   p: bool = greater k, 0:i64
...   branch if1 p
...   k.if: i64, i64 = switch p, k
...   x.if: i64, i64 = switch p, x
...   if1.then/m: i64 = subtract k.if#0, 1:i64
...   if1.then/d: i64 = add x.if#0, x.if#0
... ''')
>>> print(dump(loops_to_calls(library, ["main"])), end="")
library 1 main=main
<BLANKLINE>
main main(n: i64) -> (y#1)
  y: i64, i64 = call n, 1:i64 callee="twice"
<BLANKLINE>
function twice(k: i64, x: i64) -> (k.last, x.last)
  p: bool                  = greater k, 0:i64
  branch if1 p
  k.if: i64, i64           = switch p, k
  x.if: i64, i64           = switch p, x
  if1.then/m: i64          = subtract k.if#0, 1:i64
  if1.then/d: i64          = add x.if#0, x.if#0
  if1.then/again: i64, i64 = call if1.then/m, if1.then/d callee="twice"
  k.last: i64              = merge if1.then/again#0, k.if#1
  x.last: i64              = merge if1.then/again#1, x.if#1
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.names import Names
from undertow.ir.walk import reachable


def loops_to_calls(library: Library, names: Iterable[str]) -> Library:
    """The library with calls for the loops of the named graphs, and for those inside these loops.

    A loop graph becomes a function of the same name. If a loop elsewhere still enters it, both stay, and the function
    is called `name.calls`. Loops in the body of a map belong to the map's graph: name that graph to turn them.
    """
    graphs, chosen = library.functions, set(names)
    turned = _bodies(graphs, chosen)
    kept = _bodies(graphs, [name for name in graphs if name not in turned | chosen], unfollowed=chosen)
    taken = Names(graphs)
    callees: dict[str, str] = {}
    for body in graphs:
        if body in turned:
            callees[body] = taken.fresh(f"{body}.calls") if body in kept else body
    functions: dict[str, FunctionGraph] = {}
    for name, graph in graphs.items():
        if name in kept or name not in turned:
            functions[name] = _call_loops(graph, callees) if name in chosen else graph
        if name in turned:
            functions[callees[name]] = _as_function(_call_loops(graph, callees), callees[name])
    return Library(functions, library.main)


def _bodies(
    graphs: Mapping[str, FunctionGraph], names: Iterable[str], unfollowed: Container[str] = frozenset()
) -> set[str]:
    """The loop graphs that are entered from some graphs, directly or from other loops."""

    def entered(name: str) -> list[str]:
        return [node.attrs.text("body") for node in graphs[name].nodes if node.op == "loop"]

    first = [body for name in names for body in entered(name)]
    return set(reachable(first, lambda name: () if name in unfollowed else entered(name)))


def _call_loops(graph: FunctionGraph, callees: Mapping[str, str]) -> FunctionGraph:
    """A graph with its loops replaced by calls of the functions that they became; nothing else moves."""
    nodes = tuple(_call(node, callees) if node.op == "loop" else node for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _call(loop: Node, callees: Mapping[str, str]) -> Node:
    return replace(loop, op="call", attrs=loop.attrs.without("body") | {"callee": callees[loop.attrs.text("body")]})


def _as_function(loop: FunctionGraph, name: str) -> FunctionGraph:
    """The tail-recursive function that a loop is."""
    assert not loop.group, "a loop with hoisted parameters: loops become calls before `hoist`"
    copy = Copy(loop, Draft("function", name))
    draft = copy.draft
    for number in range(len(loop.nodes)):
        copy.add(number)
    pred, *following = (copy.ports[port] for port in loop.results)
    params = [copy.ports[Port(param)] for param in loop.params]
    then = _true_side(copy, pred)
    switches: dict[Operand, int] = {}
    for number, node in enumerate(draft.nodes):
        if node.op == "switch" and node.region == 0 and node.inputs[0] == pred:
            switches.setdefault(node.inputs[1], number)

    def side(port: Port, index: int) -> Port:
        """A value of the body on one side of the predicate."""
        if port not in switches:
            maker, types = draft.nodes[port.node], (draft.type_of(port),) * 2
            switches[port] = draft.add(Node("switch", (pred, port), types, f"{maker.name}.if", span=maker.span))
        return Port(switches[port], index)

    variables = params[: loop.carried]
    given = (*following, *params[loop.carried :])
    arguments = tuple(port if draft.home(port) == then else side(port, 0) for port in given)
    last = [side(port, 1) for port in variables]
    types = tuple(map(draft.type_of, variables))
    label = f"{draft.regions[then].name}/again"
    call = Node("call", arguments, types, label, then, Attrs(callee=name), span=loop.span)
    again = draft.add(draft.triggered(call, 0))
    results: list[Port] = []
    for index, (port, value) in enumerate(zip(variables, last, strict=True)):
        param = draft.nodes[port.node]
        merge = Node("merge", (Port(again, index), value), param.types, f"{param.name}.last", span=param.span)
        results.append(Port(draft.add(merge)))
    phase = Phase(tuple(port.node for port in params), tuple(results))
    return replace(draft.freeze(loop, [phase], 0), name=name, kind="function")


def _true_side(copy: Copy, pred: Port) -> int:
    """The branch where the loop goes on; a body without variables may have none yet."""
    sides = copy.branches.get((copy.graph.results[0], 0))
    if sides is not None:
        return copy.place(sides[0])
    return copy.draft.branch(pred, 0, ("while.then", "while.else"))[0]
