"""`tf.SparseTensor`: indices, values and a shape, which go through `tf.cond`, `tf.while_loop` and runs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.tensor import as_tensor

__all__ = ["SparseTensor"]


@dataclass(eq=False)
class SparseTensor:
    """Three tensors: the indices of elements, their values, the shape of the whole. No operation takes it itself."""

    indices: Any
    values: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        self.indices = as_tensor(self.indices)
        self.values = as_tensor(self.values)
        self.dense_shape = as_tensor(self.dense_shape)

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.values.dtype

    @property
    def graph(self) -> Any:
        """The graph that it belongs to."""
        return self.values.graph

    def get_shape(self) -> TensorShape:
        """The number of dimensions, if it is known; their lengths are `dense_shape`."""
        return TensorShape([None] * self.dense_shape.shape[0].value)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The three arrays in a session, by default that of the innermost `with`."""
        from undertow.compat.v1.session import session_for

        return session_for(session, self).run(self, feed_dict)
