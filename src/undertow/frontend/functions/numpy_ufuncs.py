"""NumPy's ufuncs on traced values: our functions, with NumPy's dtypes where booleans or integers have others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import elementwise, plain
from undertow.frontend.functions import numpy_meanings as meanings
from undertow.frontend.functions import numpy_numbers as rarer
from undertow.frontend.functions.numpy_rows import is_harmless
from undertow.frontend.values.operands import as_operand, floats, is_weak, type_of
from undertow.types import DTYPES, INEXACT, bool_, dtype_of, said


def _degrees(x: Any) -> Any:
    return plain.multiply(x, 180.0 / np.pi)


def _radians(x: Any) -> Any:
    return plain.multiply(x, np.pi / 180.0)


def log_add(x: Any, y: Any) -> Any:
    apart = plain.abs(plain.subtract(x, y))
    larger = plain.maximum(x, y)
    both = plain.add(larger, plain.log1p(plain.exp(plain.negative(apart))))
    return plain.where(plain.equal(x, y), plain.add(larger, math.log(2.0)), both)  # infinities of one sign


def _divmod(x: Any, y: Any) -> Any:
    return plain.floor_divide(x, y), plain.remainder(x, y)


def _known(which: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """np.fmax or np.fmin: the number, where the other is nan."""

    def pick(x: Any, y: Any) -> Any:
        return plain.where(plain.isnan(x), y, plain.where(plain.isnan(y), x, which(x, y)))

    return pick


def hypot(*coordinates: Any) -> Any:
    """Divided by the largest first, so that squares do not overflow."""
    parts = [plain.abs(x) for x in floats(*coordinates)]
    largest = parts[0]
    for part in parts[1:]:
        largest = plain.maximum(largest, part)
    is_usual = plain.logical_and(plain.greater(largest, 0), plain.isfinite(largest))
    scale = plain.where(is_usual, largest, 1.0)
    total: Any = 0.0
    for part in parts:
        total = plain.add(total, plain.square(plain.divide(part, scale)))
    # Beside an infinity, nan does not count; of zeros, the root has no slope.
    found = plain.multiply(plain.sqrt(plain.where(plain.equal(total, 0), 1.0, total)), scale)
    found = plain.where(plain.equal(total, 0), 0.0, found)
    for part in parts:
        found = plain.where(plain.isinf(part), part, found)
    return found


def _heaviside(x: Any, half: Any) -> Any:
    x, half = floats(x, half) if not is_weak(half) else (floats(x)[0], half)
    side = elementwise.astype(plain.greater(x, 0), meanings.dtype_in(x))
    step = plain.where(plain.equal(x, 0), half, side)
    return plain.where(plain.isnan(x), x, step)


def _float_power(x: Any, y: Any) -> Any:
    return elementwise.pow(elementwise.astype(x, np.float64), elementwise.astype(y, np.float64))


COMPOSED: dict[str, Callable[..., Any]] = {
    "fabs": plain.abs, "degrees": _degrees, "rad2deg": _degrees, "radians": _radians, "deg2rad": _radians,
    "logaddexp": log_add, "divmod": _divmod, "fmax": _known(plain.maximum), "fmin": _known(plain.minimum),
    "conjugate": meanings.conjugate, "hypot": hypot, "heaviside": _heaviside, "float_power": _float_power,
    "fmod": rarer.remainder_of_c, "ldexp": rarer.scaled_by_power, "frexp": rarer.fraction_and_power,
    "modf": rarer.parts_of, "logaddexp2": rarer.log_add_2, "signbit": rarer.signbit, "spacing": rarer.spacing,
    "lcm": rarer.least_multiple,
}  # fmt: skip
# New in NumPy 2.2.
COMPOSED.update(
    {
        name: function
        for name, function in (("matvec", rarer.matrix_vector), ("vecmat", rarer.vector_matrix))
        if hasattr(np, name)
    }
)


def _shadow(value: Any) -> Any:
    """What NumPy decides the dtype of a result by: a dtype, or the class of a Python number."""
    return type(value) if isinstance(value, (bool, int, float, complex)) else type_of(value).dtype.numpy


@cache
def _dtypes_in_numpy(ufunc: Any, *shadows: Any) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the results of a ufunc. An empty array of each dtype stands for an operand."""
    empty = [np.zeros(0, s) if isinstance(s, np.dtype) else s(1) for s in shadows]
    results = ufunc(*empty)
    return tuple(r.dtype for r in (results if isinstance(results, tuple) else (results,)))


