"""Sums of pieces: concatenates the gradients of slices of one value instead of padding and adding them.

The gates of a cell are slices of one product; the gradient of each is zero but for its slice. Added up one by one, each
costs several passes over the whole; put side by side they are one pass, and engines can write each into its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undertow.ir.draft import Draft
from undertow.ir.graph import Attrs, Const, Node, Operand, Port
from undertow.ops.term import Term

MOST = 32  # pieces of one sum
_LARGEST_GAP = 4096  # elements of zeros that are written down


class _Piece(NamedTuple):
    first: int
    last: int
    value: Operand


def added(draft: Draft, x: Term, y: Term) -> Term:
    """X + y, by elements; zeros that were put around a piece have no sign."""
    if x.type == y.type and x.type.is_static:
        a, b = _pieces(draft, x.operand), _pieces(draft, y.operand)
        if a is not None and b is not None and a[0] == b[0] and len(a[1]) + len(b[1]) <= MOST:
            parts = _side_by_side(x, a[0], sorted((*a[1], *b[1]), key=lambda piece: piece.first))
            if parts is not None:
                (made,) = x.writer.write("concat", parts, Attrs(axis=a[0]))
                return Term(x.writer, made)
    return x + y


def _pieces(draft: Draft, operand: Operand) -> tuple[int, list[_Piece]] | None:
    """An axis, and what stands where along it between zeros."""
    node = draft.nodes[operand.node] if isinstance(operand, Port) else None
    if node is None or node.controls:
        return None
    if node.op == "unslice":
        return _cut(node)
    if node.op != "concat":
        return None
    axis, at, found = node.attrs.integer("axis"), 0, []
    for part in node.inputs:
        length = draft.type_of(part).shape[axis]
        assert isinstance(length, int)
        if not (isinstance(part, Const) and not part.value.any()):
            found.append(_Piece(at, at + length, part))
        at += length
    return axis, found


def _cut(node: Node) -> tuple[int, list[_Piece]] | None:
    """The one axis along which something smaller was put into zeros."""
    starts, stops, steps = (node.attrs[name] for name in ("starts", "stops", "steps"))
    assert isinstance(starts, tuple) and isinstance(stops, tuple) and isinstance(steps, tuple)
    found = None
    for axis, (length, *cut) in enumerate(zip(node.types[0].shape, starts, stops, steps, strict=True)):
        place = range(*slice(*cut).indices(length)) if isinstance(length, int) else range(0)
        if isinstance(length, int) and place == range(length):
            continue
        if found is not None or place.step != 1 or not place:
            return None
        found = axis, [_Piece(place.start, place.stop, node.inputs[0])]
    return found


def _side_by_side(like: Term, axis: int, pieces: list[_Piece]) -> list[Operand] | None:
    """Pieces and the zeros between them; nothing where two of them overlap."""
    shape = [n for n in like.type.shape if isinstance(n, int)]
    parts: list[Operand] = []
    at = 0
    for piece in (*pieces, _Piece(shape[axis], shape[axis], Const(np.False_))):
        if piece.first < at:
            return None
        if piece.first > at:
            gap = [*shape[:axis], piece.first - at, *shape[axis + 1 :]]
            if np.prod(gap) > _LARGEST_GAP:
                return None
            parts.append(Const(np.zeros(gap, like.type.dtype.numpy)))
        parts.append(piece.value)
        at = piece.last
    return parts[:-1]
