"""Complex numbers and their parts: two floats side by side.

Derivatives follow JAX. The cotangent g of a complex value z is the complex number for which the result changes by the
real part of g * dz. So operators that are differentiable in the complex plane have the slopes that they have for
floats, and what remains is here: parts, and what is made of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs
from undertow.ops.gradient import Applied, Cotangents, Derivative, Tangents, single
from undertow.ops.op import Op, Value
from undertow.ops.rules import COMPLEX, FLOATS, broadcast_shapes, check_dtypes, check_kind, fitting, scalar, unary
from undertow.ops.term import Term, apply, broadcast_like, filled, sizes, sum_like
from undertow.types import Type, c64, c128, f32


def _part(name: str, function: Callable[[Any], Any], doc: str, whole: Callable[[Term, Term], Term]) -> Op:
    """`whole`: the cotangent of a complex number, from that of the part and zeros."""

    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], COMPLEX)
        return (types[0].with_dtype(types[0].dtype.real),)

    def grad(at: Applied, g: Term) -> Term:
        return whole(g, filled(0, sizes(g), g))

    derivative = single(grad, lambda at, t: apply(name, t))
    return Op(name, 1, rule, lambda values, attrs: (scalar(np.array(function(values[0]))),), doc, derivative)


def _complex_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("complex", types, FLOATS)
    return (Type(c64 if dtype is f32 else c128, broadcast_shapes(types)),)


def _complex(values: Sequence[Value], attrs: Attrs) -> Value:
    real, imag = values
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex64 if real.itemsize == 4 else np.complex128)
    out.real, out.imag = real, imag
    return scalar(out)


def _complex_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    assert g[0] is not None
    parts = (apply("real", g[0]), -apply("imag", g[0]))
    rows = zip(parts, at.x, at.wanted, strict=True)
    return [sum_like(part, x) if wanted else None for part, x, wanted in rows]


def _complex_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    beside = next(part for part in t if part is not None)
    real, imag = (filled(0, [], beside) if part is None else part for part in t)
    return [broadcast_like(apply("complex", real, imag), at.y[0])]


ROWS: tuple[Op, ...] = (
    _part("real", np.real, "the real part of a complex number", lambda g, zeros: apply("complex", g, zeros)),
    _part("imag", np.imag, "the imaginary part of a complex number", lambda g, zeros: apply("complex", zeros, -g)),
    unary("conj", np.conjugate, COMPLEX, "the complex conjugate", (lambda v, x, z: apply("conj", v),), takes=None),
    Op(
        "complex", 2, _complex_rule, fitting("complex", _complex),
        "a complex number of its real and imaginary part; operands: real, imag",
        Derivative(_complex_grad, _complex_tangent), operands="real imag",
    ),
)  # fmt: skip
