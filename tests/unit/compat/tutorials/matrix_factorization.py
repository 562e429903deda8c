"""Ratings as products of two tables: lookups, biases, and gradients that reach only the rows that were looked up."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(5)
users, items, rank = 20, 15, 2
ratings = (rng.randn(users, rank) @ rng.randn(rank, items)).astype(np.float32)

user, item = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
rating = tf.placeholder(tf.float32, [None])
with tf.variable_scope("tables", initializer=tf.random_normal_initializer(stddev=0.5, seed=1)):
    of_users = tf.get_variable("users", [users, rank])
    of_items = tf.get_variable("items", [items, rank])
predicted = tf.reduce_sum(tf.nn.embedding_lookup(of_users, user) * tf.nn.embedding_lookup(of_items, item), 1)
loss = tf.reduce_mean(tf.square(predicted - rating))
step = tf.train.AdagradOptimizer(0.5).minimize(loss)
(gradient,) = tf.gradients(loss, [of_users])

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    few = {user: [3, 3, 7], item: [0, 1, 2], rating: [1.0, 2.0, 3.0]}
    touched = np.flatnonzero(abs(np.asarray(sess.run(tf.convert_to_tensor(gradient), few))).sum(1))
    for _ in range(300):
        u, i = rng.randint(users, size=64), rng.randint(items, size=64)
        sess.run(step, {user: u, item: i, rating: ratings[u, i]})
    u, i = np.divmod(np.arange(users * items), items)
    error = sess.run(loss, {user: u, item: i, rating: ratings[u, i]})
assert touched.tolist() == [3, 7]
assert error < 0.05 * ratings.var(), error
