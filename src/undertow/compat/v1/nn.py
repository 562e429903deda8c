"""`tf.nn`: activation functions, cross entropies, normalization, convolutions, lookups, and recurrent networks."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.math import from_rows
from undertow.compat.v1.missing import explain
from undertow.compat.v1.neural import activations, convolution, entropy, lookup, normalization, rnn
from undertow.compat.v1.neural import rnn_cell as rnn_cell

_FROM_ROWS = from_rows("tf.nn.")
_FAMILIES = (activations, convolution, entropy, lookup, normalization, rnn)
globals().update(_FROM_ROWS)
globals().update({name: getattr(family, name) for family in _FAMILIES for name in family.__all__})
__all__ = sorted([*_FROM_ROWS, *(name for family in _FAMILIES for name in family.__all__)])


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"nn.{name}", [f"nn.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), list(_FROM_ROWS))
