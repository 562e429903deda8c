"""A network of convolutions, pooling, a recurrent loop, lookups and a scan gives the same on every engine."""

from __future__ import annotations

import numpy as np
import pytest

import undertow.compat.v1 as tf
from undertow.api.options import ENGINES

RANDOM = np.random.default_rng(0)
IMAGES, FILTER = RANDOM.normal(size=(2, 5, 5, 2)), RANDOM.normal(size=(3, 3, 2, 3))


def fetches():
    x, f = tf.constant(IMAGES), tf.constant(FILTER)
    y = tf.nn.max_pool(tf.nn.conv2d(x, f, [1, 1, 1, 1], "SAME"), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    with tf.variable_scope("net", dtype=tf.float64, initializer=tf.constant_initializer(0.3)):
        cell = tf.nn.rnn_cell.BasicLSTMCell(3)
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(y, [2, -1, 3]), sequence_length=[3, 9], dtype=tf.float64)
    loss = tf.reduce_sum(outputs**2) + tf.reduce_sum(tf.gather_nd(y, [[0, 0, 0, 0], [1, 2, 2, 2]]))
    return [loss, *tf.gradients(loss, [x, f]), tf.scan(lambda a, e: a * e, y[0, 0])]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine in ("reference", "demand", "expand")])
def test_engines_agree(engine):
    wanted = fetches()
    values = []
    for name in ("waves", engine):
        with tf.Session(engine=name) as session:
            session.run(tf.global_variables_initializer())
            values.append(session.run(wanted))
    for found, expected in zip(*values, strict=True):
        assert np.allclose(found, expected) and abs(found).max() > 0
