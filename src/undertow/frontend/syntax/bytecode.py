"""What Python keeps of a module beside its text: its code, as `__pycache__` has it.

A release of Python runs what an earlier release with the same magic number has compiled, and may itself compile the
same text to other code. Then the cache tells which text the code is from.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
from types import CodeType


def cached_code(file: str) -> CodeType | None:
    """The code in the cache of a source file; None if there is none, or the file has changed since."""
    try:
        with open(importlib.util.cache_from_source(file), "rb") as cache:
            data = cache.read()
        if data[:4] != importlib.util.MAGIC_NUMBER or not _is_of(data, file):
            return None
        code = marshal.loads(data[16:])
    except (OSError, ValueError, EOFError, TypeError, NotImplementedError):
        return None
    return code if isinstance(code, CodeType) else None


def _is_of(data: bytes, file: str) -> bool:
    """Is the file what a cache says that it was made from? (PEP 552: by time and size, or by a hash)."""
    if int.from_bytes(data[4:8], "little") & 1:
        with open(file, "rb") as source:
            return data[8:16] == importlib.util.source_hash(source.read())
    stat = os.stat(file)
    numbers = int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF
    return data[8:16] == b"".join(number.to_bytes(4, "little") for number in numbers)
