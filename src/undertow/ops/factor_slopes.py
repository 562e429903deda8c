"""Derivatives of factorisations: see M. Giles, "An extended collection of matrix derivative results for forward and
reverse mode AD" (2008), but where another source is named.

Between equal eigenvalues or singular values vectors have no derivative; what depends on the values alone has one.
"""

from __future__ import annotations

import numpy as np

from undertow.ops.gradient import Applied, Cotangents, Tangents, the
from undertow.ops.term import (
    Size,
    Term,
    apply,
    broadcast_like,
    cast,
    constant,
    equal,
    expand_dims,
    positions,
    size,
    sizes,
    squeeze,
    swapped,
    total,
    where,
)
from undertow.types import i64

# -- what derivatives are made of ----------------------------------------------------------------------------


def _rows(x: Term, start: Size, stop: Size) -> Term:
    """The rows of matrices from one on, before another."""
    axis = x.type.rank - 2
    if isinstance(start, int) and isinstance(stop, int):
        none: tuple[int | None, ...] = (None,) * axis
        ends = {"starts": (*none, start, None), "stops": (*none, stop, None), "steps": (*none, None, None)}
        return apply("slice", x, **ends)
    first, last = (v if isinstance(v, Term) else constant(v, x, i64) for v in (start, stop))
    return apply("slice_between", x, first, last, axis=axis, step=1)


def _row(x: Term, number: int) -> Term:
    """One row, as the diagonal that it stands for."""
    return squeeze(_rows(x, number, number + 1), x.type.rank - 2)


def _matched(op: str, x: Term) -> Term:
    """A matrix with 1 where the numbers of row and column compare like that, else 0; as wide as x, without batches."""
    places = positions(size(x, x.type.rank - 1), x)
    return cast(apply(op, expand_dims(places, 1), places), x.type.dtype)


def _eye(x: Term) -> Term:
    """As many identity matrices as x has square matrices."""
    return broadcast_like(_matched("equal", x), x)


def _halved(x: Term) -> Term:
    """The lower triangle, with half of the diagonal."""
    return x * (_matched("greater", x) + _matched("equal", x) * 0.5)


def _below(x: Term) -> Term:
    """The triangle below the diagonal."""
    return x * _matched("greater", x)


def _symmetric(x: Term, lower: bool = True) -> Term:
    """The symmetric matrix whose one triangle this is: the factorisations read no more."""
    half = _halved(x if lower else swapped(x))
    return half + swapped(half)


def _one_sided(x: Term, lower: bool = True) -> Term:
    """The transpose of that: a cotangent of both triangles, as one of the triangle that is read."""
    half = _halved(x + swapped(x))
    return half if lower else swapped(half)


def _scaled(x: Term, factors: Term) -> Term:
    """The columns of matrices, each times a factor."""
    return x * expand_dims(factors, factors.type.rank - 1)


def _diagonal(x: Term) -> Term:
    return total(x * _matched("equal", x), (x.type.rank - 1,))


def _ratio(x: Term, y: Term) -> Term:
    """X / y, and 0 where x is 0: between equal eigenvalues nothing moves that depends on these alone."""
    is_zero = equal(x, 0)
    return where(is_zero, 0, x / where(is_zero, 1, y))


def _apart(x: Term, values: Term) -> Term:
    """Each element of matrices divided by how far the value of its column is from that of its row; a diagonal of 0."""
    rank = values.type.rank
    between = expand_dims(values, rank - 1) - expand_dims(values, rank)
    return _ratio(x * (1 - _matched("equal", x)), between)


def _solved(a: Term, b: Term) -> Term:
    return apply("solve", a, b)


# -- derivatives ---------------------------------------------------------------------------------------------


def solve_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    right = _solved(swapped(at.x[0]), the(g))
    return [-(right @ swapped(at.y[0])) if at.wanted[0] else None, right if at.wanted[1] else None]


def solve_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    (a, _), (ta, tb) = at.x, t
    if ta is None:
        return [_solved(a, the((tb,)))]
    moved = ta @ at.y[0]
    return [_solved(a, -moved if tb is None else tb - moved)]


def _inverse_transposed(a: Term) -> Term:
    return _solved(swapped(a), _eye(a))


_OF_LOGARITHM = np.array([0.0, 1.0])  # the sign, beside it, is piecewise constant


def slogdet_grad(at: Applied, g: Term) -> Term:
    (a,) = at.x
    log = total(g * constant(_OF_LOGARITHM, g), (g.type.rank - 1,))
    return _inverse_transposed(a) * expand_dims(log, a.type.rank - 2, a.type.rank - 1)


def slogdet_tangent(at: Applied, t: Term) -> Term:
    rank = t.type.rank
    moved = total(_inverse_transposed(at.x[0]) * t, (rank - 2, rank - 1))
    return expand_dims(moved, rank - 2) * constant(_OF_LOGARITHM, t)


def _both_sides(a: Term, x: Term) -> Term:
    """a^-1 x a^-T."""
    return swapped(_solved(a, swapped(_solved(a, x))))


