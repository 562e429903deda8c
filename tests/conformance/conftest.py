"""Runs of this folder may name `waves:lockstep` and `waves:agenda`, which force a schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.engines import forced


@pytest.fixture(autouse=True)
def schedules() -> Iterator[None]:
    with forced():
        yield
