"""`tf.IndexedSlices`: rows of a table and their places, which may stand wherever the whole table does.

Gradients of lookups are whole tables here; a run computes only the rows that are needed. Programs may still make
slices themselves, and hand them to optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.compat.v1.arrays.indices import scatter_nd
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, Tensor, as_tensor
from undertow.errors import TypeMismatch
from undertow.frontend.values import tree
from undertow.tracebacks import guarded

__all__ = ["IndexedSlices"]


@guarded
class IndexedSlices:
    """Rows (`values`) and their places (`indices`) in a table of zeros; those with equal places add up."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """Their places."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the table, if it is known."""
        return self._dense_shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the rows."""
        return self._values.graph

    @property
    def op(self) -> Operation:
        """The operation of the rows."""
        operation: Operation = as_tensor(self._values).op
        return operation

    @property
    def name(self) -> str:
        """The name of the rows."""
        return str(as_tensor(self._values).name)

    def __undertow_read__(self) -> Tensor:
        """The table."""
        if self._dense_shape is None:
            raise TypeMismatch(
                "the shape of the table is unknown: IndexedSlices without dense_shape", here(), hint="give dense_shape="
            )
        places = as_tensor(self._indices)
        column = places[..., None]
        table: Tensor = scatter_nd(column, self._values, self._dense_shape)
        return table

    # A fetch gives the same with NumPy values.
    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        parts = [self._values, self._indices] + ([] if self._dense_shape is None else [self._dense_shape])
        names = ("values", "indices", "dense_shape")[: len(parts)]
        return ("object", len(parts), IndexedSlices, names, ()), parts

    @staticmethod
    def __undertow_whole__(_: Any, contents: Sequence[Any]) -> IndexedSlices:
        return IndexedSlices(*contents)

    def __repr__(self) -> str:
        return f"IndexedSlices(values={self._values!r}, indices={self._indices!r})"
