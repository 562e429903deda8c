"""`tf.layers`: layers as functions, which make new variables at each call, and as classes, which keep theirs."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.layers.base import Layer as Layer
from undertow.compat.v1.layers.convolutional import *  # noqa: F403
from undertow.compat.v1.layers.convolutional import __all__ as _convolutional
from undertow.compat.v1.layers.core import *  # noqa: F403
from undertow.compat.v1.layers.core import __all__ as _core
from undertow.compat.v1.layers.normalization import *  # noqa: F403
from undertow.compat.v1.layers.normalization import __all__ as _normalization
from undertow.compat.v1.layers.pooling import *  # noqa: F403
from undertow.compat.v1.layers.pooling import __all__ as _pooling
from undertow.compat.v1.missing import explain

__all__ = sorted(["Layer", *_core, *_convolutional, *_normalization, *_pooling])


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"layers.{name}", [f"layers.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)
