"""Another build of the core in place of the installed one: one that was built with a sanitizer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def use_core(folder: str) -> None:
    """Let `undertow._core` be the module in that folder.

    This comes before anything imports undertow, whose engines would hold on to the other one.
    """
    assert "undertow" not in sys.modules
    (path,) = Path(folder).glob("_core*.so")
    spec = importlib.util.spec_from_file_location("undertow._core", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["undertow._core"] = module
    spec.loader.exec_module(module)
