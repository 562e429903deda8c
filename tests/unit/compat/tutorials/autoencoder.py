"""An autoencoder: 16 numbers that lie in a plane of two dimensions, through a bottleneck of two."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(2)
data = (rng.randn(200, 2) @ rng.randn(2, 16)).astype(np.float32) / 4

num_input, num_hidden = 16, 2
X = tf.placeholder("float", [None, num_input])
weights = {
    "encoder": tf.Variable(tf.random_normal([num_input, num_hidden], stddev=0.3, seed=1)),
    "decoder": tf.Variable(tf.random_normal([num_hidden, num_input], stddev=0.3, seed=2)),
}
biases = {
    "encoder": tf.Variable(tf.zeros([num_hidden])),
    "decoder": tf.Variable(tf.zeros([num_input])),
}


def encoder(x):
    return tf.add(tf.matmul(x, weights["encoder"]), biases["encoder"])


def decoder(x):
    return tf.add(tf.matmul(x, weights["decoder"]), biases["decoder"])


y_pred = decoder(encoder(X))
loss = tf.reduce_mean(tf.pow(X - y_pred, 2))
optimizer = tf.train.RMSPropOptimizer(0.01).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss, feed_dict={X: data})
    for i in range(200):
        batch = data[i * 50 % 200 : i * 50 % 200 + 50]
        _, value = sess.run([optimizer, loss], feed_dict={X: batch})
    last = sess.run(loss, feed_dict={X: data})
assert last < 0.02 * first, (first, last)
