"""Undertow without recursion: the network that grows its tree, by iteration, and by folding as the variant `levels`.

Iteration: a loop takes the next node from a queue of states, and puts its children at the end; trees of a batch loop
side by side, one node of each in a step. Folding: a loop over levels, each of them one batch of all nodes of all trees;
which these are is known only when the level above is done, so the loop makes the batches itself.
"""

from typing import Any

import numpy as np

import undertow as ut

from .forests import Tree
from .networks import Params
from .ours_top_down import cell
from .top_down import DEEPEST, RISE, SIDES, STATE

VERSION = ut.__version__


def first(params: Any, number: Any) -> Any:
    nothing = ut.zeros(STATE, dtype=ut.f32)
    x = ut.concat([params["roots"][number], nothing])
    return cell(x @ params["Wleft"] + params["bleft"], nothing)


def rows_of_cell(gates: Any, c: Any) -> Any:
    """The cell for many nodes, a row each."""
    i, o, f, u = (gates[:, k * STATE : (k + 1) * STATE] for k in range(4))
    c = ut.sigmoid(i) * ut.tanh(u) + ut.sigmoid(f) * c
    return ut.sigmoid(o) * ut.tanh(c), c


def children(params: Any, state: Any, depth: Any) -> Any:
    """The states of the two children of a node as rows, or none."""
    h, c = state[:STATE], state[STATE:]
    if depth == DEEPEST or ut.sum(h * params["grow"]) + params["bias"] <= RISE * ut.astype(depth, ut.f32):
        return ut.zeros((0, 2 * STATE), dtype=ut.f32)
    x = ut.concat([params["E"][ut.argmax(h @ params["words"])], h])
    return ut.stack([ut.concat(cell(x @ params[f"W{side}"] + params[f"b{side}"], c)) for side in SIDES])


@ut.function
def by_queue(params, numbers: ut.i32["trees"]):  # noqa: F821
    def one(number: Any) -> Any:
        h, c = first(params, number)
        queue, depths = [ut.concat([h, c])], [0]
        done = 0
        while done < len(queue):
            made, depth = children(params, queue[done], depths[done]), depths[done] + 1
            for state in made:
                queue.append(state)
                depths.append(depth)
            done += 1
        return done

    return ut.map(one, numbers)


@ut.function
def by_levels(params, numbers: ut.i32["trees"]):  # noqa: F821
    nothing = ut.zeros((ut.shape(numbers)[0], STATE), dtype=ut.f32)
    x = ut.concat([ut.take(params["roots"], numbers, axis=0), nothing], axis=1)
    h, c = rows_of_cell(x @ params["Wleft"] + params["bleft"], nothing)
    tree = ut.arange(ut.shape(numbers)[0])
    counts, depth = ut.ones_like(tree), 0
    while depth < DEEPEST and ut.shape(tree)[0] > 0:
        grows = np.flatnonzero(h @ params["grow"] + params["bias"] > RISE * ut.astype(depth, ut.f32))
        h, c, tree = (ut.take(part, grows, axis=0) for part in (h, c, tree))
        counts = ut.scatter_add(counts, tree, ut.full_like(tree, 2))
        x = ut.concat([ut.take(params["E"], ut.argmax(h @ params["words"], axis=1), axis=0), h], axis=1)
        made = [rows_of_cell(x @ params[f"W{side}"] + params[f"b{side}"], c) for side in SIDES]
        h, c = (ut.concat(part) for part in zip(*made, strict=True))
        tree = ut.concat([tree, tree])
        depth += 1
    return counts


class Rival:
    """Inference only."""

    def __init__(self, params: Params, variant: str) -> None:
        self.params = params
        self.count = by_levels if variant == "levels" else by_queue

    def infer(self, trees: list[Tree]) -> list[int]:
        numbers = np.array([tree.word[0] for tree in trees], np.int32)
        return self.count.run(self.params, numbers, engine="waves", threads=1).tolist()


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(params, variant)
