"""Loops become calls: the text of the functions made, which loops stay, and that values and effects are the same."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program
from tests.support.agreement import run as run_in_every_order
from tests.support.body import BOOL, I64, Body, const, library, main_of
from tests.support.hand_programs import ARGUMENTS, nested_loop, sum_loop
from tests.support.hand_programs import PROGRAMS as BY_HAND
from tests.support.recursions import climbs
from tests.support.validity import parse_library, read, valid

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference import Reference
from undertow.errors import Fault, Span
from undertow.ir.graph import Attrs, FunctionGraph, Library, Port
from undertow.ir.text import dump
from undertow.passes.flatten import flatten
from undertow.passes.hoist import hoist
from undertow.passes.loops import loops_to_calls
from undertow.passes.simplify import simplify

SCHEDULES = [Options(scheduler="fifo"), Options(scheduler="lifo")]
SCHEDULES += [Options(scheduler="random", schedule_seed=seed) for seed in range(4)]


def without_loops(before: Library) -> Library:
    """The library with every graph named; it is valid, has no loops, and so is what other passes make of it."""
    after = valid(loops_to_calls(before, before.functions))
    assert not any(graph.kind == "loop" for graph in after.functions.values())
    assert not any(node.op == "loop" for graph in after.functions.values() for node in graph.nodes)
    assert list(after.functions) == list(before.functions)
    valid(hoist(valid(simplify(after)[0]))[0])
    return after


def kinds(found: Library) -> dict[str, str]:
    return {name: graph.kind for name, graph in found.functions.items()}


def lines(graph: FunctionGraph) -> list[str]:
    """The text of one graph, blanks folded."""
    text = dump(Library({graph.name: graph}, graph.name), spans=False)
    return [" ".join(line.split()) for line in text.splitlines()[2:]]


def results(found: Library, *inputs: Any) -> list[Any]:
    """Results by every schedule, as Python numbers."""
    return [np.asarray(value).tolist() for value in run_in_every_order(found, *inputs)]


# --------------------------------------------------------------------------------------------------------------
# The text

COUNT = """
    main main(n: i64, by: i64) -> (y#1)
      y: i64, i64 = loop n, 0:i64, by body="l"
    loop l(i: i64, total: i64, by: i64) -> (p, if1.then/j, if1.then/t) carried=2
      p: bool = greater i, 0:i64
      branch if1 p
      i.if: i64, i64 = switch p, i
      if1.then/j: i64 = subtract i.if#0, 1:i64
      by.if: i64, i64 = switch p, by
      total.if: i64, i64 = switch p, total
      if1.then/t: i64 = add total.if#0, by.if#0
    """


def test_a_counting_loop() -> None:
    after = without_loops(read(COUNT))
    assert lines(after.functions["main"]) == [
        "main main(n: i64, by: i64) -> (y#1)",
        'y: i64, i64 = call n, 0:i64, by callee="l"',
    ]
    assert lines(after.functions["l"]) == [
        "function l(i: i64, total: i64, by: i64) -> (i.last, total.last)",
        "p: bool = greater i, 0:i64",
        "branch if1 p",
        "i.if: i64, i64 = switch p, i",
        "if1.then/j: i64 = subtract i.if#0, 1:i64",
        "by.if: i64, i64 = switch p, by",
        "total.if: i64, i64 = switch p, total",
        "if1.then/t: i64 = add total.if#0, by.if#0",
        'if1.then/again: i64, i64 = call if1.then/j, if1.then/t, by.if#0 callee="l"',
        "i.last: i64 = merge if1.then/again#0, i.if#1",
        "total.last: i64 = merge if1.then/again#1, total.if#1",
    ]
    assert [results(after, n, 7) for n in (0, 1, 5)] == [[0], [7], [35]]


def test_what_the_body_does_not_use_is_brought_to_the_call() -> None:
    """Neither `last` nor `by` has a Switch in the loop; `last` gets the value of `i` of the iteration before."""
    text = """
        main main(n: i64, by: i64) -> (y#0, y#1)
          y: i64, i64 = loop n, -1:i64, by body="l"
        loop l(i: i64, last: i64, by: i64) -> (p, if1.then/j, i.if#0) carried=2
          p: bool = greater_equal i, by
          branch if1 p
          i.if: i64, i64 = switch p, i
          if1.then/j: i64 = subtract i.if#0, 2:i64
        """
    after = without_loops(read(text))
    assert lines(after.functions["l"])[4:] == [
        "if1.then/j: i64 = subtract i.if#0, 2:i64",
        "by.if: i64, i64 = switch p, by",
        "last.if: i64, i64 = switch p, last",
        'if1.then/again: i64, i64 = call if1.then/j, i.if#0, by.if#0 callee="l"',
        "i.last: i64 = merge if1.then/again#0, i.if#1",
        "last.last: i64 = merge if1.then/again#1, last.if#1",
    ]
    assert results(after, 7, 3) == [1, 3]
    assert results(after, 2, 3) == [2, -1]


# --------------------------------------------------------------------------------------------------------------
# Predicates and variables of every kind


def test_a_predicate_that_is_a_variable_and_next_values_that_are_switched() -> None:
    text = """
        main main(n: i64) -> (y#0, y#1)
          y: bool, i64 = loop true, n body="l"
        loop l(p: bool, i: i64) -> (p, if1.then/q, if1.then/j) carried=2
          branch if1 p
          i.if: i64, i64 = switch p, i
          if1.then/j: i64 = subtract i.if#0, 1:i64
          if1.then/q: bool = greater if1.then/j, 0:i64
        """
    after = without_loops(read(text))
    assert results(after, 4) == [False, 0] and results(after, -3) == [False, -4]


@pytest.mark.parametrize("predicate", ["p: bool = identity false ^start", "p: bool = less 2:i64, 1:i64 ^start"])
def test_a_predicate_of_constants(predicate: str) -> None:
    text = f"""
        main main(n: i64) -> (y)
          y: i64 = loop n body="l"
        loop l(i: i64) -> (p, if1.then/j) carried=1
          {predicate}
          branch if1 p
          i.if: i64, i64 = switch p, i
          if1.then/j: i64 = add i.if#0, 1:i64
        """
    assert results(without_loops(read(text)), 4) == [4]


def test_a_predicate_that_is_an_invariant_and_a_constant() -> None:
    text = """
        main main(n: i64) -> (y)
          y: i64 = loop n, false body="l"
        loop l(i: i64, p: bool) -> (p, i.if#0) carried=1
          branch if1 p
          i.if: i64, i64 = switch p, i
        """
    assert results(without_loops(read(text)), 4) == [4]


def test_a_loop_without_variables_gets_the_branch_that_it_lacks() -> None:
    text = """
        main main(n: i64) -> (n)
          done = loop n body="l"
        loop l(i: i64) -> (p) carried=0
          p: bool = less i, i
        """
    after = without_loops(read(text))
    assert lines(after.functions["l"]) == [
        "function l(i: i64) -> ()",
        "p: bool = less i, i",
        "branch while p",
        "i.if: i64, i64 = switch p, i",
        'while.then/again = call i.if#0 callee="l"',
    ]
    assert results(after, 4) == [4]


def test_a_loop_without_anything() -> None:
    text = """
        main main(n: i64) -> (n)
          done = loop body="l" ^start
        loop l() -> (p) carried=0
          p: bool = less 1:i64, 1:i64 ^start
        """
    after = without_loops(read(text))
    assert lines(after.functions["l"])[2:] == [
        "branch while p ^start.if",
        "start.if: ctl, ctl = switch p, start",
        'while.then/again = call callee="l" ^start.if#0',
    ]
    assert results(after, 4) == [4]


def test_a_loop_without_branches_gets_them() -> None:
    """while p: i, p = i, i > 0, with the next values outside any branch, as `flatten` takes them too."""
    loop = Body("loop", "loop", carried=2)
    i, p = loop.param("i"), loop.param("p", BOOL)
    less = loop.op("subtract", i, const(1))
    more = loop.op("less", const(1), i, type=BOOL)
    main = Body("main", "main")
    made = main.add("loop", main.param("n"), const(True), types=(I64, BOOL), name="loop", body="loop")
    before = library(main.finish([made]), loop.finish([p, less, more]))
    assert results(without_loops(before), 3) == results(before, 3) == [0]


def test_types_of_variables_are_wider_than_those_of_their_next_values() -> None:
    text = """
        main main(x: f64[?], n: i64) -> (y#0)
          y: f64[?], i64 = loop x, n body="l"
        loop l(x: f64[?], i: i64) -> (p, if1.then/z, if1.then/j) carried=2
          p: bool = greater i, 0:i64
          branch if1 p
          i.if: i64, i64 = switch p, i
          if1.then/j: i64 = subtract i.if#0, 1:i64
          start.if: ctl, ctl = switch p, start
          if1.then/z: f64[2] = identity [1.0, 2.0]:f64[2] ^start.if#0
        """
    after = without_loops(read(text))
    assert [str(after.functions["l"].type_of(port)) for port in after.functions["l"].results] == ["f64[?]", "i64"]
    assert results(after, np.ones(3), 0) == [[1.0, 1.0, 1.0]] and results(after, np.ones(3), 2) == [[1.0, 2.0]]


# --------------------------------------------------------------------------------------------------------------
# Which loops


def test_nested_loops() -> None:
    before = nested_loop()
    after = without_loops(before)
    assert kinds(after) == {"main": "main", "outer": "function", "inner": "function"}
    assert results(after, 4, 3) == results(before, 4, 3)
    assert loops_to_calls(before, ["main"]) == after, "loops in the functions made are converted, named or not"


def test_a_named_inner_loop_leaves_the_outer_one_a_loop() -> None:
    before = nested_loop()
    after = valid(loops_to_calls(before, ["outer"]))
    assert kinds(after) == {"main": "main", "outer": "loop", "inner": "function"}
    assert results(after, 4, 3) == results(before, 4, 3)


def test_only_named_graphs_are_changed() -> None:
    before = nested_loop()
    assert loops_to_calls(before, []) == loops_to_calls(before, ["inner"]) == before


def twice_entered() -> Library:
    """main and f both run the outer of two nested loops."""
    nested = nested_loop()
    f = Body("f")
    n = f.param("n")
    made = f.add("loop", n, const(0), const(2), const(1), types=(I64, I64), name="outer", body="outer")
    main = Body("main", "main")
    m = main.param("n")
    called = main.call("f", m, name="f")
    own = main.add("loop", m, called, const(1), const(1), types=(I64, I64), name="outer", body="outer")
    bodies = (nested.functions["outer"], nested.functions["inner"])
    return valid(library(main.finish([Port(own.node, 1)]), f.finish([Port(made.node, 1)]), *bodies))


def test_a_loop_entered_by_two_becomes_one_function() -> None:
    before = twice_entered()
    after = without_loops(before)
    assert results(after, 5) == results(before, 5)


@pytest.mark.parametrize("name", ["main", "f"])
def test_a_loop_that_is_also_entered_elsewhere_stays_as_well(name: str) -> None:
    before = twice_entered()
    after = valid(loops_to_calls(before, [name]))
    assert kinds(after) == {
        "main": "main", "f": "function", "outer": "loop", "outer.calls": "function",
        "inner": "loop", "inner.calls": "function",
    }  # fmt: skip
    assert after.functions["outer"] == before.functions["outer"]
    assert after.functions["inner"] == before.functions["inner"]
    assert "inner.calls" in dump(Library({"outer": after.functions["outer.calls"]}, "outer"))
    assert results(after, 5) == results(before, 5)
    again = valid(loops_to_calls(after, ["main", "f"]))
    assert set(kinds(again).values()) == {"main", "function"}


def test_what_stays_is_changed_if_it_is_named() -> None:
    """f still enters `outer` as a loop, in which `inner` is now a call: the same function as in `outer.calls`."""
    before = twice_entered()
    after = valid(loops_to_calls(before, ["main", "outer"]))
    assert kinds(after) == {
        "main": "main", "f": "function", "outer": "loop", "outer.calls": "function", "inner": "function",
    }  # fmt: skip
    assert results(after, 5) == results(before, 5)


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    before = twice_entered()
    other = replace(main_of("f"), name="outer.calls", kind="function")
    other = replace(other, regions=(replace(other.regions[0], kind="function"),))
    before = valid(Library({**before.functions, "outer.calls": other}, "main"))
    after = valid(loops_to_calls(before, ["main"]))
    assert after.functions["outer.calls"] == other
    assert after.functions["outer.calls_2"].kind == "function"


@ut.function
def per_lane(xs: ut.i64[None], k: ut.i64) -> ut.i64:
    def lane(x):
        total = 0
        while x > 0:
            total += x
            x -= 1
        return total

    while k < 2:
        k += ut.sum(ut.map(lane, xs))
    return k


def test_a_map_keeps_its_body_and_the_loops_in_it_unless_it_is_named() -> None:
    before = valid(per_lane.library(np.arange(3), 0))
    (lane,) = (name for name, kind in kinds(before).items() if kind == "map")
    others = [name for name in before.functions if name != lane]
    some, every = valid(loops_to_calls(before, others)), without_loops(before)
    assert list(kinds(some).values()).count("loop") == 1 and some.functions[lane] == before.functions[lane]
    assert kinds(every)[lane] == "map"
    for found in (before, some, every):
        assert results(found, np.arange(4), 0) == [10]
        assert results(found, np.array([1]), 0) == [2]


def test_what_a_loop_node_carries_stays_with_the_call() -> None:
    before = sum_loop()
    main = before.functions["main"]
    at = Span("model.py", 3, 1)
    nodes = tuple(
        replace(node, attrs=Attrs(**node.attrs, device="worker:1"), controls=(Port(1),), span=at)
        if node.op == "loop"
        else node
        for node in main.nodes
    )
    before = Library({**before.functions, "main": replace(main, nodes=nodes)}, "main")
    loop = before.functions["sum"]
    before = valid(Library({**before.functions, "sum": replace(loop, span=at)}, "main"))
    after = valid(loops_to_calls(before, ["main"]))
    (old,) = (node for node in nodes if node.op == "loop")
    (new,) = (node for node in after.functions["main"].nodes if node.op == "call")
    assert new == replace(old, op="call", attrs=Attrs(callee="sum", device="worker:1"))
    (again,) = (node for node in after.functions["sum"].nodes if node.op == "call")
    assert after.functions["sum"].span == again.span == at


def test_hoisted_loops_are_refused() -> None:
    hoisted = hoist(simplify(climbs.library(1.0, 2.0, 3))[0])[0]
    with pytest.raises(AssertionError, match="before `hoist`"):
        loops_to_calls(hoisted, hoisted.functions)


# --------------------------------------------------------------------------------------------------------------
# Programs


def outcome(found: Library, inputs: list[Any], options: Options) -> tuple[list[Any], str, str]:
    """Results, what is printed, and the fault if there is one."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        try:
            values, _, left = Reference().plan(flatten(found)).drain(inputs, options)
        except Fault as fault:
            return [], printed.getvalue(), fault.what
    assert left == 0
    return values, printed.getvalue(), ""


def case_of(program: Program, case: int) -> tuple[Library, list[Any]]:
    """What is captured for a case, and what it is fed with."""
    arguments, function = program.cases[case], program.function
    given = (
        function._map_arguments(arguments)[0] if program.by == "map" else function.__undertow_arguments__(arguments, {})
    )
    found, _ = program.capture(case)
    inputs = [np.asarray(leaf)[()] for leaf in given.leaves]
    if len(inputs) < len(found.functions[found.main].params):
        inputs.append(np.int64(program.seed or 0))
    return found, inputs


APART = {"lazy", "late", "deep", "gradient", "sown"}  # the last two are not run as they were captured
WITH_LOOPS = [
    program
    for program in PROGRAMS
    if "loop" in program.tags
    and not program.tags & APART
    and program.name not in ("carried", "three_ways")  # they read globals
]


@pytest.mark.parametrize("program", WITH_LOOPS, ids=str)
def test_programs_give_the_same(program: Program) -> None:
    for case in range(len(program.cases))[:2]:  # more take no other way through the passes
        before, inputs = case_of(program, case)
        values, printed, fault = outcome(before, inputs, SCHEDULES[0])
        for number, found in enumerate((before, simplify(before)[0])):
            after = without_loops(found)
            for made in (after, simplify(hoist(simplify(after)[0])[0])[0]):
                got, lines, said = outcome(made, inputs, SCHEDULES[(case + 3 * number) % len(SCHEDULES)])
                assert (lines, said) == (printed, fault)
                for one, other in zip(got, values, strict=True):
                    np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("name", [name for name in BY_HAND if "phases" not in name])
def test_graphs_written_by_hand_give_the_same(name: str) -> None:
    before = BY_HAND[name]()
    after = without_loops(before)
    for inputs in ARGUMENTS[name]:
        for one, other in zip(run_in_every_order(after, *inputs), run_in_every_order(before, *inputs), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_a_loop_in_a_phase_of_a_caller() -> None:
    """What is visited later calls later: the loop stands in the second phase."""
    text = """
        main main(x: i64, dx: i64) -> (y, z)
          y: i64 = call x callee="f"
          z: i64 = resume y, dx phase=1
        function f(x: i64) -> (y)
          y: i64 = negative x
          phase 1 (dx: i64) -> (z)
          z: i64 = loop dx, y body="l"
        loop l(i: i64, y: i64) -> (p, if1.then/j) carried=1
          p: bool = less i, 9:i64
          branch if1 p
          i.if: i64, i64 = switch p, i
          y.if: i64, i64 = switch p, y
          if1.then/j: i64 = subtract i.if#0, y.if#0
        """
    after = without_loops(read(text))
    assert results(after, 4, 1) == [-4, 9]


@ut.function
def loops_that_print(n: ut.i64) -> ut.i64:
    """One inside the other, and one in a branch."""
    total = 0
    for i in range(n):
        print("outer", i)
        j = i
        while j > 0:
            print("inner", j)
            j -= 1
            total += j
        if i % 2 == 0:
            for k in range(i):
                print("even", i, k)
        else:
            print("odd")
    print("over", total)
    return total


def test_effects_come_in_the_same_order() -> None:
    before = loops_that_print.library(0)
    after = without_loops(before)
    for n in (0, 1, 5):
        wanted = outcome(before, [np.int64(n)], SCHEDULES[0])
        assert wanted[1].count("\n") > n
        for options in SCHEDULES:
            assert outcome(after, [np.int64(n)], options) == wanted


@ut.function
def counted(n: ut.i64) -> ut.i64:
    k = 0
    while k < n:
        k += 1
    return k


def test_each_iteration_is_an_activation() -> None:
    """Also the one that only asks the predicate; no host recursion, however many there are."""
    after = without_loops(counted.library(0))
    values, stats, _ = Reference().plan(flatten(after)).drain([np.int64(5000)])
    assert values == [5000]
    assert stats.activations == 1 + 5001


@pytest.mark.slow
def test_loops_nested_deeply_do_not_recurse() -> None:
    depth = 1100
    lines = ["main main(n: i64) -> (y)", 'y: i64 = loop n body="l0"']
    for k in range(depth):
        lines += [f"loop l{k}(i: i64) -> (p, if1.then/j) carried=1", "p: bool = greater i, 0:i64", "branch if1 p"]
        lines += ["i.if: i64, i64 = switch p, i", "if1.then/m: i64 = subtract i.if#0, 1:i64"]
        inner = f'loop if1.then/m body="l{k + 1}"' if k + 1 < depth else "identity if1.then/m"
        lines.append(f"if1.then/j: i64 = {inner}")
    found = parse_library("library 1 main=main\n" + "\n".join(lines))
    after = loops_to_calls(found, ["main"])
    assert set(kinds(after).values()) == {"main", "function"}
    assert Reference().plan(flatten(after)).run([np.int64(2)])[0] == [0]
