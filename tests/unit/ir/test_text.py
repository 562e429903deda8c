"""Text form: what graphs look like, and that reading undoes printing.

factorial                 fac(n):  less_equal ─┬─► switch n ─► T: 1
main ─► fac ─► return                          └─► F: n * fac(n - 1) ─► merge
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ir_texts import LIBRARY, STATIC, nested
from tests.support.validity import parse_library, parse_static

from undertow.errors import GraphError, Span
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Phase, Port, Region, Site, StaticGraph
from undertow.ir.text import dump, dump_constants, dump_node, parse, show_const
from undertow.types import CTL, Type, bool_, f32, i64

I64, BOOL, ONE = Type(i64), Type(bool_), Const(np.int64(1))


def at(line: int, column: int) -> Span:
    return Span("factorial.py", line, column, "fac")


def factorial() -> Library:
    nodes = (
        Node("start", (), (CTL,), "start"),
        Node("param", (), (I64,), "n", attrs=Attrs(index=0)),
        Node("less_equal", (Port(1), ONE), (BOOL,), "less_equal", span=at(3, 8)),
        Node("switch", (Port(2), Port(0)), (CTL, CTL), "start.if"),
        Node("identity", (ONE,), (I64,), "if1.then/value", 1, controls=(Port(3, 0),), span=at(4, 16)),
        Node("switch", (Port(2), Port(1)), (I64, I64), "n.if"),
        Node("subtract", (Port(5, 1), ONE), (I64,), "if1.else/subtract", 2, span=at(5, 20)),
        Node("call", (Port(6),), (I64,), "if1.else/fac", 2, Attrs(callee="fac"), span=at(5, 16)),
        Node("multiply", (Port(5, 1), Port(7)), (I64,), "if1.else/multiply", 2, span=at(5, 12)),
        Node("merge", (Port(4), Port(8)), (I64,), "merge", span=at(3, 5)),
    )
    regions = (
        Region("function", "fac", starts=(Port(0),)),
        Region("branch", "if1.then", 0, Port(2), True, (Port(3, 0),)),
        Region("branch", "if1.else", 0, Port(2), False, (Port(3, 1),)),
    )
    fac = FunctionGraph(nodes, regions, "fac", "function", (Phase((1,), (Port(9),)),), 0, at(2, 1))
    main = FunctionGraph(
        (
            Node("start", (), (CTL,), "start"),
            Node("param", (), (I64,), "n", attrs=Attrs(index=0)),
            Node("call", (Port(1),), (I64,), "fac", attrs=Attrs(callee="fac"), span=Span("factorial.py", 8, 1)),
        ),
        (Region("main", "main", starts=(Port(0),)),),
        "main",
        "main",
        (Phase((1,), (Port(2),)),),
    )
    return Library({"fac": fac, "main": main})


def test_library_prints() -> None:
    assert dump(factorial()) == LIBRARY


def test_library_parses() -> None:
    assert parse(LIBRARY) == factorial()


def test_static_graph_round_trips() -> None:
    graph = parse_static(STATIC)
    assert dump(graph) == STATIC
    assert graph.sites == (Site("call", "fac", 0, 1), Site("call", "fac/fac", 3, 1))
    assert [region.kind for region in graph.regions] == ["main", "function", "branch", "branch"]
    assert graph.inputs == (1,) and graph.fetches == (Port(4),)
    assert graph.nodes[-1].inputs == (Port(9), Port(15))


def test_spans_can_be_left_out() -> None:
    text = dump(factorial(), spans=False)
    assert "@" not in text and "file" not in text
    again = parse_library(text)
    assert all(node.span is None for function in again.functions.values() for node in function.nodes)


def test_one_node_can_be_shown() -> None:
    assert dump_node(factorial().functions["fac"], 6) == "if1.else/subtract: i64 = subtract n.if#1, 1:i64"


# Every row is printed as it stands: a form of the grammar each.
FORMS = {
    "phases": """\
library 1 main=f

function f(x: f64) -> (y)
  y: f64  = multiply x, x
  phase 1(dy: f64) -> (dx)
  dx: f64 = multiply dy, x
""",
    "start that has a name and a place": """\
library 1 main=f
file 0 "a \\"b\\".py"

main f(go @ 0:1:1; x: f64[2,?] @ 0:1:7, y: bool) -> (x, y)
""",
    "params apart from their start": """\
library 1 main=f

main f[x] -> (x)
  x: f64     = param index=0
  start: ctl = start
""",
    "phases apart": """\
library 1 main=f

