"""Cells and recurrent networks, compared with their equations in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1.contrib import rnn

RANDOM = np.random.default_rng(6)
X = RANDOM.normal(size=(2, 4, 3))
LENGTHS = np.array([4, 2])
cells = tf.nn.rnn_cell


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, c, h, kernel, bias, forget=1.0, peepholes=None, projection=None):
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    wf, wi, wo = peepholes if peepholes is not None else (0, 0, 0)
    c = sigmoid(f + forget + wf * c) * c + sigmoid(i + wi * c) * np.tanh(j)
    h = sigmoid(o + wo * c) * np.tanh(c)
    return c, h if projection is None else h @ projection


def values(session):
    session.run(tf.global_variables_initializer())
    return {v.op.name: session.run(v) for v in tf.global_variables()}


@pytest.fixture
def session():
    with tf.Session() as session, tf.variable_scope("net", dtype=tf.float64):
        yield session


def test_basic_rnn_cell(session):
    outputs, state = tf.nn.dynamic_rnn(cells.BasicRNNCell(5), tf.constant(X), dtype=tf.float64)
    weights = values(session)
    kernel = weights["net/rnn/basic_rnn_cell/kernel"]
    h, expected = np.zeros((2, 5)), []
    for step in range(4):
        h = np.tanh(np.concatenate([X[:, step], h], 1) @ kernel + weights["net/rnn/basic_rnn_cell/bias"])
        expected.append(h)
    found = session.run([outputs, state])
    assert np.allclose(found[0], np.stack(expected, 1)) and np.allclose(found[1], h)


@pytest.mark.parametrize("is_tuple", [True, False])
def test_lstm_and_lengths(session, is_tuple):
    cell = cells.BasicLSTMCell(5, forget_bias=0.5, state_is_tuple=is_tuple)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(X), LENGTHS, dtype=tf.float64)
    weights = values(session)
    kernel, bias = (weights[f"net/rnn/basic_lstm_cell/{name}"] for name in ("kernel", "bias"))
    c, h = np.zeros((2, 5)), np.zeros((2, 5))
    expected = np.zeros((2, 4, 5))
    for step in range(4):
        new_c, new_h = lstm(X[:, step], c, h, kernel, bias, 0.5)
        on = (step < LENGTHS)[:, None]
        c, h = np.where(on, new_c, c), np.where(on, new_h, h)
        expected[:, step] = np.where(on, new_h, 0)
    found, last = session.run([outputs, state])
    assert np.allclose(found, expected)
    assert np.allclose(np.concatenate(last, 1) if is_tuple else last, np.concatenate([c, h], 1))


def test_peepholes_and_projection(session):
    cell = rnn.LSTMCell(4, use_peepholes=True, num_proj=2, cell_clip=0.2, initializer=tf.random_normal_initializer())
    assert cell.state_size == cells.LSTMStateTuple(4, 2) and cell.output_size == 2
    x = tf.constant(X[:, 0])
    _, first = cell(x, cell.zero_state(2, tf.float64))
    output, state = cell(x, first)
    weights = values(session)
    named = {name.removeprefix("net/lstm_cell/"): value for name, value in weights.items()}
    peepholes = [named[f"w_{gate}_diag"] for gate in "fio"]

    def step(c, h):
        i, j, f, o = np.split(np.concatenate([X[:, 0], h], 1) @ named["kernel"] + named["bias"], 4, 1)
        c = np.clip(sigmoid(f + 1 + peepholes[0] * c) * c + sigmoid(i + peepholes[1] * c) * np.tanh(j), -0.2, 0.2)
        return c, (sigmoid(o + peepholes[2] * c) * np.tanh(c)) @ named["projection/kernel"]

    c, h = step(*step(np.zeros((2, 4)), np.zeros((2, 2))))
    found = session.run([output, state.c])
    assert np.allclose(found[0], h) and np.allclose(found[1], c)


def test_gru(session):
    output, _ = cells.GRUCell(4)(tf.constant(X[:, 0]), tf.constant(X[:, 1, :1] * np.ones((2, 4))))
    weights = {name.removeprefix("net/gru_cell/"): value for name, value in values(session).items()}
    h = X[:, 1, :1] * np.ones((2, 4))
    gates = sigmoid(np.concatenate([X[:, 0], h], 1) @ weights["gates/kernel"] + weights["gates/bias"])
    assert (weights["gates/bias"] == 1).all()
    reset, update = np.split(gates, 2, 1)
    candidate = np.tanh(
        np.concatenate([X[:, 0], reset * h], 1) @ weights["candidate/kernel"] + weights["candidate/bias"]
    )
    assert np.allclose(session.run(output), update * h + (1 - update) * candidate)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_static_and_dynamic_networks_agree(session, lengths):
    cell = cells.MultiRNNCell([cells.LSTMCell(3), cells.GRUCell(2)])
    x = tf.constant(X)
    with tf.variable_scope("a"):
        dynamic, last = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float64, scope="s")
    with tf.variable_scope("a", reuse=True):
        again = cells.MultiRNNCell([cells.LSTMCell(3), cells.GRUCell(2)])
        static, other = tf.nn.static_rnn(
            again, tf.unstack(x, axis=1), dtype=tf.float64, sequence_length=lengths, scope="s"
        )
    weights = values(session)
    assert "net/a/s/multi_rnn_cell/cell_1/gru_cell/gates/kernel" in weights and len(weights) == 6
    found = session.run([dynamic, tf.stack(static, 1), last, other])
    assert np.allclose(found[0], found[1])
    for a, b in zip(
        np.concatenate([*found[2][0], found[2][1]], 1), np.concatenate([*found[3][0], found[3][1]], 1), strict=True
    ):
        assert np.allclose(a, b)


def test_gradients_through_time(check):
    cell = cells.BasicLSTMCell(3)

    def network(x):
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE, initializer=tf.constant_initializer(0.3)):
            outputs, state = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float64)
        return tf.concat([tf.reshape(outputs, [2, -1]), state.c], 1)

    check(network, [X])


def test_gradients_of_weights(session):
    """Those of the loop are those of the network that is unrolled."""
    cell = cells.GRUCell(3)
    x = tf.constant(X)
    dynamic, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float64)
    static, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float64)
    weights = tf.trainable_variables()
    session.run(tf.global_variables_initializer())
    found = [session.run(tf.gradients(tf.reduce_sum(y**2), weights)) for y in (dynamic, tf.stack(static, 1))]
    for a, b in zip(*found, strict=True):
        assert np.allclose(a, b) and abs(a).max() > 0


@pytest.mark.parametrize("is_time_major", [False, True])
def test_both_directions(session, is_time_major):
    x = tf.constant(X.transpose(1, 0, 2) if is_time_major else X)
    ahead, back = cells.BasicRNNCell(3), cells.BasicRNNCell(3)
    (forth, other), states = tf.nn.bidirectional_dynamic_rnn(
        ahead, back, x, LENGTHS, dtype=tf.float64, time_major=is_time_major
    )
    weights = values(session)
    kernel, bias = (weights[f"net/bidirectional_rnn/bw/basic_rnn_cell/{name}"] for name in ("kernel", "bias"))
    expected = np.zeros((2, 4, 3))
    for example, length in enumerate(LENGTHS):
        h = np.zeros(3)
        for step in reversed(range(length)):
            h = np.tanh(np.concatenate([X[example, step], h]) @ kernel + bias)
            expected[example, step] = h
    found = session.run(other)
    assert np.allclose(found.transpose(1, 0, 2) if is_time_major else found, expected)
    assert np.allclose(session.run(states[1]), expected[:, 0]) and forth.shape[2] == 3
    outputs, *_ = rnn.static_bidirectional_rnn(
        cells.GRUCell(2), cells.GRUCell(3), tf.unstack(tf.constant(X), axis=1), dtype=tf.float64, scope="static"
    )
    session.run(tf.global_variables_initializer())
    assert session.run(outputs)[0].shape == (2, 5)


def test_dropout_of_cells(session):
    kept = tf.placeholder(tf.float64, [])
    cell = rnn.DropoutWrapper(cells.BasicRNNCell(40), output_keep_prob=kept)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float64)
    session.run(tf.global_variables_initializer())
    whole = session.run(outputs, {kept: 1.0})
    some, last = session.run([outputs, state], {kept: 0.5})
    dropped = some == 0
    assert 0.3 < dropped.mean() < 0.7 and np.allclose(some, np.where(dropped, 0, 2 * whole))
    assert not (dropped[:, 0] == dropped[:, 1]).all() and np.allclose(last, whole[:, -1])  # new ones in each step
    same = rnn.DropoutWrapper(
        cells.GRUCell(40), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float64, state_keep_prob=0.9
    )
    outputs, _ = tf.nn.dynamic_rnn(same, tf.constant(X), dtype=tf.float64, scope="same")
    session.run(tf.global_variables_initializer())
    dropped = session.run(outputs) == 0
    assert (dropped == dropped[:1, :1]).all() and dropped.any()


def test_residual_wrapper(session):
    x = tf.constant(X)
    inner = cells.BasicRNNCell(3)
    outputs, _ = tf.nn.dynamic_rnn(rnn.ResidualWrapper(inner), x, dtype=tf.float64)
    plain, _ = tf.nn.dynamic_rnn(inner, x, dtype=tf.float64)
    session.run(tf.global_variables_initializer())
    found = session.run([outputs, plain])
    assert np.allclose(found[0], found[1] + X)


def test_a_cell_of_the_users(run):
    class Counter(cells.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            gain = tf.get_variable("gain", [], initializer=tf.constant_initializer(2.0))
            return state + gain * tf.reduce_sum(inputs, 1, keep_dims=True), state + 1.0

    outputs, state = tf.nn.dynamic_rnn(Counter(), tf.ones([2, 3, 4]), dtype=tf.float32)
    value, last = run([outputs, state])
    assert value[0, :, 0].tolist() == [8, 9, 10] and last.tolist() == [[3], [3]]


def test_bad_input_is_told():
    cell = cells.BasicLSTMCell(3)
    for make, what in [
        (lambda: tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 4])), "dtype must be given"),
        (lambda: tf.nn.dynamic_rnn(cell, [tf.ones([2, 4])], dtype=tf.float32), "one tensor"),
        (lambda: tf.nn.static_rnn(cell, tf.ones([2, 3, 4]), dtype=tf.float32), "list of inputs"),
        (lambda: cell(tf.ones([2, 4]), tf.ones([2, 3])), "not the state of an LSTM"),
        (lambda: cells.GRUCell(3)(tf.ones([2, 4]), tf.ones([2, 4])), "not a state of 3 units"),
        (lambda: cell(tf.ones([2, 4])), "takes inputs and a state"),
        (lambda: cells.MultiRNNCell(cell), "not a list of cells"),
    ]:
        with pytest.raises(ut.TypeMismatch, match=what):
            make()
    with pytest.raises(AttributeError, match="GRUCell"):
        _ = cells.GRUCel
    with pytest.raises(AttributeError, match="contrib"):
        _ = tf.contrib.seq2seq
