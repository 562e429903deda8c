"""A recursive neural network over a parse tree, as in Socher et al.: the same weights at every node of the tree.

The tree is arrays: node i is the leaf `WORD[i]`, or has the children `LEFT[i]` and `RIGHT[i]`. Both calls of `encode`
are independent, so siblings run side by side; the weights are ordinary arguments.
"""

import numpy as np

import undertow as ut

SENTENCE = ("not", "a", "bad", "film", "at", "all")
#              ((not (a (bad film))) (at all))
LEFT = np.array([-1, -1, -1, -1, -1, -1, 2, 1, 0, 4, 8])
RIGHT = np.array([-1, -1, -1, -1, -1, -1, 3, 6, 7, 5, 9])
WORD = np.array([0, 1, 2, 3, 4, 5, -1, -1, -1, -1, -1])
ROOT, WIDTH = 10, 4


@ut.function
def encode(params, node: ut.i64) -> ut.f64[WIDTH]:
    if LEFT[node] < 0:
        return params["embed"][WORD[node]]
    left = encode(params, LEFT[node])
    right = encode(params, RIGHT[node])
    return ut.tanh(ut.concat([left, right]) @ params["weights"] + params["bias"])


def encode_in_numpy(params, node):
    if LEFT[node] < 0:
        return params["embed"][WORD[node]]
    children = [encode_in_numpy(params, LEFT[node]), encode_in_numpy(params, RIGHT[node])]
    return np.tanh(np.concatenate(children) @ params["weights"] + params["bias"])


random = np.random.default_rng(0)
params = {
    "embed": random.normal(size=(len(SENTENCE), WIDTH)),
    "weights": random.normal(size=(2 * WIDTH, WIDTH)),
    "bias": np.zeros(WIDTH),
}

root, stats = encode.run(params, ROOT, stats=True)
np.testing.assert_allclose(root, encode_in_numpy(params, ROOT))
print(f"'{' '.join(SENTENCE)}' ->", np.round(root, 3))
print(f"{stats.activations} activations for {len(WORD)} nodes of the tree, {stats.max_depth} calls deep")

every = encode.map(ut.shared(params), np.arange(len(WORD)))  # a vector for each subtree, in one run
np.testing.assert_allclose(every[ROOT], root)
print("norms of all subtrees:", np.round(np.linalg.norm(every, axis=1), 2))
