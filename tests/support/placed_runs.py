"""Programs in parts on workers: recursion, loops, maps, gradients, state, prints, replicas; what they give whole."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import undertow as ut
from undertow.api.options import sharing_out
from undertow.cluster.pool import Pool
from undertow.engines.waves.placed import PlacedPlan

D = 6


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    """n goes out, and n - 1 comes back; products are made elsewhere."""
    if n <= 1:
        return 1
    with ut.device("worker:0"):
        less = n - 1
    with ut.device("worker:1"):
        return n * factorial(less)


@ut.function
def fib(n: ut.i64) -> ut.i64:
    """Both sides in one wave, each on its worker."""
    if n < 2:
        return n
    with ut.device("worker:0"):
        left = fib(n - 1)
    with ut.device("worker:1"):
        right = fib(n - 2)
        total = left + right
    return total


@ut.function
def node(w: ut.f64[2 * D, D], table: ut.f64[8, D], depth: ut.i64, number: ut.i64) -> ut.f64[D]:
    if depth <= 0:
        with ut.device("worker:0"):
            return table[number % 8]
    left, right = node(w, table, depth - 1, 2 * number), node(w, table, depth - 1, 2 * number + 1)
    with ut.device("worker:1"):
        return ut.tanh(ut.concat([left, right]) @ w) + left * 0.5


@ut.function
def tree_loss(w: ut.f64[2 * D, D], table: ut.f64[8, D], roots: ut.i64[None]) -> ut.f64:
    return ut.sum(ut.map(lambda root: ut.sum(node(w, table, 3, root) ** 2), roots))


@ut.function
def to_and_fro(n: ut.i64) -> ut.f64:
    """A loop whose every iteration crosses twice."""
    x = 1.0
    for k in range(n):
        with ut.device("worker:0"):
            x = x * 0.5 + k
        with ut.device("worker:1"):
            x = ut.tanh(x)
    return x


@ut.function
def lanes(x: ut.f64[None]) -> ut.f64[None]:
    """A map whose lanes are in several parts, and of a length that only the run knows."""

    def lane(v: ut.f64) -> ut.f64:
        with ut.device("worker:0"):
            y = v * v
        with ut.device("worker:1"):
            z = ut.sin(y) + 1.0
        return y / z

    with ut.device("worker:1"):
        twice = ut.concat([x, x[1:] * 2.0])
    return ut.map(lane, twice)


total = ut.Variable(0.0)


@ut.function
def counting(n: ut.i64) -> ut.f64:
    """State and prints, with work elsewhere between them."""
    print("begin", n)
    total.assign_add(1.0)
    if n > 0:
        with ut.device("worker:0"):
            x = ut.sin(n * 0.25)
        total.assign_add(x)
        counting(n - 1)
        with ut.device("worker:1"):
            y = ut.cos(n * 0.25)
        total.assign_add(y)
    print("end", n)
    return total.read()


@ut.device(["worker:0", "worker:1", "worker:2"])
@ut.function
def grow(seed: ut.i64, depth: ut.i64) -> ut.i64:
    """With a replica on each worker."""
    if depth <= 0:
        return seed % 7
    return grow(seed * 3 + 1, depth - 1) + grow(seed * 5 + 2, depth - 2)


@ut.function
def forest(seeds: ut.i64[None]) -> ut.i64:
    return ut.sum(ut.map(lambda seed: grow(seed, 5), seeds))


@ut.function
def noisy(n: ut.i64) -> ut.f64:
    """Each activation draws where it is."""
    if n == 0:
        return 0.0
    with ut.device("worker:0"):
        x = ut.random.normal()
    with ut.device("worker:1"):
        return noisy(n - 1) * 0.5 + x * ut.random.uniform()


@dataclass(frozen=True, eq=False)
class PlacedRun:
    """A call of a program."""

    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    variables: tuple[ut.Variable, ...] = ()

    def outcome(self, **options: Any) -> tuple[list[np.ndarray], str]:
        """Results and variables, and what was printed."""
        for variable in self.variables:
            variable.assign(0.0)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            found = self.function.run(*self.args, **{**self.options, **options})
        flat = [*(found if isinstance(found, tuple) else [found]), *(variable.read() for variable in self.variables)]
        arrays = [part for value in flat for part in (value if isinstance(value, tuple) else [value])]
        return [np.asarray(value) for value in arrays], printed.getvalue()


def _weights() -> tuple[Any, ...]:
    random = np.random.default_rng(1)
    return random.normal(0, 0.4, (2 * D, D)), random.normal(size=(8, D)), np.arange(9)


RUNS = {
    "factorial": PlacedRun(factorial, (12,)),
    "fib": PlacedRun(fib, (11,)),
    "tree": PlacedRun(tree_loss, _weights()),
    "gradients": PlacedRun(ut.value_and_grad(tree_loss, (0, 1)), _weights()),
    "loop": PlacedRun(to_and_fro, (40,)),
    "map": PlacedRun(lanes, (np.linspace(-1, 1, 33),)),
    "state": PlacedRun(counting, (9,), variables=(total,)),
    "replicas": PlacedRun(forest, (np.arange(40),)),
    "draws": PlacedRun(noisy, (12,), {"seed": 5}),
}


def same_outcome(one: tuple[list[np.ndarray], str], other: tuple[list[np.ndarray], str]) -> bool:
    """Sums of gradients are added up in another order in parts."""
    pairs = list(zip(one[0], other[0], strict=True))
    return one[1] == other[1] and all(a.dtype == b.dtype and np.allclose(a, b, 1e-12, 1e-12) for a, b in pairs)


@cache
def whole(name: str) -> tuple[list[np.ndarray], str]:
    """What a run gives without workers."""
    return RUNS[name].outcome(placement="none")


def in_parts(pool: Pool, count: int) -> dict[str, int]:
    """All runs so often on workers: how often each has given what it gives whole."""
    with sharing_out(pool):
        return {name: sum(same_outcome(run.outcome(), whole(name)) for _ in range(count)) for name, run in RUNS.items()}


def expected(count: int) -> dict[str, int]:
    """Always."""
    return dict.fromkeys(RUNS, count)


@contextlib.contextmanager
def recorded() -> Iterator[list[list[int]]]:
    """The firings by part of each run in parts inside."""
    found: list[list[int]] = []
    call = PlacedPlan.call

    def recording(self: PlacedPlan, *args: Any) -> Any:
        result = call(self, *args)
        found.append(self.fired)
        return result

    with patch.object(PlacedPlan, "call", recording):
        yield found
