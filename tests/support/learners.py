"""What tests of data-parallel training train: a small recursive model on small trees, and where that must lead."""

from __future__ import annotations

from typing import Any

import numpy as np

import undertow as ut
from undertow.parallel.fleet import Alone
from undertow.parallel.replica import Replica, Rule
from undertow.parallel.shards import cut

WORDS, WIDTH, TREES, BATCH = 30, 3, 24, 8


@ut.function
def encode(params, forest, node: ut.i32) -> ut.f64[WIDTH]:  # type: ignore[no-untyped-def, valid-type]
    if forest.is_leaf(node):
        return ut.tanh(params["embed"][forest.word[node]])
    left = encode(params, forest, forest.left[node])
    right = encode(params, forest, forest.right[node])
    return ut.tanh(ut.concat([left, right]) @ params["W"] + params["b"])


@ut.function
def loss(params, forest):  # type: ignore[no-untyped-def]
    """The mean over trees of how far their root is from one, and how many trees there are."""

    def of_tree(root):  # type: ignore[no-untyped-def]
        gap = encode(params, forest, root) - 1.0
        return ut.sum(gap * gap)

    each = ut.map(of_tree, forest.roots)
    return ut.sum(each) / ut.astype(ut.shape(forest.roots)[0], ut.f64), ut.shape(forest.roots)[0]


def params() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "embed": random.normal(size=(WORDS, WIDTH)),
        "W": random.normal(size=(2 * WIDTH, WIDTH)),
        "b": random.normal(size=WIDTH),
        "steps": 7,  # nothing that is trained
    }


def forest() -> ut.data.Forest:
    """Trees of one to seven words."""
    random = np.random.default_rng(2)
    depths: list[int] = []
    for _ in range(TREES):
        waiting = [(int(random.integers(1, 8)), 0)]
        while waiting:
            words, depth = waiting.pop()
            depths.append(depth)
            if words > 1:
                left = int(random.integers(1, words))
                waiting += [(words - left, depth + 1), (left, depth + 1)]
    return ut.data.Forest.from_depths(depths, random.integers(0, WORDS, len(depths)), binary=True)


OPTIMIZER = ut.optim.Adam(0.05)


def expected(steps: int, shards: int = 4) -> tuple[list[Any], list[Any]]:
    """Losses, and the arrays of the replica afterwards, in this process."""
    function = ut.value_and_grad(loss, has_aux=True, sparse_rows=True)
    first = params()
    replica = Replica.of(first, OPTIMIZER)
    structure = ut_structure(first)
    alone = Alone(function, True, structure, replica, Rule(OPTIMIZER, 0.5))
    losses = []
    for number, batch in enumerate(batches(steps)):
        parts = cut((batch,), shards)
        weights = [part.items / len(batch) for part in parts]
        found = alone.step(parts, weights, (0, number, 1), (OPTIMIZER.learning_rate, None))
        losses.append(np.float64(sum(float(value) * weight for (value, _), weight in zip(found, weights, strict=True))))
    return losses, replica.arrays()


def ut_structure(value: Any) -> Any:
    from undertow.frontend.values import tree

    return tree.flatten(value)[1]


def batches(steps: int) -> list[ut.data.Forest]:
    found: list[ut.data.Forest] = []
    while len(found) < steps:
        found += forest().batches(BATCH, seed=len(found))
    return found[:steps]


def same_bits(some: Any, other: Any) -> bool:
    return len(some) == len(other) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(some, other, strict=True)
    )
