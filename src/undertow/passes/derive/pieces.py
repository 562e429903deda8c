"""Sums of pieces: concatenates the gradients of slices of one value instead of padding and adding them.

The gates of a cell are slices of one product; the gradient of each is zero but for its slice. Padding and adding costs
several passes over the whole for each slice; a concatenation is one pass, and engines can write each slice in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undertow.ir.draft import Draft
from undertow.ir.graph import Attrs, Const, Node, Operand, Port
from undertow.ops.term import Term

MOST = 32  # pieces of one sum
_LARGEST_GAP = 4096  # elements of one constant of zeros


class _Piece(NamedTuple):
    first: int
    last: int
    value: Operand


def added(draft: Draft, x: Term, y: Term) -> Term:
    """The sum x + y; that padding turns -0.0 into 0.0 in a sum is ignored."""
    if x.type == y.type and x.type.is_static:
        a, b = _pieces(draft, x.operand), _pieces(draft, y.operand)
        if a is not None and b is not None and a[0] == b[0] and len(a[1]) + len(b[1]) <= MOST:
            parts = _side_by_side(x, a[0], sorted((*a[1], *b[1]), key=lambda piece: piece.first))
            if parts is not None:
                (joined,) = x.writer.write("concat", parts, Attrs(axis=a[0]))
                return Term(x.writer, joined)
    return x + y


def _pieces(draft: Draft, operand: Operand) -> tuple[int, list[_Piece]] | None:
    """The axis along which a value consists of pieces with zeros between them, and the pieces."""
    node = draft.nodes[operand.node] if isinstance(operand, Port) else None
    if node is None or node.controls:
        return None
    if node.op == "unslice":
        return _cut(node)
    if node.op != "concat":
        return None
    axis, at, pieces = node.attrs.integer("axis"), 0, []
    for part in node.inputs:
        length = draft.type_of(part).shape[axis]
        assert isinstance(length, int)
        if not (isinstance(part, Const) and not part.value.any()):
            pieces.append(_Piece(at, at + length, part))
        at += length
    return axis, pieces


def _cut(node: Node) -> tuple[int, list[_Piece]] | None:
    """The one axis along which `unslice` pads its operand, and that piece; None if there are several, or strides."""
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
    """The pieces and the zeros between them; None if two pieces overlap."""
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
