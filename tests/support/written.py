"""Programs that are written as text: loaded so that their source can be found again."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import undertow as ut

_NUMBERS = itertools.count()


def load_file(path: Path) -> ModuleType:
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_text(text: str, folder: Path) -> ModuleType:
    """The module of a text, which becomes a file of its own."""
    path = folder / f"written_{next(_NUMBERS)}.py"
    path.write_text(text, encoding="utf-8")
    return load_file(path)


def function_of(text: str, name: str) -> Any:
    """A function of a text that knows `ut`; there is no file."""
    return names_of(text)[name]


def names_of(text: str) -> dict[str, Any]:
    """What a text that knows `ut` and `np` defines; there is no file."""
    file = f"<written {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"ut": ut, "np": np}
    exec(compile(text, file, "exec"), space)
    return space
