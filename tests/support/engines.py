"""The engines of the conformance suite: all that users can name, and waves with each of its schedules forced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from undertow.api.options import ENGINES
from undertow.engines.contract import Engine
from undertow.engines.waves import Waves

FORCED: dict[str, Engine] = {engine.name: engine for engine in (Waves("lockstep"), Waves("agenda"))}
EVERY: dict[str, Engine] = {**ENGINES, **FORCED}


@contextlib.contextmanager
def forced() -> Iterator[None]:
    """Inside this, runs may name them too."""
    with patch.dict(ENGINES, FORCED):
        yield
