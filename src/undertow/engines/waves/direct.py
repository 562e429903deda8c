"""Runs that the core does alone, from the arguments of a call to its result: see core/bind/quick.cpp.

A function's `Quick` knows calls by the types of their arguments; a program's `Direct` runs without Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow._core import Direct as Direct
from undertow._core import Quick as Quick
from undertow._core import RunOptions as RunOptions
from undertow._core import Stopped as Stopped
from undertow.engines.contract import Options
from undertow.engines.native import limits_of
from undertow.engines.waves import WavesPlan

Token = tuple[Any, ...]


def run_options(limits: Options) -> RunOptions | None:
    """The limits of such runs; None if a run has to give more than its result."""
    if limits.trace is not None or limits.timed:
        return None
    return RunOptions(*limits_of(limits), limits.frames is not None, limits.threads or 0)


def direct(plan: object, structure: tuple[Token, ...], build: Callable[[Token, list[Any]], Any]) -> Direct | None:
    """A plan whose results are the leaves of a structure; None if it needs more than the core."""
    if not isinstance(plan, WavesPlan) or not plan.is_free or not Direct.is_possible(plan.core):
        return None
    return Direct(plan, plan.core, plan.width, structure, build)
