"""The gradient of every program that has floats going in and coming out: finite differences, on every engine."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program
from tests.support.differences import WAYS, assert_close, assert_valid, differences, leaves
from tests.support.engines import FORCED

import undertow as ut
from undertow.frontend.values import tree
from undertow.frontend.values.traced import is_traced

# Programs whose derivative is not what differences say, at the arguments that they have.
ROUGH = {
    "bisect": "it halves an interval until that is small: piecewise linear, with many pieces",
    "arrays_in_place": "it changes its argument, which only the outermost call may",
    "encode_f32": "computed in f32: differences are too coarse",
    "constant_part": "ut.stop_gradient says that the derivative is another one",
    "summed": "computed in f32: differences are too coarse",
}
# Arguments that only decide how far a program goes: it does not end, or jumps, if they are changed.
LIMITS: dict[str, tuple[int, ...]] = {"integral": (3,)}
# Differences cannot be taken: what a run gives depends on more than its arguments, or it does not end everywhere.
WITHOUT = frozenset(("random", "lazy", "fault", "deep"))


def is_float(value: Any) -> bool:
    found = leaves(value)
    return bool(found) and all(leaf.dtype == np.float64 for leaf in found)  # with f32, differences are too coarse


def arguments_of(program: Program, case: int) -> list[Any]:
    """In the dtypes that are annotated."""
    given = program.function.__undertow_arguments__(program.cases[case], {})
    rest = iter(given.leaves)
    counts = [sum(token == tree.LEAF for token in structure) for structure in given.structures]
    args = [
        tree.unflatten(structure, [next(rest) for _ in range(count)])
        for structure, count in zip(given.structures, counts, strict=True)
    ]
    return args[len(program.function.__undertow_bound__) :]


def argnums_of(program: Program, case: int) -> tuple[int, ...]:
    args, limits = arguments_of(program, case), LIMITS.get(program.name, ())
    return tuple(number for number, arg in enumerate(args) if is_float(arg) and number not in limits)


def cases() -> list[Any]:
    """(program, case) with at least one float in the arguments and the results."""
    found: list[Any] = []
    for program in PROGRAMS:
        if program.by == "map" or program.tags & WITHOUT:
            continue
        for case in range(len(program.cases)):
            if program.function.__undertow_arguments__(program.cases[case], {}).converted is not None:
                continue  # `total` below has no annotation that would let objects in
            results = leaves(program.expected(case).value)
            if argnums_of(program, case) and any(leaf.dtype.kind == "f" for leaf in results):
                found.append(pytest.param(program, case, id=f"{program}-{case}"))
    return found


def summed(program: Program) -> ut.Function:
    """One number that depends on all float results, and on each element differently."""

    @ut.function
    def total(*args):
        copies = [
            leaf.copy() if leaf.shape else leaf for leaf in tree.flatten(args, is_traced)[0]
        ]  # it may change them
        value = program.function(*tree.unflatten(tree.flatten(args, is_traced)[1], copies))
        found = 0.0
        for number, leaf in enumerate(tree.flatten(value, is_traced)[0]):
            if leaf.dtype.kind == "float":
                flat = ut.reshape(leaf, (-1,))
                found = found + ut.sum(flat * ut.cos(ut.astype(ut.arange(flat.shape[0]), ut.f64) + number))
        return found

    return total


@pytest.mark.slow
@pytest.mark.parametrize(("program", "case"), cases())
def test_gradient(program: Program, case: int) -> None:
    if program.name in ROUGH:
        pytest.skip(ROUGH[program.name])
    args, argnums = arguments_of(program, case), argnums_of(program, case)
    total = summed(program)
    slope = ut.grad(total, argnums)
    with contextlib.redirect_stdout(io.StringIO()), ut.options(timeout=20.0):
        found = slope(*args)
        for way in (*WAYS, *({"engine": name} for name in FORCED)):
            assert_close(slope.run(*args, **way), found, 1e-9)
        numeric = [part for n in argnums for part in differences(total, args, n)]
        coarse = [part for n in argnums for part in differences(total, args, n, 1e-4)]
    assert_close(coarse, numeric, 1e-2)
    assert_close(found, numeric, 1e-5)
    assert_valid(slope, *args)


def test_rough_programs_are_there() -> None:
    assert ROUGH.keys() <= {program.name for program in PROGRAMS}
    assert len(cases()) > 20
