"""Neural networks: activation functions, and softmax along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs
from undertow.ops.attributes import AXES
from undertow.ops.gradient import Applied, Derivative, single
from undertow.ops.op import Op, Value
from undertow.ops.rules import FLOATS, REALS, check_axes, check_kind, scalar, unary
from undertow.ops.term import Term, apply, total, where
from undertow.types import Type


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))  # at most 1: nothing overflows
    return scalar(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    return x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)


def _softmax(x: Any, axes: tuple[int, ...]) -> Any:
    weights = np.exp(_shifted(x, axes))
    return weights / np.sum(weights, axis=axes, keepdims=True, dtype=x.dtype)


def _log_softmax(x: Any, axes: tuple[int, ...]) -> Any:
    moved = _shifted(x, axes)
    return moved - np.log(np.sum(np.exp(moved), axis=axes, keepdims=True, dtype=x.dtype))


# y = softmax(x): its Jacobian diag(y) - y y' is symmetric, so both rows are the same.
def _softmax_row(at: Applied, v: Term) -> Term:
    y = at.y[0]
    return y * (v - _total(at, v * y))


def _total(at: Applied, x: Term) -> Term:
    return total(x, at.attrs.integers("axes"), keepdims=True)


def _normalisation(
    name: str, function: Callable[[Any, tuple[int, ...]], Any], doc: str, derivative: Derivative, **more: Any
) -> Op:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], FLOATS)
        check_axes(name, attrs.integers("axes"), types[0])
        return (types[0],)

    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        return (function(values[0], attrs.integers("axes")),)

    return Op(name, 1, rule, kernel, doc, derivative, attrs=AXES, takes="floats", **more)


ROWS: tuple[Op, ...] = (
    unary(
        "sigmoid", _sigmoid, FLOATS, "1 / (1 + exp(-x))", (lambda v, x, z: v * (z * (1 - z)),),
        also="tf.sigmoid tf.nn.sigmoid", example="sigmoid(0.0)\nnp.float64(0.5)",
    ),
    unary(
        "softplus", lambda x: np.logaddexp(x, x.dtype.type(0)), FLOATS, "log(1 + exp(x)), without overflow",
        (lambda v, x, z: v * apply("sigmoid", x),),
    ),
    unary(
        "relu", lambda x: np.maximum(x, x.dtype.type(0)), REALS,
        "x where it is positive, else 0; nan of nan; flat at 0", (lambda v, x, z: where(z > 0, v, 0),),
        example="relu([-1.0, 2.0])\narray([0., 2.])",
    ),
    _normalisation(
        "softmax", _softmax, "exp(x), scaled so that it sums to 1 along `axes`", single(_softmax_row, _softmax_row),
        example="softmax([0.0, 0.0])\narray([0.5, 0.5])",
    ),
    _normalisation(
        "log_softmax", _log_softmax, "the logarithm of softmax along `axes`, without overflow",
        single(
            lambda at, g: g - apply("exp", at.y[0]) * _total(at, g),
            lambda at, t: t - _total(at, t * apply("exp", at.y[0])),
        ),
    ),
)  # fmt: skip
