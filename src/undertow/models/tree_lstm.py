# mypy: ignore-errors
"""Binary TreeLSTM: a memory cell at every node, with a forget gate for each of the two children.

Tai, Socher and Manning 2015, "Improved Semantic Representations From Tree-Structured Long Short-Term Memory
Networks", section 3.2 with N = 2; words are at leaves only, as in their constituency trees.
"""

import functools
from dataclasses import dataclass

import undertow as ut
from undertow.models.classifier import TreeClassifier, drop, plus


@dataclass(frozen=True)
class TreeLSTM(TreeClassifier):
    """c = i * u + f_left * c_left + f_right * c_right and h = o * tanh(c), with gates of [h_left; h_right]."""

    width: int = 150
    embedding: int = 300

    def shapes(self):
        d = self.width
        return {
            "embed": (self.words, self.embedding),
            "leaf": (self.embedding, 3 * d),  # i, o, u
            "leaf_bias": (3 * d,),
            "weights": (2 * d, 5 * d),  # i, o, u, f of the left child, f of the right one
            "bias": (5 * d,),
            "out": (d, self.classes),
            "out_bias": (self.classes,),
        }

    @functools.cache  # noqa: B019
    def encoder(self, note):
        d, rate = self.width, self.dropout

        @ut.function
        def encode(params, forest, node: ut.i32) -> (ut.f32[d], ut.f32[d], note.type):
            if forest.is_leaf(node):
                x = drop(params["embed"][forest.word[node]], self.embedding, rate)
                z = x @ params["leaf"] + params["leaf_bias"]
                c = ut.sigmoid(z[:d]) * ut.tanh(z[2 * d :])
                h = ut.sigmoid(z[d : 2 * d]) * ut.tanh(c)
                return h, c, note.of(params, forest, node, drop(h, d, rate))
            h_left, c_left, of_left = encode(params, forest, forest.left[node])
            h_right, c_right, of_right = encode(params, forest, forest.right[node])
            z = ut.concat([h_left, h_right]) @ params["weights"] + params["bias"]
            c = (
                ut.sigmoid(z[:d]) * ut.tanh(z[2 * d : 3 * d])
                + ut.sigmoid(z[3 * d : 4 * d]) * c_left
                + ut.sigmoid(z[4 * d :]) * c_right
            )
            h = ut.sigmoid(z[d : 2 * d]) * ut.tanh(c)
            return h, c, plus(note.of(params, forest, node, drop(h, d, rate)), of_left, of_right)

        return encode
