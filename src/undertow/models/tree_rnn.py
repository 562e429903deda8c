# mypy: ignore-errors
"""TreeRNN: the vector of a phrase is one layer over those of its two parts.

Socher, Lin, Ng and Manning 2011, "Parsing Natural Scenes and Natural Language with Recursive Neural Networks".
"""

import functools
from dataclasses import dataclass

import undertow as ut
from undertow.models.classifier import TreeClassifier, averaging, drop, plus


@dataclass(frozen=True)
class TreeRNN(TreeClassifier):
    """h = tanh([left; right] W + b); a leaf is a row of a table."""

    squash: bool = True  # leaves go through tanh too

    def shapes(self):
        d = self.width
        return {
            "embed": (self.words, d),
            "weights": (2 * d, d),
            "bias": (d,),
            "out": (d, self.classes),
            "out_bias": (self.classes,),
        }

    def _first(self, name, shape, random):
        initial = super()._first(name, shape, random)
        return averaging(initial) if name == "weights" else initial

    def composed(self, params, x):
        """The vector of a phrase, from those of its parts."""
        return ut.tanh(x @ params["weights"] + params["bias"])

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
            h = self.composed(params, ut.concat([left, right]))
            return h, plus(note.of(params, forest, node, drop(h, d, rate)), of_left, of_right)

        return encode
