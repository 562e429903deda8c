"""Logistic regression on two clouds of points, with a weight decay, and saved at the end."""

import os
import tempfile

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(1)
points = np.concatenate([rng.randn(60, 2) + 1.5, rng.randn(60, 2) - 1.5]).astype(np.float32)
classes = np.repeat([1.0, 0.0], 60).astype(np.float32)[:, None]

x = tf.placeholder(tf.float32, [None, 2], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer(), regularizer=lambda v: 0.01 * tf.nn.l2_loss(v))
b = tf.get_variable("b", [1], initializer=tf.constant_initializer(0.0))
logits = tf.nn.xw_plus_b(x, w, b)
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.sigmoid(logits) > 0.5, y > 0.5)))
saver = tf.train.Saver()

with tempfile.TemporaryDirectory() as directory:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(40):
            sess.run(train, {x: points, y: classes})
        saver.save(sess, os.path.join(directory, "model.ckpt"), global_step=40)
        before = sess.run([loss, accuracy], {x: points, y: classes})
    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(directory))
        after = sess.run([loss, accuracy], {x: points, y: classes})
assert before == after and after[1] > 0.95, (before, after)
