"""`complex()` and the functions of Python's `cmath` on traced numbers."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

from undertow.frontend.functions import public as functions
from undertow.frontend.functions.elementwise import python_number
from undertow.frontend.functions.parts import is_complex, joined
from undertow.frontend.values.operands import as_weak
from undertow.types import c128

# Those that are one operator.
_PLAIN = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isfinite", "isinf", "isnan", "log10",
    "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip


def complex_number(real: Any = 0, imag: Any = 0) -> Any:
    """Python's complex(): its arguments may be complex themselves."""
    if is_complex(real) and isinstance(imag, int) and imag == 0:
        return _number(real)
    return as_weak(functions.astype(joined(python_number(real), python_number(imag)), c128))


def _number(value: Any) -> Any:
    return as_weak(functions.astype(value, c128))


def _plain(name: str) -> Callable[[Any], Any]:
    def compute(z: Any) -> Any:
        found = getattr(functions, name)(_number(z))
        return as_weak(found) if found.dtype == c128 else found

    return compute


def _log(z: Any, base: Any = None) -> Any:
    found = functions.log(_number(z))
    return as_weak(found if base is None else functions.divide(found, functions.log(_number(base))))


def _phase(z: Any) -> Any:
    return as_weak(functions.angle(_number(z)))


def _polar(z: Any) -> tuple[Any, Any]:
    return as_weak(functions.abs(_number(z))), _phase(z)


def _rect(r: Any, phi: Any) -> Any:
    r, phi = python_number(r), python_number(phi)
    return complex_number(functions.multiply(r, functions.cos(phi)), functions.multiply(r, functions.sin(phi)))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    x, y = _number(a), _number(b)
    larger = functions.maximum(functions.abs(x), functions.abs(y))
    bound = functions.maximum(functions.multiply(rel_tol, larger), abs_tol)
    finite = functions.logical_and(functions.isfinite(x), functions.isfinite(y))
    near = functions.logical_and(finite, functions.less_equal(functions.abs(functions.subtract(x, y)), bound))
    return functions.logical_or(functions.equal(x, y), near)


CMATH: dict[Any, Callable[..., Any]] = {
    **{getattr(cmath, name): _plain(name) for name in _PLAIN},
    cmath.log: _log, cmath.phase: _phase, cmath.polar: _polar, cmath.rect: _rect, cmath.isclose: _isclose,
}  # fmt: skip
