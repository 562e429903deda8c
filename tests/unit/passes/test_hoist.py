"""Hoist: which arguments belong to the entry, what becomes of them, and that engines read them right.

Texts of libraries begin alike (a countdown, its branch): each is to be read alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.agreement import run as run_in_every_order
from tests.support.recursions import climbs
from tests.support.validity import parse_library, parse_static, read, valid

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.contract import SCHEDULERS, Options
from undertow.engines.reference import Reference
from undertow.errors import GraphError
from undertow.ir.graph import FunctionGraph, Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ops.vet import vet
from undertow.passes.dead import remove_dead
from undertow.passes.flatten import flatten
from undertow.passes.hoist import hoist
from undertow.passes.report import Report
from undertow.passes.simplify import simplify


def hoisted(library: Library) -> tuple[Library, Report]:
    """The hoisted library; it is valid, and so is what `simplify` makes of it."""
    made, report = hoist(library)
    valid(simplify(valid(made))[0])
    return made, report


def names(graph: FunctionGraph) -> tuple[list[str], list[str]]:
    """The parameters that calls hand on, and the hoisted ones."""
    params = [graph.nodes[param].name for param in graph.params]
    own = len(params) - graph.hoisted
    return params[:own], params[own:]


def shared(library: Library) -> list[str]:
    main = library.functions[library.main]
    return [main.nodes[port.node].name for port in main.shared]


def both(function: Any, *args: Any, run: bool = True) -> tuple[Library, Library, Report]:
    """The simplified library of a function and the hoisted one, after they have given the same on every schedule."""
    before, _ = simplify(function.library(*args))
    after, report = hoisted(before)
    if run:
        compare(before, after, *args)
        compare(before, simplify(after)[0], *args)
    return before, after, report


def compare(before: Library, after: Library, *args: Any) -> None:
    inputs = [np.asarray(arg) for arg in args]
    values, stats, _ = Reference().plan(flatten(before)).drain(inputs)
    got = run_in_every_order(after, *inputs)
    for one, other in zip(got, values, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    _, counted, left = Reference().plan(flatten(after)).drain(inputs)
    assert left == 0
    assert counted.firings <= stats.firings
    assert (counted.activations, counted.max_depth) == (stats.activations, stats.max_depth)


# --------------------------------------------------------------------------------------------------------------
# Which arguments


@ut.function
def power(x: ut.f64, w: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else power(x, w, n - 1) * w


@ut.function
def two_entries(a: ut.f64, b: ut.f64, n: ut.i64) -> ut.f64:
    return power(1.0, a, n) + power(2.0, b, n)


def test_two_entries_have_values_of_their_own() -> None:
    _, after, report = both(two_entries, 2.0, 3.0, 5)
    assert names(after.functions["power"]) == (["n"], ["x", "w"])
    assert after.functions["power"].group == "power"
    assert report.name == "hoist" and report.counts["hoisted argument"] == 2
    assert two_entries(2.0, 3.0, 5) == 2.0**5 + 2 * 3.0**5
    assert str(report).startswith("hoist: ")


def test_one_value_of_the_run_is_shared() -> None:
    _, after, report = both(power, 1.5, 2.0, 4)
    assert shared(after) == ["x", "w"]
    assert names(after.functions["power"]) == (["n"], []) and not after.functions["power"].group
    assert report.counts["shared argument"] == 2


@ut.function
def from_constants(n: ut.i64) -> ut.f64:
    return power(1.0, 2.0, n) + power(1.0, 0.5, n)


def test_one_constant_stands_in_the_place_of_an_argument() -> None:
    _, after, report = both(from_constants, 6)
    assert names(after.functions["power"]) == (["n"], ["w"])
    assert report.counts["constant argument"] == 1
    simple = simplify(after)[0].functions["power"]
    assert "x" not in [node.name for node in simple.nodes]


def test_a_constant_of_a_narrower_type_is_hoisted() -> None:
    text = """
        main main(n: i64) -> (y)
          y: f64[?] = call [1.0, 2.0]:f64[2], n callee="f"
        function f(w: f64[?], n: i64) -> (r)
          p: bool = less_equal n, 0:i64
          branch if1 p
          w.if: f64[?], f64[?] = switch p, w
          n.if: i64, i64 = switch p, n
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/s: f64[?] = call w.if#1, if1.else/m callee="f"
          r: f64[?] = merge w.if#0, if1.else/s
        """
    after, report = hoisted(read(text))
    assert report.counts["hoisted argument"] == 1
    compare(read(text), after, 3)


@ut.function
def swapped(a: ut.i64, b: ut.i64, n: ut.i64) -> ut.i64:
    return a - b if n <= 0 else swapped(b, a, n - 1)


@ut.function
def doubled(c: ut.i64, n: ut.i64) -> ut.i64:
    return c if n <= 0 else pair(c, c, n - 1)


@ut.function
def pair(x: ut.i64, y: ut.i64, n: ut.i64) -> ut.i64:
    return x * y if n <= 0 else doubled(x, n - 1)


@ut.function
def counted(w: ut.i64, n: ut.i64) -> ut.i64:
    return w if n <= 0 else counted(w, n - 1) + counted(w + 1, n - 2)


@pytest.mark.parametrize(("function", "args"), [(swapped, (5, 3, 3)), (doubled, (4, 5)), (counted, (1, 5))], ids=str)
def test_what_changes_somewhere_is_not_hoisted(function: Any, args: tuple[int, ...]) -> None:
    before, after, report = both(function, *args)
    assert after == before and report.counts == {} and report.before == report.after


@ut.function
def even(n: ut.i64, yes: ut.f64, no: ut.f64) -> ut.f64:
    return yes if n == 0 else odd(no, n - 1, yes)


@ut.function
def odd(other: ut.f64, n: ut.i64, one: ut.f64) -> ut.f64:
    return other if n == 0 else even(n - 1, one, other)


@ut.function
def parity(n: ut.i64, a: ut.f64, b: ut.f64, c: ut.f64) -> ut.f64:
    return even(n, a, b) + odd(b, n, c)


def test_mutual_recursion_by_any_order_of_parameters() -> None:
    _, after, _ = both(parity, 7, 1.0, 2.0, 3.0)
    assert names(after.functions["even"]) == (["n"], ["yes"])
    assert names(after.functions["odd"]) == (["n"], ["one"])
    assert after.functions["even"].group == after.functions["odd"].group
    assert shared(after) == ["b"]
    assert parity(7, 1.0, 2.0, 3.0) == parity.run(7, 1.0, 2.0, 3.0, engine="demand") == 5.0


def test_one_call_that_hands_on_something_else_spoils_the_whole_class() -> None:
    """g(b) calls itself with b + 1, so what f gets from g is not the entry's; c is, all the way round."""
    text = """
        main main(a: i64, c: i64, n: i64) -> (y)
          one: i64 = add c, 1:i64
          y1: i64 = call a, c, n callee="f"
          y2: i64 = call a, one, n callee="f"
          y: i64 = add y1, y2
        function f(a: i64, c: i64, n: i64) -> (r)
          p: bool = less_equal n, 0:i64
          branch if1 p
          a.if: i64, i64 = switch p, a
          c.if: i64, i64 = switch p, c
          n.if: i64, i64 = switch p, n
          if1.then/s: i64 = add a.if#0, c.if#0
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/g: i64 = call a.if#1, c.if#1, if1.else/m callee="g"
          r: i64 = merge if1.then/s, if1.else/g
        function g(b: i64, c: i64, n: i64) -> (r)
          p: bool = less_equal n, 3:i64
          branch if1 p
          b.if: i64, i64 = switch p, b
          c.if: i64, i64 = switch p, c
          c.again: i64 = identity c.if#1 in if1.else
          n.if: i64, i64 = switch p, n
          if1.then/f: i64 = call b.if#0, c.if#0, n.if#0 callee="f"
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/b: i64 = add b.if#1, 1:i64
          if1.else/g: i64 = call if1.else/b, c.again, if1.else/m callee="g"
          r: i64 = merge if1.then/f, if1.else/g
        """
    before = read(text)
    after, _ = hoisted(before)
    assert names(after.functions["f"]) == (["a", "n"], ["c"])
    assert names(after.functions["g"]) == (["b", "n"], ["c"])
    compare(before, after, 5, 2, 8)


