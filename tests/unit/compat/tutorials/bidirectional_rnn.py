"""For every word of a sequence: does the same word come again, before or after? It takes both directions."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(2)
tf.set_random_seed(4)
length, words, units = 5, 4, 10

x = tf.placeholder(tf.int32, [None, length])
y = tf.placeholder(tf.float32, [None, length])
inputs = tf.one_hot(x, words)
(forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(
    tf.nn.rnn_cell.LSTMCell(units), tf.nn.rnn_cell.LSTMCell(units), inputs, dtype=tf.float32
)
logits = tf.squeeze(tf.layers.dense(tf.concat([forward, backward, inputs], axis=2), 1), axis=2)
hidden = tf.layers.dense(tf.concat([forward, backward, inputs], axis=2), 16, activation=tf.nn.relu)
logits += tf.squeeze(tf.layers.dense(hidden, 1), axis=2)
loss = tf.losses.sigmoid_cross_entropy(y, logits)
optimizer = tf.train.AdamOptimizer(0.03)
grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
grads, norm = tf.clip_by_global_norm(grads, 1.0)
train = optimizer.apply_gradients(zip(grads, variables, strict=True))
accuracy = tf.reduce_mean(tf.cast(tf.equal(logits > 0, y > 0.5), tf.float32))


def batch(size):
    rows = rng.randint(words, size=(size, length))
    return {x: rows, y: [[list(row).count(word) > 1 for word in row] for row in rows]}


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(accuracy, batch(100))
    for _ in range(120):
        sess.run(train, batch(32))
    last = sess.run(accuracy, batch(100))
assert last > 0.9 > first, (first, last)
