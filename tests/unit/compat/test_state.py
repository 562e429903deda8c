"""Variables: per session, ordered by control edges only, pruned, committed when a run succeeds."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function

SCHEDULES = [{"scheduler": "fifo"}, {"scheduler": "lifo"}] + [
    {"scheduler": "random", "schedule_seed": seed} for seed in range(6)
]


@pytest.fixture(params=ENGINES)
def session(request):
    with tf.Session(engine=request.param) as made:
        yield made


def test_values_live_in_sessions(session):
    v = tf.Variable(10, name="v")
    bump = v.assign_add(1)
    session.run(tf.global_variables_initializer())
    assert [session.run(bump), session.run(bump), session.run(v)] == [11, 12, 12]
    other = tf.Session()
    with pytest.raises(ut.Fault, match="`v` has no value yet") as caught:
        other.run(v)
    assert "global_variables_initializer" in caught.value.hint
    assert caught.value.span is not None
    other.run(v.initializer)
    assert other.run(v) == 10 and session.run(v) == 12


def test_assignments_give_the_new_value(session):
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    assert session.run(tf.assign(v, [3.0, 4.0])).tolist() == [3, 4]
    assert session.run(tf.assign_add(v, [1, 1])).tolist() == [4, 5]
    assert session.run(tf.assign_sub(v, 0.5)).tolist() == [3.5, 4.5]
    assert session.run(v.value() * 2).tolist() == [7, 9]
    v.load([9.0, 9.0], session)
    assert v.eval(session).tolist() == [9, 9]


def test_what_is_fetched_does_not_share_memory(session):
    v = tf.Variable(np.zeros(3))
    session.run(v.initializer)
    found = session.run(v)
    found += 1
    given = np.ones(3)
    x = tf.placeholder(tf.float64, [3])
    session.run(v.assign(x), {x: given})
    given += 1
    new = session.run(v)
    new += 5
    assert session.run(v).tolist() == [1, 1, 1]


def test_initial_values(session):
    a = tf.Variable(tf.ones([2, 2]), name="a")
    b = tf.Variable(a.initialized_value() * 3)
    c = tf.Variable(lambda: np.float64(0.5))
    d = tf.Variable(1, dtype=tf.float64)
    e = tf.Variable(tf.random_normal([1000], stddev=0.5))
    session.run(tf.global_variables_initializer())
    assert session.run(b).tolist() == [[3, 3], [3, 3]]
    assert session.run(c) == 0.5 and d.dtype == tf.float64
    drawn = session.run(e)
    assert drawn.dtype == np.float32 and 0.4 < drawn.std() < 0.6
    assert session.run(e).tolist() == drawn.tolist()  # drawn once
    assert a.shape.as_list() == [2, 2] and a.get_shape().num_elements() == 4
    assert [id(v) for v in tf.global_variables()] == [id(v) for v in (a, b, c, d, e)]


def test_lists_of_variables():
    a = tf.Variable(1, name="a")
    b = tf.Variable(2, name="a", trainable=False)
    assert [v.name for v in tf.global_variables()] == ["a:0", "a_1:0"]
    assert [v is a for v in tf.trainable_variables()] == [True]
    assert hash(a) != hash(b)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_control_edges_order(schedule):
    v = tf.Variable(1)
    with tf.control_dependencies([v.assign_add(1)]):
        doubled = v.assign(v * 2)
        with tf.control_dependencies([doubled]):
            after = v + 0
            done = tf.no_op()
    with tf.Session(**schedule) as session:
        session.run(v.initializer)
        assert session.run(after) == 4
        assert session.run(done) is None
        assert session.run(v) == 10


def test_a_read_happens_where_it_is_written(session):
    v = tf.Variable(1)
    before = v.read_value()
    with tf.control_dependencies([before]):
        write = v.assign(5)
    with tf.control_dependencies([write]):
        after = tf.identity(v)
        with tf.control_dependencies(None):
            free = tf.constant(7)
    session.run(v.initializer)
    assert session.run([before, after]) == [1, 5]
    assert session.run(free) == 7


def test_what_is_not_fetched_does_not_happen(session):
    v = tf.Variable(0)
    bump = v.assign_add(1)
    v.assign_add(100)

    @function.Defun(tf.int32)
    def quiet(x):
        v.assign_add(1000)  # nothing needs it
        return x

    def body(i):
        v.assign_add(10000)
        return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    session.run(v.initializer)
    assert session.run([bump, quiet(1), loop]) == [1, 1, 3]
    assert session.run(v) == 1


def test_effects_in_functions_branches_and_loops(session):
    v = tf.Variable(0)
    add = function.Declare("AddDown", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="AddDown")
    def impl(n):
        def more():
            with tf.control_dependencies([v.assign_add(n)]):
                return add(n - 1)

        return tf.cond(n > 0, more, lambda: n)

    def body(i):
        with tf.control_dependencies([v.assign_add(i)]):
            return i + 1

    session.run(v.initializer)
    assert session.run(add(4)) == 0 and session.run(v) == 10
    assert session.run(tf.while_loop(lambda i: i < 4, body, [0])) == 4
    assert session.run(v) == 16
    p = tf.placeholder(tf.bool)
    chosen = tf.cond(p, lambda: v.assign(1).op, tf.no_op)
    session.run(chosen, {p: False})
    assert session.run(v) == 16
    session.run(chosen, {p: True})
    assert session.run(v) == 1


def test_groups(session):
    a, b = tf.Variable(0), tf.Variable(0)
    both = tf.group(a.assign_add(1), [b.assign_add(2)], name="both")
    session.run(tf.global_variables_initializer())
    assert session.run(both) is None
    both.run(session=session)
    assert session.run([a, b]) == [2, 4]
    assert both.name == "both"


def test_a_failed_run_changes_nothing(session):
    v, d = tf.Variable(1), tf.placeholder(tf.int32)
    with tf.control_dependencies([v.assign_add(1)]):
        bad = 10 // d
    session.run(v.initializer)
    with pytest.raises(ut.Fault, match="division by zero"):
        session.run(bad, {d: 0})
    assert session.run(v) == 1
    assert session.run(bad, {d: 5}) == 2
    assert session.run(v) == 2


def test_variables_behave_like_tensors(session):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    session.run(v.initializer)
    tensors = [v + 1, 1 + v, v @ v, -v, v[0], v > 2, np.ones(2, np.float32) * v, tf.stack([v, v]), abs(v), v**2]
    one = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    expected = [one + 1, 1 + one, one @ one, -one, one[0], one > 2, one, np.stack([one, one]), one, one**2]
    for tensor, value in zip(tensors, expected, strict=True):
        found = session.run(tensor)
        assert found.dtype == value.dtype and np.array_equal(found, value)


def test_shapes_and_dtypes_of_assignments():
    v = tf.Variable([1.0, 2.0], name="v")
    with pytest.raises(ut.TypeMismatch, match="cannot be assigned to variable `v`"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(ut.TypeMismatch, match="the value for variable `v`"):
        v.assign(tf.constant([1, 2], tf.int64))
    with pytest.raises(ut.TypeMismatch, match="is not a variable"):
        tf.assign(tf.constant(1), 2)
    with pytest.raises(ut.TypeMismatch, match="needs an initial value"):
        tf.Variable()
    with pytest.raises(ut.TypeMismatch, match="cannot be"):
        tf.Variable(0.5, dtype=tf.int32)


def test_variables_are_made_outside():
    @function.Defun(tf.int32)
    def makes(x):
        return x + tf.Variable(x * 2)

    with pytest.raises(ut.GraphError, match="created inside a function"):
        makes(1)


def test_get_variable_and_scopes(session):
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", [3, 2])
        b = tf.get_variable("b", initializer=np.zeros(2, np.float32))
        with tf.variable_scope("inner"):
            k = tf.get_variable("k", shape=[], dtype=tf.int32, initializer=tf.ones_initializer())
        with pytest.raises(ut.GraphError, match="Variable layer/w already exists"):
            tf.get_variable("w", [3, 2])
    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("w", [3, 2]) is w
    assert [v.name for v in (w, b, k)] == ["layer/w:0", "layer/b:0", "layer/inner/k:0"]
    session.run(tf.global_variables_initializer())
    assert np.abs(session.run(w)).max() <= np.sqrt(6 / 5) and session.run(k) == 1


def test_seeds():
    draw = tf.random_uniform([4], 2, 3)
    with tf.Session() as session:
        with ut.options(seed=1):
            a, b = session.run(draw), session.run(draw)
        with ut.options(seed=1):
            c, d = session.run(draw), session.run(draw)
    assert a.tolist() == c.tolist() != b.tolist() == d.tolist()
    assert (a >= 2).all() and (a < 3).all()


def test_printing_and_asserting(session, capsys):
    x = tf.placeholder(tf.int32)
    shown = tf.Print(x + 1, [x, x * 2], "values {}: ")
    tf.Print(x, [x], "never")
    check = tf.Assert(x > 0, ["x is", x])
    with tf.control_dependencies([check]):
        checked = tf.identity(x)
    assert session.run([shown, checked], {x: 3}) == [4, 3]
    assert capsys.readouterr().out == "values {}: [3][6]\n"
    with pytest.raises(ut.Fault, match=r"assertion failed: x is \[-1\]"):
        session.run(checked, {x: -1})
    assert session.run(x * 2, {x: -1}) == -2


def test_ut_variables_have_no_place_here():
    theirs = ut.Variable(1.0, name="theirs")
    with pytest.raises(ut.GraphError, match="cannot be used in a graph of compat"):
        tf.add(theirs, 1.0)


def test_shapes_that_may_change(session):
    v = tf.Variable([1.0], shape=[None])
    w = tf.Variable([[1.0]], validate_shape=False)
    session.run(tf.global_variables_initializer())
    assert v.shape.as_list() == [None] and w.shape.as_list() == [None, None]
    assert session.run(v.assign([1.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(ut.TypeMismatch, match="is declared as"):
        tf.Variable([1.0], shape=[2])
