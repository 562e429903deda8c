"""`tf.losses`, with weights and reductions, compared with formulas."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(4, 3)) * 2
Y = (RANDOM.random((4, 3)) > 0.5).astype(float)
CHANCES = RANDOM.uniform(0.1, 0.9, size=(4, 3))
LOG = X - np.log(np.exp(X).sum(1, keepdims=True))
ONE_HOT = np.eye(3)[[2, 0, 1, 2]]
ERROR = abs(X - Y)


@pytest.mark.parametrize(
    ("loss", "x", "expected"),
    [
        (lambda x: tf.losses.mean_squared_error(Y, x), X, ((X - Y) ** 2).mean()),
        (lambda x: tf.losses.absolute_difference(Y, x), X, ERROR.mean()),
        (
            lambda x: tf.losses.huber_loss(Y, x, delta=1.5),
            X,
            np.where(ERROR <= 1.5, ERROR**2 / 2, 1.5 * ERROR - 1.5**2 / 2).mean(),
        ),
        (
            lambda x: tf.losses.log_loss(Y, x),
            CHANCES,
            -(Y * np.log(CHANCES + 1e-7) + (1 - Y) * np.log(1 - CHANCES + 1e-7)).mean(),
        ),
        (lambda x: tf.losses.hinge_loss(Y, x), X, np.maximum(0, 1 - (2 * Y - 1) * X).mean()),
        (lambda x: tf.losses.cosine_distance(Y, x, axis=1), X, (1 - (X * Y).sum(1)).mean()),
        (lambda x: tf.losses.sigmoid_cross_entropy(Y, x), X, (np.log1p(np.exp(X)) - X * Y).mean()),
        (
            lambda x: tf.losses.sigmoid_cross_entropy(Y, x, label_smoothing=0.2),
            X,
            (np.log1p(np.exp(X)) - X * (0.8 * Y + 0.1)).mean(),
        ),
        (lambda x: tf.losses.softmax_cross_entropy(ONE_HOT, x), X, -(ONE_HOT * LOG).sum(1).mean()),
        (
            lambda x: tf.losses.softmax_cross_entropy(ONE_HOT, x, label_smoothing=0.3),
            X,
            -((0.7 * ONE_HOT + 0.1) * LOG).sum(1).mean(),
        ),
        (lambda x: tf.losses.sparse_softmax_cross_entropy([2, 0, 1, 2], x), X, -(ONE_HOT * LOG).sum(1).mean()),
        (lambda x: tf.losses.sparse_softmax_cross_entropy([[2], [0], [1], [2]], x), X, -(ONE_HOT * LOG).sum(1).mean()),
    ],
)
def test_values_and_gradients(check, loss, x, expected):
    check(loss, [x], expected)


def test_weights_and_reductions(run):
    rows = np.array([[1.0], [0.0], [2.0], [0.0]])
    squares = (X - Y) ** 2
    kinds = tf.losses.Reduction
    for reduction, expected in [
        (kinds.NONE, squares * rows),
        (kinds.SUM, (squares * rows).sum()),
        (kinds.MEAN, (squares * rows).sum() / (rows.sum() * 3)),
        (kinds.SUM_OVER_BATCH_SIZE, (squares * rows).mean()),
        (kinds.SUM_BY_NONZERO_WEIGHTS, (squares * rows).sum() / 6),
        (kinds.SUM_OVER_NONZERO_WEIGHTS, (squares * rows).sum() / 6),
    ]:
        assert np.allclose(run(tf.losses.mean_squared_error(Y, tf.constant(X), rows, reduction=reduction)), expected)
    assert np.allclose(run(tf.losses.mean_squared_error(Y, tf.constant(X), 3.0)), 3 * squares.mean())
    assert run(tf.losses.mean_squared_error(Y, tf.constant(X), 0.0)) == 0  # and not nan
    each = tf.losses.softmax_cross_entropy(ONE_HOT, tf.constant(X), weights=rows[:, 0])
    assert np.allclose(run(each), (-(ONE_HOT * LOG).sum(1) * rows[:, 0]).sum() / 2)


def test_the_losses_of_a_graph(run):
    assert tf.losses.get_losses() == []
    with pytest.raises(ut.TypeMismatch, match="no losses"):
        tf.losses.get_total_loss()
    first = tf.losses.mean_squared_error([1.0], [3.0])
    tf.losses.add_loss(tf.constant(10.0))
    tf.losses.mean_squared_error([1.0], [3.0], loss_collection=None)
    assert tf.losses.get_losses()[0] is first and len(tf.losses.get_losses()) == 2
    assert run(tf.losses.get_regularization_loss()) == 0
    tf.get_variable("w", [2], initializer=tf.ones_initializer(), regularizer=lambda w: tf.reduce_sum(w) * 50)
    assert run(tf.losses.get_regularization_loss()) == 100
    assert run(tf.losses.get_total_loss()) == 114 and run(tf.losses.get_total_loss(False)) == 14


def test_bad_input_is_told():
    x = tf.constant(X)
    for make, what in [
        (lambda: tf.losses.mean_squared_error(Y[:, 0], x), "labels are"),
        (lambda: tf.losses.mean_squared_error(Y[:2], x), "labels are"),
        (lambda: tf.losses.mean_squared_error(Y, x, np.ones(4)), "weights are"),
        (lambda: tf.losses.mean_squared_error(Y, x, reduction="mean"), "reduction"),
        (lambda: tf.losses.mean_squared_error(Y, None), "needs labels"),
    ]:
        with pytest.raises(ut.TypeMismatch, match=what):
            make()
    with pytest.raises(AttributeError, match="did you mean"):
        _ = tf.losses.hinge_los
