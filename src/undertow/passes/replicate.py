"""Replicas: a function with a list of devices gets a copy for each of them, and a call goes to one by its tag.

`worker:0,worker:1` as the device of nodes is such a list; parts of the function may have a device of their own.
Functions without a device that it calls are copied with it, and so are its loops and maps: a copy and all below it run
where it does. Calls among them stay inside of the copy. A call from outside chooses: `replica` is a number that depends
on the tag of the activation, and on its salt, so that calls of one activation choose independently. Every part of a
placed graph knows the tag, so all choose alike, and a later phase of the activation does, too: gradients take the route
of what they differentiate.

A call that something else refers to, by `gradient` for instance, becomes a call of a function that makes the choice.

>>> from undertow.ir.text import dump, parse
>>> library, count = replicate(parse('''
... library 1 main=main
... main main(n: i64) -> (y)
...   y: i64 = call n callee="f"
... function f(n: i64) -> (s)
...   s: i64 = add n, 1:i64 device="worker:0,worker:1"
... '''))
>>> print(dump(library), end="")
library 1 main=main
<BLANKLINE>
main main(n: i64) -> (y)
  y.replica: i64 = replica count=2 salt=0 ^start
  y.is0: bool    = equal y.replica, 0:i64
  branch y.0 y.is0
  n.if: i64, i64 = switch y.is0, n
  y.0.then/y: i64 = call n.if#0 callee="f.replica0" device="worker:0"
  y.0.else/y: i64 = call n.if#1 callee="f.replica1" device="worker:1"
  y: i64         = merge y.0.then/y, y.0.else/y
<BLANKLINE>
function f.replica0(n: i64) -> (s)
  s: i64 = add n, 1:i64 device="worker:0"
<BLANKLINE>
function f.replica1(n: i64) -> (s)
  s: i64 = add n, 1:i64 device="worker:1"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from undertow.errors import GraphError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import EMPTY, Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.implied import param_node, start_name, start_node
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import ENTERS, LINKED
from undertow.ir.walk import entered_by, link_of, ports_of, reachable
from undertow.types import Type, bool_, i64

_SEPARATOR = ","  # between the devices of a list
_NOWHERE = ("start", "param", "switch", "merge")  # what never has a device


@dataclass(slots=True, eq=False)
class _Family:
    """The functions that are copied for one list of devices."""

    devices: str
    entries: list[str] = field(default_factory=list)  # functions that the program gives this list
    members: dict[str, None] = field(default_factory=dict)  # and all that is copied with them
    copies: dict[str, list[str]] = field(default_factory=dict)  # of each member, by device

    @property
    def each(self) -> list[str]:
        return self.devices.split(_SEPARATOR)


def replicate(library: Library) -> tuple[Library, Counter[str]]:
    """The library with replicas of functions that have a list of devices, and how many functions and calls."""
    families = _find_families(library)
    if not families:
        _refuse_lists(library.functions)
        return library, Counter()
    return _Replicas(library, families).make()


# --------------------------------------------------------------------------------------------------------------
# What is copied


def _devices_of(graph: FunctionGraph) -> str | None:
    """The list of devices of a function, or the device that all of it has; None if some of it has none.

    A function with a list may have parts with a device of their own.
    """
    found = {node.attrs.get("device") for node in graph.nodes if node.op not in _NOWHERE}
    lists = [device for device in found if isinstance(device, str) and _SEPARATOR in device]
    if graph.kind != "function" or None in found or len(lists or found) != 1:
        return None
    return str(lists[0] if lists else found.pop())


def _find_families(library: Library) -> list[_Family]:
    own = {name: _devices_of(graph) for name, graph in library.functions.items()}
    families: dict[str, _Family] = {}
    for name, device in own.items():
        if device is not None and _SEPARATOR in device:
            families.setdefault(device, _Family(device)).entries.append(name)
    for family in families.values():

        def copied(name: str, devices: str = family.devices) -> list[str]:
            return [other for other in entered_by(library.functions[name]) if own[other] in (None, devices)]

        family.members = reachable(family.entries, copied)
    return list(families.values())


def _refuse_lists(functions: Mapping[str, FunctionGraph]) -> None:
    """What is no replica has one device."""
    for graph in functions.values():
        for node in graph.nodes:
            device = node.attrs.get("device", "")
            if isinstance(device, str) and _SEPARATOR in device:
                raise GraphError(
                    f"{node.name} in {graph.name} is on {device!r}, and only a whole function can have several devices",
                    node.span,
                    hint="give the list to the function, as @ut.device([...]) above it, or this part a single device",
                )


# --------------------------------------------------------------------------------------------------------------
# The library


class _Replicas:
    """The library that is made: functions as they were, copies, and functions that choose."""

    def __init__(self, library: Library, families: Sequence[_Family]) -> None:
        self.library = library
        self.names = Names(library.functions, separator="~")
        self.family_of = {name: family for family in families for name in family.entries}
        self.count = Counter({"replicated function": len(self.family_of)})
        self.salt = 0  # of the next choice
        self.made: dict[str, FunctionGraph] = {}
        for family in families:
            for name in family.members:
                family.copies[name] = [self.names.fresh(f"{name}.replica{k}") for k in range(len(family.each))]
        self.families = families

    def make(self) -> tuple[Library, Counter[str]]:
        for name, graph in self.library.functions.items():
            if name not in self.family_of:
                self.add(graph)
            for family in self.families:
                for position, copy in enumerate(family.copies.get(name, ())):
                    self.add(_on_device(graph, copy, position, family))
        kept = reachable([self.library.main], lambda name: entered_by(self.made[name]))
        functions = {name: graph for name, graph in self.made.items() if name in kept}
        _refuse_lists(functions)
        return Library(functions, self.library.main), self.count

    def add(self, graph: FunctionGraph) -> None:
        """Add a graph; its calls of functions with replicas choose one. (Those in a copy name a copy already.)"""
        calls: dict[int, _Family] = {}
        for number, node in enumerate(graph.nodes):
            target = self.family_of.get(str(node.attrs.get(ENTERS.get(node.op, ""))))
            if target is not None:
                calls[number] = target
        linked = {link_of(node) for node in graph.nodes if node.op in LINKED}
        choosers: dict[int, Node] = {}
        for number in calls:
            node = graph.nodes[number]
            if number in linked or node.op != "call":
                chooser = self.chooser(node.attrs.text("callee"))
                choosers[number] = replace(node, attrs=node.attrs | {"callee": chooser.name})
        if not calls:
            self.made[graph.name] = graph
            return
        copy = Copy(graph)
        for number, node in enumerate(graph.nodes):
            if number in calls and number not in choosers:
                self.choose(copy, number, calls[number])
            else:
                copy.add(number, choosers.get(number, node))
        self.made[graph.name] = copy.freeze()

    def chooser(self, name: str) -> FunctionGraph:
        """A function that does no more than call another, which has replicas."""
        callee = self.library.functions[name]
        draft = Draft("function", called := self.names.fresh(f"{name}.replicas"))
        draft.add(start_node(0, start_name(0), callee.span))
        params = []
        for index, number in enumerate(callee.params):
            param = callee.nodes[number]
            params.append(draft.add(param_node(0, index, param.name, param.types[0], param.span)))
        types = tuple(callee.type_of(port) for port in callee.results)
        call = Node("call", tuple(map(Port, params)), types, "call", attrs=Attrs(callee=name), span=callee.span)
        number = draft.add(draft.triggered(call, 0))
        results = tuple(Port(number, index) for index in range(len(types)))
        made = draft.freeze(callee, [Phase(tuple(params), results)], 0)
        self.add(replace(made, name=called))
        return self.made[called]

    def choose(self, copy: Copy, number: int, family: _Family) -> None:
        """Put a choice where a call was: a chain of branches, with a call of one replica in each."""
        node, draft, phase = copy.graph.nodes[number], copy.draft, copy.phases[number]
        copies, short, stem = family.copies[node.attrs.text("callee")], node.short_name, node.name.replace("/", ".")
        region = copy.place(node.region)

        def add(op: str, inputs: tuple[Operand, ...], type_: Type, name: str, at: int, attrs: Attrs = EMPTY) -> Port:
            made = Node(op, inputs, (type_,), in_scope(name, draft.regions, at), at, attrs, span=node.span)
            return Port(draft.add(draft.triggered(made, phase)))

        def call(k: int, here: Mapping[Port, Port], at: int) -> int:
            inputs = tuple(here[x] if isinstance(x, Port) else x for x in operands)
            attrs = node.attrs | {"callee": copies[k], "device": family.each[k]}
            waits = tuple(here[port] for port in controls)
            made = Node("call", inputs, node.types, in_scope(short, draft.regions, at), at, attrs, waits, node.span)
            return draft.add(draft.triggered(made, phase))

        replica = add("replica", (), Type(i64), f"{short}.replica", region, Attrs(count=len(copies), salt=self.salt))
        self.salt += 1
        self.count["choice"] += 1
        operands = tuple(map(copy.operand, node.inputs))
        controls = [port for port in map(copy.port, node.controls) if not draft.is_pivot(port)]
        here = {port: port for port in (replica, *ports_of(operands), *controls)}  # in the branch that it is led into
        calls: list[tuple[int, int]] = []  # with the region around the branch
        for k in range(len(copies) - 1):
            pred = add("equal", (here[replica], Const(np.int64(k))), Type(bool_), f"{short}.is{k}", region)
            yes, no = draft.branch(pred, region, (f"{stem}.{k}.then", f"{stem}.{k}.else"))
            if k == len(copies) - 2:
                del here[replica]
            inside, here = _led_into(draft, here, region, yes, no)
            calls.append((call(k, inside, yes), region))
            region = no
        last = call(len(copies) - 1, here, region)
        for index, type_ in enumerate(node.types):
            result = Port(last, index)
            for other, around in reversed(calls):
                result = add("merge", (Port(other, index), result), type_, short, around)
            copy.ports[Port(number, index)] = result


def _led_into(
    draft: Draft, values: Mapping[Port, Port], around: int, yes: int, no: int
) -> tuple[dict[Port, Port], dict[Port, Port]]:
    """What these values are on both sides of a branch."""
    sides: tuple[dict[Port, Port], dict[Port, Port]] = {}, {}
    for port, value in values.items():
        name = draft.nodes[port.node].short_name
        seen = {around: value}
        draft.bring(seen, yes, name)
        sides[0][port], sides[1][port] = seen[yes], seen[no]
    return sides


def _on_device(graph: FunctionGraph, name: str, position: int, family: _Family) -> FunctionGraph:
    """A copy of a graph on one device. What has a device of its own keeps it."""
    device, nodes = family.each[position], list[Node]()
    for node in graph.nodes:
        attrs = node.attrs
        if node.op not in _NOWHERE and attrs.get("device") in (None, family.devices):
            attrs = attrs | {"device": device}
        if node.op in ENTERS and (callee := attrs.text(ENTERS[node.op])) in family.copies:
            attrs = attrs | {ENTERS[node.op]: family.copies[callee][position]}
        nodes.append(node if attrs is node.attrs else replace(node, attrs=attrs))
    region = replace(graph.regions[0], name=name)
    return replace(graph, nodes=tuple(nodes), regions=(region, *graph.regions[1:]), name=name)
