"""A GAN in one dimension: a generator learns where numbers lie. Two optimizers, each for the variables of its scope."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(0)
tf.set_random_seed(5)


def generator(z, reuse=None):
    with tf.variable_scope("generator", reuse=reuse):
        return tf.layers.dense(z, 1, kernel_initializer=tf.truncated_normal_initializer(stddev=0.5))


def discriminator(x, reuse=None):
    with tf.variable_scope("discriminator", reuse=reuse):
        hidden = tf.layers.dense(x, 16, activation=tf.nn.leaky_relu)
        return tf.layers.dense(hidden, 1)


real = tf.placeholder(tf.float32, [None, 1])
noise = tf.random_normal([64, 1])
fake = generator(noise)
real_logits = discriminator(real)
fake_logits = discriminator(fake, reuse=True)

cross = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(cross(labels=tf.ones_like(real_logits), logits=real_logits)) + tf.reduce_mean(
    cross(labels=tf.zeros_like(fake_logits), logits=fake_logits)
)
g_loss = tf.reduce_mean(cross(labels=tf.ones_like(fake_logits), logits=fake_logits))
d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="discriminator")
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
assert len(d_vars) == 4 and len(g_vars) == 2
d_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(g_loss, var_list=g_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    before = sess.run(fake).mean()
    means = []
    for step in range(300):
        sess.run(d_train, {real: rng.randn(64, 1) * 0.5 + 3})
        sess.run(g_train)
        if step >= 200:
            means.append(sess.run(fake).mean())
assert abs(before) < 1 and abs(np.mean(means) - 3) < 0.7, (before, np.mean(means))
