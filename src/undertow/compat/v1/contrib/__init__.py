"""`tf.contrib`: of all that was there, the cells of `tf.contrib.rnn`, under which name tutorials import them."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.contrib import rnn as rnn
from undertow.compat.v1.missing import explain

__all__ = ["rnn"]


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"contrib.{name}", ["contrib.rnn"]))
