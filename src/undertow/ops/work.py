"""How much work an operator is, and how large a value: estimates, for those who choose where things run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from undertow.types import Shape, Type

_UNKNOWN = 16  # elements along an axis whose length only the run knows
_CUBIC = ("solve", "inv", "slogdet", "cholesky", "qr", "eigh", "svd", "pinv")


def elements_of(shape: Shape) -> int:
    return prod(n if isinstance(n, int) else _UNKNOWN for n in shape)


def bytes_of(type_: Type) -> int:
    """The bytes of a value; an order token has none.

    >>> from undertow.types import CTL, f64
    >>> bytes_of(f64[3, None]), bytes_of(CTL)
    (384, 0)
    """
    return elements_of(type_.shape) * type_.dtype.size


def operations(op: str, operands: Sequence[Type], results: Sequence[Type]) -> int:
    """The arithmetic operations of an operator: of a product all, of others one for each element that it touches.

    >>> from undertow.types import f64
    >>> operations("matmul", [f64[2, 3], f64[3, 5]], [f64[2, 5]])
    60
    """
    touched = max((elements_of(type_.shape) for type_ in (*operands, *results)), default=1)
    if op == "matmul":
        return 2 * sum(elements_of(type_.shape) for type_ in results) * elements_of(operands[0].shape[-1:])
    if op in _CUBIC and operands:
        return touched * elements_of(operands[0].shape[-1:])
    return touched