@ut.function
def spread(w: ut.f64, n: ut.i64) -> ut.f64:
    return w if n <= 0 else ut.sum(ut.map(lambda k: spread(w, k - 1) * w, ut.arange(n)))


@ut.function
def spreads(a: ut.f64, b: ut.f64, n: ut.i64) -> ut.f64:
    return spread(a, n) - spread(b, n)


@pytest.mark.parametrize(("function", "inner"), [(climbs, "loop"), (spreads, "map")], ids=["loop", "map"])
def test_loops_and_maps_on_the_way_round(function: Any, inner: str) -> None:
    _, after, _ = both(function, 0.5, 0.25, 4)
    (body,) = (graph for graph in after.functions.values() if graph.kind == inner)
    assert names(body)[1] == ["w"] and body.group
    ops = [node.op for node in flatten(after).nodes]
    assert ops.count("hoist") == 2
    assert not any(node.op == "outer" and "w" in node.name for node in flatten(after).nodes)


def test_a_loop_that_is_also_entered_from_outside_is_left_alone() -> None:
    """Only a call can make an entry."""
    text = """
        main main(w: i64, n: i64) -> (a, b)
          a: i64 = call w, n callee="f"
          b: i64 = loop n, w body="l"
        function f(w: i64, n: i64) -> (r)
          r: i64 = loop n, w body="l"
        loop l(i: i64, w: i64) -> (p, if1.then/j) carried=1
          p: bool = greater i, 0:i64
          branch if1 p
          i.if: i64, i64 = switch p, i
          w.if: i64, i64 = switch p, w
          if1.then/m: i64 = subtract i.if#0, 1:i64
          if1.then/f: i64 = call w.if#0, if1.then/m callee="f"
          if1.then/j: i64 = add if1.then/f, if1.then/m
        """
    before = read(text)
    assert hoisted(before) == (before, Report({}, 18, 18, "hoist"))


