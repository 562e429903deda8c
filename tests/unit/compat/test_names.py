"""Name scopes, unique names, variable scopes, collections, and the elements of a graph by name."""

from __future__ import annotations

import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function


def test_scopes_nest_and_are_unique():
    with tf.name_scope("a") as outer:
        x = tf.constant(1.0, name="x")
        with tf.name_scope("b") as inner:
            y = tf.add(x, 1.0, name="y")
    with tf.name_scope("a"):
        again = tf.identity(x, name="x")
    with tf.name_scope("a/"):
        back = tf.identity(x, name="z")
        twice = tf.identity(x, name="z")
    assert (outer, inner) == ("a/", "a/b/")
    names = [t.name for t in (x, y, again, back, twice)]
    assert names == ["a/x:0", "a/b/y:0", "a_1/x:0", "a/z:0", "a/z_1:0"]


def test_scopes_of_functions_that_make_operations():
    def layer(x, name=None):
        with tf.name_scope(name, "layer", [x]) as scope:
            return tf.identity(x * 2.0, name=scope)

    x = tf.placeholder(tf.float32, [], name="x")
    assert [layer(x).name, layer(x).name, layer(x, "mine").name] == ["layer:0", "layer_1:0", "mine:0"]
    with pytest.raises(ValueError, match="both None"), tf.name_scope(None, None, [x]):
        pass
    with pytest.raises(ValueError, match="not a valid scope name"), tf.name_scope("a b"):
        pass


def test_no_scope():
    with tf.name_scope("a"), tf.name_scope(None):
        x = tf.constant(1.0, name="x")
    assert x.name == "x:0"


def test_names_of_scopes_and_operations_are_one_set(graph):
    tf.constant(1.0, name="a")
    with tf.name_scope("a"):
        x = tf.placeholder(tf.float32, [], name="p")
    assert x.name == "a_1/p:0"
    assert graph.unique_name("a") == "a_2" and graph.unique_name("a", mark_as_used=False) == "a_3"
    assert graph.unique_name("a") == "a_3"


def test_a_name_holds_where_nothing_is_to_be_done():
    x = tf.placeholder(tf.float32, [], name="x")
    assert tf.reshape(x, [], name="same").name == "same:0"
    assert tf.cast(x, tf.float32, name="as_it_is").name == "as_it_is:0"
    assert x.name == "x:0"


def test_calls_are_named_after_functions():
    @function.Defun(tf.float32, func_name="Foo")
    def foo(a):
        return a + 1

    names = [foo([1.0]).op.name, foo([1.0]).op.name, foo([1.0], name="mine").op.name]
    with tf.name_scope("my"):
        names.append(foo([1.0], name="precious").op.name)
    assert names == ["Foo", "Foo_1", "mine", "my/precious"]


def test_variables_and_scopes():
    with tf.variable_scope("layer") as scope:
        w = tf.get_variable("w", [2])
        v = tf.Variable(1.0, name="v")
        assert tf.identity(w).name == "layer/identity:0" and scope.name == "layer"
    with tf.variable_scope("layer", reuse=True):
        assert tf.get_variable("w", [2]) is w
        assert tf.identity(w).name == "layer_1/identity:0"
        with pytest.raises(ValueError, match="layer/u does not exist"):
            tf.get_variable("u", [2])
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("w") is w
    assert (w.name, w.op.name, v.name) == ("layer/w:0", "layer/w", "layer/v:0")
    with tf.name_scope("outside"):
        assert tf.get_variable("free", [1]).name == "free:0"
        assert tf.Variable(0.0, name="bound").name == "outside/bound:0"


def test_defaults_of_a_variable_scope():
    with tf.variable_scope("s", initializer=tf.ones_initializer(), regularizer=lambda w: tf.reduce_sum(w) * 0.5):
        w = tf.get_variable("w", [3])
        k = tf.get_variable("k", [2], initializer=tf.zeros_initializer)  # a class in TensorFlow: not called
        assert tf.get_variable_scope().name == "s"
    losses = tf.get_default_graph().get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([w, k])[1].tolist() == [0, 0] and session.run(losses) == [1.5, 0.0]


