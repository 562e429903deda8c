"""Containers that a loop changes: dicts, lists and attributes of objects that were made before it.

The loop carries what they hold, as it carries variables: the same container holds what a round begins with, then what
it ends with, and after the loop the results. What is inside keeps its structure; containers in containers are carried
on their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from undertow.errors import CaptureError, Span, TypeMismatch, kind_of
from undertow.frontend.control.aliasing import is_array
from undertow.frontend.control.ownership import Home, Ownership
from undertow.frontend.control.restart import StartOver
from undertow.frontend.control.state import Held, held_by
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.traced import is_traced
from undertow.frontend.values.tree import Structure, flatten, unflatten


def is_leaf(item: Any) -> bool:
    """Is an item a value of the graph, or something that changes on its own?"""
    return is_traced(item) or is_apart(item)


def is_apart(item: Any) -> bool:
    """Is an item a container, which changes on its own and is not carried with the one that holds it?"""
    return isinstance(item, GrowingList) or (held_by(item) is not None and not callable(item))


def _is_carried(held: Held, n: int, leaf: Any) -> bool:
    """Does the loop carry this leaf of a container? Arrays that change in place are carried as such."""
    return not is_apart(leaf) and (n in held.replaced or not is_array(leaf))


@dataclass(slots=True, eq=False)
class Carrying:
    """The containers of one loop, with what they hold before it."""

    owned: Ownership
    loop: Any  # what is known of it, with `containers`
    containers: tuple[Held, ...]
    keys: list[list[Any]] = field(default_factory=list)
    items: list[tuple[Any, ...]] = field(default_factory=list)
    structures: list[Structure] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)  # the leaves of each
    homes: list[Home] = field(default_factory=list)

    def __post_init__(self) -> None:
        for held in self.containers:
            keys, items = held.items()
            parts, structure = flatten(items, is_leaf)
            self.keys.append(keys)
            self.items.append(items)
            self.parts.append(parts)
            self.structures.append(structure)
            self.homes.append(self.owned.home(held.value))

    @property
    def leaves(self) -> list[Any]:
        """What the loop carries."""
        rows = zip(self.containers, self.parts, strict=True)
        return [leaf for held, parts in rows for n, leaf in enumerate(parts) if _is_carried(held, n, leaf)]

    @property
    def labels(self) -> list[str]:
        rows = zip(self.containers, self.parts, strict=True)
        return [held.called for held, parts in rows for n, leaf in enumerate(parts) if _is_carried(held, n, leaf)]

    def enter(self, values: Sequence[Any]) -> None:
        """A round begins with these values."""
        self.belong_here()
        self._put(values)

    def belong_here(self) -> None:
        """The containers may change in the current region."""
        for held in self.containers:
            self.owned.move(held.value)

    def take(self, span: Span | None) -> list[Any]:
        """What the containers hold at the end of a round."""
        taken: list[Any] = []
        for k, held in enumerate(self.containers):
            keys, items = held.items()
            if keys != self.keys[k]:
                raise CaptureError(
                    f"`{held.called}`, {kind_of(held.value)} made before the loop, gets or loses items inside it",
                    span,
                    hint=_how_to_grow(held.value),
                )
            parts, structure = flatten(items, is_leaf)
            if structure != self.structures[k]:
                pairs = zip(self.items[k], items, strict=True)
                one, other = next((a, b) for a, b in pairs if flatten(a, is_leaf)[1] != flatten(b, is_leaf)[1])
                raise TypeMismatch(
                    f"an item of `{held.called}` is {describe(one)} before the loop and {describe(other)} after one "
                    "iteration",
                    span,
                    hint="give it a value of its final type before the loop, e.g. 0",
                )
            for n, (before, leaf) in enumerate(zip(self.parts[k], parts, strict=True)):
                if _is_carried(held, n, leaf) and _is_carried(held, n, before):
                    taken.append(leaf)
                elif is_array(before) and is_array(leaf) and leaf is not before:
                    known = replace(held, replaced=held.replaced | {n})
                    containers = (known if one is held else one for one in self.containers)
                    raise StartOver(self.loop, containers=tuple(containers))
                elif leaf is not before:
                    raise CaptureError(
                        f"an item of `{held.called}` is {kind_of(before)} before the loop, and another one after an "
                        "iteration",
                        span,
                        hint="change the one that is there, or keep it in a variable of its own",
                    )
        return taken

    def leave(self) -> None:
        """Go back to what they held before the loop."""
        for held, keys, items, home in zip(self.containers, self.keys, self.items, self.homes, strict=True):
            held.hold(keys, items)
            self.owned.move_back(held.value, home)

    def finish(self, results: Sequence[Any]) -> None:
        """After the loop they hold its results: a change, for what is around the loop."""
        for held in self.containers:
            self.owned.change(held.value, held.called)
        self._put(results)

    def _put(self, values: Sequence[Any]) -> None:
        rest = iter(values)
        for held, keys, parts, structure in zip(self.containers, self.keys, self.parts, self.structures, strict=True):
            leaves = [next(rest) if _is_carried(held, n, leaf) else leaf for n, leaf in enumerate(parts)]
            held.hold(keys, unflatten(structure, leaves))


def _how_to_grow(value: Any) -> str:
    if isinstance(value, dict):
        return "give it all keys before the loop; or use arrays: values = np.zeros(size), known = np.zeros(size, bool)"
    return "keep numbers alone in it, or use an array made before the loop"
