"""Options of the test run that several kinds of test share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.core import use_core


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


if "UNDERTOW_CORE" in os.environ:
    use_core(os.environ["UNDERTOW_CORE"])
