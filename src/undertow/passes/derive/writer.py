"""The writer for derivative rows: appends nodes to a draft on behalf of a differentiated node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from undertow.errors import CaptureError, Fault, Span
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import EMPTY, Attrs, Const, Node, Operand, Port
from undertow.ir.names import in_scope
from undertow.ops.gradient import Applied, NoGradient
from undertow.ops.op import evaluate, find
from undertow.ops.term import Term, broadcast_like, zeros_like
from undertow.types import CTL, Type

SMALL = 16  # elements: results up to this size are folded while the graph is written


class DerivativeWriter:
    """Appends nodes to a draft, in the current region and phase."""

    def __init__(self, draft: Draft, waits: bool = True) -> None:
        self.draft = draft
        self.waits = waits  # nodes wait for the current phase, even if all operands are of earlier ones
        self.region = 0
        self.phase = 0
        self.span: Span | None = None
        self.device: str | None = None  # of what is written; a Switch or Merge has none
        self.name = ""  # of all nodes written; if empty, each is called `d.` and its operator

    def beside(self, node: Node, region: int, phase: int | None = None, name: str = "") -> None:
        """Write on behalf of a node from now on."""
        self.region, self.span, self.name = region, node.span, name
        if phase is not None:
            self.phase = phase
        device = node.attrs.get("device")
        self.device = device if isinstance(device, str) else None

    def type_of(self, operand: Operand) -> Type:
        return self.draft.type_of(operand)

    def write(self, op: str, operands: Sequence[Operand], attrs: Attrs) -> tuple[Operand, ...]:
        types = find(op).type([self.type_of(x) for x in operands], attrs)
        if all(isinstance(x, Const) for x in operands) and all(map(self._is_small, types)):
            try:
                with np.errstate(all="ignore"):
                    values = evaluate(op, [x.value for x in operands if isinstance(x, Const)], attrs)
                return tuple(Const(np.asarray(v, t.dtype.numpy)) for v, t in zip(values, types, strict=True))
            except Fault:
                pass  # it must happen at run time, and only if the program gets there
        number = self.add(op, operands, types, attrs)
        return tuple(Port(number, k) for k in range(len(types)))

    def _is_small(self, type_: Type) -> bool:
        sizes = [n for n in type_.shape if isinstance(n, int)]
        return type_.is_static and int(np.prod(sizes, dtype=np.int64)) <= SMALL

    def add(
        self,
        op: str,
        inputs: Sequence[Operand],
        types: tuple[Type, ...],
        attrs: Attrs = EMPTY,
        controls: tuple[Port, ...] = (),
        name: str = "",
    ) -> int:
        """A node that waits for the current phase: nothing is computed before it is needed.

        Switch and Merge compute nothing, so they wait for their operands alone (and a Merge takes no control edges).
        """
        full = self.name
        if not full:
            full = in_scope(name or f"d.{op}", self.draft.regions, self.region)
        if self.device is not None and op not in ("switch", "merge"):
            attrs |= {"device": self.device}
        node = Node(op, tuple(inputs), types, full, self.region, attrs, controls, self.span)
        waits = self.waits and op not in ("switch", "merge")
        return self.draft.add(self.draft.triggered(node, self.phase, waits))

    def term(self, operand: Operand) -> Term:
        return Term(self, operand)

    def applied(self, copy: Copy, number: int, wanted: tuple[bool, ...]) -> Applied:
        """A copied node in the form that derivative rows take."""
        node = copy.graph.nodes[number]
        x = tuple(self.term(copy.operand(operand)) for operand in node.inputs)
        y = tuple(self.term(copy.ports[Port(number, k)]) for k in range(len(node.types)))
        return Applied(node.op, x, y, node.attrs.without("device"), wanted)

    def port(self, operand: Operand) -> Port:
        """The operand as a port; a constant becomes a node of the current region."""
        if isinstance(operand, Port):
            return operand
        return Port(self.add("identity", (operand,), (operand.type,)))

    def zero(self, like: Port) -> Port:
        """A zero of the type of a value, live where the value is."""
        region, self.region = self.region, self.draft.home(like)
        zero = self.port(zeros_like(self.term(like)).operand)
        self.region = region
        return zero

    def fitted(self, term: Term, like: Operand) -> Port:
        """A tangent of a type that its value's type accepts: broadcast where the value's sizes are better known."""
        if not self.type_of(like).accepts(term.type):
            term = broadcast_like(term, self.term(like))
        return self.port(term.operand)

    def join(self, tokens: Sequence[Port]) -> Port:
        """One order token after all of these; the pivot where there are none."""
        if not tokens:
            return self.draft.make_pivot(self.region, self.phase)
        if len(tokens) == 1:
            return tokens[0]
        return Port(self.add("identity", tokens[:1], (CTL,), controls=tuple(tokens[1:]), name="d.done"))


X = TypeVar("X")


def joined_up(
    writer: DerivativeWriter,
    parts: dict[int, list[X]],
    join: Callable[[list[X]], X],
    merge: Callable[[X, X], X],
    top: int = 0,
) -> X:
    """What all regions below `top` give, by region, as one: joined in each, and merged where a branch ends.

    Both write into the current region; `join` of nothing is what a side gives that has no part.
    """
    regions = writer.draft.regions
    for then in reversed(range(1, len(regions), 2)):
        if top not in (then, then + 1) and (then in parts or then + 1 in parts):
            sides: list[X] = []
            for region in (then, then + 1):
                writer.region = region
                sides.append(join(parts.pop(region, [])))
            parent = regions[then].parent
            assert parent is not None
            writer.region = parent
            parts.setdefault(parent, []).append(merge(sides[0], sides[1]))
    writer.region = top
    return join(parts.pop(top, []))


def no_row(kind: str, node: Node, row: NoGradient, hint: str) -> CaptureError:
    """The error of an operator that has no gradient, or no tangent."""
    reason = f": {row.reason}" if row.reason else ""
    return CaptureError(f"`{node.op}` has no {kind}{reason}", node.span, hint=hint)
