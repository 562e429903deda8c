# mypy: ignore-errors
"""MV-RNN: every word and phrase is a vector and a matrix; the matrix modifies its neighbour's vector.

Socher, Huval, Manning and Ng 2012, "Semantic Compositionality through Recursive Matrix-Vector Spaces".
"""

import functools
from dataclasses import dataclass

import numpy as np

import undertow as ut
from undertow.models.classifier import TreeClassifier, drop, plus


@dataclass(frozen=True)
class MVRNN(TreeClassifier):
    """p = tanh([B a; A b] W + bias) and P = W_M [A; B], for parts (a, A) and (b, B)."""

    width: int = 25

    def shapes(self):
        d = self.width
        return {
            "embed": (self.words, d),
            "embed_matrix": (self.words, d, d),
            "weights": (2 * d, d),
            "bias": (d,),
            "mix": (d, 2 * d),  # W_M
            "out": (d, self.classes),
            "out_bias": (self.classes,),
        }

    def _first(self, name, shape, random):
        initial = super()._first(name, shape, random)
        # The paper starts near the identity, a word that changes nothing, with a little noise.
        return initial * np.float32(0.1) + np.eye(self.width, dtype=np.float32) if name == "embed_matrix" else initial

    @functools.cache  # noqa: B019
    def encoder(self, note):
        d, rate = self.width, self.dropout

        @ut.function
        def encode(params, forest, node: ut.i32) -> (ut.f32[d], ut.f32[d, d], note.type):
            if forest.is_leaf(node):
                word = forest.word[node]
                h = drop(ut.tanh(params["embed"][word]), d, rate)
                return h, params["embed_matrix"][word], note.of(params, forest, node, h)
            a, A, of_left = encode(params, forest, forest.left[node])
            b, B, of_right = encode(params, forest, forest.right[node])
            h = ut.tanh(ut.concat([B @ a, A @ b]) @ params["weights"] + params["bias"])
            P = params["mix"] @ ut.concat([A, B], axis=0)
            return h, P, plus(note.of(params, forest, node, drop(h, d, rate)), of_left, of_right)

        return encode
