"""Functions that call themselves and each other, by Declare and Defun, and the same in loops: they must agree."""

import numpy as np

import undertow.compat.v1 as tf
from undertow.compat.v1 import function

fac = function.Declare("Fac", [("n", tf.int32)], [("ret", tf.int32)])


@function.Defun(tf.int32, func_name="Fac", out_names=["ret"])
def fac_impl(n):
    return tf.cond(tf.less_equal(n, 1), lambda: tf.constant(1), lambda: n * fac(n - 1))


fac_impl.add_to_graph(tf.get_default_graph())
ackermann = function.Declare("Ack", [("m", tf.int32), ("n", tf.int32)], [("ret", tf.int32)])


@function.Defun(tf.int32, tf.int32, func_name="Ack", out_names=["ret"])
def ackermann_impl(m, n):
    return tf.cond(
        tf.equal(m, 0),
        lambda: n + 1,
        lambda: tf.cond(tf.equal(n, 0), lambda: ackermann(m - 1, 1), lambda: ackermann(m - 1, ackermann(m, n - 1))),
    )


ackermann_impl.add_to_graph(tf.get_default_graph())
is_even = function.Declare("Even", [("n", tf.int32)], [("ret", tf.bool)])
is_odd = function.Declare("Odd", [("n", tf.int32)], [("ret", tf.bool)])


@function.Defun(tf.int32, func_name="Even", out_names=["ret"])
def even_impl(n):
    return tf.cond(tf.equal(n, 0), lambda: tf.constant(True), lambda: is_odd(n - 1))


@function.Defun(tf.int32, func_name="Odd", out_names=["ret"])
def odd_impl(n):
    return tf.cond(tf.equal(n, 0), lambda: tf.constant(False), lambda: is_even(n - 1))


even_impl.add_to_graph(tf.get_default_graph())
odd_impl.add_to_graph(tf.get_default_graph())

n = tf.placeholder(tf.int32, shape=[])
by_loop = tf.while_loop(lambda i, _: i <= n, lambda i, p: (i + 1, p * i), [tf.constant(1), tf.constant(1)])[1]
by_scan = tf.scan(lambda a, i: a * i, tf.range(1, n + 1))
by_fold = tf.foldl(lambda a, i: a * i, tf.range(1, n + 1))
squares = tf.TensorArray(tf.int32, size=n)
_, squares = tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a.write(i, i * i)), [0, squares])

with tf.Session() as sess:
    assert sess.run([fac(n), by_loop, by_scan[-1], by_fold], {n: 7}) == [5040] * 4
    assert sess.run(ackermann(2, 3)) == 9
    assert sess.run([is_even(n), is_odd(n)], {n: 101}) == [False, True]
    assert sess.run(squares.stack(), {n: 5}).tolist() == [0, 1, 4, 9, 16]
    assert np.array_equal(sess.run(tf.map_fn(fac, tf.range(6))), [1, 1, 2, 6, 24, 120])
