"""Exceptions at run time: `raise`, and what Python raises in a branch for values that are known at capture.

`if n > 2: return items[5]` means an IndexError when `n > 2`, and nothing else. So in a branch that the run chooses,
an index that is out of range, a missing key, a division by zero and a false `assert` are faults of the run. Other
exceptions (a wrong name, a wrong type) are errors of the capture: the cause may be a traced value, and not the program.
So are attributes and items that do not exist, but for those of None and of objects of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, UndertowError
from undertow.frontend.control.restart import Halted
from undertow.frontend.interpret.drive import Work
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.text import TracedText, escaped, joined, text_of
from undertow.frontend.values.traced import Context, Traced, effect, is_traced
from undertow.frontend.values.tree import flatten, unflatten
from undertow.ir.exact import exact
from undertow.ops.debug import ERRORS
from undertow.ops.own_errors import name_of

LATE = (IndexError, KeyError, ZeroDivisionError, AssertionError)
_ALL = (*LATE, AttributeError, TypeError)


def is_conditional(ctx: Context) -> bool:
    """Does what is written now run under a condition, in a loop or map, or in a function that another one calls?"""
    builder = ctx.open_builder
    return builder.region != 0 or builder.kind != "function" or ctx.session.is_called


def raise_at_run_time(kind: type[BaseException], error: Any) -> None:
    """Write a `raise` of an exception, or of its class, into the graph."""
    held: tuple[Any, ...] = () if isinstance(error, type) else error.args
    is_of_python = ERRORS.get(kind.__name__) is kind
    if is_of_python and len(held) == 1 and isinstance(held[0], (str, TracedText)):
        _write(text_of(held[0]), kind.__name__)
        return
    base = next((base for base in kind.__mro__ if ERRORS.get(base.__name__) is base), None)
    if base is None:
        raise CaptureError(
            f"`raise {kind.__name__}` under a condition known only at run time cannot be captured",
            hint="raise an exception that derives from Exception",
        )
    if isinstance(error, type):
        error = error()
    attributes = {name: value for name, value in vars(error).items() if not name.startswith("__undertow")}
    leaves, structure = flatten((held, attributes), is_traced)
    traced = [leaf for leaf in leaves if isinstance(leaf, Traced)]
    known = [None if isinstance(leaf, Traced) else (leaf,) for leaf in leaves]

    def make(values: Sequence[Any]) -> BaseException:
        rest = iter(values)
        args, attributes = unflatten(structure, [_number(next(rest)) if one is None else one[0] for one in known])
        made = kind.__new__(kind, *args)
        made.args = args
        vars(made).update(attributes)
        return made

    has_repr = len(held) > 1 and not any(isinstance(item, TracedText) for item in held)
    text: Any = text_of(held[0]) if len(held) == 1 else text_of(held) if has_repr else None
    shown = text.values if isinstance(text, TracedText) else []
    if any(a is not b for a, b in zip(shown, traced, strict=False)) or len(shown) > len(traced):
        text, shown = None, []  # the values in the order of the operands
    rest = traced[len(shown) :]
    parts = [kind.__name__, *([": ", text] if text is not None else [])]
    if is_of_python and text is not None:
        parts = [text]  # the error's own name is before it
    if rest:
        parts.append(TracedText(" (with " + ", ".join("{}" for _ in rest) + ")", rest))
    _write(joined("", parts), f"{base.__name__} {name_of(kind, (structure, tuple(map(_form, known))), make)}")


def _number(value: Any) -> Any:
    """What Python has where a graph has a single i64, f64 or bool."""
    return value.item() if isinstance(value, (np.bool_, np.int64, np.float64)) else value


def _form(known: tuple[Any] | None) -> Any:
    if known is not None and isinstance(known[0], np.ndarray):
        return known[0].dtype.str, known[0].shape, known[0].tobytes()
    return exact(known)


def _write(text: str | TracedText, error: str) -> None:
    values = text.values if isinstance(text, TracedText) else []
    template = text.template if isinstance(text, TracedText) else escaped(text)
    effect("raise", [np.False_, *values], template=template, error=error)


def or_absent(work: Callable[[], Any], ctx: Context) -> Work:
    """What the work gives; ABSENT if it raises an exception at run time."""
    failed = ctx.session.failed_captures
    try:
        return (yield work())
    except Halted:
        return ABSENT
    except LATE as fault:
        # A graph that was given up half-way cannot be called: then the error is that of the capture.
        if not is_conditional(ctx) or ctx.session.failed_captures != failed:
            raise
        raise_later(fault, ctx)
        return ABSENT


def raise_later(fault: Exception, ctx: Context) -> None:
    """Write a `raise` of what Python has raised during capture."""
    is_ours = isinstance(fault, (CaptureError, TypeMismatch))
    kind = next((kind for kind in _ALL if type(fault) is kind or (is_ours and isinstance(fault, kind))), None)
    if kind is None:
        raise fault  # of a class of the user's, or one of our own that a run never raises
    builder = ctx.open_builder
    held = (fault.what,) if isinstance(fault, UndertowError) else fault.args
    builder.raised = builder.raised or (" ".join(map(str, held)), kind, ctx.span)
    raise_at_run_time(kind, kind(*held))
