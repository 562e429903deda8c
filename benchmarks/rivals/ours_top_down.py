"""Undertow: the network that grows its tree, as the recursive function that it is."""

from typing import Any

import numpy as np

import undertow as ut

from .forests import Tree
from .networks import Params
from .top_down import DEEPEST, RISE, STATE

VERSION = ut.__version__
STATES = ut.f32[STATE]


def cell(gates: Any, c: Any) -> Any:
    i, o, f, u = (gates[k * STATE : (k + 1) * STATE] for k in range(4))
    c = ut.sigmoid(i) * ut.tanh(u) + ut.sigmoid(f) * c
    return ut.sigmoid(o) * ut.tanh(c), c


@ut.function
def count(params, h: STATES, c: STATES, depth: ut.i32) -> ut.i32:
    if depth == DEEPEST or ut.sum(h * params["grow"]) + params["bias"] <= RISE * ut.astype(depth, ut.f32):
        return 1
    x = ut.concat([params["E"][ut.argmax(h @ params["words"])], h])
    left = cell(x @ params["Wleft"] + params["bleft"], c)
    right = cell(x @ params["Wright"] + params["bright"], c)
    return 1 + count(params, *left, depth + 1) + count(params, *right, depth + 1)


@ut.function
def counts(params, numbers: ut.i32["trees"]):  # noqa: F821
    def one(number: Any) -> Any:
        nothing = ut.zeros(STATE, dtype=ut.f32)
        x = ut.concat([params["roots"][number], nothing])
        return count(params, *cell(x @ params["Wleft"] + params["bleft"], nothing), 0)

    return ut.map(one, numbers)


class Rival:
    """Inference only."""

    def __init__(self, params: Params, **options: Any) -> None:
        self.params, self.options = params, options

    def infer(self, trees: list[Tree]) -> list[int]:
        numbers = np.array([tree.word[0] for tree in trees], np.int32)
        return counts.run(self.params, numbers, **self.options).tolist()


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(params, engine=variant or "waves", threads=1)
