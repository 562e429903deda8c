"""Deep Q-learning with a target network: a corridor, a memory of transitions, Huber losses, and a copy now and then."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(0)
tf.set_random_seed(1)
places, discount = 5, 0.8


def network(states, scope):
    with tf.variable_scope(scope):
        hidden = tf.layers.dense(tf.one_hot(states, places), 16, activation=tf.nn.relu, name="hidden")
        return tf.layers.dense(hidden, 2, name="values")


state, following = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
action, reward, done = (
    tf.placeholder(tf.int32, [None]),
    tf.placeholder(tf.float32, [None]),
    tf.placeholder(tf.bool, [None]),
)
values, target_values = network(state, "online"), network(following, "target")
best = tf.reduce_max(target_values, axis=1)
wanted = reward + discount * tf.where(done, tf.zeros_like(best), best)
chosen = tf.reduce_sum(values * tf.one_hot(action, 2), axis=1)
loss = tf.losses.huber_loss(labels=tf.stop_gradient(wanted), predictions=chosen)
online = tf.trainable_variables("online")
train = tf.train.AdamOptimizer(0.01).minimize(loss, var_list=online)
copy = [t.assign(o) for t, o in zip(tf.trainable_variables("target"), online, strict=True)]

memory = []
for _ in range(400):
    place, move = rng.randint(places - 1), rng.randint(2)
    after = place + 1 if move else max(0, place - 1)
    memory.append((place, move, float(after == places - 1), after, after == places - 1))
columns = [np.array(column) for column in zip(*memory, strict=True)]

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(200):
        if step % 10 == 0:
            sess.run(copy)
        rows = rng.randint(len(memory), size=32)
        sess.run(
            train,
            {key: column[rows] for key, column in zip((state, action, reward, following, done), columns, strict=True)},
        )
    table = sess.run(values, {state: np.arange(places - 1)})
expected = discount ** np.arange(places - 2, -1, -1)
assert (table.argmax(1) == 1).all() and abs(table[:, 1] - expected).max() < 0.15, table
