"""Every test of this folder begins with an empty default graph, and leaves none behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import undertow.compat.v1 as tf

collect_ignore_glob = ["tutorials/*"]  # programs, which test_tutorials.py runs


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    tf.reset_default_graph()
    yield tf.get_default_graph()
    tf.reset_default_graph()
