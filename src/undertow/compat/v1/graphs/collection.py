"""Collections of a graph: lists of variables, losses, operations, by name. `tf.GraphKeys` has the usual names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch, brief
from undertow.tracebacks import boundaries

__all__ = ["GraphKeys", "add_to_collection", "add_to_collections", "get_collection", "get_collection_ref"]


class GraphKeys:
    """The names of collections that the library itself uses."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = GLOBAL_VARIABLES
    LOCAL_VARIABLES = "local_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    SAVERS = "savers"
    SAVEABLE_OBJECTS = "saveable_objects"
    SUMMARY_OP = "summary_op"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"


class Collections:
    """The part of a graph that holds its collections."""

    def __init__(self) -> None:
        self._collections: dict[Any, list[Any]] = {}

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Append a value to a collection."""
        self._collections.setdefault(_key(name), []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Append a value to each of some collections."""
        chosen: Iterable[Any] = (names,) if isinstance(names, str) else dict.fromkeys(names or ())
        for name in chosen:
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with a scope, those of its items whose names begin with this regular expression."""
        items = self._collections.get(_key(name), [])
        if scope is None:
            return list(items)
        begins = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and begins.match(item.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """A collection itself: what is done to the list is done to it."""
        return self._collections.setdefault(_key(name), [])

    def get_all_collection_keys(self) -> list[Any]:
        """The names of all collections."""
        return [name for name in self._collections if isinstance(name, str)]

    def clear_collection(self, name: Any) -> None:
        """Empty a collection."""
        self._collections.pop(_key(name), None)


def _key(name: Any) -> Any:
    try:
        hash(name)
    except TypeError:
        raise TypeMismatch(
            f"{brief(name)} is not the name of a collection", here(), hint='write a string: "losses"'
        ) from None
    return name


def _default() -> Collections:
    from undertow.compat.v1.graph import get_default_graph  # it imports this file

    return get_default_graph()


def add_to_collection(name: Any, value: Any) -> None:
    """Append a value to a collection of the default graph."""
    _default().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Append a value to each of some collections of the default graph."""
    _default().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph; with a scope, of its items of such names."""
    return _default().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """A collection of the default graph itself."""
    return _default().get_collection_ref(key)


boundaries(globals(), __all__)
