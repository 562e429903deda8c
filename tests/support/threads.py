"""Runs work in several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(work: Callable[[int], Any], count: int) -> list[Any]:
    """What the threads give, each for its number; what one of them raises is raised."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))
