"""How many waves the waves engine forms for 256 trees of the shape of a treebank's, in one run.

Claim: about as many as the deepest tree has levels, for one recursive function and for two mutually recursive ones; so
equal work runs together, whichever tree and function it belongs to. Where the right child waits for the left one's
result there is a wave for each step of that order, and still many lanes in each. The trees are made up: as many words
and as high as those of the Stanford Sentiment Treebank (19 words, 11 levels on average).
Usage: python benchmarks/waves_formed.py [--quick] [--repeat N] [--json FILE]
"""

from dataclasses import dataclass
from functools import partial

import common
import numpy as np

import undertow as ut

TREES = 256
WIDTH = 100  # of the vectors at the nodes
WORDS = 1000


@dataclass
class Forest:
    """Trees, node by node. A leaf has no left child, and a word."""

    left: np.ndarray
    right: np.ndarray
    word: np.ndarray


@ut.function
def encode(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    if forest.left[node] < 0:
        return ut.tanh(params["embed"][forest.word[node]])
    left = encode(params, forest, forest.left[node])
    right = encode(params, forest, forest.right[node])
    return ut.tanh(ut.concat([left, right]) @ params["W"] + params["b"])


# The same function twice, by turns from level to level: calls of both are ready together and share their waves.
@ut.function
def odd(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    if forest.left[node] < 0:
        return ut.tanh(params["embed"][forest.word[node]])
    left = even(params, forest, forest.left[node])
    right = even(params, forest, forest.right[node])
    return ut.tanh(ut.concat([left, right]) @ params["W"] + params["b"])


@ut.function
def even(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    if forest.left[node] < 0:
        return ut.tanh(params["embed"][forest.word[node]])
    left = odd(params, forest, forest.left[node])
    right = even(params, forest, forest.right[node])
    return ut.tanh(ut.concat([left, right]) @ params["W"] + params["b"])


# The right child is given what the left one has made: calls come one after the other.
@ut.function
def onward(params, forest, node: ut.i32, before: ut.f32[WIDTH]) -> ut.f32[WIDTH]:
    if forest.left[node] < 0:
        return ut.tanh(params["embed"][forest.word[node]] + before)
    left = onward(params, forest, forest.left[node], before)
    right = onward(params, forest, forest.right[node], left)
    return ut.tanh(ut.concat([left, right]) @ params["W"] + params["b"])


@ut.function
def left_first(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    return onward(params, forest, node, ut.zeros((WIDTH,), dtype=ut.f32))


def total(function):
    @ut.function
    def loss(params, forest, roots) -> ut.f32:
        return ut.sum(ut.map(lambda root: ut.sum(function(params, forest, root)), roots))

    return loss


def forest(random: np.random.Generator, trees: int) -> tuple[Forest, np.ndarray, np.ndarray]:
    """Random binary trees, their roots and their depths (levels)."""
    left, right, word, roots, depths = [], [], [], [], []
    for _ in range(trees):
        words = int(np.clip(random.normal(19, 9), 2, 52))
        roots.append(len(left))
        deepest = 0
        waiting = [(words, 1, -1, None)]  # words, level, parent, and which list of children
        while waiting:
            count, level, parent, side = waiting.pop()
            number = len(left)
            if side is not None:
                side[parent] = number
            left.append(-1)
            right.append(-1)
            word.append(int(random.integers(WORDS)) if count == 1 else -1)
            deepest = max(deepest, level)
            if count > 1:
                # Sentences branch to the right more often than not.
                share = min(max(round(count * random.beta(0.25, 0.9)), 1), count - 1)
                waiting += [(share, level + 1, number, left), (count - share, level + 1, number, right)]
        depths.append(deepest)
    made = Forest(*(np.array(column, np.int32) for column in (left, right, word)))
    return made, np.array(roots, np.int32), np.array(depths)


def main() -> None:
    options = common.parser(__doc__, repeat=5).parse_args()
    random = np.random.default_rng(7)
    trees, roots, depths = forest(random, TREES)
    params = {
        "embed": random.normal(0, 0.1, (WORDS, WIDTH)).astype(np.float32),
        "W": random.normal(0, 0.1, (2 * WIDTH, WIDTH)).astype(np.float32),
        "b": np.zeros(WIDTH, np.float32),
    }
    nodes, deepest = len(trees.left), int(depths.max())
    shared = ut.shared(params), ut.shared(trees), roots
    works = {
        "one function": partial(encode.map, *shared),
        "two functions": partial(odd.map, *shared),
        "left before right": partial(left_first.map, *shared),
    }
    if not options.quick:
        works["one function, gradient"] = partial(ut.grad(total(encode)).run, params, trees, roots)
        works["two functions, gradient"] = partial(ut.grad(total(odd)).run, params, trees, roots)
        works["left before right, gradient"] = partial(ut.grad(total(left_first)).run, params, trees, roots)
    few = ut.shared(params), ut.shared(trees), roots[:4]
    plain = encode.map(*few, engine="reference")
    expected = {"left before right": left_first.map(*few, engine="reference")}
    rows = []
    with ut.options(engine="waves", **common.on_threads(1)):
        for name, work in works.items():
            found, stats = work(stats=True)
            if "gradient" not in name:
                np.testing.assert_allclose(found[:4], expected.get(name, plain), rtol=1e-4, atol=1e-6)
                calls = nodes + (TREES if name in expected else 0)
                if stats.activations != calls:
                    common.fail(f"{name}: {stats.activations} activations, and {calls} calls")
            rows.append({"program": name, "waves": stats.waves, "activations": stats.activations,
                         "peak_bytes": stats.peak_bytes})  # fmt: skip
        times = common.measure(works, options.repeat)
    for row in rows:
        row["seconds"] = times[row["program"]].best
    common.table(
        f"Waves formed for {TREES} trees, {nodes:,} nodes, {depths.mean():.1f} levels on average, {deepest} at most",
        ["program", "activations", "waves", "waves / deepest", "activations / wave", "time", "trees per second"],
        [[row["program"], f"{row['activations']:,}", f"{row['waves']:,}", f"{row['waves'] / deepest:.2f}",
          f"{row['activations'] / row['waves']:.0f}", common.seconds(row["seconds"]),
          f"{TREES / row['seconds']:,.0f}"] for row in rows],
    )  # fmt: skip
    common.write(options.json, {"trees": TREES, "nodes": nodes, "deepest": deepest, "rows": rows})


if __name__ == "__main__":
    main()
