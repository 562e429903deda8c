"""Sparse cotangents in graphs: in place of a table, the numbers of the rows that have one, and their cotangents.

A `gradient` names in `sparse` the arguments of which it gives such a pair; they are among those in `wanted`.
"""

from __future__ import annotations

from undertow.ir.graph import Node
from undertow.types import Type, i64


def rows_types(table: Type) -> tuple[Type, Type]:
    """The types of the numbers and of the rows; how many there are is known at run time."""
    return Type(i64, (None,)), table.with_shape((None, *table.shape[1:]))


def sparse_of(node: Node) -> tuple[int, ...]:
    """The arguments of which a gradient gives rows."""
    return node.attrs.integers("sparse") if "sparse" in node.attrs else ()


def sparse_attr(sparse: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The inverse of `sparse_of`: what to give to Attrs."""
    return {"sparse": sparse} if sparse else {}


def gradient_arguments(node: Node) -> list[int]:
    """For each output of a gradient, the argument that it belongs to."""
    sparse = sparse_of(node)
    return [index for index in node.attrs.integers("wanted") for _ in range(2 if index in sparse else 1)]