def cholesky_grad(at: Applied, g: Term) -> Term:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10."""
    (lower,) = at.y
    return _one_sided(_both_sides(swapped(lower), _halved(swapped(lower) @ g)))


def cholesky_tangent(at: Applied, t: Term) -> Term:
    (lower,) = at.y
    return lower @ _halved(_both_sides(lower, _symmetric(t)))


def _joined(*parts: Term) -> Term:
    return apply("concat", *parts, axis=parts[0].type.rank - 2)


def _over(x: Term, upper: Term) -> Term:
    """X times the inverse of an upper triangle."""
    return swapped(_solved(swapped(upper), swapped(x)))


def _q_and_r(at: Applied, packed: Term) -> tuple[Term, Term]:
    rows, columns = sizes(at.x[0])[-2:]
    return _rows(packed, 0, rows), swapped(_rows(packed, rows, rows + columns))


def qr_grad(at: Applied, g: Term) -> Term:
    """S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2012)."""
    (q, r), (gq, gr) = _q_and_r(at, at.y[0]), _q_and_r(at, g)
    moved = r @ swapped(gr) - swapped(gq) @ q
    right = gq + q @ _symmetric(moved)
    return swapped(_solved(r, swapped(right)))


def qr_tangent(at: Applied, t: Term) -> Term:
    q, r = _q_and_r(at, at.y[0])
    moved = _over(t, r)
    inner = swapped(q) @ moved
    turned = _below(inner) - swapped(_below(inner))
    return _joined(moved + q @ (turned - inner), swapped((inner - turned) @ r))


def _values_and_vectors(packed: Term) -> tuple[Term, Term]:
    rank = packed.type.rank
    return _row(packed, 0), _rows(packed, 1, size(packed, rank - 2))


def _spread(values: Term, like: Term) -> Term:
    """Diagonal matrices, as wide as the square matrices beside them."""
    return _scaled(_matched("equal", like), values)


def eigh_grad(at: Applied, g: Term) -> Term:
    (w, v), (gw, gv) = _values_and_vectors(at.y[0]), _values_and_vectors(g)
    inner = _apart(swapped(v) @ gv, w)
    return _one_sided(v @ (inner + _spread(gw, inner)) @ swapped(v), bool(at.attrs["lower"]))


def eigh_tangent(at: Applied, t: Term) -> Term:
    w, v = _values_and_vectors(at.y[0])
    inner = swapped(v) @ _symmetric(t, bool(at.attrs["lower"])) @ v
    return _joined(expand_dims(_diagonal(inner), inner.type.rank - 2), v @ _apart(inner, w))


def _factors(at: Applied, packed: Term) -> tuple[Term, Term, Term]:
    rows, columns = sizes(at.x[0])[-2:]
    end = rows + 1
    return _rows(packed, 1, end), _row(packed, 0), _rows(packed, end, end + columns)


def _outside(u: Term, x: Term) -> Term | None:
    """What is left of x without its part in the space of orthogonal columns; None if these are surely all there are."""
    rows, columns = u.type.shape[-2:]
    return None if rows is not None and rows == columns else x - u @ (swapped(u) @ x)


def svd_grad(at: Applied, g: Term) -> Term:
    """J. Townsend, "Differentiating the singular value decomposition" (2016), equation 19 on."""
    (u, s, v), (gu, gs, gv) = _factors(at, at.y[0]), _factors(at, g)
    in_u, in_v = swapped(u) @ gu, swapped(v) @ gv
    squares = s * s
    middle = _scaled(_apart(in_u - swapped(in_u), squares), s)
    middle = middle + swapped(_scaled(swapped(_apart(in_v - swapped(in_v), squares)), s))
    found = u @ (middle + _spread(gs, in_u)) @ swapped(v)
    column = expand_dims(s, s.type.rank - 1)
    if (left := _outside(u, gu)) is not None:
        found = found + _ratio(left, broadcast_like(column, left)) @ swapped(v)
    if (right := _outside(v, gv)) is not None:
        found = found + u @ swapped(_ratio(right, broadcast_like(column, right)))
    return found


def svd_tangent(at: Applied, t: Term) -> Term:
    u, s, v = _factors(at, at.y[0])
    inner = swapped(u) @ t @ v
    squares, turned = s * s, swapped(inner)
    by_rows, by_columns = swapped(_scaled(turned, s)), _scaled(inner, s)  # S inner, inner S
    tu = u @ _apart(by_columns + swapped(by_columns), squares)
    tv = v @ _apart(by_rows + swapped(by_rows), squares)
    column = expand_dims(s, s.type.rank - 1)
    if (left := _outside(u, t @ v)) is not None:
        tu = tu + _ratio(left, broadcast_like(column, left))
    if (right := _outside(v, swapped(t) @ u)) is not None:
        tv = tv + _ratio(right, broadcast_like(column, right))
    return _joined(expand_dims(_diagonal(inner), s.type.rank - 1), tu, tv)


def pinv_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    """G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)."""
    a, (p,) = at.x[0], at.y
    back, across = swapped(the(g)), swapped(p)
    first = back @ (p @ across)
    second = (across @ p) @ back
    return [first - a @ (p @ first) + second - (second @ p) @ a - across @ the(g) @ across, None]


def pinv_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    (a, _), (ta, _) = at.x, t
    if ta is None:
        return [None]
    (p,) = at.y
    moved, across = swapped(ta), swapped(p)
    first = (p @ across) @ moved
    second = moved @ (across @ p)
    return [first - (first @ a) @ p + second - p @ (a @ second) - p @ ta @ p]