main f() -> ()
  phase 1[x] -> (x)
  start~1: ctl = start phase=1
  y: f64       = identity 1.0:f64 ^start
  x: f64       = param index=0 phase=1
""",
    "loop": """\
library 1 main=main

loop main/while(i: i64, n: i64) -> (less, if1.then/i) carried=1
  less: bool      = less i, n
  branch if1 less
  i.if: i64, i64  = switch less, i
  if1.then/i: i64 = add i.if#0, 1:i64
""",
    "starts and body named": """\
library 1 main=f

main f() -> () ^ as body
  less: bool = less 1:i64, 2:i64 ^start
""",
    "one side, nested, numbered": """\
library 1 main=f

function f(p: bool, q: bool) -> ()
  branch a#3 p is true
  branch b#1 q ^start in a
""",
    "no phase, no output": """\
library 1 main=f

function f
  say = print "in"=["a", 1.5, true, null, [], [[-2]]] text="x"
""",
    "names": """\
library 1 main="1 2"

main "1 2"("in": i64, "a\\nb": i64, f32: i64, ~x/y'@-: i64) -> (f32)
  "true": i64 = "+" "in", f32, "a\\nb", ~x/y'@- k=-inf "k k"=inf
""",
    "regions of one name": """\
static 1 s

main a
  x: ctl = start

loop b#2 in a ^y
  y: ctl = start

in a
  z: ctl = identity x

function b#1
  w: ctl = start
""",
    "branches of one name": """\
static 1 s
site 1 call a: g/if1.then -> g

main f
  f/p: bool         = less 1:i64, 2:i64
  branch if1 f/p
  f/if1.then/x: ctl = identity f/p

function g
  g/p: bool         = less 1:i64, 2:i64
  branch if1 g/p
  g/if1.else/x: ctl = identity g/p
  x: ctl            = identity g/p in g/if1.then
""",
    "constants": """\
library 1 main=f

main f() -> ()
  x = op true, false, -1:i32, 0.1:f32, 0.1:f64, nan:f64, -inf:f32, nan(7ff8000000000001):f64, nan(ffc00000):f32
  y = op [1, 2, 3]:i64[3], [[true], [false]]:bool[2,1], []:f32[0,3], -0.0:f64, 1e-45:f32, 1e+22:f64 ^start
""",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_round_trips(form: str) -> None:
    text = FORMS[form]
    graph = parse(text)
    assert dump(graph) == text
    assert parse(dump(graph)) == graph


def test_layout_is_free_and_comments_are_skipped() -> None:
    loose = LIBRARY.replace("  ", "\t ").replace("\n", "   # said twice\n# alone\n")
    assert parse(loose) == factorial()


def test_big_arrays_are_named_and_shared() -> None:
    table = np.arange(300, dtype=np.float32).reshape(3, 100)
    node = Node("op", (Const(table), Const(table[:, :3]), Const(table)), (), "x")
    graph = StaticGraph((node,), (Region("main", "main"),), "s")
    constants = dump_constants(graph)
    (name,) = constants
    assert len(name) == 16 and np.array_equal(constants[name], table)
    text = dump(graph)
    assert f"f32[3,100]${name}, [[0.0, 1.0, 2.0], [100.0, 101.0, 102.0], [200.0, 201.0, 202.0]]:f32[3,3]" in text
    again = parse(text, constants)
    assert again == graph
    assert again.nodes[0].inputs[0] is again.nodes[0].inputs[2]  # type: ignore[union-attr]
    with pytest.raises(GraphError, match=r"line 4: array \$.* is not among the constants"):
        parse(text)
    with pytest.raises(GraphError, match="does not match its digest"):
        parse(text, {name: table + 1})
    with pytest.raises(GraphError, match=r"is f32\[3,100\], not f32\[100,3\]"):
        parse(text.replace("[3,100]", "[100,3]"), constants)


@given(st.integers(0, 2**32 - 1))
def test_every_f32_round_trips(bits: int) -> None:
    const = Const(np.frombuffer(bits.to_bytes(4, "little"), np.float32)[0])
    graph = parse(f"static 1 s\nmain m\nx = op {show_const(const)}")
    assert isinstance(graph, StaticGraph) and graph.nodes[0].inputs == (const,)


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_every_f64_and_i64_round_trips(bits: int, integer: int) -> None:
    float_ = Const(np.frombuffer(bits.to_bytes(8, "little"), np.float64)[0])
    graph = parse(f"static 1 s\nmain m\nx = op {show_const(float_)}, {show_const(Const(np.int64(integer)))}")
    assert isinstance(graph, StaticGraph) and graph.nodes[0].inputs == (float_, Const(np.int64(integer)))


# --------------------------------------------------------------------------------------------------------------
# Bad text

BAD = {
    "": "line 1: expected `library` or `static`, but there is no text",
    "graph 1": "line 1: expected `library` or `static`, but found 'graph' at column 1",
    "library 2 main=m": "line 1: only format 1 is supported",
    "library 1 main=m\nx: i64 = op": "line 2: expected `main` or `function` or `loop` or `map`, but found 'x'",
    "static 1 s\nx: i64 = op": "line 2: expected a region for the node to be in",
    "static 1 s\nmain m\nx: i6 = op": "line 3: expected a type such as i64 or f32[3,?], but found 'i6' at column 4",
    "static 1 s\nmain m\nx = op y": "line 3: expected the name of a node, but found 'y' at column 8",
    "static 1 s\nmain m\nx = op\nx = op": "line 4: duplicate node name x",
    "static 1 s\nmain m\nx = op in n": "line 3: expected the name of a region",
    "static 1 s\nmain m\nx = op 1": "line 3: expected `:`, but the line ends",
    "static 1 s\nmain m\nx = op 1:bool": "line 3: expected brackets and elements that fit bool",
    "static 1 s\nmain m\nx = op 1:ctl": "line 3: expected brackets and elements that fit ctl",
    "static 1 s\nmain m\nx = op 3000000000:i32": "line 3: expected brackets and elements that fit i32",
    "static 1 s\nmain m\nx = op 1e39:f32": "line 3: expected brackets and elements that fit f32",
    "static 1 s\nmain m\nx = op [1, [2]]:i64[2]": "line 3: expected brackets and elements that fit i64[2]",
    "static 1 s\nmain m\nx = op [1]:i64[?]": "line 3: expected brackets and elements that fit i64[?]",
    "static 1 s\nmain m\nx = op [1]:i64[-1]": "line 3: a dimension is negative",
    "static 1 s\nmain m\nx = op a=1 a=2": "line 3: attribute a is not allowed here, or repeated",
    "static 1 s\nmain m\nx = op self=2": "line 3: attribute self is not allowed here, or repeated",
    "static 1 s\nmain m\nx = op a=" + "[" * 9999: "line 3: expected lists at most 100 deep",
    "static 1 s\nmain m\nx = op a={}": "line 3: '{' at column 10 does not start a name, number or mark",
    "static 1 s\nmain m\nx = op a=" + "9" * 9999: "line 3: expected an attribute",
    "static 1 s\nmain m\nx = op @ 0:1:1": "line 3: there is no line `file 0`",
    "static 1 s\nmain m#2": "line 2: 1 regions must have the numbers from 0, but one has #2",
    "static 1 s\nmain m\nmain n#0": "line 3: duplicate region number 0",
    "static 1 s\nsite 2 call a: m -> m": "line 2: expected site number 1",
    "library 1 main=f\nmain f() -> ()\nmain f() -> ()": "line 3: duplicate function name f",
    "library 1 main=f\nmain f() -> ()\nphase 2() -> ()": "line 2: phases [0, 2] are given, not all from 0",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text)[-40:])
def test_bad_text_says_where_and_what(text: str) -> None:
    with pytest.raises(GraphError) as error:
        parse(text)
    assert BAD[text] in str(error.value)


def test_attributes_are_plain_data() -> None:
    node = Node("op", (), (), "x", attrs=Attrs(a=np.int64(1)))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="an attribute holds"):
        dump(StaticGraph((node,), (Region("main", "main"),), "s"))


def test_invalid_graphs_print_too() -> None:
    node = Node("op", (Port(7), Port(-1, 2)), (CTL,), "x", region=9, controls=(Port(3),))
    region = Region("branch", "b", 5, Port(8), True, (Port(4),))
    assert "x: ctl = op ?7#0, ?-1#2 ^?3#0 in ?9" in dump(StaticGraph((node,), (region,), "s", fetches=(Port(9),)))
    assert dump(Library({"f": FunctionGraph((), (), "g")}))


MUTATIONS = [
    *'abn_/#:=,;^()[]@?$"\\ \n-.019{é\x00',
    *("->", "in ", "#0", "#99999999", "main ", "branch ", "true", "nan", "phase 1", "[[", "]]"),
    *("1e999", "self=1", "f32[", "@ 0:0:0", "file 0", "site 1"),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from([LIBRARY, STATIC, *FORMS.values()]))
    for _ in range(draw(st.integers(1, 6))):
        begin = draw(st.integers(0, len(text)))
        end = begin + draw(st.sampled_from([0, 0, 1, 1, 2, 8, 40]))
        other = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(["", *MUTATIONS, text[other : other + 20], text[other : other + 200]]))
        text = text[:begin] + piece + text[end:]
    return text


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(mutated())
def test_mutated_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(GraphError):
        graph = parse(text)
        assert parse(dump(graph)) == graph


@pytest.mark.slow
@settings(deadline=None)
@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    for head in ("", "static 1 s\nmain m\n", "library 1 main=m\nmain m() -> ()\n"):
        with contextlib.suppress(GraphError):
            parse(head + text)


# --------------------------------------------------------------------------------------------------------------
# Any graph

NAMES = st.text(min_size=0, max_size=8) | st.sampled_from(["in", "true", "a/b", "branch", "file", "as", "i64", "x"])
TYPES = st.builds(
    Type, st.sampled_from([i64, f32, bool_, CTL.dtype]), st.lists(st.none() | st.integers(0, 9), max_size=3).map(tuple)
)
SPANS = st.none() | st.builds(Span, NAMES, st.integers(0, 99), st.integers(0, 99), NAMES)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
ATTRS = st.dictionaries(
    NAMES.filter(lambda name: name != "self"),
    st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5),
    max_size=2,
)
CONSTS = st.sampled_from([Const(np.float32(0.1)), Const(np.zeros((2, 2))), Const(np.arange(40)), Const(np.bool_(0))])


@st.composite
def graphs(draw: st.DrawFn) -> Library | StaticGraph:
    is_static = draw(st.booleans())
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=6))
    ports = st.builds(Port, st.integers(0, len(names) - 1), st.integers(0, 2))
    some_ports = st.lists(ports, max_size=2).map(tuple)
    count = draw(st.integers(0, 3))
    kinds = ["branch"] if not is_static else ["branch", "branch", "loop", "function"]
    regions = [Region("main", draw(NAMES), starts=draw(some_ports))]
    while len(regions) <= count:
        parent, name = draw(st.integers(0, len(regions) - 1)), draw(NAMES)
        kind = draw(st.sampled_from(kinds))
        if kind != "branch":
            regions.append(Region(kind, name, draw(st.sampled_from([None, parent])), starts=draw(some_ports)))
        elif draw(st.booleans()):
            regions.append(Region("branch", name, parent, draw(ports), draw(st.booleans()), draw(some_ports)))
        else:
            pred, node = draw(ports), draw(ports).node
            regions.append(Region("branch", f"{name}.then", parent, pred, True, (Port(node, 0),)))
            regions.append(Region("branch", f"{name}.else", parent, pred, False, (Port(node, 1),)))
    nodes = tuple(
        Node(
            draw(NAMES | st.just("start")),
            draw(st.lists(ports | CONSTS, max_size=3).map(tuple)),
            draw(st.lists(TYPES, max_size=2).map(tuple)),
            name,
            draw(st.integers(0, len(regions) - 1)),
            Attrs(**draw(ATTRS)),
            draw(some_ports),
            draw(SPANS),
        )
        for name in names
    )
    numbers = st.lists(st.integers(0, len(names) - 1), max_size=2).map(tuple)
    if is_static:
        region_numbers = st.integers(0, len(regions) - 1)
        sites = draw(st.lists(st.builds(Site, NAMES, NAMES, region_numbers, region_numbers, SPANS), max_size=2))
        return StaticGraph(nodes, tuple(regions), draw(NAMES), tuple(sites), draw(numbers), draw(some_ports))
    phases = draw(st.lists(st.builds(Phase, numbers, some_ports), max_size=2).map(tuple))
    name = draw(NAMES)
    carried, hoisted = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    group, shared = draw(st.just("") | NAMES), draw(some_ports)
    function = FunctionGraph(
        nodes, tuple(regions), name, "main", phases, carried, draw(SPANS), group, hoisted, tuple(shared)
    )
    return Library({name: function}, draw(NAMES))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(graphs())
def test_any_graph_round_trips(graph: Library | StaticGraph) -> None:
    text = dump(graph)
    again = parse(text, dump_constants(graph))
    assert again == graph
    assert dump(again) == text


@pytest.mark.slow
def test_text_is_linear_in_nesting() -> None:
    small, big = nested(500), nested(5000)
    began = time.process_time()
    text = dump(big)
    assert parse(text) == big
    assert time.process_time() - began < 10
    assert len(text) < 13 * len(dump(small))
