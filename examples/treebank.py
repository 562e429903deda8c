"""A treebank in batches: a recursive network learns the sentiment of phrases that a small grammar wrote.

The forest is an ordinary argument. Batches differ in their number of nodes, but the function is captured only once.
"""

import numpy as np

import undertow as ut

WIDTH, LABELS = 16, 5
treebank = ut.data.sentiment(1200, seed=0)
train, test = treebank.split(0.9, seed=0)
print(train, "of", len(treebank.vocabulary), "words, such as:")
print(train[7].text())


@ut.function
def scores(params, forest, root: ut.i32) -> ut.f32[LABELS]:
    return encode(params, forest, root) @ params["classes"]


@ut.function
def encode(params, forest, node: ut.i32) -> ut.f32[WIDTH]:
    if forest.is_leaf(node):
        return ut.tanh(params["embed"][forest.word[node]])
    left = encode(params, forest, forest.left[node])
    right = encode(params, forest, forest.right[node])
    # The product lets one part turn the other round, as `not` does.
    return ut.tanh(ut.concat([left, right, left * right]) @ params["weights"])


@ut.function
def loss(params, forest) -> ut.f32:
    def cross_entropy(root):
        given = scores(params, forest, root)
        return ut.log(ut.sum(ut.exp(given))) - given[forest.label[root]]

    return ut.mean(ut.map(cross_entropy, forest.roots))


def accuracy(forest):
    best = scores.map(ut.shared(params), ut.shared(forest), forest.roots).argmax(axis=1)
    return np.mean(best == forest.label[forest.roots])


random = np.random.default_rng(0)
shapes = {"embed": (len(treebank.vocabulary), WIDTH), "weights": (3 * WIDTH, WIDTH), "classes": (WIDTH, LABELS)}
params = {name: random.normal(size=shape, scale=0.3).astype(np.float32) for name, shape in shapes.items()}

for epoch in range(6):
    for batch in train.batches(20, seed=epoch):
        value, slope = ut.value_and_grad(loss).run(params, batch, engine="waves")
        params = {name: params[name] - np.float32(0.3) * slope[name] for name in params}
    print(f"epoch {epoch}: loss {value:.3f}, {accuracy(test):.0%} of {len(test)} sentences right")

assert accuracy(test) > 0.4  # a guess is right in one of five
