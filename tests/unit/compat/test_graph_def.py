"""`Graph.as_graph_def`: the names of the graph, its functions, and nothing that is not the user's."""

from __future__ import annotations

import pytest
from tests.support.wire import decoded, one

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function


def factorial():
    declared = function.Declare("Fac", [("n", tf.int32)], [("result", tf.int32)])

    @function.Defun(tf.int32, func_name="Fac", out_names=["result"])
    def define(n):
        return tf.cond(tf.less_equal(n, 1), lambda: 1, lambda: n * declared(n - 1))

    define.add_to_graph(tf.get_default_graph())
    return declared


def test_nodes_have_the_names_of_operations():
    n = tf.placeholder(tf.int32, name="n")
    with tf.device("/job:w/task:1"):
        total = tf.add(n, 1, name="total")
    again = tf.add(total, n, name="total")
    graph = tf.get_default_graph().as_graph_def()
    nodes = {node.name: node for node in graph.node}
    assert {n.op.name, total.op.name, again.op.name} <= nodes.keys()
    assert nodes["n"].op == "Placeholder" and nodes["n"].attr["dtype"].type == 3
    assert nodes[again.op.name].input == [total.op.name, "n"] and nodes["total"].device == "/job:w/task:1"
    assert graph.library.function == [] and not graph.HasField("library") and graph.HasField("versions")


def test_functions_are_in_the_library():
    fac = factorial()
    fac(tf.placeholder(tf.int32, name="n"), name="y")
    graph = tf.get_default_graph().as_graph_def()
    (called,) = [node for node in graph.node if node.name == "y"]
    (fac_def,) = graph.library.function
    assert called.op == fac_def.signature.name == "Fac" and called.input == ["n"]
    assert [arg.name for arg in fac_def.signature.output_arg] == ["result"]
    assert any(node.op == "Fac" and node.input[0].startswith("if1.else/") for node in fac_def.node_def)


def test_what_is_fed_leaves_no_trace():
    x = tf.placeholder(tf.float32, name="x")
    y = tf.add(x, 1.0, name="y")
    before = str(tf.get_default_graph().as_graph_def())
    with tf.Session() as session:
        assert session.run(y * 2.0, {y: 4.0}) == 8.0
    names = [node.name for node in tf.get_default_graph().as_graph_def().node]
    assert names.count("y") == 1 and not [name for name in names if name.startswith("y_") and "/" not in name]
    assert str(tf.get_default_graph().as_graph_def()).startswith(before[:200])


def test_shapes_that_only_runs_know():
    """A placeholder without a shape is of unknown rank, and what runs make for the shapes of its feeds is not shown."""
    x = tf.placeholder(tf.float32, name="x")
    y = tf.multiply(x, 2.0, name="y")
    before = tf.get_default_graph().as_graph_def()
    with tf.Session() as session:
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
    nodes = {node.name: node for node in tf.get_default_graph().as_graph_def().node}
    assert str(tf.get_default_graph().as_graph_def()) == str(before)
    assert nodes["x"].attr["shape"].shape.unknown_rank and nodes["y"].attr["_output_shapes"].list.shape[0].unknown_rank


def test_control_edges():
    v = tf.Variable(1.0, name="v")
    with tf.control_dependencies([v.assign_add(1.0)]):
        tf.identity(v, name="after")
    nodes = {node.name: node for node in tf.get_default_graph().as_graph_def().node}
    (assign,) = [node for node in nodes.values() if node.op == "AssignAddVariableOp"]
    assert f"^{assign.name}" in nodes["after"].input and assign.attr["variable"].s == b"v"


def test_it_is_a_message():
    tf.placeholder(tf.float32, [None, 2], name="x")
    graph = tf.get_default_graph().as_graph_def()
    data = graph.SerializeToString()
    assert str(tf.Session().graph_def) == str(graph)
    assert isinstance(graph, tf.GraphDef) and len(data) == graph.ByteSize()
    (node,) = decoded(data)[1]
    assert one(decoded(node), 1) == b"x"
    assert str(graph).startswith('node {\n  name: "x"\n  op: "Placeholder"\n')


def test_a_function_must_be_defined():
    function.Declare("Missing", [("n", tf.int32)], [("m", tf.int32)])(tf.constant(1))
    with pytest.raises(ut.GraphError, match="never defined"):
        tf.get_default_graph().as_graph_def()
