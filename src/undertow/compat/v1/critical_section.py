"""`tf.CriticalSection`: of the functions that one section executes in a run, one comes after the other.

Each execution begins at a node and ends at another. When a run has been pruned to what its fetches need, an edge leads
from the end of each execution that is left to the beginning of the next: mutual exclusion by control edges. Nobody
waits for a lock, so nothing can deadlock. Inside, operators on variables are in program order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from undertow.compat.v1.control import control_dependencies, group
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, Tensor, add_node, is_tensor_like, with_reads, writing
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.ir.graph import Attrs, FunctionGraph, Node, Port
from undertow.ops.effects import is_stateful
from undertow.tracebacks import boundaries

__all__ = ["CriticalSection"]

# The attribute of the nodes where executions begin and end: "+" and the section's name, or "-".
_MARK = "section"


class CriticalSection:
    """A mutex: functions that it executes exclude one another."""

    def __init__(self, name: str | None = None, shared_name: str | None = None, **_: Any) -> None:
        self.graph: Graph = get_default_graph()
        self.graph.sections += not (shared_name or name)
        self.name = str(shared_name or name or f"critical_section_{self.graph.sections}")
        self._is_executing = False

    def execute(self, fn: Callable[[], Any], exclusive_resources: bool = True, name: str | None = None) -> Any:
        """What `fn()` returns; its operators run when no other execution of this section does."""
        if not callable(fn):
            raise TypeMismatch(
                f"a critical section executes a function, not {brief(fn)}",
                here(),
                hint="write section.execute(lambda: tf.assign(x, x + 1))",
            )
        with writing() as graph:
            builder = graph.ctx.open_builder
            if graph is not self.graph or builder is not graph.main or builder.region != 0:
                raise GraphError(
                    f"critical section `{self.name}` is executed inside a function, a branch or a loop, or in another "
                    "graph",
                    here(),
                    hint="execute it in the main graph; one tf.assign_add is atomic anywhere",
                )
            if self._is_executing:
                raise GraphError(
                    f"critical section `{self.name}` is executed inside of itself, and would wait for ever",
                    here(),
                    hint="call the inner function directly",
                )
            self._is_executing = True
            try:
                return self._execute(builder, fn, name)
            finally:
                self._is_executing = False

    def _execute(self, builder: Builder, fn: Callable[[], Any], name: str | None) -> Any:
        begin = self._mark("+")
        first = len(builder.nodes)
        with control_dependencies([begin]):
            result = fn()
        last = _in_program_order(builder, first)
        leaves, structure = tree.flatten(result, is_tensor_like)
        values = [leaf if isinstance(leaf, Operation) else with_reads(leaf) for leaf in leaves]
        tensors = [value.token if isinstance(value, Operation) else value for value in values]
        with control_dependencies([begin, *last, *(t for t in tensors if isinstance(t, Tensor))]):
            end = self._mark("-")
        with control_dependencies([end]):
            outputs = [
                group(value) if isinstance(value, Operation) else add_node("identity", [value], Attrs(), name or "")
                for value in values
            ]
        return tree.unflatten(structure, outputs)

    def _mark(self, side: str) -> Tensor:
        return add_node("identity", [np.bool_(True)], Attrs(**{_MARK: side + self.name}), f"{self.name}{side}")


def _in_program_order(builder: Builder, first: int) -> list[Tensor]:
    """Order the operators on variables that were written from this node on; returns the last one, if there is any."""
    before: Port | None = None
    for number in range(first, len(builder.nodes)):
        node = builder.nodes[number]
        if is_stateful(node.op) and node.region == 0:
            if before is not None:
                builder.nodes[number] = replace(node, controls=(*node.controls, before))
            before = Port(number)
    return [] if before is None else [Tensor(builder, before)]


def in_turn(main: FunctionGraph) -> FunctionGraph:
    """The main graph of a run, in which executions of a section come one after the other, as they were written."""
    ends: dict[str, Port] = {}
    nodes: list[Node] = []
    for number, node in enumerate(main.nodes):
        mark = node.attrs.get(_MARK)
        if isinstance(mark, str):
            side, name = mark[0], mark[1:]
            node = replace(node, attrs=node.attrs.without(_MARK))
            if side == "-":
                ends[name] = Port(number)
            elif name in ends:
                node = replace(node, controls=(*node.controls, ends[name]))
        nodes.append(node)
    return replace(main, nodes=tuple(nodes)) if ends else main


boundaries(globals(), __all__)
