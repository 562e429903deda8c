# mypy: ignore-errors
"""Top-down TreeLSTM: a generator. Each node decides from its own state which word it has, and whether it has children.

So the tree depends on computed values: its shape is not known in advance, and no scheduler that sorts nodes by
depth beforehand can run it. Zhang, Lu and Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", for binary
trees: one LSTM for left children and one for right ones. That a node decides itself whether it has children is from
Alvarez-Melis and Jaakkola 2017, "Tree-Structured Decoding with Doubly-Recurrent Neural Networks".
"""

import functools
from dataclasses import dataclass

import undertow as ut
from undertow.models.classifier import per_tree, surprisal
from undertow.models.generator import TreeGenerator, choose, decide

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class TopDownTreeLSTM(TreeGenerator):
    """(h, c) = LSTM_side([x of the parent; h], c); word = argmax(h T); there are children if h · grow + bias > 0."""

    def shapes(self):
        d, e = self.width, self.embedding
        return {
            "embed": (self.words, e),
            "start": (e,),  # stands in for the embedding of the root's parent
            "left": (e + d, 4 * d),  # i, o, f, u
            "left_bias": (4 * d,),
            "right": (e + d, 4 * d),
            "right_bias": (4 * d,),
            "out": (d, self.words),
            "out_bias": (self.words,),
            "grow": (d,),
            "grow_bias": (),
        }

    def cell(self, params, side, x, h, c):
        """The state of a node on this side of its parent, from the parent's word and state."""
        d, name = self.width, ("left", "right")[side]
        z = ut.concat([x, h]) @ params[name] + params[f"{name}_bias"]
        c = ut.sigmoid(z[:d]) * ut.tanh(z[3 * d :]) + ut.sigmoid(z[2 * d : 3 * d]) * c
        return ut.sigmoid(z[d : 2 * d]) * ut.tanh(c), c

    @functools.cache  # noqa: B019
    def generate(self) -> ut.Function:
        """The function (params, starts) -> for each start how many nodes its tree has, and how deep it is.

        A start [embedding], e.g. the output of an encoder, replaces `params["start"]`.
        """
        d, V = self.width, ut.f32[self.width]

        @ut.function
        def grow(params, h: V, c: V, depth: ut.i32) -> (ut.i32, ut.i32):
            """The size and the depth of the tree below a node with this state."""
            if depth < self.max_depth and ut.sum(h * params["grow"]) + params["grow_bias"] > 0:
                x = params["embed"][ut.argmax(h @ params["out"] + params["out_bias"])]
                n, k = grow(params, *self.cell(params, LEFT, x, h, c), depth + 1)
                m, j = grow(params, *self.cell(params, RIGHT, x, h, c), depth + 1)
                return 1 + n + m, ut.maximum(k, j)
            return 1, depth

        @ut.function
        def generate(params, starts: ut.f32["trees", self.embedding]) -> (ut.i32["trees"], ut.i32["trees"]):
            zero = ut.zeros((d,), dtype=ut.f32)
            return ut.map(lambda x: grow(params, *self.cell(params, LEFT, x, zero, zero), 0), starts)

        return generate

    @functools.cache  # noqa: B019
    def words_of(self, sampled: bool = False) -> ut.Function:
        """The function (params, start) -> the words and the depths of one generated tree, in preorder.

        Decisions are the likeliest, or sampled by the run's `seed=`. `ut.data.Forest.from_depths(depths, words)` makes
        a tree of them.
        """
        d, V, N = self.width, ut.f32[self.width], ut.i32["nodes"]

        @ut.function
        def grow(params, h: V, c: V, depth: ut.i32) -> (N, N):
            word = choose(h @ params["out"] + params["out_bias"], sampled)
            words, depths = ut.reshape(word, (1,)), ut.reshape(depth, (1,))
            if depth < self.max_depth and decide(ut.sum(h * params["grow"]) + params["grow_bias"], sampled):
                x = params["embed"][word]
                some, deep = grow(params, *self.cell(params, LEFT, x, h, c), depth + 1)
                more, deeper = grow(params, *self.cell(params, RIGHT, x, h, c), depth + 1)
                return ut.concat([words, some, more]), ut.concat([depths, deep, deeper])
            return words, depths

        @ut.function
        def words_of(params, start: ut.f32[self.embedding]) -> (N, N):
            zero = ut.zeros((d,), dtype=ut.f32)
            return grow(params, *self.cell(params, LEFT, start, zero, zero), 0)

        return words_of

    @functools.cache  # noqa: B019
    def loss(self) -> ut.Function:
        """The function loss(params, forest): the mean negative log-likelihood of the trees.

        Every node of the (binary) forest has a word. Children get the true word (teacher forcing).
        """
        d, V = self.width, ut.f32[self.width]

        @ut.function
        def below(params, forest, node: ut.i32, h: V, c: V) -> ut.f32:
            word = forest.word[node]
            missed = surprisal(h @ params["out"] + params["out_bias"], word)
            more = ut.sum(h * params["grow"]) + params["grow_bias"]
            if forest.is_leaf(node):
                return missed + ut.softplus(more)
            x = params["embed"][word]
            left = below(params, forest, forest.left[node], *self.cell(params, LEFT, x, h, c))
            right = below(params, forest, forest.right[node], *self.cell(params, RIGHT, x, h, c))
            return missed + ut.softplus(-more) + left + right

        @ut.function
        def loss(params, forest) -> ut.f32:
            zero = ut.zeros((d,), dtype=ut.f32)

            def of_tree(root):
                return below(params, forest, root, *self.cell(params, LEFT, params["start"], zero, zero))

            return per_tree(ut.map(of_tree, forest.roots), forest)

        return loss
