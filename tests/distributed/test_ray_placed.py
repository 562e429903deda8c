"""Placed graphs on `ut.ray.cluster`, as its guide says: recursions, replicas, gradients, errors, lost workers."""

from __future__ import annotations

import contextvars
import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.servers import PATIENCE, becomes

import undertow as ut
from undertow.ray.clusters import Cluster

pytest.importorskip("ray", reason="make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ut.ray.cluster(workers=2) as cluster:
        yield cluster


@ut.device("worker:1")
@ut.function
def leaves(n: ut.i64, seed: ut.i64) -> ut.i64:
    if n <= 1:
        return seed % 7
    return leaves(n // 2, seed * 31 + 1) + leaves(n - n // 2, seed + 3)


@ut.function
def count(n: ut.i64) -> ut.i64:
    with ut.device("worker:0"):
        left = leaves(n, 1) * 2
    return left + leaves(n, 2)


@ut.device(["worker:0", "worker:1"])
@ut.function
def embed(w: ut.f64[4, 4], seed: ut.i64, depth: ut.i64) -> ut.f64[4]:
    if depth <= 0:
        return ut.tanh(w[seed % 4])
    return ut.tanh(embed(w, seed * 2, depth - 1) @ w + embed(w, seed * 2 + 1, depth - 1))


@ut.function
def loss(w: ut.f64[4, 4], trees: ut.i64) -> ut.f64:
    total = 0.0
    for seed in range(trees):
        total += ut.sum(embed(w, seed, 3) ** 2)
    return total


@ut.device("worker:1")
@ut.function
def root(x: ut.f64) -> ut.f64:
    if x < 0.0:
        raise ValueError("no root of", x)
    return ut.sqrt(x)


@ut.function
def orbit(x: ut.f64, n: ut.i64) -> ut.f64:
    with ut.device("worker:0"):
        for _ in range(n):
            x = 3.7 * x * (1.0 - x)
    return x


@ut.function
def far(x: ut.f64) -> ut.f64:
    with ut.device("worker:5"):
        return x * 2.0


def activations(cluster: Cluster) -> list[int]:
    return [row.activations for row in cluster.stats()]


def test_a_recursion_on_two_workers(cluster: Cluster) -> None:
    before = activations(cluster)
    assert count(100) == count.run(100, placement="none") == 902
    assert becomes(lambda: activations(cluster)[1] - before[1] > 300)  # two trees of 100 leaves
    assert becomes(lambda: activations(cluster)[0] > before[0])


def test_replicas_and_their_gradient(cluster: Cluster) -> None:
    before = activations(cluster)
    w = np.linspace(-0.5, 0.5, 16).reshape(4, 4)
    value, slope = ut.value_and_grad(loss)(w, 20)
    with ut.options(placement="none"):
        there = ut.value_and_grad(loss)(w, 20)
    assert value == there[0]
    np.testing.assert_allclose(slope, there[1], rtol=1e-12)
    assert becomes(lambda: all(now - then > 15 for now, then in zip(activations(cluster), before, strict=True)))


def test_what_a_worker_raises(cluster: Cluster) -> None:
    assert root(16.0) == 4.0
    with pytest.raises(ValueError, match="no root of") as caught:
        root(-1.0)
    assert caught.value.args == ("no root of", -1.0)
    assert root(25.0) == 5.0


def test_a_worker_that_there_is_not(cluster: Cluster) -> None:
    with pytest.raises(ut.GraphError, match="'worker:5', and there is no such worker") as caught:
        far(1.0)
    assert "worker:0, worker:1" in caught.value.hint and caught.value.span is not None


def test_a_worker_that_is_killed_while_it_runs_a_part(cluster: Cluster) -> None:
    expected = orbit.run(0.3, 20_000_000, placement="none")
    assert orbit(0.3, 0) == 0.3
    before = cluster.stats()[0]
    found: list[float] = []
    settings = contextvars.copy_context()  # a thread begins without those of the block
    run = threading.Thread(target=lambda: found.append(settings.run(orbit, 0.3, 20_000_000)))
    run.start()
    assert becomes(lambda: any(thread.name == "undertow parts" for thread in threading.enumerate()))
    os.kill(before.process, signal.SIGKILL)
    run.join(PATIENCE)
    assert found == [expected]
    assert cluster.stats()[0].starts == before.starts + 1