def test_graphs_that_nothing_reaches_do_not_count() -> None:
    library = two_entries.library(1.0, 2.0, 3)
    lost = power.library(1.0, 2.0, 3).functions["main"]
    lost = FunctionGraph(
        lost.nodes,
        (type(lost.regions[0])("function", "lost", starts=lost.regions[0].starts),),
        "lost",
        "function",
        lost.phases,
    )
    after, _ = hoist(Library({**library.functions, "lost": lost}, "main"))
    check(after)
    assert "lost" not in after.functions


# --------------------------------------------------------------------------------------------------------------
# Values of the run


@ut.function
def lanes(ws: ut.f64[None], scale: ut.f64, n: ut.i64) -> ut.f64:
    return ut.sum(ut.map(lambda w: through(w, scale, n), ws))


@ut.function
def through(w: ut.f64, scale: ut.f64, n: ut.i64) -> ut.f64:
    return power(scale, w, n) + scale


def test_a_map_over_the_hoisted_argument_makes_an_entry_of_each_lane() -> None:
    _, after, _ = both(lanes, np.array([1.0, 2.0, 0.5]), 3.0, 4)
    assert shared(after) == ["scale"]
    assert names(after.functions["power"]) == (["n"], ["w"])
    assert names(after.functions["through"])[0] == ["w", "scale", "n"]  # it uses scale itself


@ut.function
def weighted(params: Any, n: ut.i64) -> ut.f64:
    if n <= 0:
        return params[0][0]
    return weighted(params, n - 1) * 0.5 + ut.sum(params[1])


def test_what_map_shares_is_one_value_of_the_run() -> None:
    params = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    found = weighted.map(ut.shared(params), [0, 3, 5])
    np.testing.assert_allclose(found, [weighted(params, n) for n in (0, 3, 5)])
    (program,) = (p for (_, mapped), p in weighted.__undertow_programs__.items() if mapped is not None)
    hoisted = program.library(Reference(), True)
    main = hoisted.functions["main"]
    assert [main.nodes[port.node].name for port in main.shared] == ["x0.0", "x0.1"]
    (body,) = (graph for graph in hoisted.functions.values() if graph.kind == "map")
    assert names(body) == (["x1"], [])  # the lanes hand nothing on
    assert not any(graph.group for graph in hoisted.functions.values())


@ut.function
def chosen(a: ut.f64, b: ut.f64, p: ut.bool, n: ut.i64) -> ut.f64:
    if p:
        return power(a, b, n)
    return power(a, b * 2.0, n)


