"""Dependence: which results of a graph depend on which of its parameters, and what a tangent copy has to compute.

A value *depends* on a parameter if a tangent of that could reach it: through floats, and through no operator that is
piecewise constant. What a whole graph does is one relation, the same for every call, found by a fixpoint over the
library. In one copy a port is *active* if it depends on a parameter that is given a tangent, and *needed* if a wanted
result depends on it; tangents are written only where it is both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import entered_by, phase_of
from undertow.ops.gradient import NoGradient, zero_tangent
from undertow.ops.op import CATALOGUE
from undertow.passes.activity import is_float

Slot = tuple[int, int]  # a parameter or a result: (phase, index)
Relation = dict[Slot, int]  # result -> the parameters that it depends on, a bit for each
ASSIGNED: Slot = (-1, 0)  # stands for all variables that are assigned: what flows into them is not followed further
Arguments = list[Operand | None]  # what a node hands over, one for each bit; None in phases that it does not visit


class Key(NamedTuple):
    """A tangent copy: of which graph, with which parameters' tangents given and which results' tangents wanted."""

    name: str
    given: tuple[Slot, ...]
    wanted: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Activity:
    """What a tangent copy computes: the ports whose tangents are needed, and the copies that it enters."""

    ports: frozenset[Port]
    entered: Mapping[int, Key]  # by the call, loop or map


def has_tangent(op: str) -> bool:
    """Can a tangent pass an operator? Also where it says that it cannot, but one may ask: that becomes an error."""
    row = CATALOGUE[op].tangent
    return row is not zero_tangent and not (isinstance(row, NoGradient) and not row.reason)


def slots_of(graph: FunctionGraph) -> list[Slot]:
    """Every parameter, in the order of bits."""
    return [(phase, index) for phase, visit in enumerate(graph.phases) for index in range(len(visit.params))]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def link_of(node: Node, number: int) -> int:
    """The call that a resume goes on with; any other node itself."""
    if node.op != "resume":
        return number
    port = node.inputs[0]
    assert isinstance(port, Port)
    return port.node


class Dependence:
    """The relations of graphs without tangent nodes, each found when it is first asked for."""

    def __init__(self, functions: Mapping[str, FunctionGraph]) -> None:
        self.functions = functions  # may grow
        self._relations: dict[str, Relation] = {}
        self._masks: dict[str, dict[Port, int]] = {}
        self.assigns: dict[str, Node] = {}  # a node for each graph that assigns what depends on a parameter
        nodes = [node for graph in functions.values() for node in graph.nodes]
        self._read = {node.attrs.get("variable") for node in nodes if node.op == "read"}

    def relation(self, name: str) -> Relation:
        """What each result of a graph depends on; of a loop, what each variable does after any number of iterations."""
        if name not in self._relations:
            self._find(name)
        return self._relations[name]

    def masks(self, name: str) -> dict[Port, int]:
        """The parameters that each port of a graph depends on; a port that depends on none is not there."""
        self.relation(name)
        return self._masks[name]

    def _find(self, first: str) -> None:
        found = [first]
        self._relations[first] = {}
        for name in found:  # which grows
            for callee in entered_by(self.functions[name]):
                if callee not in self._relations:
                    self._relations[callee] = {}
                    found.append(callee)
        is_growing = True
        while is_growing:
            is_growing = False
            for name in reversed(found):  # callees stand behind their callers
                graph = self.functions[name]
                masks = self._masks[name] = self._scan(graph)
                results = _results(graph, masks) | {ASSIGNED: self._assigned(graph, masks)}
                relation = _closed(graph, results) if graph.kind == "loop" else results
                if relation != self._relations[name]:
                    self._relations[name] = relation
                    is_growing = True

    def _scan(self, graph: FunctionGraph) -> dict[Port, int]:
        masks: dict[Port, int] = {}
        bit = {slot: 1 << number for number, slot in enumerate(slots_of(graph))}
        handed = handed_over(graph, self.functions)

        def mask(operand: Operand | None) -> int:
            return masks.get(operand, 0) if isinstance(operand, Port) else 0

        for number, node in enumerate(graph.nodes):
            if not any(map(is_float, node.types)):
                continue
            if node.op == "param":
                masks[Port(number)] = bit[phase_of(node), node.attrs.integer("index")]
            elif node.op in ENTERS or node.op == "resume":
                call = link_of(node, number)
                relation = self._relations[graph.nodes[call].attrs.text(ENTERS[graph.nodes[call].op])]
                for index in range(len(node.types)):
                    for at in bits(relation.get((phase_of(node), index), 0)):
                        _join(masks, Port(number, index), mask(handed[call][at]))
            elif node.op in ("switch", "merge") or has_tangent(node.op):
                given = 0
                for operand in node.inputs:
                    given |= mask(operand)
                for index, type in enumerate(node.types):
                    if is_float(type):
                        _join(masks, Port(number, index), given)
        return masks

    def _assigned(self, graph: FunctionGraph, masks: dict[Port, int]) -> int:
        """The parameters that something depends on which is assigned to a variable that is also read."""
        total = 0
        handed = handed_over(graph, self.functions)
        for number, node in enumerate(graph.nodes):
            flowing, source = 0, node
            if node.op == "assign" and node.attrs.get("variable") in self._read:
                flowing = masks.get(node.inputs[0], 0) if isinstance(node.inputs[0], Port) else 0
            elif node.op in ENTERS:
                callee = node.attrs.text(ENTERS[node.op])
                for at in bits(self._relations[callee].get(ASSIGNED, 0)):
                    operand = handed[number][at]
                    flowing |= masks.get(operand, 0) if isinstance(operand, Port) else 0
                source = self.assigns.get(callee, node)
            if flowing:
                self.assigns.setdefault(graph.name, source)
            total |= flowing
        return total

    # -- one copy ------------------------------------------------------------------------------------------

    def activity(self, key: Key) -> Activity:
        """What the copy has to compute."""
        graph = self.functions[key.name]
        masks = self.masks(key.name)
        slots = slots_of(graph)
        given = sum(1 << slots.index(slot) for slot in key.given)
        handed = handed_over(graph, self.functions)
        needed: set[Port] = set()
        wanted: dict[int, set[Slot]] = {}
        todo: list[Operand | None] = [graph.phases[phase].results[index] for phase, index in key.wanted]
        while todo:
            port = todo.pop()
            if not isinstance(port, Port) or port in needed or not masks.get(port, 0) & given:
                continue
            needed.add(port)
            node = graph.nodes[port.node]
            if node.op in ENTERS or node.op == "resume":
                call = link_of(node, port.node)
                slot = phase_of(node), port.index
                wanted.setdefault(call, set()).add(slot)
                todo += [handed[call][at] for at in bits(self._of(graph.nodes[call])[slot])]
            else:
                todo += node.inputs
        active = {port for port, mask in masks.items() if mask & given}
        entered: dict[int, Key] = {}
        for call, results in wanted.items():
            node = graph.nodes[call]
            takes = [operand in active for operand in handed[call]]
            gives = [Port(call, index) in active for index in range(len(node.types))]
            entered[call] = self.key(node.attrs.text(ENTERS[node.op]), results, takes, gives)
        return Activity(frozenset(needed), entered)

    def _of(self, node: Node) -> Relation:
        return self.relation(node.attrs.text(ENTERS[node.op]))

    def key(self, name: str, wanted: set[Slot], takes: Sequence[bool], gives: Sequence[bool] = ()) -> Key:
        """The copy for what is active of what the wanted results depend on.

        `takes` says which arguments are active. `gives` says it of the variables of a loop at its end: the tangent of
        one that begins without may come up on the way.
        """
        graph, relation = self.functions[name], self.relation(name)
        needed = 0
        for slot in wanted:
            needed |= relation[slot]
        slots = slots_of(graph)
        if graph.kind != "loop":
            taken = [slots[at] for at in bits(needed) if takes[at]]
            return Key(name, tuple(taken), tuple(sorted(wanted)))
        carried = [at for at in bits(needed) if at < graph.carried and gives[at]]
        taken = [slots[at] for at in (*carried, *(at for at in bits(needed) if at >= graph.carried and takes[at]))]
        return Key(name, tuple(taken), tuple((0, 1 + at) for at in carried))


def handed_over(graph: FunctionGraph, functions: Mapping[str, FunctionGraph]) -> dict[int, Arguments]:
    """What each call, with its resumes, and each loop and map hands over."""
    handed: dict[int, Arguments] = {}
    for number, node in enumerate(graph.nodes):
        if node.op in ENTERS:
            slots = slots_of(functions[node.attrs.text(ENTERS[node.op])])
            handed[number] = [*node.inputs, *[None] * (len(slots) - len(node.inputs))]
        elif node.op == "resume":
            call = link_of(node, number)
            slots = slots_of(functions[graph.nodes[call].attrs.text(ENTERS[graph.nodes[call].op])])
            first = slots.index((phase_of(node), 0)) if len(node.inputs) > 1 else 0
            handed[call][first : first + len(node.inputs) - 1] = node.inputs[1:]
    return handed


def _join(masks: dict[Port, int], port: Port, mask: int) -> None:
    if mask:
        masks[port] = masks.get(port, 0) | mask


def _results(graph: FunctionGraph, masks: dict[Port, int]) -> Relation:
    return {
        (phase, index): masks.get(port, 0)
        for phase, visit in enumerate(graph.phases)
        for index, port in enumerate(visit.results)
    }


def _closed(graph: FunctionGraph, results: Relation) -> Relation:
    """What the variables of a loop depend on in the end: on their first values too, and through each other."""
    is_variable = [is_float(graph.nodes[param].types[0]) for param in graph.params[: graph.carried]]
    found = {(0, at): (1 << at if is_variable[at] else 0) | results[0, 1 + at] for at in range(graph.carried)}
    found[ASSIGNED] = results[ASSIGNED]
    is_growing = True
    while is_growing:
        is_growing = False
        for slot, mask in found.items():
            for other in bits(mask & ((1 << graph.carried) - 1)):
                mask |= found[0, other]
            if mask != found[slot]:
                found[slot] = mask
                is_growing = True
    return found
