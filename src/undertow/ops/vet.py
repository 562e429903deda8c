"""Checks graphs from outside before they run: the rules of `ir.spec`, types, attributes and sizes.

Capture and the passes write only what engines expect. The graph in a file may have been written by anyone: here
every attribute is of the kind that its operator reads, every type is that of the operator's rule, and flattening
cannot blow up. What such a graph can still do is what any program can: run long, and use memory. Limits are for that.

>>> from undertow.ir.text import parse
>>> vet(parse('''
... library 1 main=main
... main main(x: f32[3]) -> (y)
...   y: f32 = sum x axes=[0, 0] keepdims=false
... '''))
Traceback (most recent call last):
undertow.errors.GraphError: main: an operator does not take these operands: the attribute `axes` of sum is bad: (0, 0)
...
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from string import Formatter

from undertow.errors import GraphError, TypeMismatch
from undertow.ir.graph import Attr, FunctionGraph, Library, Node
from undertow.ir.literal import quote
from undertow.ir.spec import check
from undertow.ops.attributes import MOST_AXES, MOST_ELEMENTS
from undertow.ops.op import CATALOGUE
from undertow.types import Type

MOST_NODES = 2_000_000  # of the static graph; loops and maps are copied to each place that names them

# Attributes that any operator may have besides its own.
COMMON: Mapping[str, Callable[[Attr], bool]] = {"device": lambda value: isinstance(value, str)}

# Python's format specifications, with numbers that cannot fill the memory.
_SPECIFICATION = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d{0,4}[,_]?(?:\.\d{1,4})?[A-Za-z%]?", re.DOTALL)


def _check_template(node: Node, values: int) -> None:
    """Only `{}`, `{!s}` and `{:spec}`: a field with a name could look into objects (`{0.__class__}`)."""
    template = node.attrs.text("template")
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as problem:
        raise TypeMismatch(f"invalid template {template!r:.60}: {problem}") from None
    plain = all(
        name == "" and conversion in (None, "s", "r", "a") and _SPECIFICATION.fullmatch(form or "")
        for _, name, form, conversion in parts
    )
    if not plain or len(parts) != values:
        raise TypeMismatch(f"the template {template!r:.60} does not fit {values} values")


def type_rule(node: Node, types: Sequence[Type]) -> tuple[Type, ...]:
    """The types that the catalogue gives to the outputs of a node: the type rule for `ir.spec.check`."""
    row = CATALOGUE.get(node.op)
    if row is None:
        raise TypeMismatch(f"unknown operator {node.op!r}")
    if row.state is not None:
        raise TypeMismatch(f"{node.op} uses a variable, which belongs to a process and not to a graph")
    wanted = row.attrs
    if node.attrs.keys() - COMMON.keys() != wanted.keys():
        names = " and ".join(f"`{name}`" for name in wanted) or "no attribute"
        raise TypeMismatch(f"{node.op} takes {names}, not {' and '.join(node.attrs) or 'none'}")
    for name, value in node.attrs.items():
        if not (wanted.get(name) or COMMON[name])(value):
            raise TypeMismatch(f"the attribute `{name}` of {node.op} is bad: {value!r:.60}")
    if len(types) != row.arity if row.arity is not None else not types and node.op != "print":
        raise TypeMismatch(f"{node.op} takes {row.arity or 'some'} operands, not {len(types)}")
    if node.op != "identity" and any(type_.dtype.kind == "ctl" for type_ in types):
        raise TypeMismatch("an order token cannot be an operand")
    if "template" in wanted:
        _check_template(node, len(types) - (node.op in ("assert", "raise")))
    try:
        return row.type(types, node.attrs)
    except ValueError as problem:  # tuples of unequal length
        raise TypeMismatch(f"the attributes of {node.op} do not fit: {problem}") from None


# --------------------------------------------------------------------------------------------------------------
# Sizes


def _check_types(graph: FunctionGraph) -> None:
    for node in graph.nodes:
        for type_ in node.types:
            elements = math.prod(max(dim, 1) for dim in type_.shape if isinstance(dim, int))
            if type_.rank > MOST_AXES or elements > MOST_ELEMENTS or (type_.dtype.kind == "ctl" and type_.shape):
                raise GraphError(
                    f"{quote(graph.name)}: {quote(node.name)} has the invalid type {type_!r:.80}", node.span
                )


def _check_names(graph: FunctionGraph) -> None:
    words = [graph.name, *(region.name for region in graph.regions)]
    for node in graph.nodes:
        words += (node.name, *(value for value in node.attrs.values() if isinstance(value, str)))
    for word in words:
        if not word.isascii():
            try:
                word.encode()
            except UnicodeEncodeError:
                raise GraphError(f"{quote(graph.name)!r}: {word!r:.80} is not valid text") from None


def flattened_size(library: Library) -> int:
    """An estimate of the nodes that `flatten` creates, or MOST_NODES + 1. Raises if a loop or map contains itself."""
    bodies: dict[str, list[str]] = {}
    for name, graph in library.functions.items():
        named = (node.attrs.get("body") for node in graph.nodes if node.op in ("loop", "map"))
        bodies[name] = [body for body in named if isinstance(body, str)]
    sizes: dict[str, int] = {}  # of graphs, including what they contain
    try:
        for name in TopologicalSorter(bodies).static_order():
            own = sum(1 + len(node.inputs) + len(node.types) for node in library.functions[name].nodes)
            sizes[name] = min(own + sum(sizes[body] for body in bodies[name]), MOST_NODES + 1)
    except CycleError as error:
        raise GraphError(f"the loop or map {quote(error.args[1][0])} contains itself") from None
    total = sum(sizes[name] for name, graph in library.functions.items() if graph.kind in ("main", "function"))
    return min(total, MOST_NODES + 1)


def vet(library: Library) -> None:
    """Raise a GraphError unless the library is one that may be flattened, planned and run."""
    for graph in library.functions.values():
        _check_types(graph)
        _check_names(graph)
        if graph.group or graph.hoisted or graph.shared or any(node.op == "shared" for node in graph.nodes):
            raise GraphError(
                f"{quote(graph.name)}: values are hoisted, but hoisting must happen after loading", graph.span
            )
    check(library, type_rule)
    if flattened_size(library) > MOST_NODES:
        raise GraphError(f"the static graph would have more than {MOST_NODES:,} nodes")