def test_names_for_scopes_without_one():
    names = []
    for _ in range(2):
        with tf.variable_scope(None, default_name="dense"):
            names.append(tf.get_variable("k", [1]).name)
    assert names == ["dense/k:0", "dense_1/k:0"]


def test_a_getter_of_the_users():
    made = []

    def getter(original, name, *args, **kwargs):
        made.append(name)
        return original(name, *args, **kwargs)

    with tf.variable_scope("g", custom_getter=getter):
        tf.get_variable("w", [1])
    assert made == ["g/w"]


def test_variables_of_a_function_are_made_once():
    @function.Defun(tf.float32)
    def layer(x):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        return x + w

    with tf.variable_scope("one"):
        a = layer([1.0, 2.0])
    with tf.variable_scope("two"):
        b = layer([1.0, 2.0])
    assert [v.name for v in tf.global_variables()] == ["one/w:0"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [x.tolist() for x in session.run([a, b])] == [[2, 3], [2, 3]]


def test_collections(graph):
    v = tf.Variable(1.0, name="v")
    u = tf.Variable(1.0, name="u", trainable=False)
    t = tf.Variable(1.0, name="t", collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    assert tf.global_variables() == [v, u] and tf.trainable_variables() == [v] and tf.local_variables() == [t]
    assert [x.name for x in tf.global_variables("u")] == ["u:0"]
    graph.add_to_collection("losses", v)
    graph.add_to_collections(["losses", "mine"], u)
    assert graph.get_collection("losses") == [v, u] and graph.get_collection("mine") == [u]
    graph.get_collection("mine").append(3)  # a copy
    assert graph.get_collection("mine") == [u]
    graph.get_collection_ref("mine").append(3)
    assert graph.get_collection("mine") == [u, 3] and graph.get_collection("nothing") == []
    tf.add_to_collection("kept", 1)
    tf.add_to_collections(["kept"], 2)
    tf.get_collection_ref("kept").append(3)
    assert tf.get_collection("kept") == graph.get_collection("kept") == [1, 2, 3]
    graph.clear_collection("mine")
    assert graph.get_collection("mine") == [] and "losses" in graph.get_all_collection_keys()


def test_elements_by_name(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.add(x, 1.0, name="y")
    w = tf.Variable(1.0, name="w")
    assert graph.get_tensor_by_name("y:0").op == y.op == graph.get_operation_by_name("y")
    assert graph.as_graph_element("y") == y.op and graph.as_graph_element(w).name.startswith("w/read")
    assert [op.name for op in graph.get_operations()][:2] == ["x", "y"]
    assert y.op.type == "Add" and y.op.inputs[0].name == "x:0" and [op.name for op in x.consumers()] == ["y"]
    with pytest.raises(KeyError, match="this graph has no 'z:0'"):
        graph.get_tensor_by_name("z:0")
    with pytest.raises(ValueError, match="refers to an Operation"):
        graph.get_tensor_by_name("y")
    with tf.Graph().as_default() as other, pytest.raises(ValueError, match="not an element of this graph"):
        other.as_graph_element(y)
    with tf.Session() as session:
        assert session.run(["y:0", "y"], {"x:0": 2.0}) == [3.0, None]


def test_a_finished_graph_takes_nothing_more(graph):
    x = tf.constant(1.0) + 1.0
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.add(x, 1.0)
    with tf.Session() as session:
        assert session.run(x) == 2.0


def test_is_there_a_value():
    v = tf.Variable(1.0, name="v")
    ready, missing = tf.is_variable_initialized(v), tf.report_uninitialized_variables()
    with tf.Session() as session:
        assert not session.run(ready) and session.run(missing).tolist() == [b"v"]
        session.run(tf.global_variables_initializer())
        assert session.run(ready) and session.run(missing).tolist() == []


def test_control_dependencies_of_a_graph(graph):
    v = tf.Variable(0)
    with graph.control_dependencies([v.assign_add(1)]), graph.control_dependencies(None):
        free = tf.identity(tf.constant(5))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(free)
        assert session.run(v) == 0


def test_errors_are_of_the_library_too():
    with pytest.raises(ut.GraphError):
        tf.get_default_graph().get_tensor_by_name("nothing:0")
