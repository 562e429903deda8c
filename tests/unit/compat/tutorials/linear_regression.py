"""A line through points: placeholders, a feed for each point, squared errors."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(0)
learning_rate = 0.05
training_epochs = 30

train_X = np.linspace(-2, 2, 17)
train_Y = 1.5 * train_X - 0.7 + rng.randn(17) * 0.01
n_samples = train_X.shape[0]

X = tf.placeholder("float")
Y = tf.placeholder("float")
W = tf.Variable(rng.randn(), name="weight")
b = tf.Variable(rng.randn(), name="bias")

pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * n_samples)
optimizer = tf.train.GradientDescentOptimizer(learning_rate * n_samples).minimize(cost)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for _ in range(training_epochs):
        for x, y in zip(train_X, train_Y, strict=True):
            sess.run(optimizer, feed_dict={X: x, Y: y})
    training_cost = sess.run(cost, feed_dict={X: train_X, Y: train_Y})
    weight, bias = sess.run(W), sess.run(b)

assert training_cost < 1e-3, training_cost
assert abs(weight - 1.5) < 0.05 and abs(bias + 0.7) < 0.05, (weight, bias)
