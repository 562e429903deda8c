"""Decaying rates, moving averages, checkpoints, and what optimizers take."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Session() as session:
        yield session


# -- rates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decay", "formula"),
    [
        (lambda s: tf.train.exponential_decay(0.1, s, 10, 0.5), lambda s: 0.1 * 0.5 ** (s / 10)),
        (lambda s: tf.train.exponential_decay(0.1, s, 10, 0.5, True), lambda s: 0.1 * 0.5 ** (s // 10)),
        (lambda s: tf.train.natural_exp_decay(0.1, s, 10, 0.5), lambda s: 0.1 * math.exp(-0.5 * s / 10)),
        (lambda s: tf.train.inverse_time_decay(0.1, s, 10, 0.5, True), lambda s: 0.1 / (1 + 0.5 * (s // 10))),
        (
            lambda s: tf.train.polynomial_decay(0.1, s, 20, 0.01, 2.0),
            lambda s: 0.09 * (1 - min(s, 20) / 20) ** 2 + 0.01,
        ),
        (
            lambda s: tf.train.polynomial_decay(0.1, s, 20, 0.01, cycle=True),
            lambda s: 0.09 * (1 - s / (20 * max(1, math.ceil(s / 20)))) + 0.01,
        ),
        (lambda s: tf.train.cosine_decay(0.1, s, 20), lambda s: 0.05 * (1 + math.cos(math.pi * min(s, 20) / 20))),
        (
            lambda s: tf.train.piecewise_constant(s, [5, 15], [1.0, 0.5, 0.1]),
            lambda s: 1 if s <= 5 else 0.5 if s <= 15 else 0.1,
        ),
    ],
)  # fmt: skip
def test_rates(session, decay, formula):
    step = tf.placeholder(tf.int32, [])
    rate = decay(step)
    assert rate.dtype == tf.float32
    for number in (0, 5, 6, 15, 19, 20, 33):
        assert np.isclose(session.run(rate, {step: number}), formula(number), rtol=1e-5)


def test_a_rate_that_decays_with_the_steps_of_its_optimizer(session):
    step = tf.Variable(0, trainable=False)
    v = tf.Variable(1.0)
    rate = tf.train.exponential_decay(1.0, step, 1, 0.5)
    update = tf.train.GradientDescentOptimizer(rate).minimize(v, global_step=step)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(update)
    assert session.run([v, step]) == [1 - 1 - 0.5 - 0.25, 3]
    assert tf.train.global_step(session, step) == 3


def test_bad_rates_are_told():
    with pytest.raises(ut.TypeMismatch, match="global step"):
        tf.train.exponential_decay(0.1, None, 10, 0.5)
    with pytest.raises(ut.TypeMismatch, match="2 boundaries"):
        tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 2.0])


# -- averages ----------------------------------------------------------------------------------------------


def test_moving_averages(session):
    v = tf.Variable(4.0, name="v")
    ema = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([v.assign_add(2.0)]):
        moved = ema.apply([v])
    average = ema.average(v)
    assert ema.average_name(v) == "v/ExponentialMovingAverage" == average.op.name and not average.trainable
    session.run(tf.global_variables_initializer())
    expected = value = 4.0
    for _ in range(3):
        session.run(moved)
        value += 2
        expected = 0.9 * expected + 0.1 * value
    assert np.isclose(session.run(average), expected)
    assert ema.variables_to_restore() == {"v/ExponentialMovingAverage": v}
    assert ema.average(tf.Variable(1.0)) is None


def test_averages_decay_faster_in_the_first_steps_and_of_tensors_start_at_zero(session):
    step, v, x = tf.Variable(0), tf.Variable(0.0), tf.placeholder(tf.float32, [])
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    moved = ema.apply([v])
    of_tensor = tf.train.ExponentialMovingAverage(0.9)
    follow = of_tensor.apply([x])
    session.run(tf.global_variables_initializer())
    session.run(v.assign(1.0))
    session.run(moved)  # the decay is 1 / 10
    assert np.isclose(session.run(ema.average(v)), 0.9)
    biased, weight = 0.0, 0.0
    for value in (3.0, 5.0, -1.0):
        session.run(follow, {x: value})
        biased, weight = 0.9 * biased + 0.1 * value, 0.9 * weight + 0.1
    assert np.isclose(session.run(of_tensor.average(x)), biased / weight)


# -- optimizers --------------------------------------------------------------------------------------------


def test_adadelta(session):
    v = tf.Variable([1.0, -2.0])
    update = tf.train.AdadeltaOptimizer(0.5, rho=0.9, epsilon=1e-3).minimize(tf.reduce_sum(v**2))
    session.run(tf.global_variables_initializer())
    value, squares, steps = np.array([1.0, -2.0]), 0.0, 0.0
    for _ in range(5):
        session.run(update)
        g = 2 * value
        squares = 0.9 * squares + 0.1 * g * g
        step = g * np.sqrt(steps + 1e-3) / np.sqrt(squares + 1e-3)
        steps = 0.9 * steps + 0.1 * step * step
        value = value - 0.5 * step
    assert np.allclose(session.run(v), value, rtol=1e-5)


def test_clipped_gradients(session):
    v, w = tf.Variable([3.0, 4.0]), tf.Variable(12.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v**2) / 2 + w**2 / 2, [v, w])
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 6.5)
    step = optimizer.apply_gradients(zip(clipped, [x for _, x in pairs], strict=True))
    session.run(tf.global_variables_initializer())
    assert session.run(norm) == 13
    session.run(step)
    assert np.allclose(session.run(v), [1.5, 2]) and session.run(w) == 6


# -- checkpoints -------------------------------------------------------------------------------------------


def test_save_and_restore(session, tmp_path):
    v = tf.Variable(np.arange(6.0).reshape(2, 3), name="v")
    with tf.variable_scope("layer"):
        n = tf.get_variable("n", initializer=7)
    flag = tf.Variable(True, name="flag")
    same = [tf.Variable(v.initial_value, name="same") for _ in range(2)]  # they share an initial value
    saver = tf.train.Saver()
    session.run(tf.global_variables_initializer())
    session.run([v.assign(v * 10), n.assign(8), same[1].assign(v * 0)])
    path = saver.save(session, str(tmp_path / "model.ckpt"), global_step=n)
    assert path == str(tmp_path / "model.ckpt-8") == saver.last_checkpoints[0]
    assert tf.train.checkpoint_exists(path)
    before = session.run(tf.global_variables())
    session.run(tf.global_variables_initializer())
    saver.restore(session, tf.train.latest_checkpoint(str(tmp_path)))
    for a, b in zip(before, session.run(tf.global_variables()), strict=True):
        assert np.array_equal(a, b) and a.dtype == b.dtype
    assert dict(tf.train.list_variables(str(tmp_path)))["layer/n"] == []
    assert np.array_equal(tf.train.load_variable(path, "v"), before[0])
    with tf.Session() as other:  # which never ran an initializer
        saver.restore(other, path)
        assert other.run(n) == 8 and other.run(flag)


def test_only_the_newest_are_kept(session, tmp_path):
    v = tf.Variable(0)
    saver = tf.train.Saver(max_to_keep=2)
    session.run(tf.global_variables_initializer())
    for step in range(4):
        session.run(v.assign(step))
        saver.save(session, str(tmp_path / "m"), global_step=step)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert [os.path.basename(p) for p in state.all_model_checkpoint_paths] == ["m-2", "m-3"]
    assert state.model_checkpoint_path == str(tmp_path / "m-3")
    assert not tf.train.checkpoint_exists(str(tmp_path / "m-1"))
    os.rename(tmp_path, moved := str(tmp_path) + "-moved")
    saver.restore(session, tf.train.latest_checkpoint(moved))
    assert session.run(v) == 3


def test_some_variables_under_other_names(session, tmp_path):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver({"x": a}).save(session, str(tmp_path / "m"))
    tf.train.Saver({"x": b}).restore(session, path)
    assert session.run([a, b]) == [1, 1]


def test_bad_checkpoints_are_told(session, tmp_path):
    v = tf.Variable([1.0], name="v")
    saver = tf.train.Saver([v])
    session.run(tf.global_variables_initializer())
    assert tf.train.latest_checkpoint(str(tmp_path)) is None and tf.train.get_checkpoint_state(str(tmp_path)) is None
    path = saver.save(session, str(tmp_path / "m"))
    (tmp_path / "theirs.index").write_bytes(b"")
    (tmp_path / "broken.safetensors").write_bytes(b"no")
    for name, what in [("theirs", "of TensorFlow"), ("missing", "no checkpoint"), ("broken", "is not a checkpoint")]:
        with pytest.raises(ut.LoadError, match=what) as fault:
            saver.restore(session, str(tmp_path / name))
        assert fault.value.hint
    with pytest.raises(ut.TypeMismatch, match="no checkpoint"):
        saver.restore(session, None)
    with pytest.raises(ut.LoadError, match="no variable 'w'"):
        tf.train.Saver({"w": v}).restore(session, path)
    with pytest.raises(ut.LoadError, match="in the checkpoint"):
        tf.train.Saver({"v": tf.Variable([1.0, 2.0])}).restore(session, path)
    with pytest.raises(ut.SaveError, match="cannot be written"):
        saver.save(session, str(tmp_path / "no" / "m"))


def test_a_saver_needs_variables():
    with pytest.raises(ut.GraphError, match="no variables"):
        tf.train.Saver()
