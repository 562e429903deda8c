"""Protocol buffers, written only: messages as dataclasses, their wire format and their text format.

A field says its number and its kind; fields with their default are left out, as proto3 does.

>>> from dataclasses import dataclass
>>> @dataclass
... class Point(Message):
...     name: str = text(1)
...     at: list[int] = integers(2)
>>> print(Point("p", [3, -1]), end="")
name: "p"
at: 3
at: -1
>>> Point("p", [3]).SerializeToString().hex(" ")
'0a 01 70 12 01 03'
"""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first. A negative number takes ten bytes, as its two's complement.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class Kind(NamedTuple):
    """How values of a kind of field are written."""

    wire: int
    encode: Callable[[Any], bytes]
    show: Callable[[Any], str]


_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\"}


def _quoted(value: str | bytes) -> str:
    data = value.encode() if isinstance(value, str) else value
    shown = (_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)
    return f'"{"".join(shown)}"'


def _number(value: Any) -> str:
    return str(value) if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"


_INTEGER = Kind(_VARINT, varint, str)
_TRUTH = Kind(_VARINT, lambda value: varint(int(value)), lambda value: "true" if value else "false")
_SINGLE = Kind(_FIXED32, functools.partial(struct.pack, "<f"), lambda value: _number(np.float32(value)))
_DOUBLE = Kind(_FIXED64, functools.partial(struct.pack, "<d"), lambda value: _number(float(value)))
_TEXT = Kind(_BYTES, lambda value: str(value).encode(), _quoted)
_DATA = Kind(_BYTES, lambda value: value.encode() if isinstance(value, str) else bytes(value), _quoted)
_MESSAGE = Kind(_BYTES, lambda value: value.SerializeToString(), str)


class Field(NamedTuple):
    """A field of a message. `default` is what need not be written; None: nothing is written unless it is set."""

    name: str
    number: int
    kind: Kind
    default: Any
    repeated: bool = False
    keyed: bool = False  # a map from text to messages or texts


def _field(number: int, kind: Kind, default: Any, repeated: bool = False, keyed: bool = False) -> Any:
    about = {
        "protobuf": functools.partial(Field, number=number, kind=kind, default=default, repeated=repeated, keyed=keyed)
    }
    if repeated or keyed:
        return dataclasses.field(default_factory=dict if keyed else list, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def part(number: int, make: Callable[[], Message]) -> Any:
    """A message that is always there, and written unless it is empty."""
    about = {"protobuf": functools.partial(Field, number=number, kind=_MESSAGE, default=make())}
    return dataclasses.field(default_factory=make, metadata=about)


def _maker(kind: Kind, usual: Any) -> Callable[..., Any]:
    def make(number: int, is_choice: bool = False) -> Any:
        """A field; one of a choice (`oneof`) is None until it is set."""
        return _field(number, kind, None if is_choice else usual)

    return make


def _maker_of_lists(kind: Kind) -> Callable[[int], Any]:
    return lambda number: _field(number, kind, None, repeated=True)


integer, truth, single, double = _maker(_INTEGER, 0), _maker(_TRUTH, False), _maker(_SINGLE, 0.0), _maker(_DOUBLE, 0.0)
text, data, message = _maker(_TEXT, ""), _maker(_DATA, b""), _maker(_MESSAGE, None)
integers, truths, singles, doubles = map(_maker_of_lists, (_INTEGER, _TRUTH, _SINGLE, _DOUBLE))
texts, datas, messages = map(_maker_of_lists, (_TEXT, _DATA, _MESSAGE))


def enum(number: int, names: Mapping[int, str], is_choice: bool = False) -> Any:
    """A number that the text format shows by its name."""
    return _field(number, _enumerated(names), None if is_choice else 0)


def enums(number: int, names: Mapping[int, str]) -> Any:
    """A list of them."""
    return _field(number, _enumerated(names), None, repeated=True)


def _enumerated(names: Mapping[int, str]) -> Kind:
    return Kind(_VARINT, varint, lambda value: names.get(value, str(value)))


def keyed_messages(number: int) -> Any:
    """A map from texts to messages."""
    return _field(number, _MESSAGE, None, keyed=True)


def keyed_texts(number: int) -> Any:
    """A map from texts to texts."""
    return _field(number, _TEXT, None, keyed=True)


@dataclass
class Message:
    """The base of messages, which are dataclasses of fields. Methods are named as in generated classes."""

    @classmethod
    @functools.cache
    def fields(cls) -> tuple[Field, ...]:
        """The fields, in the order of their numbers."""
        found = [field.metadata["protobuf"](field.name) for field in dataclasses.fields(cls)]
        return tuple(sorted(found, key=lambda field: field.number))

    def SerializeToString(self) -> bytes:
        """The wire format. Equal messages are equal bytes: maps are in the order of their keys."""
        return b"".join(self._parts())

    def _parts(self) -> Iterator[bytes]:
        for field in self.fields():
            value = getattr(self, field.name)
            if field.keyed:
                for key in sorted(value):
                    entry = _framed(1, _TEXT, key) + _framed(2, field.kind, value[key])
                    yield _delimited(field.number, entry)
            elif not field.repeated:
                if value != field.default:
                    yield _framed(field.number, field.kind, value)
            elif field.kind.wire == _BYTES:
                yield from (_framed(field.number, field.kind, item) for item in value)
            elif value:  # packed
                yield _delimited(field.number, b"".join(map(field.kind.encode, value)))

    def HasField(self, name: str) -> bool:
        """Is a field that is no list set?"""
        return any(field.name == name and getattr(self, name) != field.default for field in self.fields())

    def ByteSize(self) -> int:
        """The length of the wire format."""
        return len(self.SerializeToString())

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines(""))

    def lines(self, indent: str) -> Iterator[str]:
        """The text format. Messages nest as deep as their declarations, never as deep as data."""
        for field in self.fields():
            value = getattr(self, field.name)
            if field.keyed:
                for key in sorted(value):
                    yield f"{indent}{field.name} {{"
                    yield f"{indent}  key: {_quoted(key)}"
                    yield from _shown("value", field.kind, value[key], indent + "  ")
                    yield f"{indent}}}"
            else:
                for item in value if field.repeated else () if value == field.default else (value,):
                    yield from _shown(field.name, field.kind, item, indent)


def _shown(name: str, kind: Kind, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Message):
        yield f"{indent}{name} {{"
        yield from value.lines(indent + "  ")
        yield f"{indent}}}"
    else:
        yield f"{indent}{name}: {kind.show(value)}"


def _framed(number: int, kind: Kind, value: Any) -> bytes:
    if kind.wire == _BYTES:
        return _delimited(number, kind.encode(value))
    return varint(number << 3 | kind.wire) + kind.encode(value)


def _delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(content)) + content