def test_a_value_that_branches_of_main_pass_on_is_shared_and_one_made_there_is_not() -> None:
    text = """
        main main(a: f64, p: bool, n: i64) -> (r)
          branch if1 p
          a.if: f64, f64 = switch p, a
          n.if: i64, i64 = switch p, n
          if1.then/b: f64 = negative a.if#0
          if1.then/f: f64 = call a.if#0, if1.then/b, n.if#0 callee="f"
          if1.else/f: f64 = call a.if#1, 1.0:f64, n.if#1 callee="f"
          r: f64 = merge if1.then/f, if1.else/f
        function f(a: f64, b: f64, n: i64) -> (r)
          q: bool = less_equal n, 0:i64
          branch if1 q
          a.if: f64, f64 = switch q, a
          b.if: f64, f64 = switch q, b
          n.if: i64, i64 = switch q, n
          if1.then/s: f64 = add a.if#0, b.if#0
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/s: f64 = call a.if#1, b.if#1, if1.else/m callee="f"
          r: f64 = merge if1.then/s, if1.else/s
        """
    before = read(text)
    after, _ = hoisted(before)
    assert shared(after) == ["a"]
    assert names(after.functions["f"]) == (["n"], ["b"])
    for p in (True, False):
        compare(before, after, 2.0, p, 3)
    both(chosen, 1.0, 2.0, True, 3)
    both(chosen, 1.0, 2.0, False, 3)


