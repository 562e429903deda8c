"""The operations and tensors of a graph, by name or one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from undertow.compat.v1.fetches import by_name
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, Tensor, wrap
from undertow.errors import TypeMismatch, brief
from undertow.frontend.values.traced import Traced
from undertow.ir.graph import Port

if TYPE_CHECKING:
    from undertow.compat.v1.graph import Graph

_NOT_SHOWN = ("start", "switch")


def operations(graph: Graph) -> list[Operation]:
    """Those of the main graph, in the order in which they were added."""
    main = graph.main
    hidden = {main.key.node} if main.key is not None else set()
    hidden.update(graph.run_values)
    return [
        Operation(Tensor(main, Port(number)))
        for number, node in enumerate(main.nodes)
        if node.op not in _NOT_SHOWN and number not in hidden
    ]


def element(graph: Graph, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
    """What an object or a name stands for in this graph."""
    kinds = " or ".join(k for k, is_allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if is_allowed)
    if hasattr(type(obj), "fetched") and allow_tensor:
        obj = obj.fetched()
    if isinstance(obj, Traced):
        obj = wrap(obj)
    if isinstance(obj, str):
        if ":" in obj and not allow_tensor:
            raise _no(f"Name {obj!r} appears to refer to a Tensor, not a {kinds}")
        if ":" not in obj and not allow_operation:
            raise _no(f"Name {obj!r} refers to an Operation, not a {kinds}: tensor names must be of the form name:0")
        return by_name(graph, obj, here())
    if (isinstance(obj, Tensor) and allow_tensor) or (isinstance(obj, Operation) and allow_operation):
        if obj.graph is not graph:
            raise _no(f"{kinds} {obj!r} is not an element of this graph.")
        return obj
    raise TypeMismatch(f"Can not convert a {type(obj).__name__} into a {kinds}: {brief(obj)}", here(), "give its name")


def _no(what: str) -> TypeMismatch:
    return TypeMismatch(what, here(), hint='tensors have names such as "add:0", operations "add"')
