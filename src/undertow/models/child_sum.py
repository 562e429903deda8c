# mypy: ignore-errors
"""Child-sum TreeLSTM: any number of children, whose order does not matter, and a word at any node.

Tai, Socher and Manning 2015, section 3.1 (equations 2 to 8).
"""

import functools
from dataclasses import dataclass

import undertow as ut
from undertow.models.classifier import TreeClassifier, drop, plus


@dataclass(frozen=True)
class ChildSumTreeLSTM(TreeClassifier):
    """c = i * u + Σ f_k * c_k and h = o * tanh(c); i, o, u are computed from x and Σ h_k, f_k from x and h_k."""

    width: int = 150
    embedding: int = 300

    any_children = True

    def shapes(self):
        d = self.width
        return {
            "embed": (self.words, self.embedding),
            "word": (self.embedding, 4 * d),  # i, o, u, f
            "bias": (4 * d,),
            "weights": (d, 3 * d),  # i, o, u
            "forget": (d, d),
            "out": (d, self.classes),
            "out_bias": (self.classes,),
        }

    @functools.cache  # noqa: B019
    def encoder(self, note):
        d, rate = self.width, self.dropout

        def word(params, forest, node):
            """What a node's word contributes to its gates; a missing word counts as the zero vector."""
            at = forest.word[node]
            x = params["embed"][ut.maximum(at, 0)]
            x = drop(ut.where(at >= 0, x, ut.zeros_like(x)), self.embedding, rate)
            return x @ params["word"] + params["bias"]

        def state(z, child_cells):
            """(h, c) of a node, from the inputs of its gates i, o, u and the gated sum of its children's cells."""
            c = ut.sigmoid(z[:d]) * ut.tanh(z[2 * d :]) + child_cells
            return ut.sigmoid(z[d : 2 * d]) * ut.tanh(c), c

        @ut.function
        def encode(params, forest, node: ut.i32) -> (ut.f32[d], ut.f32[d], note.type):
            x = word(params, forest, node)
            if forest.is_leaf(node):
                h, c = state(x[: 3 * d], ut.zeros((d,), dtype=ut.f32))
                return h, c, note.of(params, forest, node, drop(h, d, rate))

            def child(below):
                h, c, of_child = encode(params, forest, below)
                return h, ut.sigmoid(x[3 * d :] + h @ params["forget"]) * c, of_child

            hs, cs, of_children = ut.map(child, forest.children(node))
            h, c = state(x[: 3 * d] + ut.sum(hs, axis=0) @ params["weights"], ut.sum(cs, axis=0))
            return h, c, plus(note.of(params, forest, node, drop(h, d, rate)), summed(of_children))

        return encode


def summed(noted):
    """The sum of the children's notes."""
    if isinstance(noted, tuple):
        return tuple(summed(part) for part in noted)
    return ut.astype(ut.sum(noted, axis=0), noted.dtype)
