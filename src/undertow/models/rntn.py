# mypy: ignore-errors
"""RNTN: a TreeRNN whose two parts also multiply each other, through a tensor.

Socher et al. 2013, "Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank".
"""

from dataclasses import dataclass

import numpy as np

import undertow as ut
from undertow.models.tree_rnn import TreeRNN


@dataclass(frozen=True)
class RNTN(TreeRNN):
    """h = tanh(xᵀ V x + x W + b), where x = [left; right] and V has a slice for each element of h."""

    width: int = 25  # the paper's best widths are between 25 and 35

    def shapes(self):
        d, shapes = self.width, super().shapes()
        # tensor[i, j * d + k] is V[k][i, j]
        return {"embed": shapes.pop("embed"), "tensor": (2 * d, 2 * d * d), **shapes}

    def _first(self, name, shape, random):
        if name == "tensor":  # small, since products of vectors would explode level by level
            return random.uniform(-0.25, 0.25, shape).astype(np.float32) / np.float32(self.width)
        return super()._first(name, shape, random)

    def composed(self, params, x):
        products = x @ ut.reshape(x @ params["tensor"], (2 * self.width, self.width))
        return ut.tanh(products + x @ params["weights"] + params["bias"])
