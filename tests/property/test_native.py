"""Random programs on waves and expand do what they do on the reference engine: any width, schedule, limit, threads.

Compared are values, faults with their tag tracebacks, prints and counts.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property/test_native.py` looks further, at other programs each time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import graphs, plain
from tests.support.native_agreement import REASONABLE, agree, assert_equal, assert_same_error, outcome
from tests.support.random_programs import random_program
from tests.support.sources import argument, write
from tests.support.vector_programs import LENGTH, loss_of, vector_program
from tests.support.written import load_text

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import ReferencePlan
from undertow.engines.waves import WavesPlan
from undertow.errors import RunError, UndertowError

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
TOLERANCE = {"f64": 1e-12, "f32": 1e-5}


def seeds(shard: int, count: int) -> range:
    first = Random().randrange(1 << 40) if EXAMPLES else 1000 * shard
    return range(first, first + (EXAMPLES // 4 or count))


@contextlib.contextmanager
def told(seed: int, source: str) -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        raise AssertionError(f"seed {seed}:\n{source}") from fault


# --------------------------------------------------------------------------------------------------------------
# Programs

INPUTS = ((2, 3, 0.5, True), (1, -1, -0.0, False), (3, 0, float("nan"), True), (0, 7, float("inf"), False))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
@pytest.mark.parametrize("floats", ["f64", "f32"])
def test_programs(shard: int, floats: str) -> None:
    """Recursion, branches, loops, maps and prints; with arguments that are handed on, and so read through entries."""
    for seed in seeds(shard, 8):
        chance = Random(seed)
        invariants = seed % 2 == 1
        function, source = random_program(chance, invariants=invariants, floats=floats)
        with told(seed, source):
            cases = [(*args, -0.75, 4) if invariants else args for args in INPUTS]
            try:
                made = list(graphs(function, cases[0]))
            except UndertowError:  # floats of two kinds meet
                assert floats == "f32"
                continue
            for graph in made:
                for args in cases:
                    inputs = [np.float32(x) if type(x) is float and floats == "f32" else x for x in args]
                    agree(graph, plain(inputs), chance, TOLERANCE[floats], not invariants)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_large_programs(shard: int, tmp_path: Path) -> None:
    """Programs with arrays whose lengths only the run knows, containers, closures and mutual recursion."""
    for seed in seeds(shard, 10):
        random = Random(seed)
        source = write(random)
        function = getattr(load_text(source.text, tmp_path), source.main)
        with told(seed, source.text):
            cases = [tuple(argument(random, letter) for letter in source.params) for _ in range(2)]
            for graph in graphs(function, (0, *cases[0])):
                for args in cases:
                    for fuel in (0, 2, 4):
                        agree(graph, function.__undertow_arguments__((fuel, *args), {}).leaves, random)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_vectors(shard: int) -> None:
    """Vectors and matrices, and their gradients: results of calls side by side, parts that are handed on."""
    random = np.random.default_rng(shard)
    w, x, q = random.normal(size=(3 * LENGTH, LENGTH)) * 0.4, random.normal(size=LENGTH), random.normal(size=3)
    for seed in seeds(shard, 2):
        chance = Random(seed)
        program = vector_program(chance)
        with told(seed, program.text):
            loss = loss_of(program)
            for made in (loss, ut.grad(loss, (0, 1))):
                for graph in graphs(made, (w, x, q, 3)):
                    for n in (0, 1, 3):
                        agree(graph, plain((w, x, q, n)), chance, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_many_vectors(shard: int) -> None:
    """The same for so many lanes that they go through the operators piece by piece; bits for any number of threads."""
    random = np.random.default_rng(shard)
    w, xs, q = random.normal(size=(3 * LENGTH, LENGTH)) * 0.4, random.normal(size=(400, LENGTH)), random.normal(size=3)
    for seed in seeds(shard, 1):
        program = vector_program(Random(seed))
        with told(seed, program.text):
            loss = loss_of(program)

            @ut.function
            def total(w: ut.f64[3 * LENGTH, LENGTH], xs: ut.f64[None, LENGTH], q: ut.f64[None], n: ut.i64) -> ut.f64:
                return ut.sum(ut.map(lambda x: loss(w, x, q, n), xs))  # noqa: B023

            graph = next(graphs(ut.grad(total, (0, 1)), (w, xs, q, 1)))
            inputs = plain((w, xs, q, 1))
            wanted, _ = ReferencePlan(graph).run(inputs, REASONABLE)
            bits = set()
            for threads in (1, 3):
                found, _ = WavesPlan(graph, 4096, "lockstep").run(inputs, replace(REASONABLE, threads=threads))
                assert_equal(found, wanted, 1e-8)
                bits.add(b"".join(np.asarray(value).tobytes() for value in found))
            assert len(bits) == 1


# --------------------------------------------------------------------------------------------------------------
# Derivatives


def float_result(function: Any, invariants: bool) -> Any:
    if invariants:

        @ut.function
        def chosen(x: ut.f64, w: ut.f64, n: ut.i64, a: ut.i64, b: ut.bool) -> ut.f64:
            return function(n, a, x, b, w, 3)[1]

    else:

        @ut.function
        def chosen(x: ut.f64, w: ut.f64, n: ut.i64, a: ut.i64, b: ut.bool) -> ut.f64:
            return function(n, a, x, b)[1] * w

    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_derivatives(shard: int) -> None:
    """Gradients, second derivatives, and tangents: later phases, sums over activations, resumes in all places."""
    for seed in seeds(shard, 5):
        chance = Random(seed)
        function, source = random_program(chance, effects=False, invariants=seed % 2 == 1)
        value = float_result(function, seed % 2 == 1)
        with told(seed, source):
            made = {
                "gradient": ut.grad(value, (0, 1)),
                "second": ut.grad(ut.grad(value), (0, 1)),
                "tangent of gradient": _tangent(ut.grad(value)),
                "gradient of tangent": ut.grad(_tangent(value)),
            }
            for name, derivative in made.items():
                args = (0.7, -1.3, chance.choice((1, 2, 2)), chance.randint(-2, 3), chance.random() < 0.5)
                try:
                    first = next(graphs(derivative, args))
                except UndertowError:  # it is not differentiable: a fault that the user is told
                    continue
                if len(first.nodes) < (4000 if name == "gradient" else 1500):
                    agree(first, plain(args), chance, 1e-9)


def _tangent(function: Any) -> Any:
    @ut.function
    def along(x: ut.f64, w: ut.f64, n: ut.i64, a: ut.i64, b: ut.bool) -> ut.f64:
        return ut.jvp(lambda x, w: function(x, w, n, a, b), (x, w), (1.0, 0.5))[1]

    return along


# --------------------------------------------------------------------------------------------------------------
# Faults: at one place of many, so that it does not matter who comes first


@ut.function
def at_one_node(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    """A binary tree, numbered by levels."""
    share = 1000 // (k - spot)
    if n == 0:
        return share
    return at_one_node(n - 1, 2 * k, spot) + at_one_node(n - 1, 2 * k + 1, spot) + share


@ut.function
def in_a_loop(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    if n == 0:
        return 0
    total = 0
    for i in range(3):
        total = total * 2 + 100 // (3 * k + i - spot)
    return total + in_a_loop(n - 1, 2 * k, spot) + in_a_loop(n - 1, 2 * k + 1, spot)


@ut.function
def in_a_lane(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    if n == 0:
        return 7 // (k - spot) + k
    return ut.sum(ut.map(lambda i: in_a_lane(n - 1, 3 * k + i, spot), ut.arange(3)))


@ut.function
def in_a_branch(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.f64:
    table = ut.asarray([0.5, 1.5, 2.5])
    if k % 2 == 0:
        value = table[k % 3 if k != spot else 17]
    else:
        value = table[k % 3 if k != spot else -9]
    if n == 0:
        return value
    return in_a_branch(n - 1, 2 * k, spot) * value + in_a_branch(n - 1, 2 * k + 1, spot)


@ut.function
def asserted(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    ut.assert_(k != spot, "{} is the spot", k)  # noqa: PT009
    return k if n == 0 else asserted(n - 1, 2 * k, spot) + asserted(n - 1, 2 * k + 1, spot)


@ut.function
def sized(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.f64:
    """The shape depends on data, and one of the shapes cannot be."""
    values = ut.zeros(ut.where(k == spot, -1, k % 4))
    below = 0.0 if n == 0 else sized(n - 1, 2 * k, spot) + sized(n - 1, 2 * k + 1, spot)
    return below + ut.sum(values + 1.0)


@ut.function
def alone(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    """A chain, which a narrow wave walks down."""
    if n == 0:
        return k
    step = 10 // (n + k - spot)
    return alone(n - 1, k, spot) + step


@pytest.mark.parametrize("function", [at_one_node, in_a_loop, in_a_lane, in_a_branch, asserted, sized, alone], ids=str)
def test_faults(function: Any) -> None:
    chance = Random(1)
    spots = [*range(1, 12), 27, 30, 53, 10**6]
    graph = next(graphs(function, (3, 1, 1)))
    seen = [agree(graph, plain((3, 1, spot)), chance) for spot in spots]
    assert sum(isinstance(found, ut.Fault) for found in seen) > 2
    assert not all(isinstance(found, ut.Fault) for found in seen)


@ut.function
def explodes(n: ut.i64, x: ut.f64) -> ut.f64:
    return x if n == 0 else explodes(n - 1, x * x) + 1.0


def test_not_finite() -> None:
    graph = next(graphs(explodes, (3, 1.0)))
    for x in (2.0, 1e30, 1e150, float("nan")):
        for n in (1, 5):
            options = Options(check_finite=True)
            expected, _ = outcome(lambda n=n, x=x: ReferencePlan(graph).run(plain((n, x)), options))  # noqa: B023
            for plan in (WavesPlan(graph, schedule="lockstep"), WavesPlan(graph, schedule="agenda"), ExpandPlan(graph)):
                found, _ = outcome(lambda plan=plan, n=n, x=x: plan.run(plain((n, x)), options))  # noqa: B023
                if isinstance(expected, RunError):
                    assert_same_error(found, expected)
                else:
                    assert_equal(found[0], expected[0], 1e-12)
