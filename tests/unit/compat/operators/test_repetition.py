"""TensorArrays, scans and folds: values and gradients."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(5)
M = RANDOM.normal(size=(4, 3))


def powers(x, n, **options):
    """x, x**2, ..., written by a loop."""

    def body(i, value, array):
        value = value * x
        return i + 1, value, array.write(i, value)

    array = tf.TensorArray(tf.float64, n, **options)
    return tf.while_loop(lambda i, *_: i < n, body, [0, tf.ones_like(x), array])[2]


def test_elements(run):
    array = tf.TensorArray(tf.float32, size=4)
    array = array.write(1, [1.0, 2.0]).write(tf.constant(3), tf.constant([3.0, 4.0]))
    filled = tf.TensorArray(tf.int32, 3).unstack([5, 6, 7])
    parts = tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0, 4.0], [2, 2])
    values = run([
        array.read(3), array.stack(), array.gather([3, 0]), array.concat(), array.size(), filled.read(-1),
        filled.scatter([2, 0], [70, 50]).stack(), parts.stack(),
    ])  # fmt: skip
    expected = [
        [3, 4], [[0, 0], [1, 2], [0, 0], [3, 4]], [[3, 4], [0, 0]], [0, 0, 1, 2, 0, 0, 3, 4], 4, 7, [50, 6, 70],
        [[1, 2], [3, 4]],
    ]  # fmt: skip
    assert [np.asarray(v).tolist() for v in values] == expected


@pytest.mark.parametrize("options", [{}, {"element_shape": [3]}, {"dynamic_size": True}])
def test_a_loop_writes(check, options):
    x = M[0]
    check(lambda x: powers(x, 4, **options).stack(), [x], np.stack([x**k for k in range(1, 5)]))
    check(lambda x: powers(x, 4, **options).read(2) * 2, [x], 2 * x**3)


def test_the_size_and_the_width_are_known_only_to_the_run(run):
    x, n = tf.placeholder(tf.float64, [None]), tf.placeholder(tf.int32, [])
    for options in ({}, {"dynamic_size": True}):
        array = powers(x, n, **options).stack()
        (gradient,) = tf.gradients(array, x)
        value, slope = run([array, gradient], {x: [2.0, 3.0], n: 3})
        assert value.tolist() == [[2, 3], [4, 9], [8, 27]] and np.allclose(slope, [1 + 4 + 12, 1 + 6 + 27])


def test_an_array_grows(run):
    array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
    grown = tf.while_loop(
        lambda i, _: i < 5, lambda i, a: (i + 1, a.write(i, i * i)), [tf.constant(0), array], maximum_iterations=4
    )[1]
    assert run([grown.stack(), grown.size()])[0].tolist() == [0, 1, 4, 9]


def test_arrays_in_branches_and_in_inner_loops(run, check):
    def either(x):
        array = tf.TensorArray(tf.float64, 2).unstack(tf.zeros([2, 3], tf.float64))
        return tf.cond(x[0] > -100, lambda: array.write(1, x), lambda: array).stack()

    check(either, [M[0]], [0 * M[0], M[0]])

    def rows(i, total):
        def columns(j, array):
            return j + 1, array.write(j, i * 10 + j)

        inner = tf.while_loop(lambda j, _: j < 3, columns, [0, tf.TensorArray(tf.int32, 3)])[1]
        return i + 1, total + inner.stack()

    assert run(tf.while_loop(lambda i, _: i < 2, rows, [0, tf.zeros([3], tf.int32)])[1]).tolist() == [10, 12, 14]


def test_a_loop_reads(check):
    def dot(x):
        array = tf.TensorArray(tf.float64, 4).unstack(x)
        return tf.while_loop(
            lambda i, _: i < 4,
            lambda i, s: (i + 1, s + array.read(i) * array.read(3 - i)),
            [0, tf.zeros([3], tf.float64)],
        )[1]

    check(dot, [M], (M * M[::-1]).sum(0))


def test_what_arrays_refuse():
    with pytest.raises(ut.CaptureError, match="nothing was written"):
        tf.TensorArray(tf.float32, 3).stack()
    with pytest.raises(ut.TypeMismatch, match="cannot hold"):
        tf.TensorArray(tf.float32, 3).write(0, tf.constant(1))
    with pytest.raises(ut.TypeMismatch, match="lengths"):
        tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0], [1, 2])


# -- folds -------------------------------------------------------------------------------------------------


def test_scan(check, run):
    check(lambda x: tf.scan(lambda a, e: a * e, x), [M], np.cumprod(M, 0))
    check(lambda x: tf.scan(lambda a, e: a + e, x, reverse=True), [M], np.cumsum(M[::-1], 0)[::-1])
    check(lambda x: tf.scan(lambda a, e: a + tf.reduce_sum(e), x, tf.zeros([], tf.float64)), [M], np.cumsum(M.sum(1)))
    fibonacci = tf.scan(lambda a, _: (a[1], a[0] + a[1]), tf.zeros([6]), initializer=(0, 1))
    assert [v.tolist() for v in run(fibonacci)] == [[1, 1, 2, 3, 5, 8], [1, 2, 3, 5, 8, 13]]
    length = tf.placeholder(tf.int32, [None])
    assert run(tf.scan(lambda a, e: a + e, length), {length: [1, 2, 3]}).tolist() == [1, 3, 6]
    pairs = tf.scan(lambda a, e: a + e[0] * e[1], (tf.constant([1, 2]), tf.constant([3, 4])), initializer=0)
    assert run(pairs).tolist() == [3, 11]


def test_folds(check, run):
    check(lambda x: tf.foldl(lambda a, e: a * 0.5 + e, x), [M], ((M[0] / 2 + M[1]) / 2 + M[2]) / 2 + M[3])
    check(lambda x: tf.foldr(lambda a, e: a * 0.5 + e, x), [M], ((M[3] / 2 + M[2]) / 2 + M[1]) / 2 + M[0])
    assert run(tf.foldl(lambda a, e: a * 10 + e, [1, 2, 3], initializer=7)) == 7123
    with pytest.raises(ut.TypeMismatch, match="another structure"):
        tf.foldl(lambda a, e: (a, e), [1, 2, 3])
    with pytest.raises(ut.TypeMismatch, match="first axis"):
        tf.scan(lambda a, e: a, 3.0)


def test_map_fn_of_structures(run):
    total = tf.map_fn(lambda e: e[0] + e[1], [tf.constant([1, 2]), tf.constant([10, 20])], dtype=tf.int32)
    parts = tf.map_fn(lambda e: {"s": e["a"] + 1, "p": (e["a"] * e["b"],)}, {"a": tf.range(3), "b": tf.range(3)})
    value, mapped = run([total, parts])
    assert value.tolist() == [11, 22] and mapped["s"].tolist() == [1, 2, 3] and mapped["p"][0].tolist() == [0, 1, 4]


def test_loops_carry_structures(run):
    Pair = collections.namedtuple("Pair", "a b")
    result = tf.while_loop(
        lambda i, pair, d: i < 3,
        lambda i, pair, d: (i + 1, Pair(pair.b, pair.a), {"x": d["x"] + i}),
        [0, Pair(1, 2), {"x": tf.constant(0)}],
    )  # fmt: skip
    i, pair, d = run(result)
    assert i == 3 and pair == Pair(2, 1) and d == {"x": 3}
    grown = tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x, [i]], 0)),
        [0, tf.constant([9])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert run(grown[1]).tolist() == [9, 0, 1, 2]
