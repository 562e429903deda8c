"""Libraries as GraphDefs: names, edges, constants, functions, branches, loops, order, places."""

from __future__ import annotations

import re

import pytest
from tests.programs import PROGRAMS, Program
from tests.support.wire import decoded, entries, one, texts

import undertow as ut
from undertow.passes.pipeline import make_library
from undertow.viz.graphdef import graph_def
from undertow.viz.messages import GraphDef, NodeDef


@ut.function
def fac(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else n * fac(n - 1)


def by_name(nodes: list[NodeDef]) -> dict[str, NodeDef]:
    assert len({node.name for node in nodes}) == len(nodes)
    return {node.name: node for node in nodes}


def check(graph: GraphDef) -> None:
    """Every input is there, every name can be TensorFlow's, every function that is entered is in the library."""
    functions = graph.library.function
    assert len({function.signature.name for function in functions}) == len(functions)
    check_nodes(graph.node, set(), r"(\^[^:^]+|[^:^]+(:\d+)?)")
    for function in functions:
        params = {arg.name for arg in function.signature.input_arg}
        check_nodes(function.node_def, params, r"(\^[^:^]+|[^:^]+(:\w+:\d+)?)")
        names = by_name(function.node_def)
        for arg in function.signature.output_arg:
            assert function.ret[arg.name] == f"{arg.name}:output:0" and names[arg.name].op == "Identity"
        assert set(function.control_ret) == set(function.signature.control_output) <= names.keys()
    assert len(graph.SerializeToString()) == graph.ByteSize() > 0


def check_nodes(nodes: list[NodeDef], params: set[str], form: str) -> None:
    names = by_name(nodes)
    for node in nodes:
        assert re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", node.name), node.name
        assert re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-]*", node.op), node.op
        seen_control = False
        for given in node.input:
            assert re.fullmatch(form, given), given
            assert given.lstrip("^").split(":")[0] in names.keys() | params, (node.name, given)
            seen_control |= given.startswith("^")
            assert seen_control == given.startswith("^")  # control inputs come last


def test_factorial():
    """main: n -> fac. fac: n -> n <= 1 -> Switch -> (1, n * fac(n - 1)) -> Merge."""
    graph = graph_def(fac.library(3))
    check(graph)
    assert [(node.name, node.op, node.input) for node in graph.node] == [
        ("n", "Placeholder", []),
        ("fac", "fac", ["n"]),
    ]
    (function,) = graph.library.function
    nodes = by_name(function.node_def)
    assert nodes["less_equal"].input == ["n", "less_equal/y:output:0"]
    assert nodes["n.if"].input == ["n", "less_equal:z:0"]  # data first, as TensorFlow has it
    assert nodes["if1.else/subtract"].input[0] == "n.if:output_false:0"
    assert nodes["if1.then/value"].op == "Const" and nodes["if1.then/value"].input == ["^start.if/switch_t"]
    assert nodes["start.if/switch_t"].input == ["start.if:output_true:0"]
    assert nodes["if1.else/fac"].op == "fac" and nodes["if1.else/multiply"].input[1] == "if1.else/fac:merge_2:0"
    assert nodes["merge"].attr["N"].i == 2 and function.signature.output_arg[0].name == "merge_2"
    assert nodes["less_equal"].attr["T"].type == 9
    assert b"test_graphdef.py" in nodes["less_equal"].attr["_source"].s


def test_constants_and_shapes():
    @ut.function
    def f(x: ut.f32[None, 2]):
        return x + ut.asarray([1.5, 2.5], ut.f32)

    graph = graph_def(f.library(ut.zeros((3, 2), ut.f32)))
    check(graph)
    nodes = by_name(graph.library.function[0].node_def)
    tensor = nodes["add/y"].attr["value"].tensor
    assert tensor.dtype == 1 and [dim.size for dim in tensor.tensor_shape.dim] == [2]
    assert tensor.tensor_content == b"\0\0\xc0\x3f\0\0\x20\x40"
    shapes = nodes["add"].attr["_output_shapes"].list.shape
    assert [[dim.size for dim in shape.dim] for shape in shapes] == [[-1, 2]]


def test_a_loop_is_a_function_whose_first_results_are_its_variables():
    @ut.function
    def total(n: ut.i64) -> ut.i64:
        total = 0
        for i in range(n):
            total += i
        return total

    graph = graph_def(total.library(3))
    check(graph)
    body, loop = sorted(graph.library.function, key=lambda function: function.attr["_kind"].s)
    assert loop.signature.output_arg[-1].type == 10  # whether there is another iteration
    (entering,) = [node for node in body.node_def if node.op == loop.signature.name]
    assert body.node_def[-1].input == [f"{entering.name}:{loop.signature.output_arg[1].name}:0"]
    assert entering.attr["_kind"].s == b"loop"


def test_order_is_control_edges():
    """assert, then a variable is read: the order token is no data, and the result waits for nothing else."""
    cell = ut.Variable(1.0)

    @ut.function
    def bump(x: ut.f64) -> ut.f64:
        cell.assign(x)
        return cell.read() + x

    graph = graph_def(bump.library(2.0))
    check(graph)
    nodes = [node for function in graph.library.function for node in function.node_def]
    (assign,) = [node for node in nodes if node.op == "AssignVariableOp"]
    (read,) = [node for node in nodes if node.op == "ReadVariableOp"]
    assert f"^{assign.name}" in read.input and read.attr["dtype"].type == 2
    assert any(function.signature.control_output for function in graph.library.function)


def test_places():
    @ut.function
    def f(x: ut.f64) -> ut.f64:
        with ut.device("worker:1"):
            return x * 2.0

    graph = graph_def(f.library(1.0))
    (function,) = graph.library.function
    assert by_name(function.node_def)["multiply"].device == "worker:1"


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS[::15], ids=str)
def test_programs_of_all_kinds(program: Program):
    """Of what engines run, too: with hoisted values, phases of gradients, checks."""
    captured, _ = program.capture(0)
    for library in (captured, make_library(captured, True, True)):
        check(graph_def(library))


def test_the_wire_format_has_it_all():
    fields = decoded(graph_def(fac.library(3)).SerializeToString())
    nodes = [decoded(node) for node in fields[1]]
    assert [texts(node, 1) + texts(node, 2) for node in nodes] == [["n", "Placeholder"], ["fac", "fac"]]
    (function,) = [decoded(f) for f in decoded(one(fields, 2))[1]]
    signature = decoded(one(function, 1))
    assert texts(signature, 1) == ["fac"] and texts(decoded(one(signature, 2)), 1) == ["n"]
    assert entries(function, 4) == {"merge_2": b"merge_2:output:0"}
    body = {one(node, 1): node for node in map(decoded, function[3])}
    assert texts(body[b"if1.else/multiply"], 3) == ["n.if:output_false:0", "if1.else/fac:merge_2:0"]
    assert decoded(entries(body[b"less_equal"], 5)["T"]) == {6: [9]}


def test_protobuf_reads_it():
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2", exc_type=ImportError)
    from google.protobuf import text_format

    ours = graph_def(fac.library(3))
    theirs = graph_pb2.GraphDef.FromString(ours.SerializeToString())
    assert text_format.MessageToString(theirs) == str(ours)
    assert text_format.Parse(str(ours), graph_pb2.GraphDef()) == theirs
