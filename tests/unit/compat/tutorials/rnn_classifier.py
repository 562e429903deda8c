"""Sequences of different lengths: is one rising or falling? dynamic_rnn, and the last output by gather_nd."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(4)
max_len, num_hidden = 8, 12


def batch(size):
    lengths = rng.randint(3, max_len + 1, size=size)
    labels = rng.randint(2, size=size)
    data = np.zeros((size, max_len, 1), np.float32)
    for row, length, label in zip(data, lengths, labels, strict=True):
        start = rng.rand()
        row[:length, 0] = start + (1 if label else -1) * 0.2 * np.arange(length) + 0.05 * rng.randn(length)
    return data, lengths, labels


x = tf.placeholder(tf.float32, [None, max_len, 1])
seqlen = tf.placeholder(tf.int32, [None])
y = tf.placeholder(tf.int64, [None])
cell = tf.nn.rnn_cell.GRUCell(num_hidden, kernel_initializer=tf.orthogonal_initializer(seed=1))
outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, sequence_length=seqlen)
index = tf.stack([tf.range(tf.shape(x)[0]), seqlen - 1], axis=1)
last = tf.gather_nd(outputs, index)
logits = tf.layers.dense(last, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.AdamOptimizer(0.02).minimize(loss)
accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(60):
        data, lengths, labels = batch(32)
        sess.run(train, {x: data, seqlen: lengths, y: labels})
    data, lengths, labels = batch(200)
    reached = sess.run(accuracy, {x: data, seqlen: lengths, y: labels})
assert reached > 0.95, reached
