"""Reads protocol buffers and event files without a schema: fields by the numbers in TensorFlow's .proto files."""

from __future__ import annotations

import struct
from pathlib import Path

Fields = dict[int, list]  # by number: integers, or bytes


def decoded(data: bytes) -> Fields:
    """The fields of a message. Nested messages, texts and packed lists stay bytes, floats too."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        assert number > 0
        if wire == 0:
            value, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                assert wire == 2, f"wire type {wire}"
                size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
            assert at <= len(data), "it ends too soon"
        fields.setdefault(number, []).append(value)
    return fields


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def one(fields: Fields, number: int):
    (value,) = fields[number]
    return value


def texts(fields: Fields, number: int) -> list[str]:
    return [value.decode() for value in fields.get(number, [])]


def entries(fields: Fields, number: int) -> dict[str, bytes]:
    """A map from texts."""
    pairs = [decoded(entry) for entry in fields.get(number, [])]
    return {one(pair, 1).decode(): one(pair, 2) for pair in pairs}


def events(path: Path) -> list[Fields]:
    """The events of a file, after their checksums have been compared."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        found.append(decoded(body))
        at += 16 + length
    return found


def masked(data: bytes) -> int:
    """CRC-32C bit by bit, as its definition says, and TensorFlow's mask."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
