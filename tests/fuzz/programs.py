"""Programs whose every bit is known, on every engine: one call or many lanes, any limit, several threads."""

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
from tests.support.threads import in_threads
from tests.support.written import names_of

import undertow as ut
from undertow.engines.contract import SCHEDULERS

_LIMITED = (ut.FrameLimit, ut.RecursionLimit)


def exact_run(chance: Random) -> Case:
    """Signed zeros, nan, constants mixed with traced values, variables: every engine has the bits of plain Python.

    Four calls, and the same as lanes of a map.
    """
    program = exact_program(chance)
    calls = [exact_arguments(chance) for _ in range(4)]
    options = {"threads": chance.choice((1, 2)), "frames": chance.choice((None, 30)), "timeout": 30.0}
    return Case(lambda: compare(program, calls, options), f"{program.text}\n{calls}\n{options}", is_valid=True)


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


# A limit, values for it, and what a run ends in that needs more.
_LIMITS: dict[str, tuple[tuple[Any, ...], type[ut.RunError]]] = {
    "frames": ((1, 2, 5, 30), ut.FrameLimit),
    "max_depth": ((1, 2, 3), ut.RecursionLimit),
    "memory": ((1, 1 << 8, 1 << 12, 1 << 16), ut.FrameLimit),
    "timeout": ((1e-6, 1e-4, 1e-3, 1e-2), ut.Timeout),
}


def limited_run(chance: Random) -> Case:
    """Such a program with random limits: the right bits, or the error of a limit, which leaves nothing behind."""
    program, call = exact_program(chance), exact_arguments(chance)
    chosen = chance.sample(sorted(_LIMITS), chance.randint(1, 2))
    limits = {name: chance.choice(_LIMITS[name][0]) for name in chosen}
    errors = tuple(_LIMITS[name][1] for name in chosen)

    def run() -> None:
        plain, captured = (names_of(text) for text in (program.plain, program.text))
        wanted, function = _oracle(plain, call), captured["f0"]
        with forced():
            for engine in EVERY:
                _reset(captured)
                try:
                    found = function.run(*call, engine=engine, **limits)
                    _reset(captured)
                except errors:
                    assert "S" not in captured or same(captured["S"].read(), np.float64(0.0)), engine
                else:
                    assert all(map(same, found, wanted)), (engine, found, wanted)
                again = function.run(*call, engine=engine)
                assert all(map(same, again, wanted)), (engine, "again", again, wanted)

    return Case(run, f"{program.text}\n# {call}\n# {limits}", is_valid=True)


def concurrent_run(chance: Random) -> Case:
    """Such a program, called and mapped by several Python threads at once, each run with threads of its own."""
    while (program := exact_program(chance)).has_state:  # with a variable, the order of commits would matter
        pass
    calls = [exact_arguments(chance) for _ in range(4)]
    schedulers = chance.choices(SCHEDULERS, k=4)

    def run() -> None:
        plain, captured = (names_of(text) for text in (program.plain, program.text))
        wanted = [_oracle(plain, call) for call in calls]
        columns = [np.stack(column) for column in zip(*calls * 8, strict=True)]
        together = tuple(np.stack(column) for column in zip(*wanted * 8, strict=True))

        def work(number: int, engine: str) -> None:
            call, expected = calls[number], wanted[number]
            options = {"engine": engine, "threads": 2}
            if engine == "expand":
                options["scheduler"] = schedulers[number]
            _check(lambda: captured["f0"].run(*call, **options), expected, (options, call))
            _check(lambda: captured["f0"].map(*columns, **options), together, (options, "map"))

        with forced():
            for engine in EVERY:
                in_threads(lambda number, e=engine: work(number, e), len(calls))

    return Case(run, f"{program.text}\n# {calls}\n# {schedulers}", is_valid=True)


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
