"""A TreeLSTM by function.Declare and Defun, trained through the recursion: which leaf of a tree is the first?"""

import numpy as np

import undertow.compat.v1 as tf
from undertow.compat.v1 import function

rng = np.random.RandomState(0)
units, words = 6, 4
tf.set_random_seed(2)

with tf.variable_scope("tree"):
    embedding = tf.get_variable("embedding", [words, units])
    w = tf.get_variable("w", [2 * units, 5 * units])
    b = tf.get_variable("b", [5 * units], initializer=tf.zeros_initializer())

# A tree as arrays: left[i] and right[i] are the children of node i, or -1; word[i] is that of a leaf.
left, right, word = (tf.placeholder(tf.int32, [None], name=n) for n in ("left", "right", "word"))
vector, numbers = tf.float32[1, units], tf.int32[None]
arguments = [("node", tf.int32), ("left", numbers), ("right", numbers), ("word", numbers)]
tree_lstm = function.Declare("TreeLSTM", arguments, [("c", vector), ("h", vector)])


@function.Defun(tf.int32, numbers, numbers, numbers, func_name="TreeLSTM", out_names=["c", "h"], create_grad_func=True)
def tree_lstm_impl(node, left, right, word):
    def leaf():
        h = tf.nn.embedding_lookup(embedding, tf.expand_dims(word[node], 0))
        return tf.zeros([1, units]), tf.tanh(h)

    def inner():
        lc, lh = tree_lstm(left[node], left, right, word)
        rc, rh = tree_lstm(right[node], left, right, word)
        i, fl, fr, o, g = tf.split(tf.matmul(tf.concat([lh, rh], 1), w) + b, 5, axis=1)
        c = tf.sigmoid(i) * tf.tanh(g) + tf.sigmoid(fl + 1) * lc + tf.sigmoid(fr + 1) * rc
        return c, tf.sigmoid(o) * tf.tanh(c)

    return tf.cond(tf.equal(left[node], -1), leaf, inner)


tree_lstm_impl.add_to_graph(tf.get_default_graph())

target = tf.placeholder(tf.int32, [])
_, top = tree_lstm(0, left, right, word)
logits = tf.layers.dense(top, words, name="top")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.expand_dims(target, 0), logits=logits))
train = tf.train.AdamOptimizer(0.03).minimize(loss)


def random_tree(leaves):
    """Arrays of a random tree, and the word of its first leaf."""
    lefts, rights, held = [], [], []

    def grow(count):
        node = len(lefts)
        lefts.append(-1), rights.append(-1), held.append(0)
        if count == 1:
            held[node] = rng.randint(words)
        else:
            cut = rng.randint(1, count)
            lefts[node], rights[node] = grow(cut), grow(count - cut)
        return node

    grow(leaves)
    node = 0
    while lefts[node] != -1:
        node = lefts[node]
    return {left: lefts, right: rights, word: held, target: held[node]}


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    costs = [sess.run([loss, train], random_tree(rng.randint(1, 5)))[0] for _ in range(300)]
    right_ones = sum(
        sess.run(tf.argmax(logits[0]), feed) == feed[target] for feed in (random_tree(3) for _ in range(40))
    )
assert np.mean(costs[-40:]) < 0.3 < 1 < np.mean(costs[:20]), (np.mean(costs[:20]), np.mean(costs[-40:]))
assert right_ones >= 36, right_ones
