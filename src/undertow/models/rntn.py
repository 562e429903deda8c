# mypy: ignore-errors
"""RNTN: a TreeRNN whose two parts also multiply each other, through a tensor.

Socher et al. 2013, "Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank".
"""

import functools
from dataclasses import dataclass

import numpy as np

import undertow as ut
from undertow.models.classifier import TreeClassifier, averaging, drop, plus


@dataclass(frozen=True)
class RNTN(TreeClassifier):
    """h = tanh(xᵀ V x + x W + b), where x = [left; right] and V has a slice for each place of h."""

    width: int = 25  # the paper's best lie between 25 and 35
    squash: bool = True  # leaves go through tanh too

    def shapes(self):
        d = self.width
        return {
            "embed": (self.words, d),
            "tensor": (2 * d, 2 * d * d),  # tensor[i, j * d + k] is V[k][i, j]
            "weights": (2 * d, d),
            "bias": (d,),
            "out": (d, self.classes),
            "out_bias": (self.classes,),
        }

    def _first(self, name, shape, random):
        if name == "tensor":  # small: vectors that multiply each other would blow up, level by level
            return random.uniform(-0.25, 0.25, shape).astype(np.float32) / np.float32(self.width)
        made = super()._first(name, shape, random)
        return averaging(made) if name == "weights" else made

    @functools.cache  # noqa: B019
    def encoder(self, note):
        d, rate, squash = self.width, self.dropout, self.squash

        @ut.function
        def encode(params, forest, node: ut.i32) -> (ut.f32[d], note.type):
            if forest.is_leaf(node):
                x = params["embed"][forest.word[node]]
                h = drop(ut.tanh(x) if squash else x, d, rate)
                return h, note.of(params, forest, node, h)
            left, of_left = encode(params, forest, forest.left[node])
            right, of_right = encode(params, forest, forest.right[node])
            x = ut.concat([left, right])
            products = x @ ut.reshape(x @ params["tensor"], (2 * d, d))
            h = ut.tanh(products + x @ params["weights"] + params["bias"])
            return h, plus(note.of(params, forest, node, drop(h, d, rate)), of_left, of_right)

        return encode