def test_order_tokens_are_values_too(capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ENGINES:
        assert told.run(3, 7, engine=engine) == 10
        assert capsys.readouterr().out == "0 7\n1 7\n2 7\n3 7\n"


@ut.function
def told(n: ut.i64, w: ut.i64) -> ut.i64:
    below = w if n <= 0 else told(n - 1, w) + 1
    print(n, w)
    return below


# --------------------------------------------------------------------------------------------------------------
# Operators


@ut.function
def product(w: ut.f64[2, 3], x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
    turned = ut.tanh(w.T)
    if n <= 0:
        return x
    return turned @ (w_free(x) + product(w, x, n - 1)[:2])


@ut.function
def w_free(x: ut.f64[3]) -> ut.f64[2]:
    return x[:2]


@ut.function
def products(a: ut.f64[2, 3], b: ut.f64[2, 3], x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
    return product(a, x, n) + product(b, x, n)


W, X = np.arange(6.0).reshape(2, 3) / 7, np.array([1.0, -1.0, 0.5])


def test_operators_on_hoisted_values_move_to_the_entries() -> None:
    _, after, report = both(products, W, -W, X, 3)
    assert report.counts["hoisted operator"] == 2  # transpose and tanh
    assert names(after.functions["product"])[1] == ["turned"]
    assert [node.op for node in after.functions["products"].nodes].count("tanh") == 2
    assert "tanh" not in [node.op for node in after.functions["product"].nodes]
    stats = Reference().plan(flatten(after)).drain([W, -W, X, np.int64(50)])[1]
    assert sum(count for name, count in stats.per_node.items() if "transpose" in name) == 2


def test_operators_on_shared_values_move_to_main() -> None:
    _, after, report = both(product, W, X, 4)
    assert report.counts["shared operator"] == 2
    assert [node.op for node in after.functions["main"].nodes].count("tanh") == 1
    assert shared(after) == ["x", "product.turned"]


def moved(body: str, params: str = "w: f64, v: f64", args: str = "a, b") -> dict[str, int]:
    """What moves out of f, which uses `u` at its end."""
    given = [part.split(": ") for part in params.split(", ")]
    switches = "\n".join(f"{name}.if: {kind}, {kind} = switch p, {name}" for name, kind in given)
    text = f"""
        main main(a: f64, b: f64, i: i64, n: i64) -> (y)
          y1: f64 = call {args}, n callee="f"
          c: f64 = negative a
          y2: f64 = call {args.replace("a", "c")}, n callee="f"
          y: f64 = add y1, y2
        function f({params}, n: i64) -> (r)
          {body}
          p: bool = less_equal n, 0:i64
          branch if1 p
          u.if: f64, f64 = switch p, u
          n.if: i64, i64 = switch p, n
          {switches}
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/s: f64 = call {", ".join(f"{name}.if#1" for name, _ in given)}, if1.else/m callee="f"
          r: f64 = merge u.if#0, if1.else/s
        """
    before = simplify(read(text))[0]
    after, report = hoisted(before)
    compare(before, after, 2.0, 3.0, 1, 3)
    return {key: count for key, count in report.counts.items() if "operator" in key}


def test_which_operators_move() -> None:
    """Of w, which differs between the entries, and v, which is shared."""
    assert moved("u: f64 = tanh w") == {"hoisted operator": 1}
    assert moved("t: f64 = tanh w\n u: f64 = multiply t, t") == {"hoisted operator": 2}
    assert moved("u: f64 = tanh v") == {"shared operator": 1}
    assert moved("u: f64 = multiply w, v") == {}, "on values of an entry and of the run"
    assert moved("t: f64 = tanh w\n u: f64 = multiply w, t") == {"hoisted operator": 2}, "together, they replace w"
    assert moved('c: f64 = cast n dtype="f64"\n u: f64 = multiply c, w') == {}, "on other values too"


def test_an_operator_stays_where_its_operand_is_needed_besides() -> None:
    """One value more to read, in each activation, is one firing more."""
    assert moved('t: f64 = tanh w\n s: f64 = cast n dtype="f64"\n k: f64 = multiply s, w\n u: f64 = add t, k') == {}


def test_an_operator_that_can_fault_stays() -> None:
    assert moved('q: i64 = floor_divide 7:i64, i\n u: f64 = cast q dtype="f64"', "w: f64, i: i64", "a, i") == {}
    safe = moved('q: i64 = floor_divide i, 7:i64\n u: f64 = cast q dtype="f64"', "w: f64, i: i64", "a, i")
    assert safe == {"shared operator": 2}


@ut.function
def in_a_branch(w: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return 1.0
    return in_a_branch(w, n - 1) * ut.tanh(w)


def test_an_operator_in_a_branch_stays() -> None:
    _, _, report = both(in_a_branch, 2.0, 3)
    assert "shared operator" not in report.counts


@ut.function
def mapped_tanh(xs: ut.f64[None], w: ut.f64) -> ut.f64:
    return ut.sum(ut.map(lambda x: falling(x, w), xs))


@ut.function
def falling(x: ut.f64, w: ut.f64) -> ut.f64:
    step = ut.tanh(w)
    return x if x < 1.0 else falling(x - step, w)


def test_below_a_map_that_may_have_no_lanes_an_operator_is_not_sure_to_run() -> None:
    _, after, report = both(mapped_tanh, np.array([3.0, 0.5, 2.0]), 0.5)
    assert shared(after) == ["w"] and "shared operator" not in report.counts
    compare(*both(mapped_tanh, np.zeros(0), 0.5)[:2], np.zeros(0), 0.5)


def test_below_a_map_that_has_lanes_it_is() -> None:
    before, _ = simplify(mapped_tanh.library(np.ones(3), 0.5))
    text = dump(before, spans=False).replace("f64[?]", "f64[3]")
    found = parse_library(text)
    assert hoisted(found)[1].counts["shared operator"] == 1


@ut.function
def outer_walk(w: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return 0.0
    return outer_walk(w, n - 1) + inner_walk(w, ut.astype(n, ut.f64), n)


@ut.function
def inner_walk(w: ut.f64, by: ut.f64, n: ut.i64) -> ut.f64:
    both_ = ut.tanh(by)
    return w if n <= 0 else inner_walk(w, by, n - 1) * both_


@ut.function
def walks(a: ut.f64, b: ut.f64, n: ut.i64) -> ut.f64:
    return outer_walk(a, n) + outer_walk(b, n)


def test_entries_below_entries() -> None:
    """Each activation of outer_walk is the caller of an entry of inner_walk, which has its w and a value of its own."""
    _, after, report = both(walks, 1.5, 2.5, 5)
    assert names(after.functions["outer_walk"]) == (["n"], ["w"])
    assert names(after.functions["inner_walk"]) == (["n"], ["w", "both_"])
    assert report.counts["hoisted operator"] == 1


@ut.function
def entry_in_loop(n: ut.i64, w: ut.f64) -> ut.f64:
    total = w
    for k in range(n):
        total = power(1.0, total, k) + w
    return total


def test_an_entry_in_each_iteration_of_a_loop() -> None:
    _, after, _ = both(entry_in_loop, 5, 0.5)
    assert names(after.functions["power"]) == (["n"], ["w"])


# --------------------------------------------------------------------------------------------------------------
# Runs


@ut.function
def slow(n: ut.i64) -> ut.f64:
    return 0.5 if n <= 0 else slow(n - 1) + 1.0


@ut.function
def late(n: ut.i64) -> ut.f64:
    return power(slow(4 * n), 2.0, n) + power(1.0, slow(3 * n), n)


def test_arguments_that_come_late() -> None:
    """Calls are non-strict: the recursion has come to its end before what it hands on is there."""
    _, after, _ = both(late, 6)
    assert names(after.functions["power"]) == (["n"], ["x", "w"])


@ut.function
def skips(w: ut.f64, n: ut.i64) -> ut.f64:
    return 0.0 if n <= 0 else uses(w, n - 1)


@ut.function
def uses(w: ut.f64, n: ut.i64) -> ut.f64:
    return skips(w, n - 1) + w


@ut.function
def too_late(n: ut.i64) -> ut.f64:
    return skips(slow(9), 0) + skips(slow(9) + 1.0, n)


def test_arguments_that_come_when_nobody_is_left_to_read_them() -> None:
    """The entry itself does not use w, so it may end, and all that is below it, before w arrives."""
    _, after, _ = both(too_late, 4)
    assert names(after.functions["skips"]) == (["n"], ["w"])
    reads = [node.name for node in flatten(after).nodes if node.op == "hoist_read"]
    assert reads == ["uses/w"]


def test_later_phases_read_what_the_entry_was_given() -> None:
    """Both phases of f use w; the second call is not resumed."""
    before = read(
        """
        main main(a: f64[2], b: f64[2], n: i64) -> (y, dx, z)
          y: f64[2] = call a, n callee="f"
          dx: f64[2] = resume y, a phase=1
          z: f64[2] = call b, n callee="f"
        function f(w: f64[2], n: i64) -> (r)
          p: bool = less_equal n, 0:i64
          branch if1 p
          w.if: f64[2], f64[2] = switch p, w
          n.if: i64, i64 = switch p, n
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/s: f64[2] = call w.if#1, if1.else/m callee="f"
          if1.else/t: f64[2] = multiply if1.else/s, w.if#1
          r: f64[2] = merge w.if#0, if1.else/t
          phase 1(dy: f64[2]) -> (dr)
          dy.if: f64[2], f64[2] = switch p, dy
          if1.else/d: f64[2] = multiply dy.if#1, w.if#1
          if1.else/back: f64[2] = resume if1.else/s, if1.else/d phase=1
          dr: f64[2] = merge dy.if#0, if1.else/back
        """
    )
    after, _ = hoisted(before)
    assert names(after.functions["f"]) == (["n"], ["w"])
    compare(before, after, np.array([2.0, 3.0]), np.ones(2), 4)


@ut.function
def endless(n: ut.i64) -> ut.i64:
    return n if n < 0 else endless(n + 1)


@ut.function
def rarely(w: ut.i64, n: ut.i64) -> ut.i64:
    if n == 50:
        return w
    return 0 if n <= 0 else rarely(w, n - 1)


@ut.function
def lazily(n: ut.i64) -> ut.i64:
    return rarely(endless(0), n) + rarely(endless(1), n)


@pytest.mark.parametrize("options", [{"engine": "demand"}, {"engine": "reference", "scheduler": "fifo"}], ids=str)
def test_an_argument_that_never_comes_is_not_waited_for(options: dict[str, Any]) -> None:
    assert names(hoist(simplify(lazily.library(3))[0])[0].functions["rarely"]) == (["n"], ["w"])
    assert lazily.run(3, timeout=20.0, **options) == 0


@ut.function
def chain_down(w: ut.i64, n: ut.i64) -> ut.i64:
    return w if n <= 0 else chain_down(w, n - 1) + w


@ut.function
def chains(n: ut.i64) -> ut.i64:
    return chain_down(n, n) - chain_down(n - 1, n)


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_deep_recursion(scheduler: str) -> None:
    n = 100_000 if scheduler != "random" else 20_000
    limit = sys.getrecursionlimit()
    result, stats = chains.run(n, engine="reference", scheduler=scheduler, stats=True)
    assert result == n + 1 and stats.max_depth == n + 2
    assert sys.getrecursionlimit() == limit


def test_frames_that_end_after_the_entry_still_read() -> None:
    """The result of g comes back at once, and what g still does needs w; nobody waits for that."""
    text = """
        main main(a: f64[2], b: f64[2], n: i64) -> (y, z)
          y: i64 = call a, n callee="g"
          z: i64 = call b, n callee="g"
        function g(w: f64[2], n: i64) -> (n)
          p: bool = less_equal n, 0:i64
          branch if1 p
          w.if: f64[2], f64[2] = switch p, w
          n.if: i64, i64 = switch p, n
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/g: i64 = call w.if#1, if1.else/m callee="g"
          if1.then/t: f64[2] = tanh w.if#0
        """
    before = read(text)
    # As hoist makes it, but without removing what no result needs.
    after = parse(
        dump(before)
        .replace("call a, n ", "call n, a ")
        .replace("call b, n ", "call n, b ")
        .replace("g(w: f64[2], n: i64) -> (n)", "g(n: i64, w: f64[2]) -> (n) group=g hoisted=1")
        .replace("call w.if#1, if1.else/m", "call if1.else/m")
    )
    assert isinstance(after, Library)
    compare(before, valid(after), np.ones(2), np.zeros(2), 5)


def test_arrays_of_entries_are_counted_while_they_are_needed() -> None:
    library = hoist(simplify(products.library(W, -W, X, 3))[0])[0]
    plan = Reference().plan(flatten(library))
    small, big = (plan.drain([W, -W, X, np.int64(n)])[1] for n in (1, 40))
    assert 0 < small.peak_bytes < big.peak_bytes
    with pytest.raises(ut.FrameLimit):
        plan.run([W, -W, X, np.int64(40)], Options(memory=big.peak_bytes // 2))


def test_a_graph_whose_entry_is_missing_cannot_be_planned_by_mistake() -> None:
    library = hoist(simplify(two_entries.library(1.0, 2.0, 3))[0])[0]
    static = dump(flatten(library), spans=False)
    broken = parse_static(re.sub(r"(= hoist_read [^^]*) \^power/start", r"\1", static))
    with pytest.raises(GraphError):
        Reference().plan(broken)


# --------------------------------------------------------------------------------------------------------------
# Beside other passes, and in the API


def test_hoisting_twice_changes_nothing() -> None:
    once, _ = hoist(simplify(two_entries.library(1.0, 2.0, 3))[0])
    again, report = hoist(once)
    assert again is once and report.counts == {}


def test_nothing_to_hoist_changes_nothing() -> None:
    library, _ = simplify(slow.library(3))
    assert hoist(library)[0] is library


def test_a_class_is_dropped_only_if_no_graph_of_the_group_needs_it() -> None:
    text = """
        main main(a: i64, b: i64, n: i64) -> (y1, y2)
          y1: i64 = call n, a, b, b callee="f"
          y2: i64 = call n, b, a, a callee="f"
        function f(n: i64, u: i64, v: i64, w: i64) -> (r) group=f hoisted=3
          p: bool = less_equal n, 0:i64
          branch if1 p
          n.if: i64, i64 = switch p, n
          w.if: i64, i64 = switch p, w
          if1.else/m: i64 = subtract n.if#1, 1:i64
          if1.else/g: i64 = call if1.else/m callee="g"
          r: i64 = merge n.if#0, if1.else/g
        function g(n: i64, u: i64, v: i64, w: i64) -> (r) group=f hoisted=3
          f: i64 = call n callee="f"
          r: i64 = add f, v
        """
    made, count = remove_dead(read(text))
    valid(made)
    assert [names(made.functions[name]) for name in "fg"] == [(["n"], ["v"]), (["n"], ["v"])]
    assert count["dead argument"] == 4
    compare(read(text), made, 3, 4, 5)
    no_use = remove_dead(read(text.replace("r: i64 = add f, v", "r: i64 = add f, 1:i64")))[0]
    assert all(not graph.group and not graph.hoisted for graph in valid(no_use).functions.values())


def test_shared_values_that_nobody_reads_go() -> None:
    text = """
        main main(a: i64, b: i64) -> (y) shared=(a, c, b)
          c: i64 = negative a
          y: i64 = call callee="f" ^start
        function f() -> (t)
          u: i64 = shared index=1 ^start
          t: i64 = shared index=2 ^start
        """
    made, count = remove_dead(read(text))
    assert shared(valid(made)) == ["b"] and count["dead shared value"] == 2
    assert run_in_every_order(made, 1, 5) == [5]
    inlined, report = simplify(read(text), inline=True)
    assert report.counts["inlined call"] == 1
    assert run_in_every_order(valid(inlined), 1, 5) == [5]


def test_what_has_entries_is_not_inlined() -> None:
    text = """
        main main(a: i64) -> (y)
          y: i64 = call a callee="f"
        function f(w: i64) -> (r) group=f hoisted=1
          r: i64 = negative w
        """
    assert simplify(read(text), inline=True)[0] == read(text)


def test_engines_run_what_they_take() -> None:
    assert ENGINES["reference"].takes_hoisted and not ENGINES["demand"].takes_hoisted
    ops = {node.op for node in two_entries.graph(1.0, 2.0, 3).static.nodes}
    assert {"hoist", "hoist_read"} <= ops
    with ut.options(engine="demand"):
        assert "hoist" not in {node.op for node in two_entries.graph(1.0, 2.0, 3).static.nodes}
    assert "hoist" not in {node.op for node in two_entries.graph(1.0, 2.0, 3, simplify=False).static.nodes}
    with pytest.raises(GraphError, match="is hoisted"):
        ENGINES["demand"].plan(two_entries.graph(1.0, 2.0, 3).static)
    runs = [two_entries.run(1.0, 2.0, 3, **options) for options in ({}, {"engine": "demand"}, {"simplify": False})]
    assert runs == [17.0] * 3


def test_a_saved_function_is_hoisted_when_it_is_loaded(tmp_path: Path) -> None:
    two_entries(1.0, 2.0, 3)
    ut.save(two_entries, tmp_path / "f.undertow")
    loaded = ut.load(tmp_path / "f.undertow")
    assert loaded(1.0, 2.0, 3) == 17.0
    assert "hoist" in {node.op for node in loaded.graph().static.nodes}
    with pytest.raises(GraphError, match="values are hoisted"):
        vet(hoist(simplify(two_entries.library(1.0, 2.0, 3))[0])[0])


def test_hidden_arguments_of_closures_are_hoisted() -> None:
    @ut.function
    def scaled(x: ut.f64, n: ut.i64) -> ut.f64:
        factor = ut.tanh(x)

        @ut.function
        def down(k: ut.i64) -> ut.f64:
            return factor if k <= 0 else down(k - 1) * factor

        return down(n)

    _, after, _ = both(scaled, 0.5, 4)
    assert [graph.hoisted for graph in after.functions.values()].count(1) == 1


def test_many_invariants_in_many_functions() -> None:
    """A ring of functions, each handing on all that it got: linear in size, and no host recursion."""
    count = 1500
    lines = ["main main(a: i64, n: i64) -> (y1, y2)", 'y1: i64 = call a, n callee="f0"']
    lines += ["b: i64 = negative a", 'y2: i64 = call b, n callee="f0"']
    for k in range(count):
        lines += [f"function f{k}(w: i64, n: i64) -> (r)", "p: bool = less_equal n, 0:i64", "branch if1 p"]
        lines += [
            "w.if: i64, i64 = switch p, w",
            "n.if: i64, i64 = switch p, n",
            "if1.else/m: i64 = subtract n.if#1, 1:i64",
        ]
        lines += [
            f'if1.else/s: i64 = call w.if#1, if1.else/m callee="f{(k + 1) % count}"',
            "r: i64 = merge w.if#0, if1.else/s",
        ]
    found = parse_library("library 1 main=main\n" + "\n".join(lines))
    after, report = hoist(found)
    assert report.counts["hoisted argument"] == 1
    check(flatten(after))
    assert Reference().plan(flatten(after)).run([np.int64(3), np.int64(2000)])[0] == [3, -3]
