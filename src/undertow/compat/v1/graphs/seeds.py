"""`tf.set_random_seed` and `seed=`: where the random numbers of a graph come from.

An operation has two seeds, as in TensorFlow 1: the graph's and its own. With either, its numbers follow from them and
from how often this session has run the operation; with neither, every run has numbers of its own.

| graph's | own | seeds of the operation |
|---|---|---|
| none | none | none: new numbers in every run |
| g | none | g, and the number of the operation in its graph |
| none | s | a fixed number, and s |
| g | s | g and s |
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch, brief
from undertow.frontend.values.random import folded
from undertow.tracebacks import boundaries

__all__ = ["get_seed", "set_random_seed"]

DEFAULT_GRAPH_SEED = 87654321  # TensorFlow's, for an operation with a seed in a graph without one


def _checked(seed: Any) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
        raise TypeMismatch(f"a seed must be an integer, not {brief(seed)}", here(), hint="write seed=1")
    return int(np.asarray(int(seed) & (2**64 - 1), np.uint64).astype(np.int64))


def set_random_seed(seed: int) -> None:
    """The seed of the default graph, for all operations that are added to it afterwards."""
    get_default_graph().seed = _checked(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Both seeds of an operation with this seed of its own; a pair of None if its numbers are new in every run."""
    return seeds_of(get_default_graph(), op_seed)


def seeds_of(graph: Graph, op_seed: int | None) -> tuple[int | None, int | None]:
    """The same, in a graph."""
    own = _checked(op_seed)
    if graph.seed is None:
        return (None, None) if own is None else (DEFAULT_GRAPH_SEED, own)
    return graph.seed, graph.last_id if own is None else own


@contextlib.contextmanager
def seeded(graph: Graph, op_seed: int | None) -> Iterator[None]:
    """Keys that are drawn in the block are those of one operation with this seed."""
    of_graph, own = seeds_of(graph, op_seed)
    writer = graph.writer
    before, writer.seed = writer.seed, None if of_graph is None or own is None else folded(of_graph, own)
    try:
        yield
    finally:
        writer.seed = before


boundaries(globals(), __all__)
