"""Custom gradients of Defun: `grad_func=`, a function of arguments and cotangents, and `python_grad_func=`.

A function with one is a graph that calls the body, and the rule beside it, and joins both (ir/custom.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from undertow.compat.v1.errors import InvalidArgumentError, of_kind
from undertow.compat.v1.graphs.closing import hidden_of
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Tensor, as_tensor, is_tensor_like, wrap
from undertow.errors import GraphError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.trace.builder import Builder
from undertow.ir.graph import Attrs, Library, Port
from undertow.passes.markers.paths import DERIVATIVE

if TYPE_CHECKING:
    from undertow.compat.v1.function import Defined
    from undertow.compat.v1.graph import Graph


@dataclass(frozen=True, eq=False)
class RuledOperation:
    """What a `python_grad_func` gets: the operation that it is to differentiate."""

    name: str
    type: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    graph: Any

    def get_attr(self, name: str) -> Any:
        """There are none."""
        raise TypeMismatch(f"No attr named {name!r} in {self.name}", here(), hint="use its inputs and outputs")


def check_rule(options: dict[str, Any], span: Span | None) -> None:
    """Refuse options of Defun that make no sense as gradients."""
    grad_func, python = options.get("grad_func"), options.get("python_grad_func")
    if grad_func is not None and python is not None:
        raise GraphError("Gradient defined twice, by grad_func and python_grad_func", span, hint="give one of them")
    for what, rule in (("grad_func", grad_func), ("python_grad_func", python)):
        if rule is not None and not callable(rule):
            raise TypeMismatch(f"{what} must be a function, not {brief(rule)}", span, hint="give a Defun")


def write_rule(graph: Graph, callee: str, body: str, defined: Defined) -> None:
    """Write the graph of a function that has its own gradient, beside its body."""
    plain = graph.writer.graphs[body]
    builder = Builder(callee, "function", defined.span, context=graph.ctx)
    params = [plain.nodes[p] for p in plain.params[: len(defined.params)]]
    args = [Tensor(builder, builder.param(p.types[0], p.name)) for p in params]
    types = tuple(plain.type_of(port) for port in plain.results)
    try:
        with graph.lock, graph.writing_to(builder):
            results = _called(builder, body, args, types)
            primals = [_node(builder, "primal", arg) for arg in args]
            again = _called(builder, body, primals, types)
            cotangents = [
                _node(builder, "cotangent", y, index=k) if y.dtype.is_inexact else wrap(functions.zeros_like(y))
                for k, y in enumerate(results)
            ]
            slopes = _slopes(graph, defined, primals, again, cotangents)
            if len(slopes) != len(args):  # an error of whoever asks for the gradient
                graph.bad_rules[callee] = _wrong_number(defined, len(args), len(slopes))
                slopes = [None] * len(args)
            floats = [k for k, arg in enumerate(args) if arg.dtype.is_inexact]
            given = [_fit(slopes[k], args[k], defined) for k in floats]
            ports = [value.port for value in (*results, *again, *(args[k] for k in floats), *given)]
            attrs = Attrs(mode="reverse", arguments=len(floats))
            number = builder.add("custom", ports, types, attrs, defined.span, defined.name)
            graph.writer.graphs[callee] = builder.finish([Port(number, k) for k in range(len(types))])
            graph.hidden[callee] = {w: builder.finished(port) for w, port in hidden_of(builder).items()}
    finally:
        builder.is_open = False


def _node(builder: Builder, op: str, value: Tensor, **attrs: int) -> Tensor:
    return Tensor(builder, Port(builder.add(op, [value.port], (value.type,), Attrs(**attrs), here(), op)))


def _called(builder: Builder, body: str, args: Sequence[Tensor], types: tuple[Any, ...]) -> list[Tensor]:
    ports = [arg.port for arg in args]
    number = builder.add("call", ports, types, Attrs(callee=body), here(), body.rsplit(".", 1)[0])
    return [Tensor(builder, Port(number, k)) for k in range(len(types))]


def _slopes(
    graph: Graph, defined: Defined, inputs: Sequence[Tensor], outputs: Sequence[Tensor], cotangents: Sequence[Any]
) -> list[Any]:
    if defined.grad_func is not None:
        found = defined.grad_func(*inputs, *cotangents)
    else:
        assert defined.python_grad_func is not None
        operation = RuledOperation(defined.name, defined.name, inputs, outputs, graph)
        found = defined.python_grad_func(operation, *cotangents)
    slopes = list(found) if isinstance(found, (list, tuple)) else [found]
    return slopes


def _wrong_number(defined: Defined, wanted: int, found: int) -> UndertowError:
    fault: UndertowError = of_kind(
        TypeMismatch(
            f"SymGrad expects to return {wanted} (the number of arguments of `{defined.name}`) gradient(s), but get "
            f"{found} instead",
            defined.span,
            hint="return a gradient for each argument; None is zero",
        ),
        InvalidArgumentError,
    )
    return fault


def refuse_bad_rules(graph: Graph, library: Library) -> None:
    """Raise the error of a gradient function that gives another number of gradients, if there is a derivative."""
    bodies = library.functions.values()
    if graph.bad_rules and any(node.op == DERIVATIVE for body in bodies for node in body.nodes):
        raise next(iter(graph.bad_rules.values()))


def _fit(slope: Any, arg: Tensor, defined: Defined) -> Tensor:
    """A gradient of the type of its argument; None is zero."""
    if slope is None:
        zero: Tensor = wrap(functions.zeros_like(arg))
        return zero
    value: Tensor = as_tensor(slope, None if is_tensor_like(slope) else arg.dtype)
    if value.dtype != arg.dtype or value.type.rank > arg.type.rank:
        raise TypeMismatch(
            f"the gradient of `{defined.name}` for {arg!r} is {value.type}",
            defined.span,
            hint="return one of the same dtype and shape",
        )
    if value.type == arg.type:
        return value
    fitting: Tensor = wrap(functions.broadcast_to(value, functions.shape(arg)))
    return fitting
