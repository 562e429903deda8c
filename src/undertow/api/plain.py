"""The engine "python": runs the undecorated function, for a debugger, and as the oracle of what a program means.

Nothing is captured. Calls of decorated functions inside run undecorated, too. Numbers stay Python's, and so do limits:
of the options, only the seed has an effect. The outermost call copies its arguments, as it does on every engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numpy as np

from undertow.api.options import Settings, use
from undertow.engines.contract import Stats
from undertow.errors import UndertowError
from undertow.frontend.control.mapped import calls_of, stacked_results
from undertow.frontend.objects.arguments import has_handles
from undertow.frontend.syntax.annotations import as_array
from undertow.frontend.trace.custom import Custom
from undertow.frontend.trace.definition import Definition
from undertow.frontend.trace.derivative import Checkpointed
from undertow.frontend.trace.positional import Positional
from undertow.frontend.values import tree


def python_of(definition: Definition) -> Callable[..., Any]:
    """The undecorated function."""
    while isinstance(definition, (Checkpointed, Custom)):
        definition = definition.inner
    if isinstance(definition, Positional):
        python, count, keywords = python_of(definition.inner), definition.count, definition.keywords
        return lambda *args: python(*args[:count], **dict(zip(keywords, args[count:], strict=True)))
    if type(definition) is not Definition or not isinstance(definition.function, FunctionType):
        raise UndertowError(
            f'engine="python" cannot run `{definition.name}`',
            definition.closure.span,
            hint="it runs decorated functions alone: neither gradients nor functions that were loaded; choose another",
        )
    return definition.function


_IS_INSIDE = ContextVar("is_inside", default=False)  # inside a call that runs here: its arguments are not copied


def call(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the undecorated function. A list for an annotated array becomes that array, as in a graph."""
    python = python_of(definition)
    if _IS_INSIDE.get() and not any(isinstance(value, (list, tuple)) for value in (*args, *kwargs.values())):
        return python(*args, **kwargs)
    try:
        bound = definition.closure.signature.bind(*args, **kwargs)
    except TypeError:
        return python(*args, **kwargs)  # which raises Python's own
    for name, value in bound.arguments.items():
        bound.arguments[name] = _taken(definition, name, value)
    return _apart(python, bound.args, bound.kwargs)


def _apart(python: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    before = _IS_INSIDE.set(True)
    try:
        return python(*args, **kwargs)
    finally:
        _IS_INSIDE.reset(before)


def _taken(definition: Definition, name: str, value: Any) -> Any:
    """An argument as the function gets it."""
    if tree.children(value) is not None:
        note = definition.note(name)
        if note is not None and note.structure == (tree.LEAF,) and isinstance(value, (list, tuple)):
            return as_array(value, note.types[0].dtype, f"argument `{name}`", definition.closure.span)
        if note is not None and has_handles(note.structure):
            return value  # the caller's own objects, which do not change
    return value if _IS_INSIDE.get() else _copied(value)


def _copied(value: Any) -> Any:
    """The same arrays and containers, made anew; other objects as they are."""
    leaves, structure = tree.flatten(value, children=_children)
    return tree.unflatten(structure, [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves])


def _children(value: object) -> tuple[tree.Token, list[Any]] | None:
    return None if hasattr(type(value), "__undertow_parts__") else tree.children(value)


def run(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any], chosen: Settings) -> tuple[Any, Stats]:
    """Call the undecorated function, in a context of its own."""
    use(chosen)
    began = time.perf_counter()
    result = call(definition, args, kwargs)
    return result, Stats("python", seconds=time.perf_counter() - began)


def run_map(definition: Definition, args: Sequence[Any], chosen: Settings) -> tuple[Any, Stats]:
    """Call the undecorated function for each element."""
    python_of(definition)
    use(chosen)
    began = time.perf_counter()
    results = [call(definition, each, {}) for each in calls_of(args, definition.closure.span)]
    return stacked_results(results), Stats("python", seconds=time.perf_counter() - began)
