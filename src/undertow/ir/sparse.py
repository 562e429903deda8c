"""Sparse cotangents in graphs: in place of a whole table, the indices of some rows, and their cotangents.

A `gradient` lists in `sparse` those of its `wanted` arguments for which it gives such a pair.
"""

from __future__ import annotations

from undertow.ir.graph import Node
from undertow.types import Type, i64


def rows_types(table: Type) -> tuple[Type, Type]:
    """The types of the indices and of the rows; their number is known at run time."""
    return Type(i64, (None,)), table.with_shape((None, *table.shape[1:]))


def sparse_of(node: Node) -> tuple[int, ...]:
    """The arguments whose cotangents a gradient gives as rows."""
    return node.attrs.integers("sparse") if "sparse" in node.attrs else ()


def sparse_attr(sparse: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The inverse of `sparse_of`: keywords for Attrs."""
    return {"sparse": sparse} if sparse else {}


def gradient_arguments(node: Node) -> list[int]:
    """For each output of a gradient, the argument that it belongs to."""
    sparse = sparse_of(node)
    return [index for index in node.attrs.integers("wanted") for _ in range(2 if index in sparse else 1)]
