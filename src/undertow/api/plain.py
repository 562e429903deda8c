"""The engine "python": runs the undecorated function, for a debugger, and as the oracle of what a program means.

Nothing is captured. Calls of decorated functions inside run undecorated, too. Numbers stay Python's, and so do limits:
of the options, only the seed has an effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from undertow.api.options import Settings, use
from undertow.engines.contract import Stats
from undertow.errors import UndertowError
from undertow.frontend.control.mapped import calls_of, stacked_results
from undertow.frontend.syntax.annotations import as_array
from undertow.frontend.syntax.calling import bind_arguments
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


def call(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the undecorated function. A list for an annotated array becomes that array, as in a graph."""
    python = python_of(definition)
    if any(isinstance(value, (list, tuple)) for value in (*args, *kwargs.values())):
        span = definition.closure.span
        for name, value in bind_arguments(definition.closure, args, kwargs, span).items():
            note = definition.note(name)
            if isinstance(value, (list, tuple)) and note is not None and note.structure == (tree.LEAF,):
                array = as_array(value, note.types[0].dtype, f"argument `{name}`", span)
                args = [array if arg is value else arg for arg in args]
                kwargs = {key: array if arg is value else arg for key, arg in kwargs.items()}
    return python(*args, **kwargs)


def run(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any], chosen: Settings) -> tuple[Any, Stats]:
    """Call the undecorated function, in a context of its own."""
    use(chosen)
    began = time.perf_counter()
    result = call(definition, args, kwargs)
    return result, Stats("python", seconds=time.perf_counter() - began)


def run_map(definition: Definition, args: Sequence[Any], chosen: Settings) -> tuple[Any, Stats]:
    """Call the undecorated function for each element."""
    python = python_of(definition)
    use(chosen)
    began = time.perf_counter()
    results = [python(*call) for call in calls_of(args, definition.closure.span)]
    return stacked_results(results), Stats("python", seconds=time.perf_counter() - began)
