"""The demand engine in words: golden texts of evaluations, step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.support.body import Body, const, library
from tests.support.graphs import captured, plain
from tests.support.hand_programs import ARGUMENTS, PROGRAMS, factorial, sum_loop
from tests.support.recursions import swap_down

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.demand import explain
from undertow.errors import RecursionLimit
from undertow.ir.graph import Library
from undertow.passes.flatten import flatten


def thesis_program() -> Library:
    """result = f(4) + f(5);  f(x) = g(x + 1);  g(y) = y"""
    g = Body("g")
    y = g.param("y")
    f = Body("f")
    x = f.param("x")
    called = f.call("g", f.op("add", x, const(1)), name="g")
    main = Body("main", "main")
    sides = [main.call("f", const(n), name=f"f{n}") for n in (4, 5)]
    return library(main.finish([main.op("add", *sides, name="result")]), f.finish([called]), g.finish([y]))


THESIS = """\
EVAL(result, []) = EVAL(f, [1]) + EVAL(f, [2])
  EVAL(f, [1]) = EVAL(g, [3, 1])
    EVAL(g, [3, 1]) = EVAL(y, [3, 1])
      EVAL(y, [3, 1]) = EVAL(x + 1, [1]) = EVAL(x, [1]) + 1
        EVAL(x, [1]) = EVAL(4, []) = 4
      EVAL(y, [3, 1]) = 5
    EVAL(g, [3, 1]) = 5
  EVAL(f, [1]) = 5
  EVAL(f, [2]) = EVAL(g, [3, 2])
    EVAL(g, [3, 2]) = EVAL(y, [3, 2])
      EVAL(y, [3, 2]) = EVAL(x + 1, [2]) = EVAL(x, [2]) + 1
        EVAL(x, [2]) = EVAL(5, []) = 5
      EVAL(y, [3, 2]) = 6
    EVAL(g, [3, 2]) = 6
  EVAL(f, [2]) = 6
EVAL(result, []) = 11"""


def test_the_thesis_s_example() -> None:
    assert explain(flatten(thesis_program())) == THESIS


def test_it_takes_what_graph_gives() -> None:
    """The graph as it was captured, also where the default engine's has hoisted values; and numbers of Python."""
    view = swap_down.graph(2, 5)
    found = explain(view, [2, 5])
    assert found == explain(view.captured_graph, [np.int64(2), np.int64(5)]) == explain(flatten(view.captured), [2, 5])
    assert found.startswith("EVAL(swap_down, []) = EVAL(swap_down, [1])")


LAZY = """\
EVAL(swap_down, []) = EVAL(swap_down, [1])
  EVAL(swap_down, [1]) = if EVAL(x, [1]) <= 1 then 1 else EVAL(swap_down, [3, 1])
    EVAL(x, [1]) = EVAL(x, [])
      EVAL(x, []) = 2
    EVAL(x, [1]) = 2
    EVAL(swap_down, [3, 1]) = if EVAL(x, [3, 1]) <= 1 then 1 else EVAL(swap_down, [3, 3, 1])
      EVAL(x, [3, 1]) = EVAL(x - 1, [1]) = EVAL(x, [1]) - 1 = 1
    EVAL(swap_down, [3, 1]) = 1
  EVAL(swap_down, [1]) = 1
EVAL(swap_down, []) = 1"""


def test_a_lazy_program_in_words() -> None:
    """Site 2 is the argument that nobody asks for."""
    assert explain(captured(swap_down, 2, 2), [np.int64(2), np.int64(2)]) == LAZY


LOOP = """\
EVAL(sum.1, []) = EVAL(total, [1.k]) for the first k with EVAL(step, [1.k]) <= EVAL(i, [1.k]) = False
  EVAL(total, [1.0]) = EVAL(0, []) = 0
  EVAL(step, [1.0]) = EVAL(by, [])
    EVAL(by, []) = 2
  EVAL(step, [1.0]) = 2
  EVAL(i, [1.0]) = EVAL(n, [])
    EVAL(n, []) = 3
  EVAL(i, [1.0]) = 3
  EVAL(total, [1.1]) = EVAL(total + i, [1.0]) = EVAL(total, [1.0]) + EVAL(i, [1.0]) = 3
  EVAL(step, [1.1]) = EVAL(by, []) = 2
  EVAL(i, [1.1]) = EVAL(i - step, [1.0]) = EVAL(i, [1.0]) - EVAL(step, [1.0]) = 1
EVAL(sum.1, []) = 3"""

