"""The Mandelbrot set, real and imaginary parts in variables of their own: which points of the plane stay near 0?"""

import numpy as np

import undertow.compat.v1 as tf

sess = tf.InteractiveSession()
Y, X = np.mgrid[-1.3:1.3:0.1, -2:1:0.1]
cx, cy = tf.constant(X.astype(np.float32)), tf.constant(Y.astype(np.float32))
zx, zy = tf.Variable(cx), tf.Variable(cy)
ns = tf.Variable(tf.zeros_like(cx, tf.float32))
tf.global_variables_initializer().run()

zx_, zy_ = zx * zx - zy * zy + cx, 2 * zx * zy + cy
not_diverged = zx_ * zx_ + zy_ * zy_ < 16.0
step = tf.group(
    zx.assign(tf.where(not_diverged, zx_, zx)),
    zy.assign(tf.where(not_diverged, zy_, zy)),
    ns.assign_add(tf.cast(not_diverged, tf.float32)),
)
for _ in range(40):
    step.run()
counts = ns.eval()
sess.close()


def rounds(c):
    z, count = c, 0
    for _ in range(40):
        after = z * z + c
        if abs(after) >= 4:
            return count
        z, count = after, count + 1
    return count


expected = np.vectorize(rounds)(X + 1j * Y)
assert (counts == expected).mean() > 0.99 and counts.max() == 40  # float32 rounds at the border
