"""Replicas: which copy of a function an activation calls, by its tag.

A tag is the same in all parts of a placed graph, so each part chooses for itself, and all choose alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import GraphError
from undertow.ir.graph import Attr, Attrs, Graph
from undertow.ir.path import Path, choice
from undertow.ir.structure import is_primitive
from undertow.ir.walk import ports_of
from undertow.ops.effects import is_pure, is_tagged
from undertow.ops.gradient import NONE
from undertow.ops.op import Op, Value
from undertow.types import Type, i64


def _replica(tag: Path, attrs: Attrs) -> tuple[Value, ...]:
    return (np.int64(choice(tag, attrs.integer("salt"), attrs.integer("count"))),)


def _untagged(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    raise GraphError("replica is for placed graphs: this engine has no tags for it")


def _is_count(value: Attr) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31


def _is_salt(value: Attr) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def chosen_nodes(graph: Graph) -> set[int]:
    """The nodes that make choices: those whose result depends on the tag, and what is computed from these alone.

    They take no value from anywhere, so every part of a placed graph has copies of its own.
    """
    chosen: set[int] = set()
    for number, node in enumerate(graph.nodes):  # operands come first, but for values that come back from bodies
        if is_tagged(node.op):
            chosen.add(number)
        elif chosen and (node.op == "switch" or (is_primitive(node.op) and is_pure(node.op))):
            ports = ports_of(node.inputs)
            if ports and all(port.node in chosen for port in ports):
                chosen.add(number)
    return chosen


ROWS: tuple[Op, ...] = (
    Op(
        "replica", 0, lambda types, attrs: (Type(i64),), _untagged,
        "a number below `count` that depends on the tag of the activation and on `salt`", NONE,
        tagged=_replica, attrs={"count": _is_count, "salt": _is_salt},
    ),
)  # fmt: skip
