"""`tf.gradients`: adds derivatives of tensors to the graph; a run computes those that its fetches need.

It adds one `derivative` node. When a program is built for fetches, `passes.markers` turns the node into a call
and its `gradient`, so that other fetches share the values of that call.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.array import ones_like, zeros_like
from undertow.compat.v1.control import identity
from undertow.compat.v1.derivatives.stops import cut_off
from undertow.compat.v1.graph import Graph, another_graph
from undertow.compat.v1.graphs.closing import captured_by
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable
from undertow.compat.v1.tensor import Operation, Tensor, as_tensor, is_tensor_like, writing
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.traced import Traced, operand
from undertow.ir.graph import Attrs, Const, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ops.op import CATALOGUE
from undertow.passes.derive.activity import is_smooth
from undertow.passes.markers.paths import DERIVATIVE, is_inside
from undertow.types import said

__all__ = ["gradients"]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: Any = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = "none",
) -> list[Any]:
    """The derivatives of the sum of `ys` with respect to each of `xs`; None for an x that `ys` do not depend on."""
    outs, ins = _listed(ys, "ys"), _listed(xs, "xs")
    cotangents = [None] * len(outs) if grad_ys is None else _cotangents(grad_ys, len(outs))
    stops = [] if stop_gradients is None else _listed(stop_gradients, "stop_gradients")
    with writing(*outs, *ins, *(g for g in cotangents if g is not None)) as graph:
        tensors = [as_tensor(y) for y in outs]
        floats = [(y, g) for y, g in zip(tensors, cotangents, strict=True) if y.type.dtype.is_inexact]
        if not floats:
            _check_float(tensors[0])
        pairs = _summed([(y, _cotangent(y, g)) for y, g in floats])  # integers have no derivatives
        if stops:
            derivatives = _until(graph, pairs, ins, stops, name)
        else:
            derivatives = _written(graph, pairs, ins, name)
        if str(getattr(unconnected_gradients, "value", unconnected_gradients)).lower() == "zero":
            derivatives = [zeros_like(x) if dx is None else dx for x, dx in zip(ins, derivatives, strict=True)]
        return derivatives


def _listed(values: Any, what: str) -> list[Any]:
    tensors = list(values) if isinstance(values, (list, tuple)) else [values]
    for value in tensors:
        if not is_tensor_like(value) or isinstance(value, Operation):
            raise TypeMismatch(
                f"the {what} of tf.gradients must be tensors, not {brief(value)}",
                here(),
                hint="pass tensors and variables: tf.gradients(loss, [w, b])",
            )
    if not tensors:
        raise TypeMismatch(f"tf.gradients needs {what}", here(), hint="write tf.gradients(y, x)")
    return tensors


def _cotangents(grad_ys: Any, count: int) -> list[Any]:
    cotangents = list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
    if len(cotangents) != count:
        raise TypeMismatch(
            f"tf.gradients gets {count} ys, but {len(cotangents)} grad_ys",
            here(),
            hint="pass one for each y, or None for a weight of 1",
        )
    return cotangents


def _check_float(y: Tensor) -> None:
    if not y.type.dtype.is_inexact:
        raise TypeMismatch(
            f"the ys of tf.gradients must be floats, not {y!r}",
            here(),
            hint="convert with tf.cast(x, tf.float32) first",
        )


def _cotangent(y: Tensor, grad_y: Any) -> Any:
    """The weight of a y's derivative: as given, or ones."""
    if grad_y is None:
        if y.type.is_static:
            return np.ones([d for d in y.type.shape if isinstance(d, int)], y.type.dtype.numpy)
        return ones_like(y)
    value = as_tensor(grad_y, None if is_tensor_like(grad_y) else y.dtype)
    if not y.type.accepts(value.type):
        raise TypeMismatch(
            f"the grad_ys of {y!r} is {said(value.type)}",
            here(),
            hint="pass one of the same dtype and shape as the y",
        )
    return value


def _summed(pairs: Sequence[tuple[Tensor, Any]]) -> list[tuple[Tensor, Any]]:
    """Each y once; the cotangents of a repeated y add up."""
    sums: dict[tuple[Builder, Port], tuple[Tensor, Any]] = {}
    for y, cotangent in pairs:
        before = sums.get((y.builder, y.port))
        sums[y.builder, y.port] = y, cotangent if before is None else before[1] + cotangent
    return list(sums.values())


# -- dependences -------------------------------------------------------------------------------------------


class _Upstream:
    """The floats that values depend on: ports of this builder, and variables read here or inside calls."""

    def __init__(self, graph: Graph, builder: Builder, ports: Iterable[Operand]) -> None:
        self.graph = graph
        self.builder = builder
        self.ports: set[Port] = set()
        self.reads: dict[str, list[Port]] = {}  # in this graph
        self.hidden: set[str] = set()  # below calls
        self.is_unsure = False  # is there a call of a function that is not defined yet?
        entered: set[str] = set()
        for port in _floats_above(graph, builder, ports):
            self.ports.add(port)
            node = builder.nodes[port.node]
            if node.op == "read":
                self.reads.setdefault(node.attrs.text("variable"), []).append(port)
            elif node.op in ENTERS:
                entered.add(node.attrs.text(ENTERS[node.op]))
        self._enter(sorted(entered))

    def _enter(self, todo: list[str]) -> None:
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            body = self.graph.body_of(name)
            if body is None:
                self.is_unsure = True
                continue
            for node in body.nodes:
                if node.op == "read":
                    self.hidden.add(node.attrs.text("variable"))
                elif node.op in ENTERS:
                    todo.append(node.attrs.text(ENTERS[node.op]))


