"""The f of `x.update(f, v)`: captured as a graph of its own, which the operator of the assignment holds as text.

Values from outside become operands of the assignment, as those of a map's body become operands of the map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.control.restart import Halted, until_fixpoint
from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type, port_in
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.traced import Context, Traced, is_traced
from undertow.ir.dump import dump
from undertow.ir.graph import FunctionGraph, Library
from undertow.ir.literal import INLINE, dump_constants
from undertow.ir.walk import entered_by, reachable
from undertow.ops.effects import is_stateful
from undertow.ops.evaluate import may_evaluate
from undertow.types import Type


@dataclass(slots=True, eq=False)
class _Body:
    """What turns out while f is captured, and must not: StartOver sets it."""

    kind: str = "update"
    needs_order: bool = False
    needs_key: bool = False


def write_f(
    ctx: Context, name: str, held: Type, values: Sequence[Any], call: Callable[[list[Any], dict[str, Any]], Work]
) -> Work:
    """Capture f(old, *values) as a library; returns its text, and the values from outside that it takes, too."""
    types = [held, *map(leaf_type, values)]
    parent, span, session, body = ctx.open_builder, ctx.span, ctx.session, _Body()

    def refused(what: str, hint: str) -> CaptureError:
        return CaptureError(f"the function that updates variable `{name}` {what}", span, hint=hint)

    def attempt() -> Work:
        ctx.span = span
        if body.needs_order:
            raise refused(
                "acts on the world: it prints, asserts, or uses a variable that the program assigns",
                "an update is one step of a pure function: act before it or after, and pass values as arguments",
            )
        if body.needs_key:
            raise refused("draws random numbers", "draw them before, and pass them: x.update(f, ut.random.uniform())")
        inner = Builder("main", "main", span, context=parent.context, body=body, parent=parent)
        weak = [False, *map(is_number, values)]
        rows = zip(types, ("old", *_names(len(values))), weak, strict=True)
        params = [Traced(inner, inner.param(type, label), is_weak) for type, label, is_weak in rows]
        try:
            ctx.builder = inner
            try:
                result = yield call(params, {})
            except Halted:
                raise refused("raises an exception whenever it runs", "return the new value on some path") from None
            ctx.span = span
            leaves, structure = tree.flatten(result, is_traced)
            if structure != (tree.LEAF,):
                raise TypeMismatch(
                    f"the function that updates variable `{name}` returns {describe(result)}",
                    span,
                    hint="return the new value of the variable: one number or array",
                )
            graph = inner.finish([port_in(leaves[0], 0, ctx, held.dtype)])
            return graph, [Traced(*outer) for outer in inner.lifted]
        finally:
            ctx.builder = parent
            inner.is_open = False

    graph, besides = yield until_fixpoint(body, attempt)
    return _text(graph, session.graphs, refused), besides


def _names(count: int) -> list[str]:
    return ["value"] if count == 1 else [f"value{number}" for number in range(count)]


def _text(graph: FunctionGraph, graphs: dict[str, FunctionGraph], refused: Callable[[str, str], CaptureError]) -> str:
    """The graph and all that it enters, without spans: where it stands is said by the span of the assignment."""
    known = {**graphs, graph.name: graph}
    names = reachable([graph.name], lambda name: entered_by(known[name]) if name in known else [])
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        raise refused(
            f"calls `{missing}`, which is being captured", "an update is a pure function: it cannot recur here"
        )
    library = Library({name: known[name] for name in names}, graph.name)
    for node in (node for part in library.functions.values() for node in part.nodes):
        if is_stateful(node.op):
            what = f"reads variable `{node.attrs['variable']}`"
            raise refused(what, "read it before, and pass the value: x.update(f, y.read())")
        if not may_evaluate(node):
            raise refused(f"contains a `{node.op}`", "compute it before, and pass the value as an argument")
    if dump_constants(library):
        raise refused(
            f"contains a constant array of more than {INLINE} elements", "pass the array as an argument of the update"
        )
    return dump(library, spans=False)
