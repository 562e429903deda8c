"""Fetches and feeds of a run, and the program for them: the part of a graph that the fetches need.

A program is built once for each combination of fetches and feeds, and cached by the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.api.program import Program
from undertow.compat.v1.devices import Cluster
from undertow.compat.v1.errors import InvalidArgumentError, of_kind
from undertow.compat.v1.graph import Graph, another_graph
from undertow.compat.v1.graphs.hosted import Hosted, computed
from undertow.compat.v1.graphs.rules import refuse_bad_rules
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable
from undertow.compat.v1.tensor import Operation, Tensor, default_dtype, wrap
from undertow.errors import GraphError, Span, TypeMismatch, brief
from undertow.frontend.control.termination import refuse_endless
from undertow.frontend.trace.library import Captured
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Traced
from undertow.frontend.values.traced import constant as as_numpy
from undertow.ir.graph import Port
from undertow.ops.effects import acts
from undertow.passes.pipeline import resolve_markers
from undertow.types import Type, type_of

_FETCHED = (Traced, Operation, Variable, Hosted, str)


@dataclass(frozen=True, slots=True, eq=False)
class Fetched:
    """A program, the tensors that it must be fed, in order, and the variables that it writes."""

    program: Program
    inputs: tuple[Port, ...]
    written: frozenset[str]


def flatten_fetches(graph: Graph, fetches: Any, span: Span | None) -> tuple[list[Any], tree.Structure]:
    """The fetches one by one, as tensors and operations of this graph, and the structure around them."""
    leaves, structure = tree.flatten(fetches, lambda v: isinstance(v, _FETCHED))
    odd = [token[1].value for token in structure if token[0] == "static"]
    odd += [leaf for leaf in leaves if not isinstance(leaf, _FETCHED)]
    if odd:
        raise TypeMismatch(
            f"{brief(odd[0])} cannot be fetched", span, hint="fetch tensors, operations and variables of the graph"
        )
    # Functions of ut return plain traced values.
    leaves = [wrap(leaf) if isinstance(leaf, Traced) else leaf for leaf in leaves]
    return [_fetch(graph, leaf, span) for leaf in leaves], structure


def _fetch(graph: Graph, leaf: Any, span: Span | None) -> Any:
    if isinstance(leaf, str):
        return by_name(graph, leaf, span)
    if isinstance(leaf, (Variable, Hosted)):
        if leaf.graph is not graph:
            raise another_graph(leaf, span)
        return leaf.fetched() if isinstance(leaf, Variable) else _checked(graph, leaf, span)
    check_tensor(graph, leaf.token if isinstance(leaf, Operation) else leaf, "fetched", span)
    return leaf


def _checked(graph: Graph, leaf: Hosted, span: Span | None) -> Hosted:
    """What the host makes, if the tensors that it is made of can be fetched."""
    for tensor in leaf.tensors:
        check_tensor(graph, tensor, "fetched", span)
    return leaf


def check_tensor(graph: Graph, tensor: Any, what: str, span: Span | None) -> None:
    """Reject a tensor of a function or of a branch."""
    if tensor.builder.context is not graph.ctx:
        raise another_graph(tensor, span)
    builder = tensor.builder
    if builder is not graph.main:
        owner = f"the function `{builder.name}`" if builder.kind == "function" else f"the body of a {builder.kind}"
        raise GraphError(
            f"{tensor!r} belongs to {owner}: each call has its own, so it cannot be {what}",
            span,
            hint="return it, and use the result of the call",
        )
    if builder.home(tensor.port) != 0:
        raise of_kind(
            GraphError(
                f"The tensor returned for {tensor.name} was not valid: {tensor!r} is inside a branch of a tf.cond and "
                f"cannot be {what}",
                span,
                hint="return it from both functions of the tf.cond, and use the result",
            ),
            InvalidArgumentError,
        )


def by_name(graph: Graph, name: str, span: Span | None) -> Any:
    """`add:0` is a tensor, `add` an operation."""
    stem, colon, index = name.partition(":")
    for variable in graph.variables:
        if variable.key == stem and index in ("", "0"):
            return variable.fetched() if colon else variable.op
    number = graph.node_named(stem)
    if number is None or (colon and not index.isdigit()) or int(index or 0) >= len(graph.main.nodes[number].types):
        raise of_kind(
            GraphError(
                f"The name {name!r} refers to {'a Tensor' if colon else 'an Operation'} which does not exist: "
                f"this graph has no {name!r}",
                span,
                hint='tensors have names such as "add:0": see x.name',
            ),
            KeyError,
        )
    tensor = Tensor(graph.main, Port(number, int(index or 0)))
    return tensor if colon else Operation(tensor)


def program_of(graph: Graph, fetches: Any) -> Program:
    """The program for these fetches, where only placeholders are fed."""
    return make_fetched(graph, flatten_fetches(graph, fetches, here())[0], ()).program


def make_fetched(graph: Graph, leaves: Sequence[Any], fed: Sequence[Port], cluster: Cluster | None = None) -> Fetched:
    """The program for tensors and operations of the graph, built on first use.

    `cluster` has the tasks that devices name; without it, devices stand there as they were written.
    """
    leaves = list(computed(leaves))
    values = [leaf.port for leaf in leaves if not isinstance(leaf, Operation)]
    orders = [leaf.token.port for leaf in leaves if isinstance(leaf, Operation)]
    computed_feeds = tuple(sorted({port for port in fed if port.node not in graph.main.params}))
    key = (tuple(values), tuple(orders), computed_feeds, cluster)
    with graph.lock:
        if key not in graph.programs:
            graph.programs[key] = _make(graph, [*values, *orders], len(values), computed_feeds, cluster)
        return graph.programs[key]


def _make(graph: Graph, results: Sequence[Port], count: int, fed: Sequence[Port], cluster: Cluster | None) -> Fetched:
    main = graph.main
    instead = {port: graph.fed_param(port) for port in fed}
    library, params = graph.extract(results, instead)
    refuse_bad_rules(graph, library)
    library = resolve_markers(library)
    if cluster is not None:
        library = cluster.place(library)
    refuse_endless(library)
    owner = {param.node: port for port, param in instead.items()}
    inputs = tuple(owner.get(number, Port(number)) for number in params)
    nodes = (node for body in library.functions.values() for node in body.nodes)
    written = frozenset(n.attrs.text("variable") for n in nodes if acts(n.op) and "variable" in n.attrs)
    structure = (("tuple", count), *([tree.LEAF] * count))
    types = tuple(main.nodes[number].types[0] for number in params)
    captured = Captured(library, types, (), structure, count, False, {}, written)
    return Fetched(Program(captured, "main"), inputs, written)


# -- feeds -------------------------------------------------------------------------------------------------


def feeds_of(graph: Graph, feed_dict: Any, span: Span | None) -> dict[Port, Any]:
    """The fed values by port, checked against their tensors."""
    if feed_dict is None:
        return {}
    if not isinstance(feed_dict, Mapping):
        raise TypeMismatch(f"feed_dict must be a dict, not {brief(feed_dict)}", span, hint="write feed_dict={x: 3}")
    feeds: dict[Port, Any] = {}
    for key, value in feed_dict.items():
        tensor = by_name(graph, key, span) if isinstance(key, str) else key
        if not isinstance(tensor, Tensor):
            raise TypeMismatch(
                f"{brief(tensor)} cannot be fed",
                span,
                hint="the keys of feed_dict must be tensors, such as placeholders",
            )
        check_tensor(graph, tensor, "fed", span)
        feeds[tensor.port] = _fed(tensor, value, span)
    return feeds


def _called(tensor: Tensor) -> str:
    node = tensor.builder.nodes[tensor.port.node]
    kind = "placeholder" if node.op == "param" else "tensor"
    made = "" if node.span is None else f" on line {node.span.line}"
    return f"{kind} `{tensor.name.rsplit(':', 1)[0]}`{made}"


def fed_types(graph: Graph, fed: Mapping[Port, Any]) -> dict[Port, Type]:
    """The types of what is fed for tensors whose shape was not known."""
    return {port: type_of(np.asarray(value)) for port, value in fed.items() if port in graph.late.made_by}


def _fed(tensor: Tensor, value: Any, span: Span | None) -> Any:
    called, wanted = _called(tensor), tensor.type
    is_late = tensor.graph.late.is_late(tensor)
    if isinstance(value, (Traced, Operation, Variable)):
        raise TypeMismatch(
            f"{called} is fed {value!r}, which has no value yet",
            span,
            hint="feed numbers and arrays: run the other tensor first, or use it in the graph",
        )
    try:
        array = np.asarray(as_numpy(value))
    except TypeMismatch as fault:
        fault.what, fault.span = f"{called} cannot be fed this: {fault.what}", span
        raise
    found = type_of(array)
    if not np.can_cast(array.dtype, wanted.dtype.numpy, "same_kind") and not (array.size == 0 and array.ndim):
        other = (default_dtype(value) or found.dtype).numpy.name
        shown = brief(value) if array.ndim == 0 else f"an array of {array.dtype.name}"
        kinds = {"bool": "True or False", "int": "integers", "float": "numbers"}[wanted.dtype.kind]
        raise TypeMismatch(
            f"{called} is {wanted}, but is fed {shown}",
            span,
            hint=f"feed {kinds}, or make it tf.placeholder(tf.{other})",
        )
    if wanted.dtype.kind == "int" and array.size:
        bounds = np.iinfo(wanted.dtype.numpy)  # type: ignore[type-var]
        if array.max() > bounds.max or array.min() < bounds.min:
            worst = array.max() if array.max() > bounds.max else array.min()
            raise TypeMismatch(f"{called} is fed {worst}, which does not fit in {wanted.dtype}", span, "use tf.int64")
    if not is_late and not wanted.accepts(found.with_dtype(wanted.dtype)):
        shape = ", ".join("None" if d is None else str(d) for d in wanted.shape)
        raise TypeMismatch(
            f"{called} has the shape [{shape}], but is fed a value of shape {list(array.shape)}",
            span,
            hint=f"feed that shape, or declare shape={[None] * array.ndim}",
        )
    with np.errstate(all="ignore"):
        return array.astype(wanted.dtype.numpy)[()]


def captured_late(graph: Graph, port: Port, span: Span | None) -> GraphError:
    """The error for an array that is fed to a placeholder without a shape, which a function has taken for a number."""
    return GraphError(
        f"{_called(Tensor(graph.main, port))} has no shape, and a function that captures it took it for a number",
        span,
        hint="give the placeholder a shape, or pass it to the function as an argument",
    )


def missing(graph: Graph, port: Port, span: Span | None) -> GraphError:
    """The error for a placeholder that is needed but not fed."""
    called = _called(Tensor(graph.main, port))
    fault: GraphError = of_kind(
        GraphError(
            f"You must feed a value for placeholder tensor: {called} is needed, but not fed",
            span,
            hint="add it to feed_dict: sess.run(y, {x: 3})",
        ),
        InvalidArgumentError,
    )
    return fault
