"""Rates that change with the number of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.compat.v1.array import cast
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import as_tensor, is_tensor_like, named, wrap, writing
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries
from undertow.types import f32

__all__ = [
    "cosine_decay", "exponential_decay", "inverse_time_decay", "natural_exp_decay", "piecewise_constant",
    "polynomial_decay",
]  # fmt: skip


def _steps(global_step: Any, learning_rate: Any) -> tuple[Any, Any]:
    """The rate, and the number of the step in its dtype."""
    if global_step is None:
        raise TypeMismatch("a decay needs the global step", here(), hint="pass tf.train.get_or_create_global_step()")
    rate = as_tensor(learning_rate)
    return rate, cast(global_step, rate.dtype)


def _ratio(step: Any, decay_steps: Any, staircase: bool) -> Any:
    passed = step / (cast(decay_steps, step.dtype) if is_tensor_like(decay_steps) else float(decay_steps))
    return functions.floor(passed) if staircase else passed


def exponential_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """learning_rate * decay_rate ** (step / decay_steps); with `staircase`, of the whole part of that."""
    with writing(learning_rate, global_step, decay_steps, decay_rate):
        rate, step = _steps(global_step, learning_rate)
        base = as_tensor(decay_rate, None if is_tensor_like(decay_rate) else rate.dtype)
        return named(wrap(rate * functions.pow(base, _ratio(step, decay_steps, staircase))), name)


def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """learning_rate * exp(-decay_rate * step / decay_steps)."""
    with writing(learning_rate, global_step, decay_steps, decay_rate):
        rate, step = _steps(global_step, learning_rate)
        return named(wrap(rate * functions.exp(-decay_rate * _ratio(step, decay_steps, staircase))), name)


def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    with writing(learning_rate, global_step, decay_steps, decay_rate):
        rate, step = _steps(global_step, learning_rate)
        return named(wrap(rate / (1 + decay_rate * _ratio(step, decay_steps, staircase))), name)


def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0,
    cycle: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """From learning_rate to end_learning_rate in decay_steps; with `cycle`, again over longer and longer times."""
    with writing(learning_rate, global_step, decay_steps):
        rate, step = _steps(global_step, learning_rate)
        total: Any = cast(decay_steps, rate.dtype) if is_tensor_like(decay_steps) else float(decay_steps)
        if cycle:
            total = total * functions.maximum(functions.ceil(step / total), 1)
        else:
            step = functions.minimum(step, total)
        left = functions.pow(1 - step / total, power)
        return named(wrap((rate - end_learning_rate) * left + end_learning_rate), name)


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Any:
    """From learning_rate to alpha * learning_rate along half a wave of the cosine."""
    with writing(learning_rate, global_step):
        rate, step = _steps(global_step, learning_rate)
        passed = functions.minimum(step, float(decay_steps)) / float(decay_steps)
        wave = (functions.cos(passed * 3.141592653589793) + 1) / 2
        return named(wrap(rate * ((1 - alpha) * wave + alpha)), name)


def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Any:
    """values[0] up to boundaries[0], values[1] up to boundaries[1], ..., and the last value beyond."""
    if len(values) != len(boundaries) + 1:
        raise TypeMismatch(
            f"{len(boundaries)} boundaries make {len(boundaries) + 1} pieces, but there are {len(values)} values",
            here(),
            hint="pass one value more than boundaries",
        )
    with writing(x):
        step = as_tensor(x)
        chosen: Any = as_tensor(values[-1], None if is_tensor_like(values[-1]) else _dtype(values))
        for limit, value in reversed(list(zip(boundaries, values, strict=False))):
            chosen = functions.where(functions.less_equal(step, limit), value, chosen)
        return named(wrap(chosen), name)


def _dtype(values: Sequence[Any]) -> Any:
    """float32, if one of the values is a float."""
    return f32 if any(isinstance(value, float) for value in values) else None


boundaries(globals(), __all__)
