"""A treebank in batches: a recursive network learns the sentiment of phrases that a small grammar wrote.

The forest is an ordinary argument. Every batch has another number of nodes, and the function is captured once.
"""

import numpy as np

import undertow as ut

WIDTH, LABELS = 16, 5
treebank = ut.data.sentiment(1200, seed=0)
train, test = treebank.split(0.9, seed=0)
print(train, "of", len(treebank.vocabulary), "words, such as:")
print(train[7].text())


@ut.function
def encode(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    if forest.is_leaf(node):
        return ut.tanh(params["embed"][forest.word[node]])
    left = encode(params, forest, forest.left[node])
    right = encode(params, forest, forest.right[node])
    # The product lets one part turn the other round, as `not` does.
    return ut.tanh(ut.concat([left, right, left * right]) @ params["weights"] + params["bias"])


@ut.function
def scores(params, forest, root: ut.i32) -> ut.f32[LABELS]:
    return encode(params, forest, root) @ params["classes"]


@ut.function
def loss(params, forest) -> ut.f32:
    """The mean over trees of the cross entropy at the root."""

    def one(root):
        given = scores(params, forest, root)
        return ut.log(ut.sum(ut.exp(given))) - given[forest.label[root]]

    return ut.mean(ut.map(one, forest.roots))


def accuracy(forest):
    best = scores.map(ut.shared(params), ut.shared(forest), forest.roots).argmax(axis=1)
    return np.mean(best == forest.label[forest.roots])


random = np.random.default_rng(0)


def normal(*shape):
    return (random.normal(size=shape) / np.sqrt(shape[0] if len(shape) > 1 else 1)).astype(np.float32)


params = {
    "embed": random.normal(size=(len(treebank.vocabulary), WIDTH)).astype(np.float32),
    "weights": normal(3 * WIDTH, WIDTH),
    "bias": np.zeros(WIDTH, np.float32),
    "classes": normal(WIDTH, LABELS),
}
print(f"before: {accuracy(test):.0%} of {len(test)} sentences right")

with ut.options(engine="waves"):
    step = ut.value_and_grad(loss)
    for epoch in range(6):
        losses = []
        for batch in train.batches(20, seed=epoch):
            value, slope = step(params, batch)
            params = {name: params[name] - np.float32(0.3) * slope[name] for name in params}
            losses.append(value)
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, {accuracy(test):.0%} right")

assert accuracy(test) > 0.45  # a guess is right in one of five
