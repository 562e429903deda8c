"""Options of the test run that several kinds of test share."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden texts instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str, str], None]:
    """Compares what stands in a file, behind some of it that is given, with what was made; or writes that there."""

    def compare(path: Path, made: str, head: str = "") -> None:
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + made, encoding="utf-8")
        wanted = path.read_text(encoding="utf-8") if path.exists() else ""
        assert head + made == wanted, f"{path} is out of date; `pytest {request.path} --update` writes it"

    return compare


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
