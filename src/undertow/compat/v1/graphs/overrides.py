"""`tf.RegisterGradient` and `graph.gradient_override_map`: gradients of the user's own for single operations.

    with tf.get_default_graph().gradient_override_map({"Round": "Identity"}):
        y = tf.round(x)    # its gradient is that of tf.identity

An operation in the block becomes a call of a function whose gradient is the registered one (rules.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from undertow.compat.v1.errors import of_kind
from undertow.compat.v1.place import here
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.frontend.values import tree

if TYPE_CHECKING:
    from undertow.compat.v1.graph import Graph

__all__ = ["NoGradient", "NotDifferentiable", "RegisterGradient"]

_OPS = {
    "matmul": "MatMul", "multiply": "Mul", "subtract": "Sub", "negative": "Neg", "divide": "RealDiv",
    "reduce_sum": "Sum",
    "reduce_mean": "Mean", "reduce_max": "Max", "reduce_min": "Min", "reduce_prod": "Prod", "gather": "Gather",
}  # fmt: skip
_RULES: dict[str, Callable[..., Any] | None] = {"Identity": lambda op, grad: grad}


class RegisterGradient:
    """Decorates a function of an operation and the cotangents of its results, which gives those of its arguments."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeMismatch(f"op_type must be a string, not {brief(op_type)}", here(), hint='write "MyGradient"')
        self._name = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._name in _RULES:
            raise of_kind(
                GraphError(f"Registering two gradient with name '{self._name}'!", here(), hint="choose another name"),
                KeyError,
            )
        _RULES[self._name] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Register that there is no gradient: it is zero."""
    _RULES[op_type] = None


NoGradient = NotDifferentiable


@contextlib.contextmanager
def overriding(graph: Graph, op_type_map: Mapping[str, str]) -> Iterator[None]:
    """Operations of these types in the block have the registered gradients."""
    if not isinstance(op_type_map, Mapping):
        raise TypeMismatch(
            f"op_type_map must be a dict, not {brief(op_type_map)}", here(), hint='write {"Round": "Identity"}'
        )
    before, graph.gradient_overrides = graph.gradient_overrides, {**graph.gradient_overrides, **op_type_map}
    try:
        yield
    finally:
        graph.gradient_overrides = before


def type_of_call(function: Callable[..., Any]) -> str:
    """The type of the operation that a function of `tf` makes: `relu` makes "Relu"."""
    name = getattr(function, "__name__", "")
    return _OPS.get(name) or "".join(part.capitalize() for part in name.split("_"))


def overridden(
    graph: Graph, rule_name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a call whose gradient is another one."""
    from undertow.compat.v1.function import Defined
    from undertow.compat.v1.tensor import Tensor, as_tensor, is_tensor_like, named

    if rule_name not in _RULES:
        raise of_kind(
            GraphError(
                f"No gradient defined for operation type {rule_name!r}",
                here(),
                hint=f'register it: @tf.RegisterGradient("{rule_name}")',
            ),
            LookupError,
        )
    rule = _RULES[rule_name]
    name = kwargs.get("name")
    leaves, structure = tree.flatten((args, {k: v for k, v in kwargs.items() if k != "name"}), is_tensor_like)
    places = [k for k, leaf in enumerate(leaves) if is_tensor_like(leaf)]
    inputs = [as_tensor(leaves[k]) for k in places]

    def body(*tensors: Any) -> Any:
        inside = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            inside[place] = tensor
        again, options = tree.unflatten(structure, inside)
        return function(*again, **options)

    body.__name__ = function.__name__
    chosen = rule or (lambda op, *grads: [None] * len(op.inputs))
    types = [(tensor.type.erased(), False) for tensor in inputs]
    before, graph.gradient_overrides = graph.gradient_overrides, {}
    try:
        result = Defined(body, types, {"python_grad_func": chosen})(*inputs)
    finally:
        graph.gradient_overrides = before
    return named(result, name) if isinstance(result, Tensor) else result
