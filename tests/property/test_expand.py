"""Random programs on expand do what they do on the reference engine: values, faults, prints, counts, derivatives.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property/test_expand.py` looks further, at other programs each time.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.property import test_waves as waves
from tests.property.test_programs import argument
from tests.property.test_waves import (
    INPUTS,
    REASONABLE,
    assert_equal,
    assert_same_error,
    float_result,
    graphs,
    outcome,
    plain,
    seeds,
    told,
)
from tests.support.random_programs import random_program
from tests.support.sources import write

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import ReferencePlan
from undertow.errors import RunError, UndertowError
from undertow.ir.graph import StaticGraph

_NUMBERS = itertools.count()


def agree(graph: StaticGraph, inputs: Sequence[Any], tolerance: float = 1e-12, ordered: bool = True) -> Any:
    """Run on both engines, and compare all that can be compared."""
    expected, expected_print = outcome(lambda: ReferencePlan(graph).drain(inputs, REASONABLE))
    if isinstance(expected, ut.Timeout):
        return expected
    found, printed = outcome(lambda: ExpandPlan(graph).run(inputs, REASONABLE))
    if isinstance(expected, RunError):
        assert_same_error(found, expected)
        return expected
    if isinstance(found, RunError):
        raise found
    assert_equal(found[0], expected[0], tolerance)
    counted, wanted = found[1], expected[1]
    # What no fetch needs is abandoned, while the other engine runs on here.
    assert counted.activations <= wanted.activations and counted.max_depth <= wanted.max_depth
    assert len([label for label in counted.deepest_tag if isinstance(label, int)]) == counted.max_depth
    lines = [text if ordered else sorted(text.split("\n")) for text in (printed, expected_print)]
    assert lines[0] == lines[1]  # the lanes of a map have no order
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_programs(shard: int) -> None:
    """Recursion, branches, loops, maps and prints; with arguments that are handed on, and so read through entries."""
    for seed in seeds(shard, 25):
        invariants = seed % 2 == 1
        function, source = random_program(Random(seed), invariants=invariants)
        with told(seed, source):
            cases = [(*args, -0.75, 4) if invariants else args for args in INPUTS]
            for graph in graphs(function, cases[0]):
                for args in cases:
                    agree(graph, plain(args), ordered=not invariants)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_large_programs(shard: int, tmp_path: Path) -> None:
    """Programs with arrays whose lengths only the run knows, containers, closures and mutual recursion."""
    for seed in seeds(shard, 15):
        random = Random(seed)
        source = write(random)
        path = tmp_path / f"expand_program_{next(_NUMBERS)}.py"
        path.write_text(source.text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, source.main)
        with told(seed, source.text):
            cases = [tuple(argument(random, letter) for letter in source.params) for _ in range(2)]
            for graph in graphs(function, (0, *cases[0])):
                for args in cases:
                    for fuel in (0, 2, 4):
                        agree(graph, function.__undertow_arguments__((fuel, *args), {}).leaves)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_derivatives(shard: int) -> None:
    """Later phases are copies of their own: they find what earlier ones have left, however often one differentiates."""
    for seed in seeds(shard, 8):
        chance = Random(seed)
        function, source = random_program(chance, effects=False, invariants=seed % 2 == 1)
        value = float_result(function, seed % 2 == 1)
        with told(seed, source):
            made = {
                "gradient": ut.grad(value, (0, 1)),
                "second": ut.grad(ut.grad(value), (0, 1)),
                "gradient of tangent": ut.grad(waves._tangent(value)),
            }
            for name, derivative in made.items():
                args = (0.7, -1.3, chance.choice((1, 2, 2)), chance.randint(-2, 3), chance.random() < 0.5)
                try:
                    first = next(graphs(derivative, args))
                except UndertowError:  # it is not differentiable: a fault that the user is told
                    continue
                if len(first.nodes) < (4000 if name == "gradient" else 1500):
                    agree(first, plain(args), 1e-9)


FAULTY = [waves.at_one_node, waves.in_a_loop, waves.in_a_lane, waves.in_a_branch, waves.asserted, waves.sized]


@pytest.mark.parametrize("function", FAULTY, ids=str)
def test_faults(function: Any) -> None:
    """At one place of many, so that it does not matter who comes first."""
    graph = next(graphs(function, (3, 1, 1)))
    seen = [agree(graph, plain((3, 1, spot))) for spot in (*range(1, 12), 27, 30, 53, 10**6)]
    assert sum(isinstance(found, ut.Fault) for found in seen) > 2
    assert not all(isinstance(found, ut.Fault) for found in seen)


def test_not_finite() -> None:
    graph = next(graphs(waves.explodes, (3, 1.0)))
    for x in (2.0, 1e30, 1e150, float("nan")):
        for n in (1, 5):
            given, options = plain((n, x)), Options(check_finite=True)
            expected, _ = outcome(lambda given=given: ReferencePlan(graph).run(given, options))  # noqa: B023
            found, _ = outcome(lambda given=given: ExpandPlan(graph).run(given, options))  # noqa: B023
            if isinstance(expected, RunError):
                assert_same_error(found, expected)
            else:
                assert_equal(found[0], expected[0], 1e-12)
