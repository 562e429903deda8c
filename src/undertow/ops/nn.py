"""What neural networks add: activation functions, and softmax along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs
from undertow.ops.op import Op
from undertow.ops.rules import FLOATS, NUMBERS, check_axis, check_kind, scalar, unary
from undertow.types import Type


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))  # at most 1: nothing overflows
    return scalar(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    return x - top


def _softmax(x: Any, axes: tuple[int, ...]) -> Any:
    weights = np.exp(_shifted(x, axes))
    return weights / np.sum(weights, axis=axes, keepdims=True, dtype=x.dtype)


def _log_softmax(x: Any, axes: tuple[int, ...]) -> Any:
    moved = _shifted(x, axes)
    return moved - np.log(np.sum(np.exp(moved), axis=axes, keepdims=True, dtype=x.dtype))


def _normalisation(name: str, function: Callable[[Any, tuple[int, ...]], Any], doc: str) -> Op:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], FLOATS)
        for axis in attrs.integers("axes"):
            check_axis(name, axis, types[0])
        return (types[0],)

    return Op(name, 1, rule, lambda values, attrs: (function(values[0], attrs.integers("axes")),), doc)


ROWS: tuple[Op, ...] = (
    unary("sigmoid", _sigmoid, FLOATS, "1 / (1 + exp(-x))"),
    unary("softplus", lambda x: np.logaddexp(x, x.dtype.type(0)), FLOATS, "log(1 + exp(x)), without overflow"),
    unary("relu", lambda x: np.maximum(x, x.dtype.type(0)), NUMBERS, "x where it is positive, else 0; nan of nan"),
    _normalisation("softmax", _softmax, "exp(x), scaled so that it sums to 1 along `axes`"),
    _normalisation("log_softmax", _log_softmax, "the logarithm of softmax along `axes`, without overflow"),
)
