"""Sessions: what can be fetched and fed, what a run computes, which options hold."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from tests.support.threads import in_threads

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function


def test_fetches_keep_their_structure():
    Pair = namedtuple("Pair", "first second")
    a, b = tf.constant(1), tf.constant([2.0, 3.0])
    with tf.Session() as session:
        assert session.run(a) == 1
        assert session.run([a, a]) == [1, 1]
        found = session.run({"x": a, "y": [b, (a, b.op)], "z": Pair(a, a)})
        assert session.run([]) == [] and session.run({}) == {}
    assert found["x"] == 1 and found["z"] == Pair(1, 1)
    assert found["y"][0].tolist() == [2, 3] and found["y"][1] == (1, None)


def test_values_are_numpy():
    with tf.Session() as session:
        scalar, array = session.run([tf.constant(1), tf.constant([True])])
    assert type(scalar) is np.int32 and array.dtype == np.bool_
    array[0] = False  # the user may do what he likes with it


@pytest.mark.parametrize(
    ("dtype", "shape", "value"),
    [
        (tf.int32, [], 3),
        (tf.int32, None, np.int64(3)),
        (tf.float32, [], 3),
        (tf.float32, [], np.float64(0.5)),
        (tf.float32, [None, 2], [[1, 2], [3, 4], [5, 6]]),
        (tf.float64, [2], (1.0, 2.0)),
        (tf.bool, [], True),
        (tf.int64, [0], []),
        (tf.float32, [None], range(3)),
    ],
)
def test_feeds(dtype, shape, value):
    x = tf.placeholder(dtype, shape)
    with tf.Session() as session:
        found = session.run(tf.identity(x), {x: value})
    assert found.dtype == dtype.numpy
    assert np.array_equal(found, np.asarray(value))


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "says"),
    [
        (tf.int32, [], 2.5, "is i32, but is fed 2.5"),
        (tf.int32, [], 2**40, "does not fit in i32"),
        (tf.int32, [2], 3, r"has the shape \[2\]"),
        (tf.float32, [None, 3], np.ones((2, 2)), r"has the shape \[None, 3\], but is fed a value of shape \[2, 2\]"),
        (tf.bool, [], 1, "is bool, but is fed 1"),
        (tf.int32, [], "three", "cannot be fed this"),
        (tf.int32, [None], [[1], [2, 3]], "cannot be fed this"),
        (tf.int32, [], None, "cannot be fed this"),
    ],
)
def test_feeds_that_do_not_fit(dtype, shape, value, says):
    x = tf.placeholder(dtype, shape, name="x")
    with tf.Session() as session, pytest.raises(ut.TypeMismatch, match=says) as caught:
        session.run(x + x if dtype != tf.bool else x, {x: value})
    assert "placeholder `x` on line" in caught.value.what
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert caught.value.hint


def test_only_what_is_needed_must_be_fed():
    x, y = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    with tf.Session() as session:
        assert session.run(x * 2, {x: 4}) == 8
        assert session.run(x * 2, {x: 4, y: 5}) == 8
        with pytest.raises(ut.GraphError, match="needed, but not fed"):
            session.run(x + y, {x: 4})


def test_any_tensor_can_be_fed():
    x = tf.placeholder(tf.int32)
    double = x * 2
    result = double + 1
    maybe = tf.placeholder_with_default(7, [])
    with tf.Session() as session:
        assert session.run(result, {double: 10}) == 11
        assert session.run([double, result], {double: 10}) == [10, 11]
        assert session.run(result, {x: 10}) == 21
        assert session.run([maybe + 1, maybe]) == [8, 7]
        assert session.run([maybe + 1, maybe], {maybe: 1}) == [2, 1]


def test_names():
    x = tf.placeholder(tf.int32, [], "x")
    a, b = tf.add(x, 1, name="more"), tf.add(x, 2, name="more")
    assert [t.name for t in (x, a, b)] == ["x:0", "more:0", "more_1:0"]
    with tf.Session() as session:
        assert session.run(["more:0", "more_1:0", "more"], {"x:0": 5}) == [6, 7, None]
        with pytest.raises(ut.GraphError, match="this graph has no 'less:0'"):
            session.run("less:0")
    assert tf.get_default_graph().get_tensor_by_name("more_1:0").op.type == "Add"


def test_programs_are_made_once(graph):
    x = tf.placeholder(tf.int32)
    y = x * 2 + 1
    with tf.Session() as session:
        session.run(y, {x: 1})
        program = next(iter(graph.programs.values()))
        session.run(y, {x: 2})
        session.run([y], {x: 2})
        assert list(graph.programs.values()) == [program]
        assert list(program.program.plans) == [("waves", True, False, False)]
    with tf.Session(engine="demand") as session:
        assert session.run(y, {x: 5}) == 11
    assert len(program.program.plans) == 2


def test_the_graph_may_grow_between_runs():
    x = tf.constant(1)
    with tf.Session() as session:
        for k in range(5):
            assert session.run(x) == k + 1
            x = x + 1


def test_options_of_a_session_and_around_it():
    down = function.Declare("Down2", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="Down2")
    def impl(n):
        return tf.cond(n > 0, lambda: down(n - 1), lambda: n)

    result = down(20)
    with tf.Session() as session:
        assert session.run(result) == 0
        with ut.options(max_depth=5), pytest.raises(ut.RecursionLimit):
            session.run(result)
        with ut.options(simplify=False, engine="demand"):
            assert session.run(result) == 0
        events = []
        with ut.options(trace=events):
            session.run(result)
        assert events
    with tf.Session(max_depth=5) as session, pytest.raises(ut.RecursionLimit):
        session.run(result)
    with pytest.raises(ut.UndertowError, match="unknown option 'engin'"):
        tf.Session(engin="demand")
    with pytest.raises(ut.UndertowError, match="the trace cannot be written"), tf.Session(trace="/no/such/x") as s:
        s.run(result)


def test_config_and_target():
    with tf.Session("", config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(tf.constant(1)) == 1
    for target in ("localhost:2222", "grpc://localhost", "grpcs://localhost:1"):
        with pytest.raises(ut.GraphError, match="a session cannot run on"):
            tf.Session(target)
    with pytest.raises(ut.TypeMismatch, match="target must be a string, not 3"):
        tf.Session(3)


def test_closed():
    x = tf.constant(1)
    with tf.Session() as session:
        session.run(x)
    with pytest.raises(ut.GraphError, match="this session is closed"):
        session.run(x)
    with pytest.raises(ut.GraphError, match="this session is closed"), session:
        pass


def test_default_sessions():
    x = tf.constant(3)
    with pytest.raises(ut.GraphError, match="there is no session to run"):
        x.eval()
    outer = tf.Session()
    with outer.as_default():
        assert x.eval() == 3
        with tf.Session() as inner:
            assert tf.get_default_session() is inner
            x.op.run()
        assert tf.get_default_session() is outer
    assert tf.get_default_session() is None
    assert x.eval(session=outer) == 3
    interactive = tf.InteractiveSession()
    assert x.eval() == 3
    interactive.close()
    assert tf.get_default_session() is None


def test_a_session_chooses_its_graph():
    graph = tf.Graph()
    with tf.Session(graph=graph) as session:
        inside = tf.constant(5)
        assert inside.graph is graph
        assert session.run(inside) == 5
        with pytest.raises(ut.GraphError, match="reset_default_graph cannot be called inside"):
            tf.reset_default_graph()
    assert tf.constant(1).graph is not graph


def test_what_belongs_to_another_graph():
    x = tf.placeholder(tf.int32)
    old = tf.Variable(1)
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.constant(1)
        for wrong in (x, old, x.op, [y, x]):
            with pytest.raises(ut.GraphError, match="belongs to another graph"):
                session.run(wrong)
        with pytest.raises(ut.GraphError, match="belongs to another graph"):
            session.run(y, {x: 1})
        with pytest.raises(ut.GraphError, match="belongs to another graph"):
            x + y
        with pytest.raises(ut.GraphError, match="belongs to another graph"):
            y + old


@pytest.mark.parametrize("wrong", [None, 3, "x y", object(), [None], {"a": 1.5}, lambda: 1])
def test_what_cannot_be_fetched(wrong):
    with tf.Session() as session, pytest.raises(ut.UndertowError) as caught:
        session.run(wrong)
    assert caught.value.hint and caught.value.span is not None


def test_what_stands_in_a_branch_or_a_function_cannot_be_fetched():
    kept = []

    @function.Defun(tf.int32)
    def keeps(x):
        kept.append(x + 1)
        return x

    keeps(1)
    tf.cond(tf.constant(True), lambda: kept.append(tf.constant(1)) or tf.constant(2), lambda: tf.constant(3))
    tf.while_loop(lambda i: i < 3, lambda i: kept.append(i + 1) or i + 1, [0])
    with tf.Session() as session:
        for tensor in kept:
            with pytest.raises(ut.GraphError, match=r"none can be fetched|cannot be fetched"):
                session.run(tensor)
            with pytest.raises(ut.UndertowError):
                session.run(tensor + 1)


def test_threads_read_at_once():
    counter = tf.Variable(0)
    x = tf.placeholder(tf.int32)
    y = x * 2 + counter
    bump = counter.assign_add(1)
    session = tf.Session()
    session.run(tf.global_variables_initializer())

    def work(k):
        for _ in range(20):
            assert 2000 * k <= session.run(y, {x: 1000 * k}) <= 2000 * k + 80
            session.run(bump)

    in_threads(work, 4)
    assert session.run(counter) == 80


def test_each_thread_has_its_default_graph():
    (found,) = in_threads(lambda _: tf.get_default_graph(), 1)
    assert found is not tf.get_default_graph()


@pytest.mark.slow
def test_a_view_of_the_graph(graph):
    x = tf.placeholder(tf.int32, [], "x")
    assert "add" in str(graph.view(x + 1))
    assert "<svg" in graph.view(x + 1).svg()


@pytest.mark.slow
def test_long_chains_of_nodes():
    x = tf.placeholder(tf.int32)
    y = x
    for _ in range(1200):
        y = y + 1
    with tf.Session() as session:
        assert session.run(y, {x: 1}) == 1201
