"""The tokens of one line of a graph's text, read from left to right; errors show the line and the column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

import numpy as np

from undertow.errors import GraphError
from undertow.ir.graph import Attr, Const
from undertow.ir.literal import DEEPEST, INLINE, PART, RESERVED, WORD, read_const, read_scalar
from undertow.types import DTYPES, Type

_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r]+(?:\#.*)?|^\#.*)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<index>\#[0-9]+)
    |(?P<digest>\$[0-9a-f]{{16}})
    |(?P<number>{PART}\+{PART}j|-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|-inf|nan\([0-9a-f]+\))
    |(?P<word>{WORD})
    |(?P<mark>->|[:=,;^()\[\]@?&])""",
    re.VERBOSE,
)
_Item = TypeVar("_Item")


def fail(line: int, what: str, text: str = "", hint: str = "") -> NoReturn:
    shown = text.strip()
    shown = shown if len(shown) <= 160 else shown[:157] + "..."
    raise GraphError(f"line {line}: {what}" + (f"\n  {shown}" if shown else ""), hint=hint)


class Line:
    """The words and marks of one line, taken from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.at = 0
        self.tokens: list[re.Match[str]] = []
        column = 0
        while column < len(text):
            match = _TOKEN.match(text, column)
            if match is None:
                fail(number, f"{text[column]!r} at column {column + 1} does not start a name, number or mark", text)
            if match.lastgroup != "space":
                self.tokens.append(match)
            column = match.end()

    def peek(self, ahead: int = 0) -> str:
        """The next token, or "" at the end."""
        return self.tokens[self.at + ahead].group() if self.at + ahead < len(self.tokens) else ""

    def kind(self) -> str | None:
        return self.tokens[self.at].lastgroup if self.at < len(self.tokens) else "end"

    def fail(self, expected: str) -> NoReturn:
        if self.at >= len(self.tokens):
            fail(self.number, f"expected {expected}, but the line ends", self.text)
        column = self.tokens[self.at].start() + 1
        fail(self.number, f"expected {expected}, but found {self.peek()!r:.60} at column {column}", self.text)

    def take(self, *texts: str) -> str:
        """Take one of the given words or marks, if it comes next."""
        token = self.peek()
        if token not in texts:
            return ""
        self.at += 1
        return token

    def expect(self, *texts: str) -> str:
        return self.take(*texts) or self.fail(" or ".join(f"`{text}`" for text in texts))

    def past(self, *texts: str) -> Line:
        """This line after these words and marks, which must come next, in this order."""
        for text in texts:
            self.expect(text)
        return self

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.fail("the end of the line")

    def read(self, what: str, kind: str, convert: Callable[[str], _Item]) -> _Item:
        """Take a word of some kind, and return its meaning."""
        try:
            value = convert(self.peek()) if self.kind() == kind else self.fail(what)
        except ValueError:
            self.fail(what)
        self.at += 1
        return value

    def string(self, what: str = "a string in double quotes") -> str:
        return self.read(what, "string", lambda text: str(json.loads(text)))

    def integer(self, what: str = "a whole number") -> int:
        return self.read(what, "number", int)

    def index(self) -> int | None:
        """The `#k` that may follow a name."""
        return self.read("a shorter number", "index", lambda text: int(text[1:])) if self.kind() == "index" else None

    def name(self, what: str = "a name") -> str:
        if self.kind() == "string":
            return self.string()
        return self.read(what, "word", str) if self.peek() not in RESERVED else self.fail(what)

    def items(self, item: Callable[[], _Item], close: str = "", between: str = ",") -> list[_Item]:
        """Items separated by commas; none if `close` comes at once."""
        if close and self.take(close):
            return []
        items = [item()]
        while self.take(between):
            items.append(item())
        if close:
            self.expect(close)
        return items

    def type(self) -> Type:
        dtype = DTYPES[self.take(*DTYPES) or self.fail("a type such as i64 or f32[3,?]")]
        return Type(dtype, tuple(self.items(self.dim, "]")) if self.take("[") else ())

    def dim(self) -> int | None:
        number = None if self.take("?") else self.integer("a dimension")
        return number if number is None or number >= 0 else fail(self.number, "a dimension is negative", self.text)

    def attr(self, depth: int = 0) -> Attr:
        """A JSON value without objects, lists as tuples. (Recursion is as deep as `DEEPEST` lets lists be.)"""
        if self.take("["):
            if depth == DEEPEST:
                self.fail(f"lists at most {DEEPEST} deep")
            return tuple(self.items(lambda: self.attr(depth + 1), "]"))
        what = "an attribute: a number, string, list, true, false or null"
        return self.read(what, str(self.kind()), read_scalar)

    def const(self) -> Const:
        """A constant that is written out."""
        if self.peek() in ("true", "false"):
            return Const(np.bool_(self.expect("true", "false") == "true"))
        first = self.at
        flat: list[str] = []
        depth = 0
        while True:
            if mark := self.take("[", "]", ","):
                depth += {"[": 1, "]": -1, ",": 0}[mark]
            elif self.kind() == "number" or self.peek() in ("nan", "inf", "true", "false"):
                flat.append(self.peek())
                self.at += 1
            else:
                self.fail("a name or a constant such as 1:i64")
            if depth <= 0:
                break
        self.expect(":")
        type_ = self.type()
        written = "".join(token.group() for token in self.tokens[first : self.at])
        const = read_const(flat, written, type_)
        if const is None:
            self.at = first
            self.fail(f"brackets and elements that fit {type_}, at most {INLINE}")
        return const
