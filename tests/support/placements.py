"""Random placements: `make test` has each program under one of each kind, `make placements` under all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tests.programs import Program

EVERY = os.environ.get("UNDERTOW_PLACEMENTS") == "all"


def pairs(programs: Sequence[Program], placements: Iterable[str], first: int = 0) -> list[tuple[Program, str]]:
    """Programs, each with all of the placements, or with one of them: they take turns, from number `first` on."""
    names = list(placements)
    return [
        (program, name)
        for turn, program in enumerate(programs, first)
        for name in (names if EVERY else [names[turn % len(names)]])
    ]
