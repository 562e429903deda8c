"""REINFORCE on a bandit with four arms: multinomial draws, a gather of log-probabilities, a moving baseline."""

import numpy as np

import undertow.compat.v1 as tf

payout = tf.constant([0.1, 0.5, 0.2, 0.9])
tf.set_random_seed(3)
scores = tf.get_variable("scores", [4], initializer=tf.zeros_initializer())
baseline = tf.Variable(0.0, trainable=False, name="baseline")

action = tf.squeeze(tf.multinomial(tf.expand_dims(scores, 0), 32), 0)
reward = tf.to_float(tf.random_uniform([32]) < tf.gather(payout, action))
log_probability = tf.gather(tf.nn.log_softmax(scores), action)
advantage = tf.stop_gradient(reward - baseline)
loss = -tf.reduce_mean(log_probability * advantage)
optimizer = tf.train.GradientDescentOptimizer(1.0)
gradients = [(tf.clip_by_norm(g, 5.0), v) for g, v in optimizer.compute_gradients(loss)]
assert [v for _, v in gradients] == [scores]
with tf.control_dependencies([optimizer.apply_gradients(gradients)]):
    train = baseline.assign(0.9 * baseline + 0.1 * tf.reduce_mean(reward))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(150):
        sess.run(train)
    chances, value = sess.run([tf.nn.softmax(scores), baseline])
assert np.argmax(chances) == 3 and chances[3] > 0.8, chances
assert 0.7 < value < 1, value
