"""NumPy's and math's rarer functions on each element: remainders, parts of floats, divisors, choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, parts, plain, selecting
from undertow.frontend.functions.reduction import cumulative_sum
from undertow.frontend.values.operands import (
    as_bool,
    as_operand,
    convert,
    dims,
    floats,
    integers,
    numbers,
    same_dtype,
    type_of,
)
from undertow.frontend.values.traced import effect
from undertow.types import f64, i32

_PARTS = 3  # of a power of two: in one part it would overflow, or be rounded to a subnormal float too soon
_MOST_POWER = 2200  # beyond it every float is infinite, or 0


def remainder_of_c(x: Any, y: Any) -> Any:
    """np.fmod: the remainder with the sign of x."""
    a, b = numbers(x, y)
    rest = plain.remainder(plain.abs(a), plain.abs(b))
    if type_of(a).dtype.kind == "float":
        return plain.copysign(rest, a)
    return plain.where(plain.less(a, 0), plain.negative(rest), rest)


def nearest_remainder(x: Any, y: Any) -> Any:
    """math.remainder: x less the nearest multiple of y, the even one of two; as CPython computes it, exactly."""
    a, b = floats(x, y)
    size, step = plain.abs(a), plain.abs(b)
    rest = plain.remainder(size, step)
    missing = plain.subtract(step, rest)
    halves = plain.remainder(plain.multiply(plain.subtract(size, rest), 0.5), step)
    tied = plain.subtract(rest, plain.multiply(halves, 2.0))
    found = plain.where(plain.less(rest, missing), rest, plain.where(plain.greater(rest, missing), -missing, tied))
    is_all = plain.logical_and(plain.isfinite(a), plain.isinf(b))
    return plain.where(is_all, a, plain.multiply(plain.copysign(1.0, a), found))


def signbit(x: Any) -> Any:
    """Is the sign bit set? That of -0.0 is."""
    (value,) = floats(x)
    return plain.less(plain.copysign(1.0, value), 0.0)


def scaled_by_power(x: Any, n: Any) -> Any:
    """np.ldexp: `x * 2**n`."""
    (value,) = floats(x)
    dtype = type_of(value).dtype
    power = plain.minimum(plain.maximum(convert(as_operand(n), f64), -_MOST_POWER), _MOST_POWER)
    part = plain.trunc(plain.divide(power, _PARTS))
    for each in (part, part, plain.subtract(power, plain.multiply(part, _PARTS - 1))):
        value = plain.multiply(value, convert(elementwise.pow(2.0, each), dtype))
    return value


def fraction_and_power(x: Any) -> tuple[Any, Any]:
    """np.frexp: x as a number from 0.5 to below 1, times a power of two."""
    (value,) = floats(x)
    size = plain.abs(value)
    is_usual = plain.logical_and(plain.isfinite(value), plain.not_equal(value, 0))
    power = plain.add(plain.floor(plain.log2(plain.where(is_usual, size, 1.0))), 1.0)
    power = elementwise.stop_gradient(power)
    part = scaled_by_power(value, plain.negative(power))
    # The logarithm may be rounded to the next whole number.
    is_over, is_under = plain.greater_equal(plain.abs(part), 1.0), plain.less(plain.abs(part), 0.5)
    part = plain.where(is_over, plain.multiply(part, 0.5), plain.where(is_under, plain.multiply(part, 2.0), part))
    power = plain.where(is_over, plain.add(power, 1.0), plain.where(is_under, plain.subtract(power, 1.0), power))
    power = plain.where(is_usual, power, 0.0)
    return plain.where(is_usual, part, value), convert(power, i32)


def parts_of(x: Any) -> tuple[Any, Any]:
    """np.modf: the fraction and the whole part."""
    (value,) = floats(x)
    whole = plain.trunc(value)
    part = plain.where(plain.isinf(value), 0.0, plain.subtract(value, whole))
    return plain.where(plain.equal(part, 0), plain.copysign(0.0, value), part), whole


def spacing(x: Any) -> Any:
    """np.spacing: how far the next float is, away from 0."""
    (value,) = floats(x)
    found = plain.subtract(plain.nextafter(value, plain.copysign(np.inf, value)), value)
    return plain.where(plain.equal(value, 0), plain.abs(found), found)


def last_place(x: Any) -> Any:
    """math.ulp: the same, of the absolute value; of the largest float, that before it."""
    (value,) = floats(x)
    size = plain.abs(value)
    after = plain.subtract(plain.nextafter(size, np.inf), size)
    before = plain.subtract(size, plain.nextafter(size, 0.0))
    return plain.where(plain.isinf(size), size, plain.where(plain.isinf(after), before, after))


def least_multiple(x: Any, y: Any) -> Any:
    """np.lcm."""
    a, b = numbers(x, y)
    divisor = plain.gcd(a, b)
    whole = plain.floor_divide(a, plain.maximum(divisor, 1))
    return plain.abs(plain.multiply(whole, b))


def log_add_2(x: Any, y: Any) -> Any:
    """np.logaddexp2: log2(2**x + 2**y)."""
    a, b = floats(x, y)
    larger, apart = plain.maximum(a, b), plain.abs(plain.subtract(a, b))
    both = plain.add(larger, plain.multiply(plain.log1p(plain.exp2(plain.negative(apart))), 1 / math.log(2.0)))
    return plain.where(plain.equal(a, b), plain.add(larger, 1.0), both)  # infinities of one sign


def fix(x: Any) -> Any:
    """np.fix: integers and booleans as they are."""
    _refuse_complex("np.fix", x)
    return plain.trunc(x) if type_of(as_operand(x)).dtype.kind == "float" else as_operand(x)


def sinc(x: Any) -> Any:
    """np.sinc: sin(pi x) / (pi x), and 1 at 0."""
    scaled = plain.multiply(floats(x)[0], np.pi)
    scaled = plain.where(plain.equal(scaled, 0), 1e-20, scaled)
    return plain.divide(plain.sin(scaled), scaled)


def is_infinite(sign: float) -> Callable[[Any], Any]:
    """np.isposinf, np.isneginf."""

    def test(x: Any) -> Any:
        _refuse_complex("np.isposinf" if sign > 0 else "np.isneginf", x)
        return plain.equal(x, sign * np.inf)

    return test


def _refuse_complex(name: str, x: Any) -> None:
    if type_of(as_operand(x)).dtype.kind == "complex":
        raise TypeMismatch(f"{name} does not take complex numbers", hint="take x.real, x.imag or abs(x)")


def matrix_vector(x1: Any, x2: Any) -> Any:
    """np.matvec."""
    return arrays.squeeze(plain.matmul(x1, arrays.expand_dims(x2, -1)), -1)


def vector_matrix(x1: Any, x2: Any) -> Any:
    """np.vecmat: as in np.vdot, the vector is conjugated."""
    return arrays.squeeze(plain.matmul(arrays.expand_dims(parts.conj(x1), -2), x2), -2)


# -- choices -----------------------------------------------------------------------------------------------


def choose(a: Any, choices: Any, mode: Any) -> Any:
    """np.choose: for each element, that of the array that the number names."""
    made = same_dtype(*(choices if isinstance(choices, (list, tuple)) else arrays.unstack(as_operand(choices))))
    which, last = integers(a, "what np.choose chooses by"), len(made) - 1
    if mode == "wrap":
        which = plain.remainder(which, len(made))
    elif mode == "clip":
        which = plain.minimum(plain.maximum(which, 0), last)
    elif mode == "raise":
        inside = plain.logical_and(plain.greater_equal(which, 0), plain.less_equal(which, last))
        effect("raise", [plain.all(inside)], template="invalid entry in choice array", error="ValueError")
    else:
        raise CaptureError(
            f"np.choose with mode={brief(mode)} cannot be captured", hint="use 'raise', 'wrap' or 'clip'"
        )
    found = made[0]
    for number, choice in enumerate(made[1:], 1):
        found = plain.where(plain.equal(which, number), choice, found)
    shape = dims(as_operand(plain.add(which, 0)))
    return (
        found
        if len(made) > 1
        else arrays.broadcast_to(found, shape if type_of(found).rank <= len(shape) else dims(found))
    )


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any) -> Any:
    """np.piecewise: of each function, or number, the elements where its condition is true."""
    value = as_operand(x)
    given = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    masks = [arrays.reshape(as_bool(c), (-1,)) for c in given]
    if len(funclist) not in (len(masks), len(masks) + 1):
        raise TypeMismatch("np.piecewise takes a function for each condition, and one more", hint="list one for each")
    if len(funclist) > len(masks):
        some = masks[0]
        for mask in masks[1:]:
            some = plain.logical_or(some, mask)
        masks.append(plain.logical_not(some))
    flat = arrays.reshape(value, (-1,))
    dtype = type_of(value).dtype
    found: Any = creation.zeros_like(flat)
    for mask, function in zip(masks, funclist, strict=True):
        if not callable(function):
            found = plain.where(mask, convert(as_operand(function), dtype), found)
            continue
        those = convert(as_operand(function(selecting.picked(flat, mask, 0), *args)), dtype)
        padded = arrays.concat([arrays.reshape(those, (-1,)), np.zeros(1, dtype.numpy)], axis=0)
        place = plain.subtract(cumulative_sum(mask, axis=0), 1)
        found = plain.where(mask, arrays.take(padded, plain.maximum(place, 0), axis=0), found)
    return arrays.reshape(found, dims(value))
