"""Random programs whose functions have replicas give what the programs give, whole and in parts."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.support.differences import assert_close
from tests.support.placed import type_rule
from tests.support.random_programs import random_program
from tests.support.replicated import on_devices, parts_of, some_functions
from tests.support.slopes import ROUGH_INPUTS, rough, smooth

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.reference.placed import PlacedPlan
from undertow.ir import spec
from undertow.passes.cut import cut
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))


def run(plan: Any, inputs: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Results and the lines that were printed; those of a map's lanes come in any order."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        results = plan.run(inputs)[0]
    return results, sorted(printed.getvalue().splitlines())


def compare(function: ut.Function, args: tuple[Any, ...], seed: int, tolerance: float = 0.0) -> int:
    """Run a program with random replicas, whole and in parts; returns how many of its functions have them."""
    chance = Random(seed)
    inputs = function.__undertow_arguments__(args, {}).leaves
    library = function.library(*args)
    devices = [f"worker:{k}" for k in range(1 + chance.randrange(4))]
    options = {"takes_hoisted": chance.random() < 0.7, "is_simple": chance.random() < 0.7, "forms_waves": True}
    as_written = flatten(make_library(library, **options))
    wanted, printed = run(ENGINES["reference"].plan(as_written), inputs)
    names = some_functions(library, chance)
    made = make_library(on_devices(library, names, devices), is_placed=True, **options)
    spec.check(made, type_rule)
    graph = flatten(made, "replicas")
    spec.check(graph, type_rule)
    placed = cut(graph, parts_of(graph, chance.randrange(len(devices) + 1)), len(devices) + 1)
    for part in placed.parts:
        spec.check(part.graph, type_rule)
    for plan in (ENGINES["reference"].plan(graph), PlacedPlan(placed, chance.randrange)):
        got, said = run(plan, inputs)
        assert_close(tuple(got), tuple(wanted), tolerance)
        assert said == printed
    return len(names)


@pytest.mark.slow
def test_programs() -> None:
    for seed in range(EXAMPLES or 30):
        function, text = random_program(Random(seed), invariants=bool(seed % 2))
        args = ROUGH_INPUTS[seed % 2] if seed % 2 else ROUGH_INPUTS[0][:4]
        try:
            assert compare(function, args, seed) > 0
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{text}") from error


@pytest.mark.slow
@pytest.mark.parametrize("make", [smooth, rough])
def test_gradients(make: Any) -> None:
    """What one activation chooses holds for its second visit."""
    for seed in range(EXAMPLES or 12):
        program = make(Random(seed))
        try:
            compare(ut.value_and_grad(program.value, program.places), program.inputs[0], seed, 1e-9)
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{program.text}") from error
