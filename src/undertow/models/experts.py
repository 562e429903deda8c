# mypy: ignore-errors
"""Hierarchical mixture of experts: gates at the inner nodes of a tree send an input to the experts at its leaves.

Jordan and Jacobs 1994, "Hierarchical Mixtures of Experts and the EM Algorithm". The route of an input depends
on computed values: branches whose share of the whole is below `floor` are never entered.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

import undertow as ut
from undertow.models.ranges import check_ranges


@dataclass(frozen=True)
class Experts:
    """2**levels softmax experts below sigmoid gates. The children of gate n are 2n + 1 and 2n + 2, as in a heap."""

    inputs: int
    classes: int
    levels: int = 3
    floor: float = 0.0

    def init(self, seed: int = 0) -> dict[str, Any]:
        """Initial parameters: small normal numbers, zero biases."""
        check_ranges(seed=seed)
        random, experts = np.random.default_rng(seed), 2**self.levels
        edge = self.inputs**-0.5
        initial = {
            "gate": random.normal(size=(max(experts - 1, 1), self.inputs), scale=edge),
            "gate_bias": np.zeros(max(experts - 1, 1)),
            "expert": random.normal(size=(experts, self.inputs, self.classes), scale=edge),
            "expert_bias": np.zeros((experts, self.classes)),
        }
        return {name: values.astype(np.float32) for name, values in initial.items()}

    @functools.cache  # noqa: B019
    def mixture(self) -> ut.Function:
        """The function (params, x, node, share) -> the outputs of the experts below this node for x, weighted."""
        K, gates, floor = self.classes, 2**self.levels - 1, self.floor

        @ut.function
        def mix(params, x: ut.f32[self.inputs], node: ut.i32, share: ut.f32) -> ut.f32[K]:
            if share < floor:
                return ut.zeros((K,), dtype=ut.f32)
            if node >= gates:
                logits = x @ params["expert"][node - gates] + params["expert_bias"][node - gates]
                strength = ut.exp(logits - ut.max(logits))
                return share * strength / ut.sum(strength)
            gate = ut.sigmoid(ut.sum(params["gate"][node] * x) + params["gate_bias"][node])
            left = mix(params, x, 2 * node + 1, share * gate)
            right = mix(params, x, 2 * node + 2, share * (1 - gate))
            return left + right

        return mix

    @functools.cache  # noqa: B019
    def loss(self) -> ut.Function:
        """The function loss(params, x [n, inputs], label [n]): the mean negative log-likelihood of the labels."""
        mix, tiny = self.mixture(), 1e-7

        @ut.function
        def loss(params, x: ut.f32["n", self.inputs], label: ut.i32["n"]) -> ut.f32:
            def missed(one, y):
                return -ut.log(mix(params, one, 0, 1.0)[y] + tiny)

            return ut.mean(ut.map(missed, x, label))

        return loss

    @functools.cache  # noqa: B019
    def predict(self) -> ut.Function:
        """The function (params, x [n, inputs]) -> the best class of each input."""
        mix = self.mixture()

        @ut.function
        def predict(params, x: ut.f32["n", self.inputs]) -> ut.i32["n"]:
            return ut.map(lambda one: ut.astype(ut.argmax(mix(params, one, 0, 1.0)), ut.i32), x)

        return predict
