"""Complex numbers and their parts."""

from __future__ import annotations

from typing import Any

from undertow.errors import TypeMismatch
from undertow.frontend.functions import plain
from undertow.frontend.functions.creation import zeros_like
from undertow.frontend.values.operands import as_operand, floats, numbers, same_dtype, type_of
from undertow.frontend.values.traced import emit
from undertow.tracebacks import boundaries
from undertow.types import said

__all__ = ["angle", "conj", "imag", "real"]


def real(x: Any, /) -> Any:
    """The real part; of numbers that are not complex, themselves.

    >>> real([1 + 2j, 3])
    array([1., 3.])
    """
    value = numbers(x)[0]
    return emit("real", [value])[0] if is_complex(value) else value


def imag(x: Any, /) -> Any:
    """The imaginary part; of numbers that are not complex, zeros.

    >>> imag([1 + 2j, 3])
    array([2., 0.])
    """
    value = numbers(x)[0]
    return emit("imag", [value])[0] if is_complex(value) else zeros_like(value)


def conj(x: Any, /) -> Any:
    """The complex conjugate; of numbers that are not complex, themselves.

    >>> conj([1 + 2j, 3])
    array([1.-2.j, 3.-0.j])
    """
    value = numbers(x)[0]
    return emit("conj", [value])[0] if is_complex(value) else value


def angle(x: Any, /) -> Any:
    """The angle of a complex number with the positive real axis, from -pi to pi.

    >>> angle(1j)
    np.float64(1.5707963267948966)
    """
    value = floats(x)[0]
    return plain.atan2(imag(value), real(value))


def is_complex(x: Any) -> bool:
    """Does it hold complex numbers?"""
    return type_of(as_operand(x)).dtype.kind == "complex"


def joined(x: Any, y: Any) -> Any:
    """`complex(x, y)` of Python: x + y * 1j, where both may be complex."""
    if not (is_complex(x) or is_complex(y)):
        return emit("complex", same_dtype(*floats(x, y)))[0]
    return emit("complex", same_dtype(plain.subtract(real(x), imag(y)), plain.add(imag(x), real(y))))[0]


def refuse_complex(name: str, *values: Any, instead: str = "take x.real, x.imag or abs(x)") -> None:
    """The error of a function that NumPy or Python has for real numbers only."""
    for value in values:
        if is_complex(value):
            raise TypeMismatch(f"{name} does not take {said(type_of(as_operand(value)))}", hint=instead)


boundaries(globals(), __all__)
