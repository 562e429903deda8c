"""Options of the test run that several kinds of test share."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden texts instead of comparing with them")


def _use_core(folder: str) -> None:
    """Let `undertow._core` be the module in that folder: one that was built with a sanitizer.

    This comes before anything imports undertow, whose engines would hold on to the other one.
    """
    assert "undertow" not in sys.modules
    (path,) = Path(folder).glob("_core*.so")
    spec = importlib.util.spec_from_file_location("undertow._core", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["undertow._core"] = module
    spec.loader.exec_module(module)


if "UNDERTOW_CORE" in os.environ:
    _use_core(os.environ["UNDERTOW_CORE"])
