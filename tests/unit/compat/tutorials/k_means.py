"""k-means: distances by broadcasting, the nearest centroid, and means by unsorted_segment_sum."""

import numpy as np

import undertow.compat.v1 as tf

rng = np.random.RandomState(3)
middles = np.array([[0, 0], [5, 0], [0, 5]], np.float32)
data = np.concatenate([m + 0.3 * rng.randn(40, 2) for m in middles]).astype(np.float32)

k = 3
points = tf.constant(data)
centroids = tf.Variable(tf.gather(points, [0, 50, 110]))
assignments = tf.Variable(tf.zeros([len(data)], dtype=tf.int64))

points_expanded = tf.expand_dims(points, 0)
centroids_expanded = tf.expand_dims(centroids, 1)
distances = tf.reduce_sum(tf.squared_difference(points_expanded, centroids_expanded), 2)
nearest = tf.argmin(distances, 0)
did_assignments_change = tf.reduce_any(tf.not_equal(nearest, assignments))


def bucket_mean(values, bucket_ids, num_buckets):
    total = tf.unsorted_segment_sum(values, bucket_ids, num_buckets)
    count = tf.unsorted_segment_sum(tf.ones_like(values), bucket_ids, num_buckets)
    return total / count


means = bucket_mean(points, nearest, k)
with tf.control_dependencies([did_assignments_change]):
    do_updates = tf.group(centroids.assign(means), assignments.assign(nearest))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    changed, iters = True, 0
    while changed and iters < 20:
        iters += 1
        changed, _ = sess.run([did_assignments_change, do_updates])
    found, groups = sess.run([centroids, assignments])
assert iters < 6 and abs(found - middles).max() < 0.2, (iters, found)
assert (groups == np.repeat([0, 1, 2], 40)).all()
