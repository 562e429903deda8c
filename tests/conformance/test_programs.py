"""Every program on every engine gives what plain Python gives. An engine that joins ENGINES joins here."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from tests.programs import PROGRAMS, Expected, Program, assert_same
from tests.support.engines import EVERY
from tests.support.turns import of_turn

import undertow as ut

# The reference engine fires one node at a time, in any order that a scheduler likes; other engines have their own.
SCHEDULES: list[dict[str, Any]] = [
    {"scheduler": "fifo"},
    {"scheduler": "lifo"},
    *({"scheduler": "random", "schedule_seed": seed} for seed in (1, 22, 333)),
]
LAZY = [program for program in PROGRAMS if "lazy" in program.tags]


def runs() -> list[Any]:
    """(program, options) for each program, engine and schedule."""
    found: list[Any] = []
    for turn, program in enumerate(PROGRAMS):
        for name, engine in EVERY.items():
            if "lazy" in program.tags and not engine.is_lazy:
                continue
            schedules = [SCHEDULES[0], *of_turn(SCHEDULES[1:], turn)] if name == "reference" else [{}]
            marks: tuple[Any, ...] = ()
            if "deep" in program.tags:  # takes long
                schedules, marks = schedules[: 2 if program.name == "chain" else 1], (pytest.mark.slow,)
            for schedule in schedules:
                options = {"engine": name, **schedule}
                label = "-".join(str(word) for word in (program, *options.values()))
                found.append(pytest.param(program, options, id=label, marks=marks))
    return found


def run(program: Program, case: int, options: dict[str, Any]) -> tuple[Any, Any, str]:
    """The result or fault of a run, its stats, and what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            result, stats = program.run(case, **options)
        except ut.Fault as fault:
            result, stats = fault, None
    return result, stats, printed.getvalue()


@pytest.mark.parametrize(("program", "options"), runs())
def test_same_as_python(program: Program, options: dict[str, Any]) -> None:
    for case in range(len(program.cases)):
        expected = program.expected(case)
        result, stats, printed = run(program, case, options)
        if "fault" in program.tags:
            assert isinstance(result, ut.Fault), "the fault is not reported"
            assert isinstance(expected.value, ut.Fault) or isinstance(result, type(expected.value))
            assert result.calls, "a fault deep down shows the calls that led there"
        elif isinstance(result, ut.Fault):
            raise result
        else:
            assert_same(result, expected.value)
            check_counts(program, expected, stats)
        assert printed == expected.printed


def check_counts(program: Program, expected: Expected, stats: Any) -> None:
    """Activations are source-level calls, as many as Python makes."""
    if expected.calls is None:
        return
    if "abandons" in program.tags:
        assert stats.activations <= expected.calls
    else:
        assert stats.activations == expected.calls
    assert stats.max_depth <= stats.activations


@pytest.mark.parametrize("program", LAZY, ids=str)
def test_lazy_programs_end_under_a_fair_schedule(program: Program) -> None:
    """The reference engine is not lazy, but fifo starves nobody: what is needed arrives, the rest is abandoned."""
    for case in range(len(program.cases)):
        result, _ = program.run(case, engine="reference", scheduler="fifo", timeout=20.0)
        assert_same(result, program.expected(case).value)


def test_tags_are_used() -> None:
    """Every tag stands for something that engines may get wrong: each has a program."""
    from tests.programs.program import TAGS

    assert {tag for program in PROGRAMS for tag in program.tags} | {"abandons"} == TAGS
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


def test_programs_have_names_of_their_own() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