MAP = """\
EVAL(map, []) = [EVAL(x, [1.k]) * EVAL(fac, [2, 1.k]) for each k]
  EVAL(xs, []) = [1, 2]
  EVAL(x, [1.0]) = EVAL(xs, [])[0] = 1
  EVAL(fac, [2, 1.0]) = if EVAL(n, [2, 1.0]) <= 1 then 1 else EVAL(n, [2, 1.0]) * EVAL(fac, [3, 2, 1.0])
    EVAL(n, [2, 1.0]) = EVAL(x, [1.0]) = 1
  EVAL(fac, [2, 1.0]) = 1
  EVAL(x, [1.1]) = EVAL(xs, [])[1] = 2
  EVAL(fac, [2, 1.1]) = if EVAL(n, [2, 1.1]) <= 1 then 1 else EVAL(n, [2, 1.1]) * EVAL(fac, [3, 2, 1.1])
    EVAL(n, [2, 1.1]) = EVAL(x, [1.1]) = 2
    EVAL(fac, [3, 2, 1.1]) = if EVAL(n, [3, 2, 1.1]) <= 1 then 1 else EVAL(n, [3, 2, 1.1]) * EVAL(fac, [3, 3, 2, 1.1])
      EVAL(n, [3, 2, 1.1]) = EVAL(n - 1, [2, 1.1]) = EVAL(n, [2, 1.1]) - 1 = 1
    EVAL(fac, [3, 2, 1.1]) = 1
  EVAL(fac, [2, 1.1]) = 2
EVAL(map, []) = [1, 4]"""


def test_loops_and_maps_in_words() -> None:
    graph = flatten(sum_loop())
    assert explain(replace(graph, fetches=graph.fetches[1:]), [np.int64(3), np.int64(2)]) == LOOP
    lane = Body("lane", "map", carried=1)
    x = lane.param("x")
    product = lane.op("multiply", x, lane.call("fac", x, name="fac"))
    main = Body("main", "main")
    made = main.add("map", main.param("xs", ut.i64[None]), types=(ut.i64[None],), name="map", body="lane")
    program = library(main.finish([made]), lane.finish([product]), factorial().functions["fac"])
    assert explain(flatten(program), [np.array([1, 2])]) == MAP


def test_effects_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    @ut.function
    def hello(n: ut.i64) -> ut.i64:
        print("hello", n)
        print("goodbye", n)
        return n

    told = explain(captured(hello, 3), [np.int64(3)])
    assert "EVAL(print_2, [1]) = print(EVAL(n, [1])) after EVAL(print, [1])" in told
    assert "EVAL(print, [1]) = print(EVAL(n, [1]))\n" in told
    assert "EVAL(hello.1, []) = EVAL(hello#1, [1])" in told
    assert "EVAL(hello#1, [1]) = done" in told
    assert "EVAL(hello.0, []) = EVAL(hello#0, [1])" in told


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_can_be_told(name: str) -> None:
    graph = flatten(PROGRAMS[name]())
    inputs = plain(ARGUMENTS[name][0])
    told = explain(graph, inputs)
    asked = [line for line in told.splitlines() if line.startswith("EVAL(")]
    assert len(asked) >= len(graph.fetches)
    assert told == explain(graph, inputs, lines=told.count("\n") + 1)


def test_a_long_story_is_cut() -> None:
    told = explain(flatten(factorial()), [np.int64(2000)], lines=10).splitlines()
    assert len(told) == 11
    assert told[-1].startswith("... ") and told[-1].endswith(" lines more")
    with pytest.raises(RecursionLimit):
        explain(flatten(factorial()), [np.int64(50)], options=Options(max_depth=10))


def test_parentheses() -> None:
    @ut.function
    def nested(n: ut.i64, m: ut.i64) -> ut.i64:
        return (abs(n) + 1) * (m if n < m else n - m) - abs(m - n)

    told = explain(captured(nested, 1, 2), [np.int64(1), np.int64(2)])
    wanted = "((abs(n) + 1) * (if n < m then m else n - m)) - abs(m - n)"
    for name in "nm":
        wanted = wanted.replace(f"({name}", f"(EVAL({name}, [1])").replace(f" {name}", f" EVAL({name}, [1])")
    assert f"EVAL(nested, [1]) = {wanted}\n" in told
