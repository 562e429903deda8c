"""Saved functions taken apart and put together again, for tests of what other people's files may contain."""

from __future__ import annotations

import io
import zipfile


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(entries: dict[str, bytes] | list[tuple[str, bytes]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in entries.items() if isinstance(entries, dict) else entries:
            file.writestr(name, data)
    return made.getvalue()
