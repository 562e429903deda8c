"""Names of operations and scopes: unique in a graph, with `_1`, `_2`, ... where a name is taken.

with tf.name_scope("layer"):    layer/
    x = tf.identity(y)          layer/identity:0
with tf.name_scope("layer"):    layer_1/
with tf.name_scope("layer/"):   layer/, again
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch, brief
from undertow.frontend.trace.builder import Builder

# As in TensorFlow; a scope within another may begin with more characters.
_OUTERMOST = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*")
_INNER = re.compile(r"[A-Za-z0-9_.\-/]*")


class Naming:
    """The part of a graph that names operations and scopes."""

    main: Builder

    def __init__(self) -> None:
        self._named: dict[int, str] = {}  # node of main -> its unique name
        self._numbers: dict[str, int] = {}  # the inverse
        self._taken: dict[str, int] = {}
        self.exact: set[int] = set()  # nodes of main that have the name of a scope: `name=scope`

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name that nothing in the graph has yet, inside the current name scope."""
        self._name_nodes(len(self.main.nodes))
        return self._fresh(self.main.scope + name, mark_as_used)

    def _fresh(self, name: str, mark_as_used: bool = True) -> str:
        full, count = name, self._taken.get(name, 0)
        while full in self._taken:
            full = f"{name}_{count}"
            count += 1
        if mark_as_used:
            self._taken[name] = max(count, 1)
            self._taken.setdefault(full, 1)
        return full

    def name_of(self, node: int) -> str:
        """The unique name of a node of the main graph."""
        self._name_nodes(node + 1)
        return self._named[node]

    def node_named(self, name: str) -> int | None:
        """The node of the main graph with this unique name."""
        self._name_nodes(len(self.main.nodes))
        return self._numbers.get(name)

    def _name_nodes(self, count: int) -> None:
        for number in range(len(self._named), count):
            node = self.main.nodes[number]
            region = self.main.regions[node.region].name if node.region else ""
            name = node.name.removeprefix(f"{region}/")
            is_free = number in self.exact and name not in self._numbers
            full = name if is_free else self._fresh(name)
            self._named[number] = full
            self._numbers[full] = number

    @contextlib.contextmanager
    def scoped(self, builder: Builder, scope: str) -> Iterator[None]:
        """Names of new nodes of a builder begin with this."""
        before, builder.scope = builder.scope, scope
        try:
            yield
        finally:
            builder.scope = before

    def scope_named(self, builder: Builder, name: Any) -> str:
        """The scope of this name inside the current one; a name with "/" at its end is one that there is already."""
        if name is None or name == "":
            return ""
        if not isinstance(name, str) or not (_INNER if builder.scope else _OUTERMOST).fullmatch(name):
            raise TypeMismatch(
                f"{brief(name)} is not a valid scope name", here(), hint='use letters, digits and _.-/: "layer1"'
            )
        if name.endswith("/"):
            return name
        if builder is not self.main:  # of a function, whose names are made unique at its end
            return f"{builder.scope}{name}/"
        return f"{self.unique_name(name)}/"
