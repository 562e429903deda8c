"""Raindrops on a pond, as in the tutorial on partial differential equations: the Laplacian as a convolution."""

import numpy as np

import undertow.compat.v1 as tf

sess = tf.InteractiveSession()


def make_kernel(a):
    a = np.asarray(a)
    return tf.constant(a.reshape([*a.shape, 1, 1]), dtype=tf.float32)


def simple_conv(x, k):
    x = tf.expand_dims(tf.expand_dims(x, 0), -1)
    y = tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], padding="SAME")
    return y[0, :, :, 0]


def laplace(x):
    return simple_conv(x, make_kernel([[0.5, 1.0, 0.5], [1.0, -6.0, 1.0], [0.5, 1.0, 0.5]]))


N = 33
u_init, ut_init = np.zeros([N, N], np.float32), np.zeros([N, N], np.float32)
u_init[N // 2, N // 2] = 1.0
eps = tf.placeholder(tf.float32, shape=())
damping = tf.placeholder(tf.float32, shape=())
U, Ut = tf.Variable(u_init), tf.Variable(ut_init)
U_ = U + eps * Ut
Ut_ = Ut + eps * (laplace(U) - damping * Ut)
step = tf.group(U.assign(U_), Ut.assign(Ut_))

tf.global_variables_initializer().run()
for _ in range(100):
    step.run({eps: 0.03, damping: 0.04})
wave = U.eval()
sess.close()


def numpy_laplace(u):
    p = np.pad(u, 1)
    straight = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    return straight + 0.5 * (p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]) - 6 * u


u, speed = u_init.astype(float), ut_init.astype(float)
for _ in range(100):
    u, speed = u + 0.03 * speed, speed + 0.03 * (numpy_laplace(u) - 0.04 * speed)
assert np.allclose(wave, u, atol=1e-5) and np.allclose(wave, wave.T, atol=1e-6) and wave[N // 2, N // 2] < 0.5
