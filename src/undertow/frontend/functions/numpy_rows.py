"""A function of NumPy's on traced values, as a row: its name, its parameters in NumPy's order, what computes it.

`axis=None` is a parameter with its default. `!out` is one that has no counterpart: it is refused unless it is left out,
or asks for what happens anyway (`order="C"`).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from undertow.errors import CaptureError

_LEFT_OUT = object()
# What a parameter without a counterpart may say: it changes nothing here. None is always right.
_HARMLESS: Mapping[str, tuple[Any, ...]] = {
    "order": ("C", "K", "A"), "where": (True,), "mode": ("raise",), "casting": ("same_kind", "unsafe"),
    "kind": ("quicksort", "stable", "mergesort", "heapsort"), "stable": (True, False), "copy": (True, False),
    "subok": (True, False), "device": ("cpu",), "sorted": (True,), "hermitian": (False,),
    "optimize": (True, False, "greedy", "optimal"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A function of NumPy's on traced values."""

    name: str
    parameters: inspect.Signature
    refused: frozenset[str]
    compute: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as fault:
            raise CaptureError(
                f"{self.name} cannot be captured like this: {fault}", hint=f"on traced values it takes {self.taken}"
            ) from None
        bound.apply_defaults()
        left: list[Any] = []
        for name, value in bound.arguments.items():
            kind = self.parameters.parameters[name].kind
            if name not in self.refused:
                left += value if kind is inspect.Parameter.VAR_POSITIONAL else [value]
            elif value is not _LEFT_OUT and not is_harmless(self.name, name, value):
                raise CaptureError(
                    f"{self.name} with `{name}` cannot be captured",
                    hint="assign the result instead: y = " + self.taken
                    if name == "out"
                    else f"on traced values it takes {self.taken}",
                )
        return self.compute(*left)

    @property
    def taken(self) -> str:
        shown = [str(p) for n, p in self.parameters.parameters.items() if n not in self.refused]
        return f"{self.name}({', '.join(shown)})"


def is_harmless(function: str, parameter: str, value: Any) -> bool:
    """May a parameter that has no counterpart have this value?"""
    # The orders "A" and "K" go by memory: that moves the elements of these, and of others only where they are stored.
    is_read_in_order = parameter == "order" and function.rpartition(".")[2] in ("flatten", "ravel", "reshape")
    harmless = ("C",) if is_read_in_order else _HARMLESS.get(parameter, ())
    return value is None or (isinstance(value, (str, bool)) and value in harmless)


def row(name: str, parameters: str, compute: Callable[..., Any]) -> Row:
    """The row of a name: its parameters in the notation above, and what computes it."""
    made: list[inspect.Parameter] = []
    refused: set[str] = set()
    for text in parameters.split():
        named, equals, default = text.partition("=")
        if named.startswith("*"):
            made.append(inspect.Parameter(named[1:], inspect.Parameter.VAR_POSITIONAL))
            continue
        is_last = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in made)
        kind = inspect.Parameter.KEYWORD_ONLY if is_last else inspect.Parameter.POSITIONAL_OR_KEYWORD
        if named.startswith("!"):
            named = named[1:]
            refused.add(named)
            made.append(inspect.Parameter(named, kind, default=_LEFT_OUT))
        elif equals:
            made.append(inspect.Parameter(named, kind, default=ast.literal_eval(default)))
        else:
            made.append(inspect.Parameter(named, kind))
    return Row(name, inspect.Signature(made), frozenset(refused), compute)
