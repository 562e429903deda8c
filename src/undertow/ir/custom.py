"""The user's own derivatives in a library: nodes that only capture and `extend` know.

A function with its own derivative is a graph that calls the function itself, and the user's rule beside it, and joins
both in a `custom` node, which gives what the function gives. `extend` takes the rule instead where a derivative goes
through, and removes it elsewhere.

primal x         an argument of a rule: x, but no derivative goes back through it
direction x      in a rule for forward mode: the tangent of x
cotangent y      in a rule for reverse mode: the cotangent of y, the result with this index
custom y r x d   reverse mode: results of the function, of the rule; the float arguments, and their cotangents
custom y r t     forward mode: results of the function, of the rule; the tangents of the float results
"""

from __future__ import annotations

from typing import NamedTuple

from undertow.ir.graph import FunctionGraph, Node, Operand, Port


class CustomParts(NamedTuple):
    """The operands of a `custom` node."""

    plain: tuple[Operand, ...]  # results of the function
    ruled: tuple[Operand, ...]  # the same, of the rule
    arguments: tuple[Operand, ...]  # that are floats; of rules for reverse mode
    slopes: tuple[Operand, ...]  # cotangents of those arguments, or tangents of the float results
    is_reverse: bool


def custom_parts(node: Node) -> CustomParts:
    count, rest = len(node.types), node.inputs[2 * len(node.types) :]
    taken = node.attrs.integer("arguments")
    return CustomParts(
        node.inputs[:count], node.inputs[count : 2 * count], rest[:taken], rest[taken:], node.attrs["mode"] == "reverse"
    )


def rule_nodes(graph: FunctionGraph, *roots: str) -> set[int]:
    """The nodes of rules: those with these operators, and all that depends on them up to a `custom` node."""
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        used = (*node.inputs, *node.controls)
        if node.op in roots or (
            node.op != "custom" and any(isinstance(port, Port) and port.node in found for port in used)
        ):
            found.add(number)
    return found


def unruled(graph: FunctionGraph) -> dict[int, Port]:
    """The float parameters of a graph with a rule that the rule says nothing about: values from around the function."""
    ruled: set[Operand] = set()
    for node in graph.nodes:
        if node.op == "custom":
            ruled |= set(custom_parts(node).arguments)
        elif node.op == "direction":
            ruled |= set(node.inputs)
    floats = (index for index, param in enumerate(graph.params) if graph.nodes[param].types[0].dtype.is_inexact)
    return {index: Port(graph.params[index]) for index in floats if Port(graph.params[index]) not in ruled}


RULE = ("primal", "direction", "cotangent")  # where rules begin


def has_rule(graph: FunctionGraph) -> bool:
    return any(node.op == "custom" for node in graph.nodes)
