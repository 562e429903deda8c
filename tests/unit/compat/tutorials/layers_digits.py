"""A convolutional network by tf.layers, with batch normalization, dropout and a regularizer, fed by tf.data."""

from tests.support.digits import read_data_sets

import undertow.compat.v1 as tf

train, test = read_data_sets(one_hot=False, noise=0.2)
tf.set_random_seed(1)


def model(features, is_training):
    net = tf.reshape(features, [-1, 8, 8, 1])
    net = tf.layers.conv2d(net, filters=8, kernel_size=[3, 3], padding="same", use_bias=False, name="conv")
    net = tf.layers.batch_normalization(net, training=is_training, momentum=0.9, name="norm")
    net = tf.nn.relu(net)
    net = tf.layers.max_pooling2d(net, pool_size=[2, 2], strides=2)
    net = tf.layers.flatten(net)
    net = tf.layers.dropout(net, rate=0.2, training=is_training)
    return tf.layers.dense(net, 10, kernel_regularizer=lambda w: 1e-4 * tf.nn.l2_loss(w), name="logits")


dataset = tf.data.Dataset.from_tensor_slices((train.images, train.labels))
dataset = dataset.shuffle(600, seed=2).repeat().batch(40)
features, labels = dataset.make_one_shot_iterator().get_next()
with tf.variable_scope("model"):
    logits = model(features, True)
with tf.variable_scope("model", reuse=True):
    predictions = tf.argmax(model(tf.constant(test.images), False), axis=1)

tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
loss = tf.losses.get_total_loss()
global_step = tf.train.get_or_create_global_step()
learning_rate = tf.train.exponential_decay(0.02, global_step, decay_steps=20, decay_rate=0.9)
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss, global_step=global_step)

assert [v.op.name for v in tf.trainable_variables()] == [
    "model/conv/kernel", "model/norm/gamma", "model/norm/beta", "model/logits/kernel", "model/logits/bias",
]  # fmt: skip
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(60):
        _, step = sess.run([train_op, global_step])
    reached = (sess.run(predictions) == test.labels).mean()
    assert sess.run(global_step) == 60
assert reached > 0.95, reached
