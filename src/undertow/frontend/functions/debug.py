"""Functions that act while a graph runs: print and assert, in program order."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any

from undertow.errors import TypeMismatch, brief
from undertow.frontend.values.operands import as_operand, bools
from undertow.frontend.values.text import TracedText, escaped, joined
from undertow.frontend.values.traced import effect
from undertow.tracebacks import boundaries

__all__ = ["assert_", "print"]


def _fields(template: str) -> int:
    """How many values a template wants."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as problem:
        raise TypeMismatch(
            f"{template!r} is not a valid template: {problem}", hint="write {{ for a literal brace"
        ) from None
    names = [field for _, field, _, _ in parts if field is not None]
    if any(name for name in names):
        raise TypeMismatch(
            f"the template {template!r} has named fields", hint="use {} or {:.3f}; values fill them in order"
        )
    return len(names)


def _filled(template: str, values: Sequence[Any], what: str) -> list[Any]:
    wanted = _fields(template)
    if wanted != len(values):
        raise TypeMismatch(
            f"the template {template!r} of {what} needs {wanted} values, but {len(values)} are given",
            hint="pass one value for each {}, and write {{ for a literal brace",
        )
    return [as_operand(v) for v in values]


def print(*values: Any, sep: str = " ") -> None:
    """Write a line when the graph runs. A first string with {} is a template for the values after it.

    >>> print("n =", 3)
    n = 3
    >>> print("{:.2f} of {}", 0.5, [1, 2])
    0.50 of [1 2]
    """
    if any(isinstance(v, TracedText) for v in values):
        texts = [v if isinstance(v, (str, TracedText)) else TracedText("{}", [as_operand(v)]) for v in values]
        text = joined(sep, texts)
        assert isinstance(text, TracedText)
        template, operands = text.template, text.values
    elif values and isinstance(values[0], str) and len(values) > 1 and "{" in values[0]:
        template = values[0]
        operands = _filled(template, values[1:], "print")
    else:
        template = escaped(sep).join(escaped(v) if isinstance(v, str) else "{}" for v in values)
        operands = [as_operand(v) for v in values if not isinstance(v, str)]
    effect("print", operands, template=template)


def assert_(condition: Any, message: str = "an assertion failed", /, *values: Any) -> None:
    """A fault unless the condition (all of it) is true. `message` is a template for the values after it.

    >>> assert_(1 < 2, "{} is not below 2", 1)
    """
    if isinstance(message, TracedText) and not values:
        effect("assert", [*bools(condition), *message.values], template=message.template)
        return
    if not isinstance(message, str):
        raise TypeMismatch(
            f"the message of assert_ must be a string, not {brief(message)}",
            hint='write ut.assert_(x > 0, "x is {}", x)',
        )
    template = message if values else escaped(message)
    effect("assert", [*bools(condition), *_filled(template, values, "assert_")], template=template)


boundaries(globals(), __all__)
