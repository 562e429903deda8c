"""Maps: from outside, inside functions, over nothing, nested, over a number of children known only at run time."""

import numpy as np
from tests.programs.program import program

import undertow as ut

# A tree as lists of children: those of node k are CHILDREN[FIRST[k] : FIRST[k + 1]].
#        0
#      / | \
#     1  2  3
#    / \    |
#   4   5   6
#           |
#           7
FIRST = np.array([0, 3, 5, 5, 6, 6, 6, 7, 7])
CHILDREN = np.array([1, 2, 3, 4, 5, 6, 7])
WEIGHT = np.array([1.0, 2.0, 0.5, -1.0, 3.0, 4.0, 0.25, 8.0])


@ut.function
def stairs(n: ut.i64) -> ut.i64:
    """Mapped from outside: many calls, one run."""
    return 1 if n <= 1 else stairs(n - 1) + stairs(n - 2)


@ut.function
def squares(n: ut.i64) -> ut.i64:
    """A map over a run-time number of lanes, with a value from outside."""
    return ut.sum(ut.map(lambda k: k * k + n, ut.arange(n)))


@ut.function
def tree_weight(node: ut.i64) -> ut.f64:
    """A recursive function maps itself over its children, however many there are."""
    children = CHILDREN[FIRST[node] : FIRST[node + 1]]
    return WEIGHT[node] + ut.sum(ut.map(tree_weight, children)) / 2.0


@ut.function
def tree_height(first, children, node: ut.i64) -> ut.i64:
    """The same with the tree as arguments, shared by all lanes."""
    below = children[first[node] : first[node + 1]]
    if below.shape[0] == 0:
        return 1
    heights = ut.map(tree_height, ut.shared(first), ut.shared(children), below)
    return ut.max(heights) + 1


@ut.function
def table(n: ut.i64, m: ut.i64) -> ut.i64[None, None]:
    """A map in a map."""
    return ut.map(lambda a: ut.map(lambda b: a * 10 + b, ut.arange(m)), ut.arange(n))


@ut.function
def nested_recursion(n: ut.i64) -> ut.i64:
    """Maps over maps of the function itself."""
    if n <= 0:
        return 1
    return ut.sum(ut.map(lambda k: ut.sum(ut.map(nested_recursion, ut.arange(k) - 1)) + k, ut.arange(n)))


@ut.function
def branching_lanes(xs: ut.i64[None]) -> ut.i64[None]:
    """Lanes take different branches and loops of different lengths."""

    def lane(x):
        if x < 0:
            return -x
        total = 0
        while x > 0:
            total += x
            x -= 2
        return total

    return ut.map(lane, xs)


@ut.function
def several_results(xs: ut.f64[None], ys: ut.i64[None]) -> tuple[ut.f64[None], ut.i64[None, 2]]:
    """Two arrays in, two results out, one of them with rows."""

    def lane(x, y):
        return x * y, ut.stack([y, y + 1])

    return ut.map(lane, xs, ys)


@ut.function
def rows(matrix: ut.f64[None, None]) -> ut.f64[None]:
    return ut.map(lambda row: ut.sum(row) / row.shape[0], matrix)


@ut.function
def mapped_pairs(pairs, offset: ut.i64) -> ut.i64[None]:
    """Containers are mapped leaf by leaf."""
    return ut.map(lambda pair, by: pair["a"] * 10 + pair["b"] + by, pairs, ut.shared(offset))


@ut.function
def map_in_loop(n: ut.i64) -> ut.i64:
    total = 1
    for k in range(n):
        total += ut.sum(ut.map(lambda x: x + total, ut.arange(k)))  # noqa: B023 - called at once
    return total


@ut.function
def affine(x: ut.f64, scale: ut.f64, shift) -> {"y": ut.f64, "n": ut.i64}:  # noqa: F821 - keys
    return {"y": x * scale + shift[0], "n": shift[1]}


PROGRAMS = [
    program(stairs, ([5, 6, 8, 9],), ([],), ([3],), name="stairs.map", by="map", tags="map recursive"),
    program(squares, (0,), (1,), (6,), tags="map"),
    program(tree_weight, (0,), (2,), tags="map recursive arrays"),
    program(tree_height, (FIRST, CHILDREN, 0), (FIRST, CHILDREN, 7), tags="map recursive arrays"),
    program(table, (3, 2), (1, 4), tags="map arrays"),
    program(nested_recursion, (0,), (4,), tags="map recursive"),
    program(branching_lanes, (np.array([3, -4, 0, 7]),), tags="map branch loop"),
    program(several_results, (np.array([0.5, 1.5]), np.array([2, 3])), tags="map arrays"),
    program(rows, (np.arange(6.0).reshape(2, 3),), (np.ones((4, 1)),), tags="map arrays"),
    program(mapped_pairs, ({"a": np.array([1, 2]), "b": np.array([3, 4])}, 100), tags="map containers"),
    program(map_in_loop, (0,), (5,), tags="map loop"),
    program(
        affine,
        (np.array([1.0, 2.0, 3.0]), ut.shared(2.0), (np.array([0.5, 0.25, 0.0]), np.array([7, 8, 9]))),
        name="affine.map",
        by="map",
        tags="map containers",
    ),
]
