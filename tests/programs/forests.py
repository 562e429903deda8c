"""Trees with any number of children, none included: what comes back from them is summed, averaged, folded in order."""

import numpy as np
from tests.programs.program import program

import undertow as ut

#  tree 0:      *        tree 1: a    tree 2: *
#            / | | \                          |
#           a  *  c  *                        b
#              |    / | \
#              b   a  b  c
FOREST = ut.data.from_nested([("a", ("b",), "c", ("a", "b", "c")), "a", ("b",)], binary=False)
PAIRS = ut.data.from_nested([(("a", "b"), "c"), ("a", ("b", "a")), "c"])
EMBED = np.array([[0.1, -0.3], [0.7, 0.2], [-0.4, 0.9], [0.3, 0.5], [-0.8, 0.6]])
WEIGHTS = np.array([[0.8, -0.5], [0.4, 0.9]])


@ut.function
def child_sum(embed, weights, forest, node: ut.i32) -> ut.f64[2]:
    """Without a test for leaves: the sum over nothing is 0."""
    below = ut.map(lambda child: child_sum(embed, weights, forest, child), forest.children(node))
    return ut.tanh(embed[forest.word[node] + 1] + ut.sum(below, axis=0) * weights[0])


@ut.function
def child_mean(embed, weights, forest, node: ut.i32) -> ut.f64[2]:
    own = embed[forest.word[node] + 1]
    if forest.is_leaf(node):
        return own
    below = ut.map(lambda child: child_mean(embed, weights, forest, child), forest.children(node))
    return ut.tanh(own + ut.mean(below, axis=0) @ weights)


@ut.function
def child_max(embed, weights, forest, node: ut.i32) -> ut.f64[2]:
    own = embed[forest.word[node] + 1]
    if forest.child_count(node) == 0:
        return own
    below = ut.map(lambda child: child_max(embed, weights, forest, child), forest.children(node))
    return ut.tanh(own + ut.max(below, axis=0) @ weights)


@ut.function
def child_fold(embed, weights, forest, node: ut.i32) -> ut.f64[2]:
    """All children side by side, then their results in order."""
    state = embed[forest.word[node] + 1]
    for below in ut.map(lambda child: child_fold(embed, weights, forest, child), forest.children(node)):
        state = ut.tanh(state @ weights + below)
    return state


@ut.function
def child_chain(embed, weights, forest, node: ut.i32, state: ut.f64[2]) -> ut.f64[2]:
    """One child after the other: each begins with what the one before it gave."""
    for child in forest.children(node):
        state = child_chain(embed, weights, forest, child, state)
    return ut.tanh(state @ weights + embed[forest.word[node] + 1])


@ut.function
def binary_encode(embed, weights, forest, node: ut.i32) -> ut.f64[2]:
    if forest.is_leaf(node):
        return embed[forest.word[node]]
    left = binary_encode(embed, weights, forest, forest.left[node])
    right = binary_encode(embed, weights, forest, forest.right[node])
    return ut.tanh(left @ weights - right)


@ut.function
def heights(forest) -> ut.i32[None]:
    """The height of every tree."""
    return ut.map(lambda root: height(forest, root), forest.roots)


@ut.function
def height(forest, node: ut.i32) -> ut.i32:
    most = ut.asarray(0, ut.i32)
    for below in ut.map(lambda child: height(forest, child), forest.children(node)):
        most = ut.maximum(most, below)
    return most + 1


_ROOTS = [(EMBED, WEIGHTS, FOREST, int(root)) for root in FOREST.roots]
_START = np.array([0.5, -0.25])
PROGRAMS = [
    program(child_sum, *_ROOTS, tags="map recursive arrays containers"),
    program(child_mean, *_ROOTS, tags="map recursive arrays containers branch"),
    program(child_max, *_ROOTS, tags="map recursive arrays containers branch"),
    program(child_fold, *_ROOTS, tags="map recursive arrays containers loop"),
    program(child_chain, *[(*row, _START) for row in _ROOTS], tags="recursive arrays containers loop"),
    program(binary_encode, *[(EMBED, WEIGHTS, PAIRS, int(r)) for r in PAIRS.roots], tags="recursive arrays containers"),
    program(
        binary_encode,
        (ut.shared(EMBED), ut.shared(WEIGHTS), ut.shared(PAIRS), PAIRS.roots),
        name="binary_encode.map",
        by="map",
        tags="map recursive arrays containers",
    ),
    program(heights, (FOREST,), (PAIRS,), tags="map recursive arrays containers loop"),
]
