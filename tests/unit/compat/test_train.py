"""tf.train: steps of optimizers against NumPy, what a run sees of them, and descent through a recursive function."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function
from undertow.errors import GraphError, TypeMismatch


def started(**options):
    session = tf.Session(**options)
    session.run(tf.global_variables_initializer())
    return session


# -- descent through a recursive function: x**n ------------------------------------------------------------


DEPTHS = [10, pytest.param(50, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]


def exponent(dtype, n):
    power = function.Declare("Exponent", [("x", dtype), ("n", tf.int32)], [("y", dtype)])

    @function.Defun(dtype, tf.int32, func_name="Exponent", create_grad_func=True, out_names=["y"])
    def power_impl(x, n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(1.0, dtype), lambda: x * power(x, n - 1))

    x = tf.Variable(initial_value=1.0, dtype=dtype)
    return x, power_impl(x, tf.constant(n))


def descend(dtype, n, rate, steps=100, **options):
    x, y = exponent(dtype, n)
    step = tf.compat.v1.train.GradientDescentOptimizer(learning_rate=rate).minimize(y)
    session = started(**options)
    for _ in range(steps):
        assert session.run(step) is None
    return session.run([x, y])


def descended(dtype, n, rate, steps=100):
    """The same by its closed form, dy/dx = n x**(n-1)."""
    x, rate = dtype(1.0), dtype(rate)
    for _ in range(steps):
        x = x - rate * dtype(n) * x ** (n - 1)
    return x, x**n


@pytest.mark.parametrize("n", DEPTHS)
def test_a_step_below_rounding_changes_nothing(n):
    assert descend(tf.float32, n, 1e-10) == [1.0, 1.0]


@pytest.mark.parametrize("n", DEPTHS)
def test_descent_in_float32(n):
    found = descend(tf.float32, n, 1e-4)
    np.testing.assert_allclose(found, descended(np.float32, n, 1e-4), rtol=1e-5)
    assert found[0] < 0.96 and all(value.dtype == np.float32 for value in found)


@pytest.mark.parametrize("n", DEPTHS)
@pytest.mark.parametrize("rate", [1e-4, 1e-10])
def test_descent_in_float64(n, rate):
    found = descend(tf.float64, n, rate)
    np.testing.assert_allclose(found, descended(np.float64, n, rate), rtol=1e-12)
    assert found[0] < 1.0


@pytest.mark.parametrize("engine", ENGINES)
def test_descent_on_every_engine(engine):
    found = descend(tf.float64, 5, 0.01, steps=7, engine=engine)
    np.testing.assert_allclose(found, descended(np.float64, 5, 0.01, 7), rtol=1e-12)


# -- the rules ---------------------------------------------------------------------------------------------


def momentum(rate, m, ahead):
    a = 0.0

    def step(x, g):
        nonlocal a
        a = m * a + g
        return x - rate * (g + m * a if ahead else a)

    return step


def adagrad(rate):
    a = 0.1

    def step(x, g):
        nonlocal a
        a = a + g * g
        return x - rate * g / np.sqrt(a)

    return step


def rmsprop(rate, decay, m, centered):
    square, mean, moved = 1.0, 0.0, 0.0

    def step(x, g):
        nonlocal square, mean, moved
        square = decay * square + (1 - decay) * g * g
        mean = decay * mean + (1 - decay) * g if centered else 0.0
        moved = m * moved + rate * g / np.sqrt(square - mean * mean + 1e-10)
        return x - moved

    return step


def adam(rate, b1=0.9, b2=0.999):
    m = v = t = 0

    def step(x, g):
        nonlocal m, v, t
        t += 1
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return x - rate * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + 1e-8)

    return step


RULES = {
    "descent": (lambda: tf.train.GradientDescentOptimizer(0.1), lambda: lambda x, g: x - 0.1 * g),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.1, 0.8), lambda: momentum(0.1, 0.8, False)),
    "nesterov": (lambda: tf.train.MomentumOptimizer(0.1, 0.8, use_nesterov=True), lambda: momentum(0.1, 0.8, True)),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.3), lambda: adagrad(0.3)),
    "rmsprop": (lambda: tf.train.RMSPropOptimizer(0.05, 0.8, 0.5), lambda: rmsprop(0.05, 0.8, 0.5, False)),
    "centered": (lambda: tf.train.RMSPropOptimizer(0.05, centered=True), lambda: rmsprop(0.05, 0.9, 0.0, True)),
    "adam": (lambda: tf.train.AdamOptimizer(0.1), lambda: adam(0.1)),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule(rule):
    make, oracle = RULES[rule]
    x = tf.Variable([1.0, -2.0, 3.0], dtype=tf.float64)
    step = make().minimize(tf.reduce_sum(tf.square(x) * [1.0, 2.0, 0.5]))
    session, move, at = started(), oracle(), np.array([1.0, -2.0, 3.0])
    for _ in range(6):
        session.run(step)
        at = move(at, 2 * at * [1.0, 2.0, 0.5])
        np.testing.assert_allclose(session.run(x), at, rtol=1e-9)


SAME = {
    "descent": (lambda: tf.train.GradientDescentOptimizer(0.1), ut.optim.SGD(0.1)),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.1, 0.8), ut.optim.SGD(0.1, 0.8)),
    "nesterov": (lambda: tf.train.MomentumOptimizer(0.1, 0.8, use_nesterov=True), ut.optim.SGD(0.1, 0.8, True)),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.3), ut.optim.Adagrad(0.3, initial=0.1, epsilon=0.0)),
}


@pytest.mark.parametrize("rule", SAME)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_are_those_of_optim_where_settings_are(rule, dtype):
    make, other = SAME[rule]
    at, grads = np.linspace(-1, 2, 7, dtype=dtype), [np.linspace(k, 3, 7, dtype=dtype) for k in (-2, 0.1, 1)]
    x, g = tf.Variable(at), tf.placeholder(dtype, [7])
    step = make().apply_gradients([(g, x)])
    session, state = started(), other.init(at)
    for grad in grads:
        session.run(step, {g: grad})
        at, state = other.update(grad, state, at)
        np.testing.assert_array_equal(session.run(x), at)


@pytest.mark.parametrize("rule", RULES)
def test_several_variables_and_dtypes(rule):
    make, _ = RULES[rule]
    a, b = tf.Variable(1.0), tf.Variable([[2.0]], dtype=tf.float64)
    session_loss = tf.cast(tf.square(a), tf.float64) + tf.reduce_sum(b * b)
    step = make().minimize(session_loss)
    session = started()
    before = session.run(session_loss)
    for _ in range(3):
        session.run(step)
    assert session.run(session_loss) < before
    assert [value.dtype for value in session.run([a, b])] == [np.float32, np.float64]


def test_slots():
    x = tf.Variable(1.0, name="x")
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    step = optimizer.minimize(x * x)
    assert [v.name for v in tf.trainable_variables()] == ["x:0"]
    slot = optimizer.get_slot(x, "momentum")
    assert slot.name == "x/Momentum/momentum:0" and optimizer.get_slot_names() == ["momentum"]
    assert [v.name for v in optimizer.variables()] == [slot.name]
    session = started()
    session.run(step)
    assert session.run(slot) == 2
    assert optimizer.get_slot(x, "no such") is None and optimizer.get_name() == "Momentum"


# -- what a run sees ---------------------------------------------------------------------------------------


def test_the_loss_beside_a_step_is_that_of_the_old_values():
    x = tf.Variable(3.0)
    loss = x * x

    @function.Defun(tf.float32)
    def scaled(a):
        return a * x

    beside, chosen = scaled(10.0), tf.cond(loss > 0.0, lambda: x + 0.5, lambda: loss)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session = started()
    found = session.behaviors([loss, x, beside, chosen, step])
    assert len(found) == 1
    assert session.run([loss, x, beside, chosen, step]) == [9, 3, 30, 3.5, None]
    assert session.run([loss, x]) == [0, 0]


def test_control_edges_order_what_is_read_after_a_step():
    x = tf.Variable(3.0)
    step = tf.train.GradientDescentOptimizer(0.25).minimize(x * x)
    with tf.control_dependencies([step]):
        after = x.read_value()
    session = started()
    assert session.run([after, x]) == [1.5, 3] and session.run(x) == 1.5


def test_steps_that_wait_for_each_other():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    first = tf.train.GradientDescentOptimizer(1.0).minimize(a * 2.0)
    with tf.control_dependencies([first]):
        second = tf.train.GradientDescentOptimizer(1.0).minimize(a * b, var_list=[b])
    session = started()
    session.run(second)
    assert session.run([a, b]) == [-1, 3]


def test_a_failed_run_changes_nothing():
    x = tf.Variable(3.0)
    step = tf.train.GradientDescentOptimizer(0.25).minimize(x * x)
    with tf.control_dependencies([step]):
        never = tf.Assert(x > 100.0, ["too small"])
    session = started()
    with pytest.raises(Exception, match="too small"):
        session.run(never)
    assert session.run(x) == 3


def test_global_step():
    x = tf.Variable(1.0)
    count = tf.train.get_or_create_global_step()
    assert tf.train.get_or_create_global_step() is count is tf.train.get_global_step()
    step = tf.train.GradientDescentOptimizer(0.1).minimize(x, global_step=count)
    session = started()
    for _ in range(3):
        session.run(step)
    assert session.run(count) == 3 and session.run(count).dtype == np.int64
    with pytest.raises(GraphError, match="already"):
        tf.train.create_global_step()


def test_a_learning_rate_that_is_fed():
    x = tf.Variable([1.0, 1.0])
    rate = tf.placeholder(tf.float32, [])
    step = tf.train.GradientDescentOptimizer(rate).minimize(tf.reduce_sum(x))
    session = started()
    session.run(step, {rate: 0.25})
    np.testing.assert_array_equal(session.run(x), [0.75, 0.75])


def test_gradients_changed_on_their_way():
    x, y, unused = tf.Variable(3.0), tf.Variable(4.0), tf.Variable(5.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(x * y)
    assert [v.name for g, v in pairs if g is None] == [unused.name]
    clipped = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs if g is not None]
    step = optimizer.apply_gradients(clipped)
    session = started()
    session.run(step)
    assert session.run([x, y, unused]) == [2, 3, 5]


def test_clipping():
    x = tf.placeholder(tf.float64, [2])
    clipped, length = tf.clip_by_global_norm([x, None, tf.constant(12.0, tf.float64)], 6.5)
    with tf.Session() as session:
        found = session.run(
            [tf.clip_by_norm(x, 2.5), tf.clip_by_norm(x, 50.0), clipped[0], clipped[2], length], {x: [3, 4]}
        )
    np.testing.assert_allclose(np.hstack(found), [1.5, 2, 3, 4, 1.5, 2, 6, 13])
    assert clipped[1] is None


def test_what_is_not_trainable_stays():
    x, fixed = tf.Variable(3.0), tf.Variable(4.0, trainable=False)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(x * fixed)
    session = started()
    session.run(step)
    assert session.run([x, fixed]) == [-1, 4]


def test_a_small_network_learns():
    rng = np.random.default_rng(1)
    x = tf.placeholder(tf.float32, [None, 2])
    wanted = tf.placeholder(tf.float32, [None])
    w = tf.Variable(rng.normal(size=(2, 6)).astype(np.float32))
    b = tf.Variable(np.zeros(6, np.float32))
    v = tf.Variable(rng.normal(size=(6, 1)).astype(np.float32))
    out = tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(x, w) + b), v), axis=1)
    loss = tf.reduce_mean(tf.squared_difference(out, wanted))
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    feed = {x: [[0, 0], [0, 1], [1, 0], [1, 1]], wanted: [0, 1, 1, 0]}
    session = started()
    losses = [session.run([loss, step], feed)[0] for _ in range(120)]
    assert losses[-1] < 0.02 < losses[0]


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda o, x: o.minimize(tf.constant(1.0)), GraphError, "does not depend on any"),
        (lambda o, x: o.minimize(3.0), TypeMismatch, "must be a tensor"),
        (lambda o, x: o.minimize(tf.cast(x, tf.int32)), TypeMismatch, "only floats"),
        (lambda o, x: o.minimize(x * x, var_list=[x * 2.0]), TypeMismatch, "is not a variable"),
        (lambda o, x: o.apply_gradients([]), GraphError, "no gradients to apply"),
        (lambda o, x: o.apply_gradients([(None, x)]), GraphError, "no gradients to apply"),
        (lambda o, x: o.apply_gradients([(x, 1.0)]), TypeMismatch, "is not a variable"),
    ],
)
def test_what_cannot_be_minimized(wrong, error, says):
    with pytest.raises(error, match=says):
        wrong(tf.train.GradientDescentOptimizer(0.1), tf.Variable(1.0))


def test_a_slot_of_unknown_shape():
    x = tf.Variable([1.0], validate_shape=False)
    with pytest.raises(GraphError, match="needs to know the shape"):
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(x))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(x))
    session = started()
    session.run(step)
    assert session.run(x) == [0.5]


def test_names_that_are_not_there():
    for name, says in (
        ("import_meta_graph", "build the graph"),
        ("Coordinator", "tf.data"),
        ("shuffle_batch", "tf.data"),
        ("FtrlOptimizer", "AdagradOptimizer"),
        ("MonitoredTrainingSession", r"use tf.Session\(server.target\)"),
        ("ClusterSpecs", "ClusterSpec"),
        ("AdamOptimiser", "AdamOptimizer"),
    ):
        with pytest.raises(AttributeError, match=says):
            getattr(tf.train, name)
