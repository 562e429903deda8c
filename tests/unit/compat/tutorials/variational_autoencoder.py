"""A variational autoencoder: means, variances, the reparameterization trick, and samples from the prior."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(1)
patterns = rng.rand(3, 20) > 0.5


def batch(size):
    return (patterns[rng.randint(3, size=size)] ^ (rng.rand(size, 20) < 0.05)).astype(np.float32)


tf.set_random_seed(7)
latent = 2
x = tf.placeholder(tf.float32, [None, 20])
with tf.variable_scope("encoder"):
    h = tf.layers.dense(x, 24, activation=tf.tanh)
    z_mean = tf.layers.dense(h, latent)
    z_log_sigma_sq = tf.layers.dense(h, latent)
eps = tf.random_normal(tf.shape(z_mean), 0, 1, dtype=tf.float32)
z = z_mean + tf.sqrt(tf.exp(z_log_sigma_sq)) * eps


def decoder(z, reuse=None):
    with tf.variable_scope("decoder", reuse=reuse):
        return tf.layers.dense(tf.layers.dense(z, 24, activation=tf.nn.elu), 20)


logits = decoder(z)
reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
divergence = -0.5 * tf.reduce_sum(1 + z_log_sigma_sq - tf.square(z_mean) - tf.exp(z_log_sigma_sq), 1)
cost = tf.reduce_mean(reconstruction + divergence)
train = tf.train.AdamOptimizer(0.02).minimize(cost)
samples = tf.sigmoid(decoder(tf.random_normal([100, latent]), reuse=True))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    costs = [sess.run([cost, train], {x: batch(50)})[0] for _ in range(250)]
    drawn = sess.run(samples) > 0.5
near = (drawn[:, None, :] != patterns).sum(2).min(1)
assert np.mean(costs[-20:]) < 0.6 * costs[0], (costs[0], costs[-1])
assert np.median(near) <= 2, near  # what it draws looks like one of the patterns
