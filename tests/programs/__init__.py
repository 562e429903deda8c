"""The programs that all kinds of test share: `PROGRAMS`, each with arguments, tags and what plain Python gives.

Some are alike: each is to be read alone, and is the oracle of its own twin.
"""

from __future__ import annotations

from tests.programs import (
    arrays,
    backtracking,
    branches,
    builtin,
    chance,
    changes,
    closures,
    collected,
    complex_numbers,
    containers,
    control,
    deep,
    devices,
    early_returns,
    effects,
    forests,
    gradients,
    handed_down,
    in_place,
    iterations,
    late,
    lazy,
    lists,
    loop_state,
    loops,
    maps,
    masks,
    matrices,
    mutual,
    numbers,
    numpy_names,
    objects,
    options,
    order,
    papers,
    partial,
    plain_helpers,
    sown,
    splits,
    tries,
    weak,
    work_lists,
)
from tests.programs.program import Expected as Expected
from tests.programs.program import Plain as Plain
from tests.programs.program import Program as Program
from tests.programs.program import assert_same as assert_same
from tests.programs.program import load

_MODULES = (
    numbers,
    numpy_names,
    objects,
    mutual,
    branches,
    loops,
    splits,
    iterations,
    backtracking,
    closures,
    complex_numbers,
    containers,
    control,
    tries,
    changes,
    early_returns,
    loop_state,
    handed_down,
    arrays,
    in_place,
    masks,
    matrices,
    lists,
    collected,
    work_lists,
    maps,
    options,
    builtin,
    order,
    plain_helpers,
    forests,
    chance,
    effects,
    sown,
    late,
    lazy,
    partial,
    deep,
    gradients,
    devices,
    weak,
    papers,
)

PROGRAMS: list[Program] = [row for module in _MODULES for row in load(module)]


def find(name: str) -> Program:
    """The program of that name."""
    (found,) = [row for row in PROGRAMS if row.name == name]
    return found
