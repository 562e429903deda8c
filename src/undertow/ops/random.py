"""Random numbers as pure functions of a key, an i64 scalar: the same key gives the same numbers in every engine.

All arithmetic is on 64-bit unsigned integers, modulo 2**64 (a key is such a number, read as signed). With the
golden ratio G = 0x9E3779B97F4A7C15, and the finaliser of SplitMix64,

    mix(z):  z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9;  z ^= z >> 27;  z *= 0x94D049BB133111EB;  z ^= z >> 31

    fold_in(key, data) = mix(mix(key + G) ^ mix(data + 2 G))
    bits(key, n)       = mix(mix(key ^ 0xD1B54A32D192ED03) + (n + 1) G)        the n-th number of a key

Element n of an array (row by row, from 0) is

    random_bits     i64: bits(key, n)     i32: bits(key, n) >> 32
    random_uniform  f64: (bits(key, n) >> 11) 2**-53     f32: (bits(key, n) >> 40) 2**-24
    random_normal   sqrt(-2 ln u) cos(2 pi v), in f64, with u = ((bits(key, 2 n) >> 11) + 1) 2**-53
                    and v = (bits(key, 2 n + 1) >> 11) 2**-53; then rounded to the dtype
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import DTYPE, SHAPE
from undertow.ops.faults import unless_sized
from undertow.ops.gradient import NONE
from undertow.ops.op import Op, Value
from undertow.ops.rules import broadcast_shapes, fitting, new_shape, scalar, sized
from undertow.types import DTYPES, Type, i64

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DRAW = 0xD1B54A32D192ED03
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def _mix(z: int) -> int:
    z &= _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def _mix_array(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def _signed(z: int) -> np.int64:
    return np.int64(z - 2**64 if z >> 63 else z)


def _unsigned(x: Any) -> Any:
    return np.asarray(x).view(np.uint64)


def _fold_in_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    for type in types:
        if type.dtype != i64:
            raise TypeMismatch(
                f"fold_in takes i64, not {type}", hint="keys and the numbers folded into them must be i64"
            )
    return (Type(i64, broadcast_shapes(types)),)


def _fold_in(values: Sequence[Value], attrs: Attrs) -> Value:
    key, data = values
    if key.ndim == data.ndim == 0:
        return _signed(_mix(_mix(int(key) + _GOLDEN) ^ _mix(int(data) + 2 * _GOLDEN)))
    left = _mix_array(_unsigned(key) + np.uint64(_GOLDEN))
    right = _mix_array(_unsigned(data) + np.uint64(2 * _GOLDEN & _MASK))
    return _mix_array(left ^ right).view(np.int64)


def _bits(key: Any, first: int, step: int, count: int) -> Any:
    """bits(key, first), bits(key, first + step), ..."""
    start = _mix(int(key) ^ _DRAW)
    numbers = np.arange(count, dtype=np.uint64) * np.uint64(step) + np.uint64(first + 1)
    return _mix_array(np.uint64(start) + numbers * np.uint64(_GOLDEN))


def _unit(bits: Any) -> Any:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _draw_bits(key: Any, count: int, dtype: str) -> Any:
    bits = _bits(key, 0, 1, count)
    return bits.view(np.int64) if dtype == "i64" else (bits >> np.uint64(32)).astype(np.uint32).view(np.int32)


def _draw_uniform(key: Any, count: int, dtype: str) -> Any:
    bits = _bits(key, 0, 1, count)
    return _unit(bits) if dtype == "f64" else (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def _draw_normal(key: Any, count: int, dtype: str) -> Any:
    u = _unit(_bits(key, 0, 2, count)) + 2.0**-53
    v = _unit(_bits(key, 1, 2, count))
    return (np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)).astype(DTYPES[dtype].numpy)


def _drawing(name: str, draw: Callable[[Any, int, str], Any], dtypes: tuple[str, ...], doc: str) -> Op:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        dtype = attrs.text("dtype")
        if types[0] != Type(i64):
            raise TypeMismatch(f"the key of {name} must be an i64 scalar, not {types[0]}", hint="see ut.fold_in")
        if dtype not in dtypes:
            raise TypeMismatch(f"{name} cannot have the dtype {dtype}", hint=f"use {' or '.join(dtypes)}")
        shape = sized(name, types, attrs)
        if any(isinstance(d, int) and d < 0 for d in shape):
            raise TypeMismatch(f"{name} cannot have the shape {shape}", hint="sizes must not be negative")
        return (Type(DTYPES[dtype], shape),)

    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        shape = new_shape(values, attrs)
        count = int(np.prod(shape, dtype=np.int64))
        return (scalar(draw(values[0], count, attrs.text("dtype")).reshape(shape)),)

    doc = f"{doc}, of `shape` and `dtype`; operands: key, a size for each None"
    return Op(name, None, rule, kernel, doc, NONE, faults=unless_sized, attrs={**SHAPE, **DTYPE})


ROWS: tuple[Op, ...] = (
    Op("fold_in", 2, _fold_in_rule, fitting("fold_in", _fold_in), "a new key from a key and a number", NONE),
    _drawing("random_bits", _draw_bits, ("i32", "i64"), "uniformly random integers"),
    _drawing("random_uniform", _draw_uniform, ("f32", "f64"), "random floats from [0, 1)"),
    _drawing("random_normal", _draw_normal, ("f32", "f64"), "random floats, normally distributed"),
)
