"""Operators with side effects: print, assert and raise. They return an order token.

Their templates are Python's: `{}` or `{:.3f}` stands for the next value.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

import numpy as np

from undertow.errors import Fault, Raised
from undertow.ir.graph import Attrs
from undertow.ops.attributes import TEMPLATE
from undertow.ops.gradient import NONE
from undertow.ops.op import Op, Value
from undertow.ops.rules import BOOLS, ELEMENTS, check_kind
from undertow.types import CTL, Type


class Output:
    """How many lines a run has printed, and how many of the first to skip since another run has printed them."""

    __slots__ = ("count", "skipped")

    def __init__(self, skipped: int) -> None:
        self.count = 0
        self.skipped = skipped


_OUTPUT: ContextVar[Output | None] = ContextVar("undertow_output", default=None)


@contextlib.contextmanager
def printing(skipped: int = 0) -> Iterator[Output]:
    """Count the lines that are printed, and skip the first ones."""
    token = _OUTPUT.set(output := Output(skipped))
    try:
        yield output
    finally:
        _OUTPUT.reset(token)


def print_again() -> None:
    """The run begins again: what it has printed is not printed twice."""
    output = _OUTPUT.get()
    if output is not None:
        output.skipped, output.count = max(output.skipped, output.count), 0


def fill_in(template: str, values: Sequence[Value]) -> str:
    """A template with its values filled in; a Fault if they do not fit."""
    try:
        return template.format(*(np.asarray(v)[()] for v in values))
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as problem:
        raise Fault(
            f"{template!r} does not fit its values: {problem}", hint="arrays take plain {} only", kind=type(problem)
        ) from None


def _takes(name: str, types: Sequence[Type]) -> tuple[Type, ...]:
    for type in types:
        check_kind(name, type, ELEMENTS)
    return (CTL,)


def _print(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    text = fill_in(attrs.text("template"), values)
    output = _OUTPUT.get()
    if output is not None:
        output.count += 1
    if output is None or output.count > output.skipped:
        print(text)  # noqa: T201 - printing is what it is for
    return (np.True_,)


def _assert_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("assert", types[0], BOOLS)
    return _takes("assert", types[1:])


def _assert(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    if not np.all(values[0]):
        text, _, hint = fill_in(attrs.text("template"), values[1:]).partition("\nhint: ")
        raise Fault(text, hint=hint, kind=AssertionError)
    return (np.True_,)


def _is_plain(kind: object) -> bool:
    """Is it an exception of Python's that a message alone makes, and that no loop or generator takes for its end?"""
    if (
        not isinstance(kind, type)
        or not issubclass(kind, Exception)
        or issubclass(kind, StopIteration | StopAsyncIteration)
    ):
        return False
    try:
        kind("")
    except TypeError:  # UnicodeDecodeError
        return False
    return True


# The exceptions that a program may raise under a condition known only at run time, by name.
ERRORS: dict[str, type[Exception]] = {name: kind for name, kind in vars(builtins).items() if _is_plain(kind)}


def _raise(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    if not np.all(values[0]):
        base, _, own = attrs.text("error").partition(" ")
        fault = Raised(fill_in(attrs.text("template"), values[1:]), kind=ERRORS[base])
        if own:
            fault.raised = own, tuple(np.array(value)[()] for value in values[1:])
        raise fault
    return (np.True_,)


def _is_error(value: object) -> bool:
    """Is it the name of an exception of Python's, followed by one of the user's own that is of this class?"""
    return isinstance(value, str) and value.partition(" ")[0] in ERRORS


ROWS: tuple[Op, ...] = (
    Op(
        "print", None, lambda types, attrs: _takes("print", types), _print,
        "write `template`, filled in, and a newline", NONE, faults=True, is_apart=True, effect=True, attrs=TEMPLATE,
    ),
    Op(
        "assert", None, _assert_rule, _assert,
        "a fault with the message `template` unless the whole first operand is true; operands: condition, values", NONE,
        faults=True, effect=True, attrs=TEMPLATE,
    ),
    Op(
        "raise", None, _assert_rule, _raise,
        "the exception `error` of Python's (after it, the name of the user's own one), with the message `template`, "
        "unless the whole first operand is true; "
        "operands: False, values", NONE,
        faults=True, effect=True, attrs={**TEMPLATE, "error": _is_error},
    ),
)  # fmt: skip
