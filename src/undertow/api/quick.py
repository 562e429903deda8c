"""The fast path of calls with numbers, arrays and plain containers: the core finds the program by types, and runs it.

It returns what the slow path, which flattens arguments and reports what is wrong with them, found before for
arguments of the same types. Anything unusual, such as an integer that does not fit, takes the slow path again.
"""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from undertow.engines.native import DTYPE_NUMBERS
from undertow.engines.waves.direct import Direct, Quick
from undertow.engines.waves.direct import direct as direct_plan
from undertow.frontend.trace.by_class import is_read_by_attributes
from undertow.frontend.trace.definition import Arguments
from undertow.frontend.trace.library import Captured
from undertow.frontend.values import tree
from undertow.types import dtype_of

MISSED = NotImplemented  # what the core returns for calls that take the slow path
_MOST = 256  # signatures of one function


class _Never:
    """In place of the fast path, where looking at the arguments would take longer than the call."""

    def call(self, args: Any, options: Any) -> Any:
        return MISSED

    def find(self, args: Any) -> None:
        return None


NEVER: Any = _Never()


def quick() -> Quick:
    """Knows no calls yet."""
    return Quick(_parts, _MOST)


def _parts(item: object) -> tuple[object, list[Any]] | type | None:
    """The token and contents of a container that is not just a tuple, a list or a dict.

    The class of an object that counts by it; None for anything else.
    """
    kind: Any = type(item)
    if (names := _names(kind)) is not None and not tree.extra_names(item, names):
        return kind, [getattr(item, name) for name in names]
    if hasattr(kind, "__undertow_parts__"):  # a forest, sparse rows
        return item.__undertow_parts__()  # type: ignore[attr-defined, no-any-return]
    if names is not None or kind is SimpleNamespace or issubclass(kind, (tuple, list, dict)):
        return tree.children(item)
    return kind if is_read_by_attributes(kind) else None


@functools.lru_cache(1024)
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass that is a plain container."""
    is_special = hasattr(kind, "__undertow_parts__") or hasattr(kind, "__undertow_static__")
    if is_special or not dataclasses.is_dataclass(kind) or issubclass(kind, (tuple, list, dict, int, float)):
        return None
    return tuple(f.name for f in dataclasses.fields(kind))


def remember(known: Quick, args: tuple[Any, ...], arguments: Arguments, program: Any) -> None:
    """Remember a call that took the slow path, with the program that it found."""
    if tuple(tree.flatten(arg)[1] for arg in args) != arguments.structures:
        return  # defaults have come in, or a list stands for an array
    # The sizes of all axes; ~2k for one known only at run time, ~(2k + 1) for one that may be neither 0 nor 1.
    sizes: list[int] = []
    groups: dict[int, int] = {}  # k by length: equal lengths (perhaps by name) must be equal again
    types = arguments.types if program.opened is None else program.captured.types
    opened = program.opened or [[False] * type_.rank for type_ in types]
    for leaf, type_, opens in zip(arguments.leaves, types, opened, strict=True):
        for n, d, is_opened in zip(np.shape(leaf), type_.shape, opens, strict=True):
            sizes.append(n if isinstance(d, int) else ~(2 * groups.setdefault(n, len(groups)) + is_opened))
    guards = program.captured.guards
    dtypes = [DTYPE_NUMBERS[dtype_of(leaf.dtype).name] for leaf in arguments.leaves]
    known.add(args, dtypes, sizes, program, guards)


def direct(captured: Captured, plan: object) -> Direct | None:
    """The plan of a program as the fast path runs it; None if a run needs more than arguments and the core."""
    if captured.variables or captured.needs_seed:
        return None
    return direct_plan(plan, captured.result, tree.build)
