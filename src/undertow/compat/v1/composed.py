"""Fetches that the host composes: the run computes some tensors, and their values make what is returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from undertow.compat.v1.graph import Graph
from undertow.compat.v1.tensor import Tensor


class Composed:
    """Something that can be fetched and is made of the values of `tensors`, once these are known."""

    def __init__(self, graph: Graph, name: str, tensors: Sequence[Tensor]) -> None:
        self.graph = graph
        self.name = name
        self.tensors = tuple(tensors)

    def compose(self, values: Sequence[Any]) -> Any:
        """What a fetch returns."""
        raise NotImplementedError

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session, by default that of the innermost `with`."""
        from undertow.compat.v1.session import session_for

        return session_for(session, self).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.{type(self).__name__} {self.name!r}>"


def computed(leaves: Sequence[Any]) -> Iterator[Any]:
    """The tensors and operations that a run computes for these fetches."""
    for leaf in leaves:
        yield from leaf.tensors if isinstance(leaf, Composed) else (leaf,)
