"""Variants of one test: `make test` runs each program with one of them, in turn, and `make every` with all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

EVERY = "UNDERTOW_EVERY" in os.environ

_Variant = TypeVar("_Variant")


def of_turn(variants: Iterable[_Variant], turn: int) -> list[_Variant]:
    """The variants that a program runs with whose turn it is."""
    known = list(variants)
    return known if EVERY else [known[turn % len(known)]]
