"""`tf.GraphKeys` and `tf.get_collection`: lists of what a graph has, by name."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.graph import get_default_graph
from undertow.tracebacks import boundaries

__all__ = ["GraphKeys", "add_to_collection", "get_collection"]


class GraphKeys:
    """The names of the collections that this API uses itself."""

    GLOBAL_VARIABLES = "variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"


def add_to_collection(name: str, value: Any) -> None:
    """Add to a list of the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """A list of the default graph; of a scope, what has a name that begins with it."""
    return get_default_graph().get_collection(key, scope)


boundaries(globals(), __all__)
