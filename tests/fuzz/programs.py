"""Programs whose every bit is known, on every engine: any limit, any number of threads, one call or many lanes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.case import Case
from tests.support.bits import same
from tests.support.engines import EVERY, forced
from tests.support.exact_programs import DTYPES, ExactProgram, exact_arguments, exact_program
from tests.support.written import names_of

import undertow as ut

_LIMITED = (ut.FrameLimit, ut.RecursionLimit)


def exact_run(chance: Random) -> Case:
    """A program, four calls of it, and the same as lanes of a map."""
    program = exact_program(chance)
    calls = [exact_arguments(chance) for _ in range(4)]
    options = {"threads": chance.choice((1, 2)), "frames": chance.choice((None, 30)), "timeout": 30.0}
    return Case(lambda: compare(program, calls, options), f"{program.text}\n{calls}\n{options}")


def compare(program: ExactProgram, calls: list[tuple[Any, ...]], options: dict[str, Any]) -> None:
    """Every engine gives the bits that plain Python gives."""
    plain, captured = (names_of(text) for text in (program.plain, program.text))
    wanted = [_oracle(plain, call) for call in calls]
    columns = [np.stack(column) for column in zip(*calls, strict=True)]
    together = tuple(np.stack(column) for column in zip(*wanted, strict=True))
    with forced():
        for engine in EVERY:
            for call, expected in zip(calls, wanted, strict=True):
                _reset(captured)
                _check(lambda c=call, e=engine: captured["f0"].run(*c, engine=e, **options), expected, (engine, call))
            if not program.has_state:
                _check(lambda e=engine: captured["f0"].map(*columns, engine=e, **options), together, (engine, "map"))


def _reset(space: dict[str, Any]) -> None:
    if "S" in space:
        space["S"].assign(0.0)


def _oracle(space: dict[str, Any], call: tuple[Any, ...]) -> tuple[Any, ...]:
    """What plain Python gives. Its own numbers take the dtype that is declared, NumPy's must have it."""
    _reset(space)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = space["f0"](*call)
        return tuple(np.asarray(value, dtype)[()] for value, dtype in zip(results, DTYPES, strict=True))


def _check(run: Callable[[], Any], wanted: tuple[Any, ...], where: Any) -> None:
    try:
        found = run()
    except _LIMITED:
        return
    assert all(map(same, found, wanted)), (where, found, wanted)
