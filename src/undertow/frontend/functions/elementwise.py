"""Element-wise functions: arithmetic, and the usual functions of floats. Booleans count as 0 and 1; where the
result is a float, integers become f64.

Here are the functions that do more than apply one operator; the others are made from rows, in `plain`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import plain
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand, as_weak, convert, is_weak, numbers, type_of
from undertow.frontend.values.traced import Traced, emit, is_traced
from undertow.tracebacks import boundaries
from undertow.types import c128, dtype_of, f64, i64

__all__ = ["astype", "clip", "positive", "pow", "round", "stop_gradient"]


_WIDE = {"int": i64, "float": f64, "complex": c128}  # the dtypes of Python's numbers


def pow(x: Any, y: Any, /) -> Any:
    """`x ** y`; an integer to a negative integer power is a fault.

    >>> pow(2, [3, 10])
    array([   8, 1024])
    """
    base, exponent = numbers(x, y)
    if isinstance(exponent, Traced):
        return emit("power", [base, exponent])[0]
    if type_of(exponent).dtype.kind == "int" and np.any(exponent < 0):
        raise TypeMismatch(
            f"an integer cannot be raised to the power {y}",
            hint="make the base a float, as in 2.0 ** n or ut.astype(x, ut.f64) ** n",
        )
    # The exponent of a square is so common, and squaring so much cheaper, that it has a row.
    return (emit("square", [base]) if is_weak(y) and y == 2 else emit("power", [base, exponent]))[0]


def stop_gradient(x: Any, /) -> Any:
    """The same value, or container of values, treated as a constant by derivatives."""
    leaves, structure = tree.flatten(x, is_traced)
    return tree.unflatten(structure, [emit("stop_gradient", [as_operand(leaf)])[0] for leaf in leaves])


def positive(x: Any, /) -> Any:
    """+x: x itself, booleans as integers."""
    return numbers(x)[0]


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Limited to the range from min to max.

    >>> clip([-1, 5, 99], 0, 10)
    array([ 0,  5, 10])
    """
    out = positive(x)
    if min is not None:
        out = plain.maximum(out, min)
    return out if max is None else plain.minimum(out, max)


def round(x: Any, /, decimals: int = 0) -> Any:
    """Rounded to this many decimals, halves to even; integers stay as they are.

    >>> round([0.5, 1.5, -2.7])
    array([ 0.,  2., -3.])
    """
    value = numbers(x)[0]
    if type_of(value).dtype.kind == "complex":
        real, imag = (round(emit(part, [value])[0], decimals) for part in ("real", "imag"))
        return emit("complex", [real, imag])[0]
    is_whole = type_of(value).dtype.kind == "int"
    if is_whole and decimals >= 0:
        return value
    if decimals == 0:
        return emit("round", [value])[0]
    # As NumPy: powers of ten below 1 are not exact, so it divides by those above 1.
    if decimals > 0:
        scale = 10.0**decimals
        return plain.divide(emit("round", [plain.multiply(value, scale)])[0], scale)
    scale = 10.0**-decimals
    rounded = plain.multiply(emit("round", [plain.divide(value, scale)])[0], scale)
    return convert(rounded, type_of(value).dtype) if is_whole else rounded


def astype(x: Any, dtype: Any, /) -> Any:
    """Converted to another dtype. Floats lose their fraction and saturate, nan becomes 0; integers wrap.

    >>> astype([1.9, -1.9, 1e99], "i32")
    array([         1,         -1, 2147483647], dtype=int32)
    """
    return convert(as_operand(x), dtype_of(dtype))


def python_number(value: Any) -> Any:
    """A single number as Python's: an f32 with 53 bits, which beside another f32 is an f32 again; so is an i32."""
    value = as_operand(value)
    kind = type_of(value).dtype.kind
    return value if kind == "bool" else as_weak(convert(value, _WIDE[kind]))


boundaries(globals(), __all__)
