"""Initial values of variables: those of `tf.initializers` that state.py has not, under both of their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from undertow.compat.v1.array import random_normal, random_uniform
from undertow.compat.v1.place import here
from undertow.compat.v1.state import (
    Initializer,
    constant_initializer,
    fans_of,
    glorot_uniform_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from undertow.compat.v1.tensor import apply
from undertow.compat.v1.values.random import truncated_normal
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.matrices import qr
from undertow.tracebacks import boundaries
from undertow.types import f32

__all__ = [
    "glorot_normal_initializer", "initializers", "orthogonal_initializer", "truncated_normal_initializer",
    "uniform_unit_scaling_initializer", "variance_scaling_initializer",
]  # fmt: skip

# The standard deviation of a normal distribution that is cut off at two of them.
_TRUNCATED = 0.87962566103423978


def truncated_normal_initializer(
    mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = f32
) -> Initializer:
    """Fills a variable with normal numbers, none further than two standard deviations from the mean."""
    return lambda shape, dtype=dtype, **_: truncated_normal(shape, mean, stddev, dtype, seed)


def variance_scaling_initializer(
    scale: float = 1.0, mode: str = "fan_in", distribution: str = "normal", seed: Any = None, dtype: Any = f32
) -> Initializer:
    """Random numbers whose variance is `scale` over the number of inputs, of outputs, or over the mean of both."""
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise TypeMismatch(f"mode={brief(mode)} is unknown", here(), hint='write "fan_in", "fan_out" or "fan_avg"')
    if distribution not in ("normal", "truncated_normal", "untruncated_normal", "uniform"):
        raise TypeMismatch(f"distribution={brief(distribution)} is unknown", here(), hint='"normal" or "uniform"')

    def make(shape: Sequence[int], dtype: Any = dtype, **_: Any) -> Any:
        inputs, outputs = fans_of(shape)
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[mode]
        variance = scale / max(1.0, count)
        if distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random_uniform(shape, -limit, limit, dtype, seed)
        if distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(variance), dtype, seed)
        return truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED, dtype, seed)

    return make


def glorot_normal_initializer(seed: Any = None, dtype: Any = f32) -> Initializer:
    """Normal numbers, cut off, with a variance that preserves that of activations across layers."""
    return variance_scaling_initializer(1.0, "fan_avg", "normal", seed, dtype)


def uniform_unit_scaling_initializer(factor: float = 1.0, seed: Any = None, dtype: Any = f32) -> Initializer:
    """Uniform numbers in a range that preserves the scale of the inputs."""

    def make(shape: Sequence[int], dtype: Any = dtype, **_: Any) -> Any:
        limit = math.sqrt(3 / max(1.0, float(np.prod(shape[:-1])))) * factor
        return random_uniform(shape, -limit, limit, dtype, seed)

    return make


def orthogonal_initializer(gain: float = 1.0, seed: Any = None, dtype: Any = f32) -> Initializer:
    """A random matrix with orthogonal columns (or rows, if there are fewer), times `gain`."""

    def make(shape: Sequence[int], dtype: Any = dtype, **_: Any) -> Any:
        if len(shape) < 2:
            raise TypeMismatch(f"{list(shape)} is not the shape of a matrix", here(), hint="use another initializer")
        rows, columns = int(np.prod(shape[:-1])), shape[-1]

        def orthogonal(normal: Any) -> Any:
            q, r = qr(normal)
            signs = functions.sum(r * np.eye(min(rows, columns), dtype=normal.dtype.numpy), axis=0)
            q = q * functions.where(functions.less(signs, 0), -1, 1)
            q = functions.matrix_transpose(q) if rows < columns else q
            return functions.reshape(q * gain, tuple(shape))

        return apply(orthogonal, [random_normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=seed)])

    return make


boundaries(globals(), [name for name in __all__ if name != "initializers"])

initializers = SimpleNamespace(
    constant=constant_initializer,
    glorot_normal=glorot_normal_initializer,
    glorot_uniform=glorot_uniform_initializer,
    ones=ones_initializer,
    orthogonal=orthogonal_initializer,
    random_normal=random_normal_initializer,
    random_uniform=random_uniform_initializer,
    truncated_normal=truncated_normal_initializer,
    uniform_unit_scaling=uniform_unit_scaling_initializer,
    variance_scaling=variance_scaling_initializer,
    zeros=zeros_initializer,
)
INITIALIZERS = tuple(vars(initializers).values())
