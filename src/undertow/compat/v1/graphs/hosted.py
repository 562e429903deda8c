"""Fetches whose values the host makes: texts, names of variables without a value, summaries.

What a run must compute for them are their `tensors`; most have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch


class Hosted:
    """A tensor of texts or bytes: it can be fetched and printed, but no operation takes it."""

    dtype = "string"

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = f"{graph.unique_name(name)}:0"

    @property
    def tensors(self) -> Sequence[Any]:
        """The tensors that it is made of."""
        return ()

    def made_of(self, tensors: Sequence[Any]) -> Hosted:
        """The same, made of other tensors in place of its own."""
        return self

    def value_in(self, values: dict[str, Any], computed: Sequence[Any] = ()) -> Any:
        """Its value in a session where variables have these values, and its tensors those in `computed`."""
        raise NotImplementedError

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session, by default that of the innermost `with`."""
        from undertow.compat.v1.session import session_for

        return session_for(session, self).run(self, feed_dict)

    def __undertow_read__(self) -> Any:
        raise TypeMismatch(
            f"{self!r} is a text, which no operation takes",
            here(),
            hint="texts can be printed and fetched; use numbers",
        )

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r}: string>"


class Text(Hosted):
    """A constant text, or an array of them; it is fetched as bytes."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        super().__init__(get_default_graph(), name or "Const")
        array = np.asarray(value)
        self.value: Any = np.vectorize(_bytes, otypes=[object])(array) if array.ndim else _bytes(array.item())
        self.shape = TensorShape(array.shape)

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    def value_in(self, values: dict[str, Any], computed: Sequence[Any] = ()) -> Any:
        return self.value

    def shown(self) -> str:
        """As tf.Print shows it."""
        return self.value.decode(errors="replace") if isinstance(self.value, bytes) else str(self.value.tolist())


class UninitializedNames(Hosted):
    """The names of those of some variables that have no value."""

    def __init__(self, variables: Sequence[Any]) -> None:
        super().__init__(get_default_graph(), "report_uninitialized_variables")
        self.variables = variables

    def value_in(self, values: dict[str, Any], computed: Sequence[Any] = ()) -> Any:
        return np.array([v.key.encode() for v in self.variables if v.key not in values], object)


def computed(leaves: Sequence[Any]) -> Iterator[Any]:
    """The tensors and operations that a run computes for these fetches."""
    for leaf in leaves:
        yield from leaf.tensors if isinstance(leaf, Hosted) else (leaf,)


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def is_text(value: Any) -> bool:
    """Is it a Python text, or an array or list of them?"""
    if isinstance(value, (str, bytes)):
        return True
    return isinstance(value, (list, tuple, np.ndarray)) and bool(len(value)) and np.asarray(value).dtype.kind in "SU"
