"""`tf.nn`: activation functions, softmax, losses and lookups."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.array import gather
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.math import from_rows, reduce_sum, square
from undertow.compat.v1.missing import explain
from undertow.compat.v1.tensor import apply
from undertow.frontend.functions import public as functions

_FROM_ROWS = from_rows("tf.nn.")
globals().update(_FROM_ROWS)
__all__ = sorted([
    *_FROM_ROWS, "bias_add", "embedding_lookup", "l2_loss", "log_softmax", "relu", "softmax", "softplus",
])  # fmt: skip


def relu(features: Any, name: str | None = None) -> Any:
    """The larger of x and 0."""
    return apply(functions.relu, [features], name)


def softplus(features: Any, name: str | None = None) -> Any:
    """log(1 + exp(x)), without overflow."""
    return apply(functions.softplus, [features], name)


def softmax(logits: Any, axis: int = -1, name: str | None = None) -> Any:
    """Exponentials that add up to 1 along an axis."""
    return apply(functions.softmax, [logits], name, axis=axis)


def log_softmax(logits: Any, axis: int = -1, name: str | None = None) -> Any:
    """The logarithm of softmax, without overflow."""
    return apply(functions.log_softmax, [logits], name, axis=axis)


def bias_add(value: Any, bias: Any, name: str | None = None) -> Any:
    """A vector added along the last axis."""
    return apply(functions.add, [value, bias], name)


def embedding_lookup(params: Any, ids: Any, name: str | None = None) -> Any:
    """The rows of a table at these indices."""
    return gather(params, ids, name=name)


def l2_loss(t: Any, name: str | None = None) -> Any:
    """Half of the sum of squares."""
    return reduce_sum(square(t)) / 2


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"nn.{name}", [f"nn.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
