"""The discrete Fourier transform of complex numbers along an axis. Other transforms are made of it by the front end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import AXIS, INVERSE
from undertow.ops.faults import unless_static
from undertow.ops.gradient import linear
from undertow.ops.op import Op, Value
from undertow.ops.rules import COMPLEX, check_axis, check_kind
from undertow.types import Type


def _rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("fft", types[0], COMPLEX)
    check_axis("fft", attrs.integer("axis"), types[0])
    if types[0].shape[attrs.integer("axis")] == 0:
        raise TypeMismatch(f"a Fourier transform of no elements: {types[0]}", hint="test the length first")
    return (types[0],)


def _fft(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, axis = values[0], attrs.integer("axis")
    if x.shape[axis] == 0:
        raise Fault("a Fourier transform of no elements", hint="test the length first", kind=ValueError)
    if attrs["inverse"]:
        return (np.fft.ifft(x, axis=axis, norm="forward"),)
    return (np.fft.fft(x, axis=axis),)


ROWS: tuple[Op, ...] = (
    Op(
        "fft", 1, _rule, _fft,
        "the sum of x[t] exp(-2 pi i k t / n) for each k along `axis`; with + if `inverse`, and never divided by n",
        linear(lambda at, g: at.again(g)),  # its matrix is symmetric
        unless_static, attrs={**AXIS, **INVERSE}, is_costly=True,
    ),
)  # fmt: skip
