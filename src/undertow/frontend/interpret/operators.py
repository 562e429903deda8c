"""Python's operators in captured code: one set of rules, whether operands are traced or known.

A traced value applies our operators by itself. So that an expression of constants means the same, operators and ufuncs
on NumPy values of our dtypes are our functions too: i64 with f32 gives f32, and an integer division by zero is a fault
of the run. Everything else is left to Python: its own numbers, strings and lists, and dtypes that graphs do not have.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.frontend.functions import public as functions
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import NUMPY, Traced
from undertow.ops.op import CATALOGUE
from undertow.types import DTYPES

_DTYPES = frozenset(dtype.numpy for dtype in DTYPES.values())


def _is_array(value: object) -> bool:
    return (type(value) is np.ndarray or isinstance(value, np.generic)) and value.dtype in _DTYPES


def are_constants(operands: Sequence[object]) -> bool:
    """Are they NumPy values of our dtypes, or Python numbers beside at least one of these?"""
    return any(map(_is_array, operands)) and all(_is_array(x) or is_weak(x) for x in operands)


def _by_name(dunder: str) -> Callable[..., Any]:
    """An operator of Python's by the name of its method."""
    python = getattr(operator, dunder)
    ours = getattr(functions, _OURS[dunder])

    def apply(*operands: Any) -> Any:
        is_traced = operands[0].__class__ is Traced  # most of the time
        is_ours = not is_traced and are_constants(operands) and not _are_booleans(operands)
        return (ours if is_ours else python)(*operands)

    return apply


def _are_booleans(operands: Sequence[Any]) -> bool:
    return all(getattr(x, "dtype", type(x)) in (bool, np.bool_) for x in operands)


_OURS = {f"__{name}": row.public for row in CATALOGUE.values() for name in row.names("__")} | {"__pos__": "positive"}
NAMES = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_UNARIES = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
BINARY: dict[type, Callable[[Any, Any], Any]] = {op: _by_name(f"__{name}__") for op, name in NAMES.items()}
INPLACE: dict[type, Callable[[Any, Any], Any]] = {op: getattr(operator, f"__i{n}__") for op, n in NAMES.items()}
UNARY: dict[type, Callable[[Any], Any]] = {op: _by_name(f"__{name}__") for op, name in _UNARIES.items()}
COMPARE: dict[type, Callable[[Any, Any], Any]] = {op: _by_name(f"__{name}__") for op, name in COMPARISONS.items()}


def of_ufunc(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Our function for a ufunc of NumPy's that is called with constants; otherwise the function itself."""
    is_ours = isinstance(function, np.ufunc) and not kwargs and function in NUMPY and are_constants(args)
    return NUMPY[function] if is_ours else function
