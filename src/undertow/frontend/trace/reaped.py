"""Definitions of collectors: a call of a function, and an array of what all activations below it sow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.functions.elementwise import astype
from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.definition import Check, Definition
from undertow.frontend.trace.derivative import Adapted, Wrapped
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand
from undertow.frontend.values.traced import Traced, is_traced, operand
from undertow.ir.graph import Attrs, Port
from undertow.ir.sown import entered_within, sown_below
from undertow.ir.walk import reachable
from undertow.types import Type, i64, said


class Reaped(Adapted):
    """The value of a function, and an array with a row for each place where it, or what it calls, has sown."""

    parameters = ("n", "args", "kwargs")

    def __init__(self, inner: Definition, adds: bool) -> None:
        super().__init__(inner, f"reap({inner.name})")
        self.adds = adds
        self.answering = _Answering(inner)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        length, positional, named = args
        return self.write(session, length, positional, named)

    def write(self, session: Session, n: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """Write the call of the function, and what is gathered."""
        length = operand(as_operand(astype(n, i64)))
        value = yield session.call(self.inner, args, kwargs)
        leaves, _ = tree.flatten(value, is_traced)
        if not leaves:  # it only sows; a collector stands beside a call with a result
            done = yield session.call(self.answering, args, kwargs)
            leaves = [done]
        builder = session.ctx.open_builder
        call = builder.origin(leaves[0].port).node
        assert builder.nodes[call].op == "call"
        row = _row_type(session, self.inner, builder.nodes[call].attrs.text("callee"))
        types = (row.with_shape((None if isinstance(n, Traced) else int(n), *row.shape)),)
        number = builder.add("reap", [Port(call), length], types, Attrs(add=self.adds), session.ctx.span, "sown")
        return value, Traced(builder, Port(number))


def _row_type(session: Session, definition: Definition, callee: str) -> Type:
    """The type of all that is sown below the call."""
    graphs = session.graphs
    unfinished = [name for name in _names(session, callee) if name not in graphs]
    if unfinished:
        raise CaptureError(
            f"`{definition.name}` calls itself through ut.reap: what it sows is not known yet",
            hint="take ut.reap outside of the recursion",
        )
    found: tuple[Type, bool, Span | None] | None = None
    for graph, node in sown_below(graphs, callee):
        own = graph.type_of(node.inputs[1])
        is_weak = bool(node.attrs.get("weak", False))
        if found is None:
            found = own, is_weak, node.span
            continue
        type_, was_weak, _ = found
        both = _joined(type_, was_weak, own, is_weak)
        if both is None:
            raise TypeMismatch(
                f"ut.sow gives {said(own)} here, and {said(type_)} elsewhere below the same ut.reap",
                node.span,
                hint="all values have one dtype and shape; ut.astype converts",
            )
        found = both, is_weak and was_weak, node.span
    if found is None:
        raise CaptureError(
            f"nothing is sown below ut.reap({definition.short_name}, ...)",
            hint="write ut.sow(value, at=k) in a function that it calls",
        )
    if not found[0].is_static:
        raise TypeMismatch(
            f"ut.sow gives {said(found[0])}: the length is known only at run time, and rows of an array have one",
            found[2],
            hint="sow arrays of known shape; or pad them to one",
        )
    return found[0]


def _names(session: Session, callee: str) -> list[str]:
    graphs = session.graphs
    return [*reachable([callee], lambda name: entered_within(graphs[name]) if name in graphs else ())]


def _joined(a: Type, a_weak: bool, b: Type, b_weak: bool) -> Type | None:
    """The type of both: a Python number takes the dtype of the other, unless that would lose a fraction."""
    if a.shape != b.shape:
        return None
    if a.dtype == b.dtype:
        return a
    kinds = ("bool", "int", "float", "complex")
    if b_weak and kinds.index(b.dtype.kind) <= kinds.index(a.dtype.kind):
        return a
    if a_weak and kinds.index(a.dtype.kind) <= kinds.index(b.dtype.kind):
        return b
    return None


class _Answering(Wrapped):
    """A function without a result, with one."""

    hands_key_on = True

    def __init__(self, inner: Definition) -> None:
        super().__init__(inner, inner.name)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        yield session.call(self.inner, args, kwargs)
        return True
