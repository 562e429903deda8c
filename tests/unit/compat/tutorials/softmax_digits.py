"""MNIST for beginners: one layer, softmax, cross entropy."""

from tests.support.digits import read_data_sets

import undertow.compat.v1 as tf

train, test = read_data_sets(one_hot=True)

x = tf.placeholder(tf.float32, [None, 64])
W = tf.Variable(tf.zeros([64, 10]))
b = tf.Variable(tf.zeros([10]))
y = tf.matmul(x, W) + b
y_ = tf.placeholder(tf.float32, [None, 10])

cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)

sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for _ in range(60):
    batch_xs, batch_ys = train.next_batch(50)
    sess.run(train_step, feed_dict={x: batch_xs, y_: batch_ys})

correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
reached = accuracy.eval(feed_dict={x: test.images, y_: test.labels})
sess.close()
assert reached > 0.95, reached
