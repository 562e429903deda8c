"""A network of one layer as a table of Q-values: a walk of six places, with a reward at its end."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(0)
places, discount = 6, 0.9

inputs = tf.placeholder(shape=[1], dtype=tf.int32)
W = tf.Variable(tf.random_uniform([places, 2], 0, 0.01, seed=1))
Qout = tf.matmul(tf.one_hot(inputs, places), W)
predict = tf.argmax(Qout, 1)
nextQ = tf.placeholder(shape=[1, 2], dtype=tf.float32)
loss = tf.reduce_sum(tf.square(nextQ - Qout))
updateModel = tf.train.GradientDescentOptimizer(learning_rate=0.3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(40):
        place = 0
        for _ in range(30):
            action, allQ = sess.run([predict, Qout], feed_dict={inputs: [place]})
            if rng.rand() < 0.3:
                action[0] = rng.randint(2)
            after = max(0, place - 1) if action[0] == 0 else place + 1
            reward, done = (1.0, True) if after == places - 1 else (0.0, False)
            best = 0.0 if done else np.max(sess.run(Qout, feed_dict={inputs: [after]}))
            targetQ = allQ
            targetQ[0, action[0]] = reward + discount * best
            sess.run(updateModel, feed_dict={inputs: [place], nextQ: targetQ})
            if done:
                break
            place = after
    table = sess.run(W)
assert (table[:-1].argmax(1) == 1).all(), table  # to the right, everywhere
assert abs(table[places - 2, 1] - 1) < 0.1, table
