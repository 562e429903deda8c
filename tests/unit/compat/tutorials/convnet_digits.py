"""Deep MNIST for experts: two convolutions, pooling, dropout, Adam."""

from tests.support.digits import read_data_sets

import undertow.compat.v1 as tf

train, test = read_data_sets(one_hot=True, noise=0.2)


def weight_variable(shape):
    initial = tf.truncated_normal(shape, stddev=0.1, seed=len(shape))
    return tf.Variable(initial)


def bias_variable(shape):
    initial = tf.constant(0.1, shape=shape)
    return tf.Variable(initial)


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME")


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


x = tf.placeholder(tf.float32, shape=[None, 64])
y_ = tf.placeholder(tf.float32, shape=[None, 10])
with tf.name_scope("conv1"):
    x_image = tf.reshape(x, [-1, 8, 8, 1])
    h_conv1 = tf.nn.relu(conv2d(x_image, weight_variable([3, 3, 1, 8])) + bias_variable([8]))
    h_pool1 = max_pool_2x2(h_conv1)
with tf.name_scope("conv2"):
    h_conv2 = tf.nn.relu(conv2d(h_pool1, weight_variable([3, 3, 8, 8])) + bias_variable([8]))
    h_pool2 = max_pool_2x2(h_conv2)
with tf.name_scope("fc1"):
    h_pool2_flat = tf.reshape(h_pool2, [-1, 2 * 2 * 8])
    h_fc1 = tf.nn.relu(tf.matmul(h_pool2_flat, weight_variable([2 * 2 * 8, 32])) + bias_variable([32]))
keep_prob = tf.placeholder(tf.float32)
h_fc1_drop = tf.nn.dropout(h_fc1, keep_prob, seed=1)
y_conv = tf.matmul(h_fc1_drop, weight_variable([32, 10])) + bias_variable([10])

cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y_conv))
train_step = tf.train.AdamOptimizer(1e-2).minimize(cross_entropy)
correct_prediction = tf.equal(tf.argmax(y_conv, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(80):
        batch = train.next_batch(40)
        train_step.run(feed_dict={x: batch[0], y_: batch[1], keep_prob: 0.8})
    reached = accuracy.eval(feed_dict={x: test.images, y_: test.labels, keep_prob: 1.0})
assert reached > 0.9, reached
