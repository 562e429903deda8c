"""Runs that are shared out: one unbalanced call, a map of heavy lanes, gradients of trees. What comes out, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.shared_out import loss, trees

import undertow as ut

DEPTH = 24


@ut.function
def search(seed: ut.i64, depth: ut.i64) -> ut.i64:
    """The number of nodes of a tree in which some children have ten times as many below them as others."""
    if depth <= 0:
        return 1
    count = 1
    for k in range(3):
        following = (seed * 6364136223846793005 + 1442695040888963407 * (k + 1)) >> 7
        count += search(following, depth - 1 - following % 3)
    return count


@ut.function
def settle(x: ut.f64[8], steps: ut.i64) -> ut.f64[8]:
    """Arrays, and as many rounds as each lane has."""
    for _ in range(steps):
        x = ut.tanh(x + 0.1) * 1.5
    return x


gradients: Any = ut.value_and_grad(loss, argnums=(0, 1))
STARTS = np.random.default_rng(3).normal(size=(96, 8))
STEPS = np.arange(96) * 37 % 500


def results(size: int) -> list[bytes]:
    """Of so many rounds, wherever they run."""
    found: list[Any] = []
    for seed in range(size):
        found.append(search(seed, DEPTH))
        found.append(settle.map(STARTS, STEPS))
        value, (w, table) = gradients(*trees(160))
        found += [value, w, table]
    return [np.asarray(value).tobytes() for value in found]
