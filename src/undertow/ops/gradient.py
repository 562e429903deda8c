"""The derivatives of a row: a *gradient* (cotangents, backwards) and a *tangent* (forwards), over terms.

A gradient row gets the operator as it was applied and a cotangent for each output, None where that is zero (never
all of them), and gives a contribution for each operand: None where it is zero, or the operand is no float, or nobody
wants it. A tangent row gets a tangent for each operand and gives one for each output. Every operator that a row
writes has rows itself, so derivatives of any order exist.

Operators on each element say less: a *slope* for each operand, `(v, *operands, result) -> v * (the partial
derivative)`, is both rows, since the Jacobian is diagonal but for broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from undertow.ir.graph import Attrs
from undertow.ops.term import Term, apply, broadcast_like, sum_like, zeros_like
from undertow.types import Type


@dataclass(frozen=True, slots=True)
class Applied:
    """A node of the graph that is differentiated, as rows see it."""

    op: str
    x: tuple[Term, ...]  # operands
    y: tuple[Term, ...]  # outputs: what the forward run computed is used again
    attrs: Attrs  # the operator's own: `device` is the affair of the writer, for all that it writes
    wanted: tuple[bool, ...]  # which operands need a cotangent; tangent rows do not ask

    def again(self, *operands: Term) -> Term:
        """The same operator on other operands."""
        return apply(self.op, *operands, **self.attrs)


class RowCotangent(NamedTuple):
    """The sparse cotangent of a table that was looked up by rows: `rows[k]` belongs to row `indices[k]`.

    Numbers may repeat (what they name adds up) and be negative; `rows` has the axes of `indices`, then a row's own.
    """

    indices: Term
    rows: Term


def dense(cotangent: Term | RowCotangent, like: Term) -> Term:
    """A cotangent of the shape of the operand `like`."""
    if isinstance(cotangent, Term):
        return cotangent
    return apply("scatter_add", zeros_like(like), cotangent.indices, cotangent.rows, axis=0)


@dataclass(frozen=True, slots=True)
class NoGradient:
    """In place of a row: no float output depends on a float operand, so there is nothing to ask for.

    With a reason: one could ask, and gets an error that says it.
    """

    reason: str = ""


NO_GRADIENT = NoGradient()

Cotangents = Sequence[Term | RowCotangent | None]
Tangents = Sequence[Term | None]
Gradient = Callable[[Applied, tuple[Term | None, ...]], Cotangents]
Tangent = Callable[[Applied, tuple[Term | None, ...]], Tangents]
Slope = Callable[..., Term]
Slopes = Sequence[Slope | None] | NoGradient


class Derivative(NamedTuple):
    """Both rows of an operator."""

    grad: Gradient | NoGradient
    tangent: Tangent | NoGradient


def the(cotangents: Sequence[Term | None]) -> Term:
    """The cotangent of the only output, or the tangent of the only operand that can have one: so there is one."""
    found = cotangents[0]
    assert found is not None
    return found


def single(
    grad: Callable[[Applied, Term], Term | RowCotangent | None], tangent: Callable[[Applied, Term], Term | None]
) -> Derivative:
    """The rows of an operator of one operand and one output, from functions of single terms."""
    return Derivative(lambda at, g: [grad(at, the(g))], lambda at, t: [tangent(at, the(t))])


# -- zero --------------------------------------------------------------------------------------------------


def zero_gradient(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    """Of a piecewise constant function."""
    return [None] * len(at.x)


def zero_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    return [None] * len(at.y)


ZERO = Derivative(zero_gradient, zero_tangent)
NONE = Derivative(NO_GRADIENT, NO_GRADIENT)


# -- linear in the first operand -----------------------------------------------------------------------------


def linear_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    """The same operator, on the tangent; the other operands are sizes and indices."""
    return [at.again(the(t), *at.x[1:])]


def linear(transposed: Callable[[Applied, Term], Term | RowCotangent]) -> Derivative:
    """The rows of an operator that is linear in its first operand, the only one that can be a float."""

    def grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
        return [transposed(at, the(g)), *[None] * (len(at.x) - 1)]

    return Derivative(grad, linear_tangent)


# -- on each element -----------------------------------------------------------------------------------------


def _is_unstretched(kept: Type, dropped: Type) -> bool:
    """Is an operand of type `kept` sure not to be stretched by one of type `dropped`, whatever the run-time sizes?"""
    if dropped.rank > kept.rank:
        return False
    last = kept.shape[kept.rank - dropped.rank :]
    return all(
        d == 1 or (k is not None and (k == d or (k != 1 and d is None)))
        for d, k in zip(dropped.shape, last, strict=True)
    )


def _keeps_shape(at: Applied, k: int) -> bool:
    """Has the result surely the shape of operand k?"""
    return all(_is_unstretched(at.x[k].type, x.type) for j, x in enumerate(at.x) if j != k)


def pointwise(slopes: Slopes) -> Derivative:
    """The rows of an operator that works on each element and broadcasts."""
    if isinstance(slopes, NoGradient):
        return Derivative(slopes, slopes)
    if not any(slopes):
        return ZERO

    def grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
        out: list[Term | None] = []
        for k, slope in enumerate(slopes):
            if slope is None or not at.wanted[k]:
                out.append(None)
            else:
                whole = slope(the(g), *at.x, *at.y)
                out.append(whole if _keeps_shape(at, k) else sum_like(whole, at.x[k]))
        return out

    def tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
        total: Term | None = None
        whole = False
        for k, (slope, v) in enumerate(zip(slopes, t, strict=True)):
            if slope is not None and v is not None:
                part = slope(v, *at.x, *at.y)
                total = part if total is None else total + part
                whole = whole or _keeps_shape(at, k)
        return [total if total is None or whole else broadcast_like(total, at.y[0])]

    return Derivative(grad, tangent)
