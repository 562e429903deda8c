"""Placeholders without a shape: what depends on them is written again for what a run feeds."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function


@pytest.fixture
def session():
    with tf.Session() as session:
        yield session


@pytest.mark.parametrize("engine", ENGINES)
def test_a_regression_of_the_tutorials(engine):
    """Trained number by number, then measured on whole vectors."""
    x, y = tf.placeholder("float"), tf.placeholder("float")
    w, b = tf.Variable(0.5, name="w"), tf.Variable(0.0, name="b")
    predicted = tf.add(tf.multiply(x, w), b)
    cost = tf.reduce_sum(tf.pow(predicted - y, 2)) / (2 * 3)
    step = tf.train.GradientDescentOptimizer(0.05).minimize(cost)
    xs, ys = [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]
    with tf.Session(engine=engine) as session:
        session.run(tf.global_variables_initializer())
        before = session.run(cost, {x: xs, y: ys})
        for _ in range(20):
            for pair in zip(xs, ys, strict=True):
                session.run(step, dict(zip((x, y), pair, strict=True)))
        after = session.run(cost, {x: xs, y: ys})
        session.run(step, {x: xs, y: ys})  # and a step on all of them
        assert session.run(cost, {x: xs, y: ys}) < after < before / 5
        assert session.run(predicted, {x: xs}).shape == (3,) and session.run(predicted, {x: 1.0}).shape == ()


def test_what_makes_no_sense_for_numbers(session):
    x = tf.placeholder(tf.float32, name="x")
    product, row, total = tf.matmul(x, x), tf.matmul(x, x)[0], tf.reduce_sum(x, 1)
    left, right = tf.split(x, 2, axis=1)
    eye = np.eye(2, dtype=np.float32)
    assert session.run(product, {x: 2 * eye}).tolist() == [[4, 0], [0, 4]]
    assert session.run([row, total, left], {x: eye})[0].tolist() == [1, 0]
    assert session.run(right, {x: eye}).tolist() == [[0], [1]]
    with pytest.raises(ut.TypeMismatch, match="matmul") as caught:
        session.run(product, {x: 1.0})
    assert caught.value.span.line == test_what_makes_no_sense_for_numbers.__code__.co_firstlineno + 2


def test_nothing_is_known_of_the_shape():
    x = tf.placeholder(tf.float32)
    y = x + 1.0
    assert x.shape.ndims is None and y.get_shape().dims is None and not y.shape.is_fully_defined()
    assert x.shape[0].value is None and y.dtype == tf.float32
    with pytest.raises(ValueError, match="nothing is known of this shape"):
        y.shape.as_list()
    assert tf.placeholder(tf.float32, None).shape.ndims is None
    known = tf.placeholder(tf.float32, [None, 3]).shape
    assert known.as_list() == [None, 3] and known[0].value is None and known[1].value == 3 and known[1] == 3
    assert (
        known.is_compatible_with([7, 3]) and not known.is_compatible_with([7]) and known.merge_with([2, None])[0] == 2
    )


def test_control_flow(session):
    x = tf.placeholder(tf.float32)
    limit = tf.reduce_sum(x)
    chosen = tf.cond(limit > 3.0, lambda: x * 2.0, lambda: tf.zeros_like(x))
    _, looped = tf.while_loop(lambda k, a: k < 3, lambda k, a: (k + 1, a + x), [0, x])
    for fed in (5.0, [1.0, 2.0, 3.0], np.ones((2, 2))):
        got = session.run([chosen, looped], {x: fed})
        assert np.array_equal(got[0], np.asarray(fed) * 2) and np.array_equal(got[1], np.asarray(fed) * 4)


def test_functions_and_gradients(session):
    x = tf.placeholder(tf.float32)

    @function.Defun(tf.float32)
    def energy(v):
        return tf.reduce_sum(tf.square(v))

    slope = tf.gradients(energy(x), x)[0]
    late = tf.gradients(tf.reduce_sum(tf.matmul(x, x)), x)[0]
    assert session.run(slope, {x: [1.0, 2.0]}).tolist() == [2, 4] and session.run(slope, {x: 3.0}) == 6
    assert session.run(late, {x: np.eye(2)}).tolist() == [[2, 2], [2, 2]]


def test_order_and_effects(session):
    x = tf.placeholder(tf.float32)
    v = tf.Variable(0.0)
    with tf.control_dependencies([tf.assign_add(v, tf.reduce_sum(x))]):
        after = tf.identity(v)
    session.run(tf.global_variables_initializer())
    assert session.run(after, {x: [1.0, 2.0]}) == 3 and session.run(after, {x: 4.0}) == 7


def test_several_of_them_and_feeds_in_the_middle(session):
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    middle = x + y
    end = tf.reduce_max(middle) * 2.0
    assert session.run(end, {x: [1.0, 2.0], y: 3.0}) == 10
    assert session.run(end, {middle: [[1.0], [7.0]]}) == 14
    with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
        session.run(end, {x: [1.0]})


def test_it_is_written_once_for_each_rank(session, graph):
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(x)
    session.run(y, {x: [1.0]})
    before = graph.last_id
    session.run(y, {x: [1.0, 2.0, 3.0]})
    assert graph.last_id == before
    session.run(y, {x: [[1.0]]})
    assert graph.last_id > before


def test_functions_that_capture_them(session, graph):
    x = tf.placeholder(tf.float32, name="x")

    @function.Defun(tf.float32)
    def shifted(y):
        return y + x

    fac = function.Declare("Fac", [("n", tf.float32)], [("r", tf.float32)])
    before = fac(3.0)

    @function.Defun(tf.float32, func_name="Fac")
    def impl(n):
        return tf.cond(n < 1.0, lambda: tf.reduce_sum(x), lambda: n * fac(n - 1.0))

    impl.add_to_graph(graph)
    y, z, after = shifted(1.0), shifted(2.0) * 3.0, fac(2.0)
    assert session.run([y, z, after, before], {x: 1.0}) == [2, 9, 2, 6]
    got = session.run([y, z, after], {x: [1.0, 2.0]})
    assert [value.tolist() for value in got] == [[2, 3], [9, 12], 6]
    with pytest.raises(ut.GraphError, match=r"`x` on line .* has no shape, and a function that captures it"):
        session.run(before, {x: [1.0, 2.0]})  # called when nobody knew that it captures x