def _floats_above(
    graph: Graph, builder: Builder, ports: Iterable[Operand], cut: Collection[Port] = ()
) -> Iterator[Port]:
    """The floats that these values depend on, themselves included; no further than the cut."""
    seen, todo = set(cut), list(ports)
    while todo:
        port = todo.pop()
        if isinstance(port, Port) and port not in seen and builder.type_of(port).dtype.is_inexact:
            seen.add(port)
            yield port
            node = builder.nodes[port.node]
            todo += _leading(node)
            if node.op in ENTERS:  # what it captures is not among its operands yet
                todo += captured_by(graph, node.attrs.text(ENTERS[node.op]), builder)


def _leading(node: Node) -> tuple[Operand, ...]:
    """The operands of a node that get a cotangent."""
    if node.op == "switch":
        return node.inputs[1:]
    if node.op in ENTERS or node.op in ("merge", DERIVATIVE):
        return node.inputs
    return node.inputs if node.op in CATALOGUE and is_smooth(node.op) else ()


def _written(graph: Graph, pairs: Sequence[tuple[Tensor, Any]], xs: Sequence[Any], name: str) -> list[Any]:
    builder, region = graph.ctx.open_builder, graph.ctx.open_builder.region
    ys = [operand(y) for y, _ in pairs]
    cotangents = [operand(g) if isinstance(g, Traced) else Const(np.asarray(g)) for _, g in pairs]
    upstream = _Upstream(graph, builder, ys)
    named: list[list[Port]] = []
    variables: list[str] = []
    places: list[int] = []
    for place, x in enumerate(xs):
        is_variable = isinstance(x, Variable)
        origins = upstream.reads.get(x.key, []) if is_variable else [_own_port(graph, x, builder, upstream)]
        origins = [port for port in origins if port in upstream.ports and x.dtype.is_inexact]
        is_hidden = is_variable and (x.key in upstream.hidden or upstream.is_unsure) and x.dtype.is_inexact
        visible = [p for p in origins if not is_variable or is_inside(builder.regions, region, builder.home(p))]
        if visible or origins or is_hidden:
            named.append([builder.use(port) for port in visible])
            variables.append(x.key if is_variable else "")
            places.append(place)
            _check_outside(graph, builder, visible, named[-1], ys, x)
    derivatives: list[Any] = [None] * len(xs)
    if not places:
        return derivatives
    types = tuple(xs[place].type.erased() for place in places)
    flat = [port for ports in named for port in ports]
    attrs = Attrs(ys=len(ys), sizes=tuple(map(len, named)), variables=tuple(variables))
    number = builder.add(DERIVATIVE, (*ys, *cotangents, *flat), types, attrs, here(), name or "gradients", (), region)
    for index, place in enumerate(places):
        derivative = Tensor(builder, Port(number, index))
        derivatives[place] = identity(derivative) if builder.controls else derivative
    return derivatives


def _until(
    graph: Graph, pairs: Sequence[tuple[Tensor, Any]], xs: Sequence[Any], stops: Sequence[Any], name: str
) -> list[Any]:
    """The derivatives where some tensors are constants; with respect to these, where the ys use them."""
    builder = graph.ctx.open_builder
    ys = [y for y, _ in pairs]
    upstream = _Upstream(graph, builder, [operand(y) for y in ys])

    def places(x: Any) -> list[Port]:
        if isinstance(x, Variable):
            return upstream.reads.get(x.key, [])
        return [_own_port(graph, x, builder, upstream)]

    copies = cut_off(builder, ys, [port for stop in stops for port in places(stop)])
    moved = [(Tensor(builder, copies.get(y.port, y.port)), cotangent) for y, cotangent in pairs]
    leaves = [[Tensor(builder, copies.get(port, port)) for port in places(x)] for x in xs]
    slopes = iter(_written(graph, moved, [leaf for part in leaves for leaf in part], name))
    sums: list[Any] = []
    for part in leaves:
        known = [slope for slope in (next(slopes) for _ in part) if slope is not None]
        sums.append(functools.reduce(lambda a, b: a + b, known) if known else None)
    return sums


def _own_port(graph: Graph, x: Traced, builder: Builder, upstream: _Upstream) -> Port:
    if x.builder is not builder:
        if x.builder.context is not builder.context:
            raise another_graph(x, here())
        here_too = builder.lifted.get((x.builder, x.port))
        if here_too is not None and not _leads_in(graph, x, builder, upstream):
            return here_too
        raise GraphError(
            f"tf.gradients inside `{builder.name}` with respect to {x!r}, which belongs to `{x.builder.name}`",
            here(),
            hint="call tf.gradients where x is created, or pass x as an argument or a loop variable",
        )
    return x.port


def _leads_in(graph: Graph, x: Traced, builder: Builder, upstream: _Upstream) -> bool:
    """Do the ys depend on an x of the graph around through other values than x itself?"""
    others = [
        outer[1]
        for outer, inner in builder.lifted.items()
        if inner in upstream.ports and outer != (x.builder, x.port) and outer[0] is x.builder
    ]
    is_far = any(outer[0] is not x.builder for outer, inner in builder.lifted.items() if inner in upstream.ports)
    return is_far or x.port in set(_floats_above(graph, x.builder, others))


def _check_outside(
    graph: Graph, builder: Builder, origins: Sequence[Port], seen: Sequence[Port], ys: Sequence[Operand], x: Any
) -> None:
    """In a branch: do the ys depend on an x only through its value there?"""
    if all(a == b for a, b in zip(origins, seen, strict=True)):
        return
    if not set(origins).isdisjoint(_floats_above(graph, builder, ys, seen)):
        raise GraphError(
            f"a gradient inside a tf.cond, with respect to {x!r}, depends on operations outside it",
            here(),
            hint="call tf.gradients outside the tf.cond, and use its result inside",
        )


boundaries(globals(), __all__)
