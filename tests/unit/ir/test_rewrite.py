"""The rewrite engine, with tables of a few rows: what matches, what never does, and what it does to branches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.support.validity import parse_library

from undertow.ir.draft import Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Port
from undertow.ir.pattern import ANY, Form, Known, Match, Row, Table, Var, form, is_same
from undertow.ir.rewrite import Operators, rewrite
from undertow.ir.spec import check
from undertow.ir.text import dump
from undertow.ops.op import CATALOGUE, find
from undertow.types import CTL, Type, i64

X, Y = Var("x"), Var("y")
OPERATORS = Operators(
    is_pure=lambda op: op in CATALOGUE and not CATALOGUE[op].effect,
    types=lambda op, types, attrs: find(op).type(types, attrs),
)
NOTHING = Table("nothing", [])


def graph(text: str) -> FunctionGraph:
    library = parse_library("library 1 main=main\n" + text)
    check(library)
    return library.functions["main"]


def apply(text: str, *rows: Row, keeps_order: bool = False) -> tuple[str, dict[str, int]]:
    """The text of main after a rewrite, one node a line, blanks folded; and the counts."""
    made, counts = rewrite(graph(text), Table("test", rows), OPERATORS, keeps_order)
    library = Library({"main": made})
    check(library, lambda node, types: find(node.op).type(types, node.attrs))
    lines = dump(library).splitlines()[2:]
    return "\n".join(" ".join(line.split()) for line in lines), dict(counts)


def after(text: str, *rows: Row) -> str:
    return apply(text, *rows)[0]


# -- patterns ------------------------------------------------------------------------------------------------


def test_a_rule_replaces_a_node_by_its_operand() -> None:
    text, counts = apply(
        """
        main main(x: f32) -> (b)
          a: f32 = negative x
          b: f32 = negative a
        """,
        ("double negation", form("negative", form("negative", X)), X),
    )
    assert text == "main main(x: f32) -> (x)\na: f32 = negative x"
    assert counts == {"double negation": 1}


def test_a_rule_makes_a_node_with_the_name_and_span_of_the_old() -> None:
    made, _ = rewrite(
        graph(
            """
            file 0 "model.py" in f
            main main(x: i64, y: i64) -> (b)
              a: i64 = negative y  @ 0:3:1
              b: i64 = add x, a    @ 0:4:1
            """.replace("            ", "")
        ),
        Table("test", [("x + -y", form("add", X, form("negative", Y)), form("subtract", X, Y))]),
        OPERATORS,
    )
    b = made.nodes[-1]
    assert (b.op, b.name, b.span and b.span.line) == ("subtract", "b", 4)


def test_a_name_that_stands_twice_is_one_operand() -> None:
    row: Row = ("x & x", form("bitwise_and", X, X), X)
    assert "-> (x)" in after("main main(x: i64, y: i64) -> (a)\n  a: i64 = bitwise_and x, x", row)
    assert "-> (a)" in after("main main(x: i64, y: i64) -> (a)\n  a: i64 = bitwise_and x, y", row)


def test_constants_match_by_a_test_and_in_either_order_where_the_operator_commutes() -> None:
    one = Known("one", lambda value: bool(np.all(value == 1)))
    row: Row = ("x * 1", form("multiply", X, one, commutes=True), X)
    fixed: Row = ("x * 1", form("multiply", X, one), X)
    assert "-> (x)" in after("main main(x: f32) -> (a)\n  a: f32 = multiply x, 1.0:f32", row)
    assert "-> (x)" in after("main main(x: f32) -> (a)\n  a: f32 = multiply 1.0:f32, x", row)
    assert "-> (a)" in after("main main(x: f32) -> (a)\n  a: f32 = multiply 1.0:f32, x", fixed)
    assert "-> (a)" in after("main main(x: f32) -> (a)\n  a: f32 = multiply x, 2.0:f32", row)


def test_the_kind_of_an_operand_can_be_asked_for() -> None:
    row: Row = ("integers", form("negative", Var("n", ("int",))), Var("n"))
    assert "-> (x)" in after("main main(x: i64) -> (a)\n  a: i64 = negative x", row)
    assert "-> (a)" in after("main main(x: f32) -> (a)\n  a: f32 = negative x", row)


def test_rows_of_any_operator_come_last() -> None:
    rows: list[Row] = [("any", Form(ANY, None), lambda m: Const(np.float32(2))), ("own", form("negative", X), X)]
    assert apply("main main(x: f32) -> (a)\n  a: f32 = negative x", *rows)[1] == {"own": 1}
    assert apply("main main(x: f32) -> (a)\n  a: f32 = abs x", *rows)[1] == {"any": 1}


def test_a_function_may_refuse() -> None:
    row: Row = ("never", form("negative", X), lambda m: None)
    assert apply("main main(x: f32) -> (a)\n  a: f32 = negative x", row)[1] == {}


def test_a_named_form_shows_its_node() -> None:
    def result(match: Match) -> Form:
        assert match.nodes["inner"].attrs == Attrs(axes=(1, 0))
        assert match.type(match["x"]) == graph("main main(x: f32[2,3]) -> (x)").nodes[1].types[0]
        return form("negative", X)

    row: Row = ("seen", form("transpose", form("transpose", X, name="inner")), result)
    text = after(
        """
        main main(x: f32[2,3]) -> (b)
          a: f32[3,2] = transpose x axes=[1, 0]
          b: f32[2,3] = transpose a axes=[1, 0]
        """,
        row,
    )
    assert "b: f32[2,3] = negative x" in text


def test_forms_inside_results_become_nodes() -> None:
    row: Row = ("deep", form("square", X), form("abs", form("multiply", X, form("abs", X))))
    text = after("main main(x: f32) -> (a)\n  a: f32 = square x", row)
    assert text.splitlines()[1:] == ["a: f32 = abs x", "a_2: f32 = multiply x, a", "a_3: f32 = abs a_2"]
    assert "-> (a_3)" in text


# -- what a rule cannot do -----------------------------------------------------------------------------------


def test_no_rule_changes_a_type() -> None:
    zero = Known("zero", lambda value: not np.any(value))
    row: Row = ("x - 0", form("subtract", X, zero), X)
    text = "main main(x: f32) -> (a)\n  a: f32[3] = subtract x, [0.0, 0.0, 0.0]:f32[3]"
    assert apply(text, row)[1] == {}
    assert (
        apply("main main(x: f32) -> (a)\n  a: f32 = negative x", ("bad", form("negative", X), form("isnan", X)))[1]
        == {}
    )
    assert (
        apply("main main(x: f32) -> (a)\n  a: f32 = negative x", ("bad", form("negative", X), form("matmul", X, X)))[1]
        == {}
    )


def test_no_rule_reaches_across_a_branch() -> None:
    """A result from the region around would be alive where the branch is not taken."""
    text = """
        main main(c: bool, x: f32) -> (r)
          x.if: f32, f32 = switch c, x
          branch if1 c
          if1.then/a: f32 = negative x.if#0
          if1.else/b: f32 = abs x.if#1
          r: f32 = merge if1.then/a, if1.else/b
        """
    row: Row = ("out of the branch", form("negative", form("switch", Y, X)), X)
    assert apply(text, row)[1] == {}


def test_a_node_with_a_control_edge_is_left_alone_and_not_looked_through() -> None:
    text = """
        main main(x: f32, t: ctl) -> (b)
          a: f32 = negative x ^t
          b: f32 = negative a
          c: f32 = negative x ^t
        """
    made, counts = apply(text, ("double negation", form("negative", form("negative", X)), X))
    assert counts == {"same expression": 1}  # c and a come after the same token
    assert "-> (b)" in made


def test_a_rule_that_goes_round_in_circles_ends() -> None:
    row: Row = ("swap", form("add", X, Y), form("add", Y, X))
    _, counts = apply("main main(x: f32, y: f32) -> (a)\n  a: f32 = add x, y", row)
    assert counts["swap"] < 200


def test_order_is_kept_where_asked() -> None:
    row: Row = ("x - x", form("subtract", X, X), lambda m: Const(np.int64(0)))
    sign: Row = ("double negation", form("negative", form("negative", X)), X)
    text = "main main(x: i64) -> (a)\n  a: i64 = subtract x, x"
    assert apply(text, row)[1] == {"x - x": 1}
    assert apply(text, row, keeps_order=True)[1] == {}
    text = "main main(x: i64) -> (b)\n  a: i64 = negative x\n  b: i64 = negative a"
    assert apply(text, sign, keeps_order=True)[1] == {"double negation": 1}


# -- equal expressions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("add x, y", "add x, y", True),
        ("add x, y", "add y, x", False),
        ("add x, 1.0:f32", "add x, 1.0:f32", True),
        ("add x, 0.0:f32", "add x, -0.0:f32", False),
        ("add x, y", "multiply x, y", False),
        ("identity x ^t", "identity x ^u", False),
        ("identity x ^t", "identity x ^t", True),
    ],
)
def test_equal_expressions_are_computed_once(first: str, second: str, shared: bool) -> None:
    text = f"""
        main main(x: f32, y: f32, t: ctl, u: ctl) -> (a, b)
          a: f32 = {first}
          b: f32 = {second}
        """
    made, counts = apply(text)
    assert counts == ({"same expression": 1} if shared else {})
    assert ("-> (a, a)" in made) == shared


def test_attributes_that_are_equal_as_numbers_are_not_equal() -> None:
    base = graph("main main(x: f32[2]) -> (a)\n  a: f32 = sum x axes=[0] keepdims=false")
    node = base.nodes[-1]
    other = Node(node.op, node.inputs, node.types, "b", attrs=Attrs(axes=(False,), keepdims=False))
    both = FunctionGraph((*base.nodes, other), base.regions, "main", "main", base.phases)
    made, counts = rewrite(both, NOTHING, OPERATORS)
    assert len(made.nodes) == len(both.nodes) and not counts


def test_calls_effects_and_unknown_operators_are_not_merged() -> None:
    text = """
        library 1 main=main
        main main(x: i64) -> (a, b, r, s)
          a: i64 = call x callee="f"
          b: i64 = call x callee="f"
          p: ctl = print x template="{}"
          q: ctl = print x template="{}"
          r: i64 = mystery x
          s: i64 = mystery x
        function f(x: i64) -> (x)
        """
    library = parse_library(text)
    main = library.functions["main"]
    assert rewrite(main, NOTHING, OPERATORS) == (main, Counter())


def test_an_expression_of_the_region_around_is_used_where_it_is_at_hand() -> None:
    """a = x + 1 is brought into the branch; there x + 1 is written again."""
    text = """
        main main(c: bool, x: i64) -> (r)
          a: i64 = add x, 1:i64
          branch if1 c
          a.if: i64, i64 = switch c, a
          x.if: i64, i64 = switch c, x
          if1.then/b: i64 = add x.if#0, 1:i64
          if1.then/c: i64 = multiply a.if#0, if1.then/b
          r: i64 = merge if1.then/c, x.if#1
        """
    made, counts = apply(text)
    assert counts == {"same expression": 1}
    assert "if1.then/c: i64 = multiply a.if#0, a.if#0" in made
    without = text.replace("multiply a.if#0, if1.then/b", "multiply x.if#0, if1.then/b")
    assert apply(without.replace("          a.if: i64, i64 = switch c, a\n", ""))[1] == {}


def test_large_constants_are_equal_only_to_themselves() -> None:
    big = Const(np.zeros(5000))
    assert is_same(big, big) and not is_same(big, Const(np.zeros(5000)))
    assert is_same(Const(np.zeros(50)), Const(np.zeros(50)))


# -- branches ------------------------------------------------------------------------------------------------

KNOWN: list[Row] = [
    ("identity", form("identity", X), X),
    ("switch", form("switch", Y, Known("c", lambda value: True)), (Var("c"), Var("c"))),
]

BRANCH = """
    main main(x: i64) -> (r)
      p: bool = identity {} ^start
      branch if1 p
      x.if: i64, i64 = switch p, x
      if1.then/a: i64 = negative x.if#0
      if1.then/q: bool = less if1.then/a, 3:i64
      branch if2 if1.then/q in if1.then
      if1.then/a.if: i64, i64 = switch if1.then/q, if1.then/a
      if2.then/b: i64 = abs if1.then/a.if#0
      if1.then/m: i64 = merge if2.then/b, if1.then/a.if#1
      if1.else/c: i64 = square x.if#1
      r: i64 = merge if1.then/m, if1.else/c
    """


def test_a_known_branch_becomes_part_of_what_it_stands_in() -> None:
    made, counts = apply(BRANCH.format("true"), *KNOWN)
    assert counts == {"identity": 1, "known branch": 1, "never runs": 1}
    assert made.splitlines() == [
        "main main(x: i64) -> (if1.then/m)",
        "if1.then/a: i64 = negative x",
        "if1.then/q: bool = less if1.then/a, 3:i64",
        "branch if2 if1.then/q",
        "if1.then/a.if: i64, i64 = switch if1.then/q, if1.then/a",
        "if2.then/b: i64 = abs if1.then/a.if#0",
        "if1.then/m: i64 = merge if2.then/b, if1.then/a.if#1",
    ]


def test_a_branch_that_never_runs_goes_with_all_that_stands_in_it() -> None:
    made, counts = apply(BRANCH.format("false"), *KNOWN)
    assert made == "main main(x: i64) -> (if1.else/c)\nif1.else/c: i64 = square x"
    assert counts == {"identity": 1, "known branch": 1, "never runs": 5}


def test_a_known_branch_stays_where_the_merge_has_a_wider_type() -> None:
    text = """
        main main(x: f32[2], y: f32[3]) -> (r)
          p: bool = identity true ^start
          branch if1 p
          x.if: f32[2], f32[2] = switch p, x
          y.if: f32[3], f32[3] = switch p, y
          r: f32[?] = merge x.if#0, y.if#1
        """
    made, counts = apply(text, *KNOWN)
    assert "r: f32[?] = merge x.if#0, y.if#1" in made and counts == {}


def test_the_predicate_of_a_loop_stays() -> None:
    text = """
        library 1 main=main
        main main(x: i64) -> (y)
          y: i64 = loop x body="main.loop"
        loop main.loop(x: i64) -> (p, if1.then/a) carried=1
          p: bool = identity true ^start
          branch if1 p
          x.if: i64, i64 = switch p, x
          if1.then/a: i64 = negative x.if#0
        """
    library = parse_library(text)
    made, counts = rewrite(library.functions["main.loop"], Table("known", KNOWN), OPERATORS)
    assert made == library.functions["main.loop"] and not counts


def test_two_branches_on_one_predicate_become_one() -> None:
    text = """
        main main(x: i64) -> (t)
          p: bool = less x, 3:i64
          branch if1 p
          x.if: i64, i64 = switch p, x
          if1.then/a: i64 = negative x.if#0
          r: i64 = merge if1.then/a, x.if#1
          q: bool = less x, 3:i64
          branch if2 q
          r.if: i64, i64 = switch q, r
          x.if_2: i64, i64 = switch q, x
          if2.then/b: i64 = add r.if#0, x.if_2#0
          t: i64 = merge if2.then/b, r.if#1
        """
    made, counts = apply(text)
    assert counts == {"same expression": 2, "same branch": 1}
    assert made.splitlines()[-2:] == [
        "if2.then/b: i64 = add r.if#0, x.if#0 in if1.then",
        "t: i64 = merge if2.then/b, r.if#1",
    ]


# -- constants where tokens are needed -----------------------------------------------------------------------


def test_a_constant_is_gated_only_where_a_token_is_needed() -> None:
    text = """
        main main(c: bool, x: i64) -> (k, r, a)
          k: i64 = identity 5:i64 ^start
          branch if1 c ^start.if
          k.if: i64, i64 = switch c, k
          x.if: i64, i64 = switch c, x
          start.if: ctl, ctl = switch c, start
          r: i64 = merge k.if#0, x.if#1
          a: i64 = add x, k
        """
    made, counts = apply(text, *KNOWN)
    assert counts == {"switch": 1}
    assert made.splitlines() == [
        "main main(c: bool, x: i64) -> (k, r, a)",
        "branch if1 c ^start.if",
        "x.if: i64, i64 = switch c, x",
        "start.if: ctl, ctl = switch c, start",
        "k.if: i64 = identity 5:i64 ^start.if#0 in if1.then",
        "r: i64 = merge k.if, x.if#1",
        "a: i64 = add x, 5:i64",
        "k: i64 = identity 5:i64 ^start",
    ]


def test_without_a_pivot_a_switch_brings_the_first_constant_and_triggers_the_others() -> None:
    text = """
        main main(c: bool, x: i64) -> (r, s)
          k: i64 = identity 5:i64 ^start
          branch if1 c
          k.if: i64, i64 = switch c, k
          x.if: i64, i64 = switch c, x
          if1.then/m: i64 = negative k.if#0
          r: i64 = merge k.if#0, x.if#1
          s: i64 = merge if1.then/m, x.if#1
        """
    fold: Row = ("fold", form("negative", Known("c", lambda value: True)), lambda m: Const(np.int64(-5)))
    made, _ = apply(text, *KNOWN, fold)
    assert made.splitlines()[3:] == [
        "k.if: i64, i64 = switch c, 5:i64",
        "r: i64 = merge k.if#0, x.if#1",
        "if1.then/m: i64 = identity -5:i64 ^k.if#0",
        "s: i64 = merge if1.then/m, x.if#1",
    ]


def test_a_constant_that_a_node_became_is_triggered_by_what_the_node_waited_for() -> None:
    text = """
        main main(c: bool, x: i64) -> (r)
          branch if1 c
          x.if: i64, i64 = switch c, x
          if1.then/z: i64 = subtract x.if#0, x.if#0
          if1.then/y: i64 = negative if1.then/z
          r: i64 = merge if1.then/y, x.if#1
        """
    zero: Row = ("x - x", form("subtract", X, X), lambda m: Const(np.int64(0)))
    fold: Row = ("-0", form("negative", Known("c", lambda value: True)), lambda m: m["c"])
    made, _ = apply(text, zero, fold)
    assert "if1.then/y: i64 = identity 0:i64 ^x.if#0" in made


def test_an_operator_on_constants_alone_waits_for_its_pivot_or_keeps_a_token() -> None:
    text = """
        main main(c: bool, x: i64[3]) -> (r)
          k: i64 = identity 7:i64 ^start
          branch if1 c{}
          k.if: i64, i64 = switch c, k
          x.if: i64[3], i64[3] = switch c, x{}
          if1.then/y: i64 = floor_divide 3:i64, k.if#0
          if1.else/z: i64 = sum x.if#1 axes=[0] keepdims=false
          r: i64 = merge if1.then/y, if1.else/z
        """
    made = after(text.format(" ^s", "\n          s: ctl, ctl = switch c, start"), *KNOWN)
    assert "if1.then/y: i64 = floor_divide 3:i64, 7:i64 ^s#0" in made
    made = after(text.format("", ""), *KNOWN)
    assert "k.if: i64, i64 = switch c, 7:i64" in made
    assert "if1.then/y: i64 = floor_divide 3:i64, k.if#0" in made


# -- phases, drafts, size ------------------------------------------------------------------------------------

PHASES = """
    library 1 main=main
    main main(x: f64) -> (y, dx)
      y: f64 = call x callee="f"
      dx: f64 = resume y, 1.0:f64 phase=1
    function f(x: f64) -> (x)
      phase 1(start~1; dy: f64) -> (d)
      one: f64 = identity 1.0:f64 ^start~1
      a: f64 = multiply one, 3.0:f64
      b: f64 = call a callee="g"
      d: f64 = multiply b, dy
    function g(x: f64) -> (x)
    """


def test_what_belongs_to_a_later_phase_stays_in_it() -> None:
    library = parse_library(PHASES)
    fold: Row = ("fold", form("multiply", Known("c", lambda value: True), Y), lambda m: Const(np.float64(3)))
    made, _ = rewrite(library.functions["f"], Table("test", [*KNOWN, fold]), OPERATORS)
    call = next(node for node in made.nodes if node.op == "call")
    assert call.inputs == (Const(np.float64(3)),)
    assert [made.nodes[port.node].name for port in call.controls] == ["start~1"]
    check(Library({**library.functions, "f": made}))


def test_control_edges_of_a_switch_come_along() -> None:
    """Those of the old graph would be numbers of other nodes in the new one."""
    old = graph("""
        main main(x: i64) -> (m)
          a: i64 = negative x
          b: i64 = negative a
          c: i64 = negative b
          p: bool = less c, 0:i64
          branch if1 p
          s: i64, i64 = switch p, x ^c
          m: i64 = merge s#0, s#1
        """)
    made, _ = rewrite(old, Table("test", [("double negation", form("negative", form("negative", X)), X)]), OPERATORS)
    switch = next(node for node in made.nodes if node.op == "switch")
    assert [made.nodes[port.node].name for port in switch.controls] == ["a"]
    check(Library({"main": made}))


def test_a_draft_makes_pivots_and_names() -> None:
    draft = Draft("main", "main")
    draft.add(Node("start", (), (CTL,), "start"))
    p = Port(draft.add(Node("param", (), (Type(i64),), "p", attrs=Attrs(index=0))))
    q = Port(draft.add(Node("param", (), (Type(i64),), "p", attrs=Attrs(index=1))))
    assert draft.nodes[q.node].name == "p_2"
    then, other = draft.branch(p, 0, ("a.then", "a.else"))
    assert draft.pivot(then) is None
    inner = Port(draft.add(Node("switch", (p, q), (Type(i64),) * 2, "q.if")), 1)
    assert draft.home(inner) == other and not draft.is_pivot(inner)
    deep, _ = draft.branch(inner, other, ("b.then", "b.else"))
    pivot = draft.make_pivot(deep)
    assert draft.home(pivot) == deep and draft.is_pivot(pivot) and draft.pivot(then) is not None
    assert draft.make_pivot(deep) == pivot


@pytest.mark.slow
def test_ten_thousand_nodes() -> None:
    lines = ["main main(x: i64) -> (v9999)", "  v0: i64 = negative x"]
    lines += [f"  v{k}: i64 = {'negative' if k % 2 else 'abs'} v{k - 1}" for k in range(1, 10_000)]
    large = graph("\n".join(lines))
    row: Row = ("sign lost", form("abs", form("negative", X)), form("abs", X))
    made, counts = rewrite(large, Table("test", [row]), OPERATORS)
    assert counts["sign lost"] == 5000 and len(made.nodes) <= len(large.nodes)


def test_rows_are_data() -> None:
    table = Table("signs", [("double negation", form("negative", form("negative", X)), X)])
    assert table.name == "signs" and [name for name, _, _ in table.rows] == ["double negation"]
    assert list(table.of("negative")) == list(table.rows) and list(table.of("switch")) == []
