# mypy: ignore-errors
"""Doubly recurrent network: a generator of trees with any number of children, which predicts their shape as it goes.

Alvarez-Melis and Jaakkola 2017, "Tree-Structured Decoding with Doubly-Recurrent Neural Networks". A node has two
states: one comes down from its parent, one from the previous sibling. From both it decides three things: does
it have children, does it have a next sibling, and which word is it. So one recursion goes
down and one across, over a tree that takes shape as they decide.
"""

import functools
from dataclasses import dataclass

import undertow as ut
from undertow.models.classifier import per_tree, surprisal
from undertow.models.generator import TreeGenerator, choose, decide

HERE, DOWN, ACROSS = 0, 1, 2


@dataclass(frozen=True)
class DoublyRecurrent(TreeGenerator):
    """a = GRU_down(x, a) of the parent, f = GRU_across(x, f) of the previous sibling, h = tanh([a; f] W + b).

    Has children: h · children + bias > 0; has a next sibling: h · sibling + bias > 0. The word is the likeliest of
    h T + (has children) v + (has a next sibling) w. Both GRUs take the vector x of a word.
    """

    max_nodes: int = 1000

    any_children = True

    def shapes(self):
        d, e, moves = self.width, self.embedding, {}
        for way in ("down", "across"):
            moves |= {f"{way}_gates": (e + d, 2 * d), f"{way}_gates_bias": (2 * d,)}  # update gate, reset gate
            moves |= {way: (e + d, d), f"{way}_bias": (d,)}
        return {
            "embed": (self.words, e),
            "start": (d,),  # the state above the root
            **moves,
            "join": (2 * d, d),
            "join_bias": (d,),
            "children": (d,),
            "children_bias": (),
            "sibling": (d,),
            "sibling_bias": (),
            "out": (d, self.words),
            "out_bias": (self.words,),
            "out_children": (self.words,),
            "out_sibling": (self.words,),
        }

    def moved(self, params, way, x, h):
        """The state one step further `down` or `across`, from a node with this word and this state."""
        d = self.width
        gates = ut.sigmoid(ut.concat([x, h]) @ params[f"{way}_gates"] + params[f"{way}_gates_bias"])
        new = ut.tanh(ut.concat([x, gates[d:] * h]) @ params[way] + params[f"{way}_bias"])
        return gates[:d] * h + (1 - gates[:d]) * new

    def shape_scores(self, params, h):
        """The logits of having children, and of having a next sibling."""
        more = ut.sum(h * params["children"]) + params["children_bias"]
        return more, ut.sum(h * params["sibling"]) + params["sibling_bias"]

    def word_scores(self, params, h, has_children, has_next):
        """The logits of all words, given whether there are children and a next sibling."""
        shape = (
            ut.astype(has_children, ut.f32) * params["out_children"]
            + ut.astype(has_next, ut.f32) * params["out_sibling"]
        )
        return h @ params["out"] + params["out_bias"] + shape

    @functools.cache  # noqa: B019
    def loss(self) -> ut.Function:
        """The function loss(params, forest): the mean negative log-likelihood of the trees.

        Every node of the forest has a word. Children and siblings get the true values, not the likeliest (teacher
        forcing), so all of them run side by side.
        """
        V, P = ut.f32[self.width], ut.i32["places"]

        @ut.function
        def of_place(
            params, forest, places: P, place: ut.i32, end: ut.i32, way: ut.i32, word: ut.i32, a: V, f: V
        ) -> ut.f32:
            """The loss of the node at a place, of all below it, and of its next siblings, in the places up to the end.

            The word and the states are those of the node it is reached from, and `way` says how. Whether there is a
            node is checked here and not by the caller, so that both calls of all nodes go into one wave.
            """
            if place >= end:
                return 0.0
            if way == DOWN:
                a, f = self.moved(params, "down", params["embed"][word], a), ut.zeros_like(f)
            if way == ACROSS:
                f = self.moved(params, "across", params["embed"][word], f)
            node = places[place]
            word, first, last = forest.word[node], forest.offsets[node], forest.offsets[node + 1]
            has_children, has_next = first < last, place + 1 < end
            h = ut.tanh(ut.concat([a, f]) @ params["join"] + params["join_bias"])
            more, again = self.shape_scores(params, h)
            missed = surprisal(self.word_scores(params, h, has_children, has_next), word)
            missed = missed + ut.softplus(ut.where(has_children, -more, more))
            missed = missed + ut.softplus(ut.where(has_next, -again, again))
            below = of_place(params, forest, places, first, last, DOWN, word, a, f)
            beside = of_place(params, forest, places, place + 1, end, ACROSS, word, a, f)
            return missed + below + beside

        @ut.function
        def loss(params, forest) -> ut.f32:
            places = ut.concat([forest.child, forest.roots])  # siblings side by side; a root has none
            edges = ut.astype(ut.shape(forest.child)[0], ut.i32)
            zero = ut.zeros((self.width,), dtype=ut.f32)

            def of_tree(number):
                return of_place(
                    params, forest, places, edges + number, edges + number + 1, HERE, 0, params["start"], zero
                )

            trees = ut.shape(forest.roots)[0]
            return per_tree(ut.map(of_tree, ut.astype(ut.arange(trees), ut.i32)), forest)

        return loss

    @functools.cache  # noqa: B019
    def words_of(self, sampled: bool = False) -> ut.Function:
        """The function (params, start) -> the words and the depths of one generated tree, in preorder.

        A start [width], e.g. the output of an encoder, replaces `params["start"]`. Decisions are the likeliest, or
        sampled by the run's `seed=`. `ut.data.Forest.from_depths(depths, words)` makes a tree of them.
        """
        V, N = ut.f32[self.width], ut.i32["nodes"]

        @ut.function
        def grow(params, a: V, f: V, depth: ut.i32, room: ut.i32) -> (N, N):
            """The words and depths of a node, all below it, and its next siblings; at most as many as fit."""
            h = ut.tanh(ut.concat([a, f]) @ params["join"] + params["join_bias"])
            more, again = self.shape_scores(params, h)
            has_children = decide(more, sampled) and depth < self.max_depth and room > 2
            has_next = decide(again, sampled) and depth > 0 and room > 2
            word = choose(self.word_scores(params, h, has_children, has_next), sampled)
            x = params["embed"][word]
            words, depths = ut.reshape(word, (1,)), ut.reshape(depth, (1,))
            # Both calls run in parallel, so the remaining room is divided between them beforehand.
            below = ut.where(has_next, (room - 1) // 2, room - 1)
            beside = ut.where(has_children, room - 1 - below, room - 1)
            if has_children:
                some, deep = grow(params, self.moved(params, "down", x, a), ut.zeros_like(f), depth + 1, below)
                words, depths = ut.concat([words, some]), ut.concat([depths, deep])
            if has_next:
                some, deep = grow(params, a, self.moved(params, "across", x, f), depth, beside)
                words, depths = ut.concat([words, some]), ut.concat([depths, deep])
            return words, depths

        @ut.function
        def words_of(params, start: V) -> (N, N):
            return grow(params, start, ut.zeros_like(start), 0, self.max_nodes)

        return words_of
