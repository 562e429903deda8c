"""Containers among the arguments of a captured function that it changes: what they hold is a further result of it.

The caller's own containers hold that after the call, in program order. Lists that may be lists of run-time length are
such instead (growing.py), and arrays are results by themselves.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from undertow.errors import CaptureError, Span
from undertow.frontend.control.aliasing import is_array
from undertow.frontend.control.carrying import is_apart, is_leaf
from undertow.frontend.control.state import Held, held_by
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.tree import Structure, flatten, unflatten
from undertow.types import Type

if TYPE_CHECKING:
    from undertow.frontend.control.ownership import Ownership

Path = tuple[Any, ...]  # the name of a parameter, then keys, places and attributes


@dataclass(frozen=True, slots=True)
class HandedBack:
    """What a container among the arguments holds after a call."""

    path: Path
    called: str
    structure: Structure
    numbers: tuple[int, ...]  # which of its leaves are results
    types: tuple[Type, ...]  # of these
    weak: tuple[bool, ...]


def containers_in(values: Mapping[str, Any]) -> dict[Path, Any]:
    """The containers among arguments that can change."""
    found: dict[Path, Any] = {}
    stack: list[tuple[Path, Any]] = [((name,), value) for name, value in values.items()]
    while stack:
        path, item = stack.pop()
        parts: Iterable[tuple[Any, Any]] = ()
        if isinstance(item, (list, deque, tuple)):
            parts = enumerate(item)
        elif isinstance(item, dict):
            parts = dict.items(item)
        elif dataclasses.is_dataclass(item) and not isinstance(item, type) and not hasattr(item, "__undertow_static__"):
            names = dict.fromkeys([field.name for field in dataclasses.fields(item)])
            names.update(dict.fromkeys(getattr(item, "__dict__", ())))
            parts = [(key, getattr(item, key)) for key in names if hasattr(item, key)]
        else:
            continue
        if held_by(item) is not None:
            found[path] = item
        stack.extend(((*path, key), part) for key, part in parts)
    return found


@dataclass(slots=True, eq=False)
class Handover:
    """The containers among the arguments of a function, with what they held when it began."""

    name: str
    containers: dict[Path, Any]
    began: dict[Path, tuple[list[Any], tuple[Any, ...]]]

    @staticmethod
    def of(name: str, values: Mapping[str, Any]) -> Handover:
        containers = containers_in(values)
        return Handover(name, containers, {path: Held(value, "").items() for path, value in containers.items()})

    def ends(self, changed: Mapping[int, tuple[Any, str, Span | None]]) -> tuple[tuple[HandedBack, ...], list[Any]]:
        """What has changed, and the leaves that are results."""
        records: list[HandedBack] = []
        results: list[Any] = []
        places = {id(value): path for path, value in self.containers.items()}
        for key, (container, called, span) in changed.items():
            path = places.get(key)
            if path is None:
                raise CaptureError(
                    f"`{called}` is a part of an argument, and `{self.name}` has a copy of it: the caller's "
                    f"{_kind(container)} would not change",
                    span,
                    hint="pass it as an argument of its own",
                )
            keys, items = Held(container, called).items()
            keys_first, items_first = self.began[path]
            before, structure_first = flatten(items_first, is_leaf)
            leaves, structure = flatten(items, is_leaf)
            both = list(zip(before, leaves, strict=False))
            moved = any(a is not b and (is_apart(a) or is_apart(b)) for a, b in both)
            if keys != keys_first or structure != structure_first or moved:
                before_said, now = describe(_said(container, items_first)), describe(_said(container, items))
                raise CaptureError(
                    f"`{self.name}` changes its argument `{called}`, which is {before_said} before the call and {now} "
                    "after it: only numbers and arrays in it may change",
                    span,
                    hint=f"work on a new one, {called} = {_copied(container, called)}, and return that",
                )
            numbers = tuple(n for n, (a, b) in enumerate(both) if not is_apart(b) and (not is_array(b) or a is not b))
            taken = [leaves[n] for n in numbers]
            types, weak = tuple(map(leaf_type, taken)), tuple(map(is_number, taken))
            records.append(HandedBack(path, called, structure, numbers, types, weak))
            results += taken
        return tuple(records), results


def places_of(value: Any, arguments: Mapping[Path, Any]) -> tuple[tuple[Path, Path], ...]:
    """Where a result is a container among the arguments: the place in it, by tuples, and that of the argument."""
    places = {id(container): path for path, container in arguments.items()}
    found: list[tuple[Path, Path]] = []
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if type(item) is tuple:
            stack.extend(((*path, k), part) for k, part in enumerate(item))
        elif id(item) in places:
            found.append((path, places[id(item)]))
    return tuple(found)


def put_in(value: Any, place: Path, container: Any) -> Any:
    """A result with a container at a place."""
    around: list[tuple[tuple[Any, ...], int]] = []
    for k in place:
        around.append((value, k))
        value = value[k]
    value = container
    for parts, k in reversed(around):
        value = (*parts[:k], value, *parts[k + 1 :])
    return value


def hand_back(
    records: Sequence[HandedBack], values: Mapping[str, Any], results: Sequence[Any], owned: Ownership, name: str
) -> None:
    """Let the caller's containers hold what the callee has left in its own."""
    containers, rest = containers_in(values), iter(results)
    ids = [id(value) for value in containers.values()]
    for record in records:
        container = containers[record.path]
        if ids.count(id(container)) > 1:
            raise CaptureError(
                f"`{name}` changes its argument `{record.called}`, and gets the same {_kind(container)} twice",
                hint=f"pass a copy: {_copied(container, record.called)}",
            )
        owned.change(container, record.called)
        held = Held(container, record.called)
        keys, items = held.items()
        leaves = flatten(items, is_leaf)[0]
        for n in record.numbers:
            leaves[n] = next(rest)
        held.hold(keys, unflatten(record.structure, leaves))


def _said(container: Any, items: tuple[Any, ...]) -> Any:
    return list(items) if isinstance(container, (list, deque)) else items


def _kind(value: Any) -> str:
    return type(value).__name__


def _copied(value: Any, called: str) -> str:
    return f"{_kind(value)}({called})" if isinstance(value, (list, dict)) else f"copy.copy({called})"
