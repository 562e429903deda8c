"""A function that uses a parameter in several branches, one after the other, changed to use it in a single one.

That one is taken if any of the others is, and hands the value back to where they are; if it is not taken, nobody looks
at what it hands back. So an argument that only these branches need can be computed in it, by need, and once.

>>> from undertow.ir.text import dump, parse
>>> graph = parse('''
... library 1 main=f
... main f(c: bool, d: bool, a: i64) -> (y)
...   branch if1 c
...   branch if2 d
...   a.if: i64, i64 = switch c, a
...   x: i64 = merge a.if#0, 0:i64
...   x.if: i64, i64 = switch d, x
...   a.if_2: i64, i64 = switch d, a
...   if2.then/z: i64 = add x.if#0, a.if_2#0
...   y: i64 = merge if2.then/z, x.if#1
... ''').functions["f"]
>>> from undertow.ir.graph import Library, Port
>>> changed = funneled(graph, {2: [[(Port(1), True)], [(Port(2), True)]]})
>>> print(dump(Library({"f": changed}, "f")), end="")
library 1 main=f
<BLANKLINE>
main f(c: bool, d: bool, a: i64) -> (y)
  branch if1#3 c
  branch if2 d
  a.needed: bool       = logical_or c, d
  branch a.needed#1 a.needed ^start.if
  a.if: i64, i64       = switch a.needed, a
  start.if: ctl, ctl   = switch a.needed, start
  a.needed.else/a: i64 = identity 0:i64 ^start.if#1
  a_2: i64             = merge a.if#0, a.needed.else/a
  a.if_2: i64, i64     = switch c, a_2
  x: i64               = merge a.if_2#0, 0:i64
  x.if: i64, i64       = switch d, x
  a.if_2_2: i64, i64   = switch d, a_2
  if2.then/z: i64      = add x.if#0, a.if_2_2#0
  y: i64               = merge if2.then/z, x.if#1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from undertow.ir.draft import Copy
from undertow.ir.graph import Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ops.cones import live_nodes
from undertow.types import CTL, Type, bool_

# How to get into a branch: predicates that the body itself computes, and the values that they must have.
Way = Sequence[tuple[Port, bool]]


def funneled(graph: FunctionGraph, users: Mapping[int, Sequence[Way]]) -> FunctionGraph | None:
    """The function with each of these parameters used in one branch; None if which are taken depends on a parameter."""
    before = live_nodes(graph, {pred.node for ways in users.values() for way in ways for pred, _ in way})
    params = {graph.params[index] for index in users}
    if not before.isdisjoint(params) or any(graph.nodes[param].types[0] == CTL for param in params):
        return None
    copy = Copy(graph)
    first = [graph.regions[0].starts[0].node, *graph.params]
    for number in first:
        copy.add(number)
    kept = tuple(copy.port(Port(param)).node for param in graph.params)
    for number in sorted(before.difference(first)):
        copy.add(number)
    for index, ways in users.items():
        _funnel(copy, graph.params[index], ways)
    for number in range(len(graph.nodes)):
        if number not in before and number not in first:
            copy.add(number)
    return copy.freeze([Phase(kept, tuple(map(copy.port, graph.results)))])


def _funnel(copy: Copy, param: int, ways: Sequence[Way]) -> None:
    draft, node = copy.draft, copy.graph.nodes[param]
    type_, span = node.types[0], node.span

    def add(op: str, inputs: tuple[Operand, ...], types: tuple[Type, ...], name: str, region: int = 0) -> Port:
        return Port(draft.add(draft.triggered(Node(op, inputs, types, name, region, span=span), 0)))

    def joined(op: str, ports: Sequence[Port], name: str) -> Port:
        found = ports[0]
        for port in ports[1:]:
            found = add(op, (found, port), (Type(bool_),), name)
        return found

    def taken(pred: Port, side: bool) -> Port:
        return copy.ports[pred] if side else add("logical_not", (copy.ports[pred],), (Type(bool_),), "no")

    each = [joined("logical_and", [taken(*step) for step in way], "both") for way in ways]
    needed = joined("logical_or", each, f"{node.name}.needed")
    then, other = draft.branch(needed, 0, (f"{node.name}.needed.then", f"{node.name}.needed.else"))
    value = copy.ports[Port(param)]
    there = add("switch", (needed, value), (type_, type_), f"{node.name}.if")
    # What is never looked at: dimensions known only at run time are 0.
    shape = [d if isinstance(d, int) else 0 for d in type_.shape]
    nothing = Const(np.zeros(shape, type_.dtype.numpy))
    elsewhere = add("identity", (nothing,), (nothing.type,), f"{node.name}.needed.else/{node.name}", other)
    assert draft.home(there) == then
    copy.ports[Port(param)] = add("merge", (there, elsewhere), (type_,), node.name)