def apply(ufunc: Any, function: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc of NumPy's on traced values: our function, with NumPy's dtypes where booleans or integers have others."""
    dtype = kwargs.pop("dtype", None)
    for name, value in kwargs.items():
        if not is_harmless(ufunc.__name__, name, value):
            raise CaptureError(
                f"np.{ufunc.__name__} with {name}= cannot be captured",
                hint=f"assign the result instead: y = np.{ufunc.__name__}(x)"
                if name == "out"
                else "use np.where on the result"
                if name == "where"
                else "leave it out",
            )
    if dtype is not None:
        return _in_dtype(ufunc, function, inputs, dtype_of(dtype).numpy)
    if len(inputs) != ufunc.nin:
        raise CaptureError(
            f"np.{ufunc.__name__} with {len(inputs)} arguments cannot be captured",
            hint=f"it takes {ufunc.nin}; assign the result instead of an output argument",
        )
    operands = [x if is_weak(x) else as_operand(x) for x in inputs]
    kinds = {type_of(as_operand(x)).dtype.kind for x in operands}
    if kinds & set(INEXACT):
        if "complex" in kinds:
            _refuse_unknown(ufunc, operands)
        return function(*operands)
    if ufunc.signature is not None:
        return meanings.product(f"np.{ufunc.__name__}", function)(*operands)
    wanted = _refuse_unknown(ufunc, operands)
    ours = {dtype.numpy for dtype in DTYPES.values()}
    if not set(wanted) <= ours or ufunc is np.reciprocal:
        _refuse_small(ufunc, wanted[0])
    if wanted[0].kind == "f":
        operands = [elementwise.astype(x, wanted[0]) for x in operands]
    result = function(*operands)
    if wanted == (np.dtype(bool),) and meanings.dtype_in(result) != bool_:
        return elementwise.astype(result, bool_)
    return result


def _in_dtype(ufunc: Any, function: Callable[..., Any], inputs: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
    """`np.add(x, y, dtype=np.float32)`: computed in that dtype."""
    for x in inputs:
        if not is_weak(x) and not np.can_cast(type_of(as_operand(x)).dtype.numpy, dtype, "same_kind"):
            raise TypeMismatch(
                f"np.{ufunc.__name__} with dtype={dtype.name} does not take {said(type_of(as_operand(x)))}",
                hint="convert the result: y.astype(...)",
            )
    result = apply(ufunc, function, *(elementwise.astype(x, dtype) for x in inputs))
    if meanings.dtype_in(result) != dtype_of(dtype):
        raise CaptureError(
            f"np.{ufunc.__name__} with dtype={dtype.name} cannot be captured", hint="convert the result: y.astype(...)"
        )
    return result


def _refuse_unknown(ufunc: Any, operands: list[Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the results in NumPy, which must know the ufunc for these operands."""
    if ufunc.signature is not None:
        return ()
    try:
        return _dtypes_in_numpy(ufunc, *map(_shadow, operands))
    except TypeError as fault:
        is_complex = any(type_of(as_operand(x)).dtype.kind == "complex" for x in operands)
        raise TypeMismatch(
            f"np.{ufunc.__name__} does not take these operands: {' '.join(str(fault).split())}",
            hint="take x.real, x.imag or abs(x)"
            if is_complex
            else "convert them with x.astype(np.int64), or use ut.logical_xor, ut.logical_not",
        ) from None


def _refuse_small(ufunc: Any, dtype: np.dtype[Any]) -> None:
    raise TypeMismatch(
        f"np.{ufunc.__name__} of these operands is {dtype.name} in NumPy, which graphs do not compute",
        hint="convert them first, as in x.astype(np.float64)",
    )
