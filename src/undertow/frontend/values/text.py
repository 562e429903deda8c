"""Texts with traced values in them: a template of Python's, and the values that fill it in at run time.

They can be printed, joined, returned, and be the message of an `assert`. What needs the characters now is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any

from undertow.errors import CaptureError, Span
from undertow.frontend.values.traced import Traced
from undertow.frontend.values.tree import Token
from undertow.ops.debug import fill_in


def escaped(text: str) -> str:
    """A text as it stands in a template."""
    return text.replace("{", "{{").replace("}", "}}")


def text_too_early(text: TracedText, span: Span | None = None) -> CaptureError:
    """The error of what needs the characters now."""
    return CaptureError(
        f"this text contains a traced {text.values[0].type}: its characters are known only at run time",
        span,
        hint="it can be printed, joined to other texts with +, returned, or be the message of an assert",
    )


def _refused(text: TracedText, *_: Any, **__: Any) -> Any:
    raise text_too_early(text)


class TracedText:
    """A text that is known at run time. Not a `str`: nothing may take its template for the text."""

    __slots__ = ("template", "values")

    __undertow_said__ = "a text with traced values"  # in messages

    def __init__(self, template: str, values: Sequence[Traced]) -> None:
        self.template = template
        self.values = list(values)

    def __add__(self, other: Any) -> Any:
        return joined("", [self, other]) if isinstance(other, (str, TracedText)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return joined("", [other, self]) if isinstance(other, str) else NotImplemented

    def __copy__(self) -> TracedText:
        return self

    def __deepcopy__(self, _: Any) -> TracedText:
        return self

    # -- as a container (see undertow.frontend.values.tree): texts merge, pass calls and are returned ---------------

    def __undertow_parts__(self) -> tuple[Token, list[Any]]:
        count = len(self.values)
        return ("object", count, TracedText, tuple(range(count)), (self.template,)), self.values

    @classmethod
    def __undertow_whole__(cls, known: tuple[str], values: Sequence[Any]) -> Any:
        is_inside = any(isinstance(value, Traced) for value in values)
        return cls(known[0], values) if is_inside else fill_in(known[0], values)


for _name in (
    "__bool__", "__contains__", "__eq__", "__format__", "__ge__", "__getitem__", "__gt__", "__hash__", "__iter__",
    "__le__", "__len__", "__lt__", "__mod__", "__mul__", "__ne__", "__rmod__", "__rmul__", "__str__",
):  # fmt: skip
    setattr(TracedText, _name, _refused)


def is_text(value: object) -> bool:
    return isinstance(value, (str, TracedText))


def text_of(value: Any, spec: str = "", conversion: str = "") -> str | TracedText:
    """The text of any value: what `str` or `repr` of it, or `format` with a specification, will give."""
    if isinstance(value, TracedText):
        if spec or conversion not in ("", "s"):
            raise text_too_early(value)
        return value
    if isinstance(value, Traced):
        # Numbers of i64, f64, c128 and bool are Python's, whose repr is their str. Without a conversion, NumPy formats
        # its own numbers as Python's: f"{x}" of an f32 has more digits than str(x).
        is_python = not value.type.rank and value.dtype.name in ("i64", "f64", "c128", "bool")
        if is_python or (value.type.rank and conversion == "s"):
            conversion = "s" if conversion and spec else ""
        mark = f"!{conversion}" if conversion else ""
        return TracedText(f"{{{mark}:{escaped(spec)}}}" if spec else f"{{{mark}}}", [value])
    if not spec and conversion in ("", "s", "r") and type(value) in (list, tuple, dict):
        return _text_of_container(value)
    if conversion:
        value = str(value) if conversion == "s" else repr(value) if conversion == "r" else ascii(value)
    return format(value, spec)


def joined(between: Any, texts: Sequence[Any]) -> str | TracedText:
    """`between.join(texts)`."""
    templates = [text.template if isinstance(text, TracedText) else escaped(text) for text in texts]
    values = [value for text in texts if isinstance(text, TracedText) for value in text.values]
    template = escaped(between).join(templates)
    return TracedText(template, values) if values else template.format()


def _text_of_container(value: Any) -> str | TracedText:
    """The repr of a list, tuple or dict, with the values in it. Depth is user data: no recursion."""
    parts: list[Any] = []
    stack: list[Any] = [value]
    open_: set[int] = set()  # containers around
    while stack:
        item = stack.pop()
        if isinstance(item, _Mark):
            parts.append(item.text)
            open_.discard(item.closes)
        elif type(item) in (list, tuple, dict):
            brackets = "[]" if type(item) is list else "()" if type(item) is tuple else "{}"
            if id(item) in open_:
                parts.append(f"{brackets[0]}...{brackets[1]}")
                continue
            open_.add(id(item))
            parts.append(brackets[0])
            inner: list[Any] = []
            for index, part in enumerate(item):
                inner += [_Mark(", ")] if index else []
                inner += [part, _Mark(": "), item[part]] if isinstance(item, dict) else [part]
            end = f",{brackets[1]}" if type(item) is tuple and len(item) == 1 else brackets[1]
            stack += [_Mark(end, id(item)), *reversed(inner)]
        else:
            parts.append(text_of(item, conversion="r"))
    return joined("", parts)


class _Mark:
    """A piece of punctuation; at the end of a container, `closes` is its id."""

    __slots__ = ("closes", "text")

    def __init__(self, text: str, closes: int = 0) -> None:
        self.text = text
        self.closes = closes


def formatted(template: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str | TracedText:
    """`template.format(*args, **kwargs)`, where some of the arguments are traced."""
    parts: list[Any] = []
    formatter, count = Formatter(), 0
    for literal, field, spec, conversion in formatter.parse(template):
        parts.append(literal)
        if field is None:
            continue
        if not field:
            field, count = str(count), count + 1
        if "{" in (spec or "") or not (field.isdigit() or field.isidentifier()):
            raise CaptureError(
                f"the template {template!r} cannot be filled with traced values", hint="write an f-string"
            )
        value = args[int(field)] if field.isdigit() else kwargs[field]
        parts.append(text_of(value, spec or "", conversion or ""))
    return joined("", parts)
