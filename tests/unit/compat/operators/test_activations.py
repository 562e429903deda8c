"""Activation functions, biases, dropout."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

X = np.array([[-2.0, -0.5, 0.25], [1.5, 3.0, 7.5]])
ELU = np.where(X > 0, X, np.expm1(X))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (tf.nn.relu, np.maximum(X, 0)),
        (tf.nn.relu6, np.clip(X, 0, 6)),
        (tf.nn.crelu, np.concatenate([np.maximum(X, 0), np.maximum(-X, 0)], -1)),
        (tf.nn.elu, ELU),
        (tf.nn.selu, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * ELU)),
        (tf.nn.leaky_relu, np.where(X > 0, X, 0.2 * X)),
        (lambda x: tf.nn.leaky_relu(x, alpha=0.5), np.where(X > 0, X, 0.5 * X)),
        (tf.nn.softplus, np.log1p(np.exp(X))),
        (tf.nn.softsign, X / (1 + abs(X))),
        (tf.nn.sigmoid, 1 / (1 + np.exp(-X))),
        (tf.nn.tanh, np.tanh(X)),
        (tf.nn.softmax, np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        (lambda x: tf.nn.softmax(x, dim=0), np.exp(X) / np.exp(X).sum(0)),
        (lambda x: tf.nn.log_softmax(x, axis=0), X - np.log(np.exp(X).sum(0))),
    ],
)
def test_values_and_gradients(check, operation, expected):
    check(operation, [X], expected)


def test_affine_maps(check):
    w, b = np.arange(6.0).reshape(3, 2) - 2.5, np.array([0.5, -1.0])
    check(tf.nn.xw_plus_b, [X, w, b], X @ w + b)
    check(tf.nn.relu_layer, [X, w, b], np.maximum(X @ w + b, 0))
    check(tf.nn.bias_add, [X, [1, 2, 3]], X + np.arange(1, 4))
    image = np.arange(12.0).reshape(1, 2, 2, 3)
    check(lambda x, b: tf.nn.bias_add(x, b, data_format="NCHW"), [image, [10, 20]], image + np.array([[[10]], [[20]]]))
    with pytest.raises(ut.TypeMismatch, match="data_format"):
        tf.nn.bias_add(X, [1, 2, 3], data_format="NWC")


def test_dropout_keeps_some_and_scales_them(run):
    x = tf.ones([100, 50])
    kept = tf.placeholder(tf.float32, [])
    for half in (run(tf.nn.dropout(x, 0.5)), run(tf.nn.dropout(x, kept), {kept: 0.5}), run(tf.nn.dropout(x, rate=0.5))):
        assert set(np.unique(half)) == {0, 2} and 0.4 < (half > 0).mean() < 0.6
    assert run(tf.nn.dropout(x, 1.0)).all() and run(tf.nn.dropout(x, kept), {kept: 1.0}).all()
    rows = run(tf.nn.dropout(x, 0.5, noise_shape=[None, 1]))
    assert all(len(set(row)) == 1 for row in rows) and len(np.unique(rows)) == 2
    y = tf.nn.dropout(x, 0.5)
    value, gradient = run([y, tf.gradients(y, x)[0]])
    assert np.array_equal(value, gradient)  # the same choices
    with pytest.raises(ut.TypeMismatch, match="above 0"):
        tf.nn.dropout(x, 0.0)
    with pytest.raises(ut.TypeMismatch, match="one of them"):
        tf.nn.dropout(x)
