"""`tf.variable_scope`, `tf.get_variable`, and initializers."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf


def stem(variable):
    return variable.name.partition(":")[0]


def test_reuse():
    with tf.variable_scope("a") as scope:
        w = tf.get_variable("w", [2])
        assert scope.name == "a" and tf.get_variable_scope() is scope and not scope.reuse
        tf.get_variable_scope().reuse_variables()
        assert tf.get_variable("w", [2]) is w
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("w") is w
        with tf.variable_scope("b"), pytest.raises(ut.GraphError, match="does not exist"):  # it inherits reuse
            tf.get_variable("v", [1])
    with tf.variable_scope("c") as other:
        pass
    with tf.variable_scope("d"), tf.variable_scope(other):  # its name is whole
        assert stem(tf.get_variable("new", [1])) == "c/new"
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("w", [2]) is w
        assert stem(tf.get_variable("x", [2])) == "a/x"
        with pytest.raises(ut.UndertowError, match="share variable a/w"):
            tf.get_variable("w", [3])
    assert [stem(v) for v in tf.global_variables("a/")] == ["a/w", "a/x"]


def test_what_a_scope_hands_down(session):
    with tf.variable_scope("a", initializer=tf.constant_initializer(3), dtype=tf.float64, regularizer=tf.nn.l2_loss):
        v = tf.get_variable("v", [2])
        with tf.variable_scope("b"):
            w = tf.get_variable("w", [2], initializer=tf.ones_initializer)  # the class, not an object of it
    assert v.dtype == w.dtype == tf.float64 and len(tf.losses.get_regularization_losses()) == 2
    session.run(tf.global_variables_initializer())
    assert session.run([v, w])[0].tolist() == [3, 3] and session.run(w).tolist() == [1, 1]


def test_default_names_are_numbered():
    found = []
    for _ in range(2):
        with tf.variable_scope(None, "layer"):
            found.append(stem(tf.get_variable("w", [1])))
    assert found == ["layer/w", "layer_1/w"]


@pytest.fixture
def session():
    with tf.Session() as session:
        yield session


@pytest.mark.parametrize(
    ("initializer", "variance", "limit"),
    [
        (tf.truncated_normal_initializer(stddev=2.0), 4 * 0.7737, 4.0),
        (tf.glorot_uniform_initializer(), 2 / 300, np.sqrt(6 / 300)),
        (tf.glorot_normal_initializer(), 2 / 300, None),
        (tf.variance_scaling_initializer(2.0), 2 / 200, None),
        (tf.variance_scaling_initializer(1.0, "fan_out", "uniform"), 1 / 100, np.sqrt(3 / 100)),
        (tf.uniform_unit_scaling_initializer(), 1 / 200, np.sqrt(3 / 200)),
        (tf.initializers.random_normal(0.0, 0.5), 0.25, None),
    ],
)
def test_initializers_have_the_variance_that_they_say(session, initializer, variance, limit):
    w = tf.get_variable("w", [200, 100], initializer=initializer)
    session.run(w.initializer)
    value = session.run(w)
    assert np.isclose(value.var(), variance, rtol=0.05) and abs(value.mean()) < 0.05 * np.sqrt(variance)
    assert limit is None or np.isclose(abs(value).max(), limit, rtol=0.01)


@pytest.mark.parametrize("shape", [[6, 4], [4, 6], [2, 3, 4]])
def test_orthogonal_initializer(session, shape):
    w = tf.get_variable("w", shape, tf.float64, initializer=tf.orthogonal_initializer(gain=2.0))
    session.run(w.initializer)
    value = session.run(w).reshape(-1, shape[-1])
    product = value.T @ value if len(value) >= shape[-1] else value @ value.T
    assert np.allclose(product, 4 * np.eye(len(product)))


def test_convolutions_count_their_window(session):
    w = tf.get_variable("w", [5, 5, 4, 8])
    session.run(w.initializer)
    assert np.isclose(session.run(w).max(), np.sqrt(6 / (25 * 12)), rtol=0.05)
