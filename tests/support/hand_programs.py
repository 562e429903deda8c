"""Programs built by hand, node by node: calls, loops, maps, order tokens, phases; and arguments for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.body import BOOL, F64, FLOATS, I64, Body, const, library, main_of

from undertow.ir.graph import Library, Port
from undertow.types import CTL, i64


def factorial() -> Library:
    """n <= 1 ? 1 : n * fac(n - 1)"""
    f = Body("fac")
    n = f.param("n")
    p = f.op("less_equal", n, const(1), type=BOOL, name="p")
    then, other = f.branch(p)
    go, _ = f.pivots(p, then, other)
    one = f.constant(1, go, then)
    _, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("fac", less, name="fac", region=other)
    product = f.op("multiply", m, below, region=other)
    return library(main_of("fac"), f.finish([f.op("merge", one, product, name="result")]))


def fibonacci() -> Library:
    """n <= 1 ? 1 : fib(n - 1) + fib(n - 2); the else branch has no pivot yet."""
    f = Body("fib")
    n = f.param("n")
    p = f.op("less_equal", n, const(1), type=BOOL, name="p")
    then, other = f.branch(p)
    one, m = f.switch(p, n)
    zero = f.op("subtract", one, one, region=then)
    base = f.op("add", zero, const(1), region=then)
    left = f.call("fib", f.op("subtract", m, const(1), region=other), name="left", region=other)
    right = f.call("fib", f.op("subtract", m, const(2), region=other), name="right", region=other)
    total = f.op("add", left, right, region=other, name="total")
    return library(main_of("fib"), f.finish([f.op("merge", base, total, name="result")]))


def even_odd() -> Library:
    """even(n) = n == 0 or odd(n - 1); odd(n) = n != 0 and even(n - 1)."""
    graphs = []
    for name, other_name, base in (("even", "odd", True), ("odd", "even", False)):
        f = Body(name)
        n = f.param("n")
        p = f.op("equal", n, const(0), type=BOOL, name="p")
        then, other = f.branch(p)
        go, _ = f.pivots(p, then, other)
        _, m = f.switch(p, n)
        less = f.op("subtract", m, const(1), region=other)
        below = f.call(other_name, less, name=other_name, types=(BOOL,), region=other)
        graphs.append(f.finish([f.op("merge", f.constant(base, go, then), below, type=BOOL)]))
    return library(main_of("even", results=(BOOL,)), *graphs)


def sum_loop() -> Library:
    """i, total = n, 0; while i >= step: total += i; i -= step. Gives (i, total); `step` is an invariant."""
    loop = Body("sum", "loop", carried=2)
    i, total, step = loop.param("i"), loop.param("total"), loop.param("step")
    p = loop.op("less_equal", step, i, type=BOOL, name="p")
    then, _ = loop.branch(p)
    i_on, _ = loop.switch(p, i)
    total_on, _ = loop.switch(p, total)
    step_on, _ = loop.switch(p, step)
    next_total = loop.op("add", total_on, i_on, region=then)
    next_i = loop.op("subtract", i_on, step_on, region=then)
    main = Body("main", "main")
    n, by = main.param("n"), main.param("by")
    made = main.add("loop", n, const(0), by, types=(I64, I64), name="sum", body="sum").node
    return library(main.finish([Port(made, 0), Port(made, 1)]), loop.finish([p, next_i, next_total]))


def nested_loop() -> Library:
    """for i in n, n-1 .. 1: for j in i, i-1 .. 1: total += scale * j. The inner loop and its result stand in the
    outer loop's true branch; `scale` is an invariant of both, `unit` a constant handed to both."""
    inner = Body("inner", "loop", carried=2)
    j, total, scale, unit = (inner.param(name) for name in ("j", "total", "scale", "unit"))
    p = inner.op("less_equal", unit, j, type=BOOL, name="p")
    then, _ = inner.branch(p)
    j_on, total_on, scale_on = (inner.switch(p, port)[0] for port in (j, total, scale))
    more = inner.op("multiply", scale_on, j_on, region=then)
    next_total = inner.op("add", total_on, more, region=then)
    next_j = inner.op("subtract", j_on, const(1), region=then)

    outer = Body("outer", "loop", carried=2)
    i, sum_, by, one = (outer.param(name) for name in ("i", "total", "scale", "unit"))
    q = outer.op("less_equal", one, i, type=BOOL, name="q")
    again, _ = outer.branch(q)
    i_on, sum_on, by_on, one_on = (outer.switch(q, port)[0] for port in (i, sum_, by, one))
    made = outer.add("loop", i_on, sum_on, by_on, one_on, types=(I64, I64), name="inner", region=again, body="inner")
    next_i = outer.op("subtract", i_on, const(1), region=again)

    main = Body("main", "main")
    n, times = main.param("n"), main.param("times")
    result = main.add("loop", n, const(0), times, const(1), types=(I64, I64), name="outer", body="outer")
    return library(
        main.finish([Port(result.node, 1)]),
        outer.finish([q, next_i, Port(made.node, 1)]),
        inner.finish([p, next_j, next_total]),
    )


def scaled_map() -> Library:
    """[x * by * by + y + 0.5 for x, y in zip(xs, ys)], and xs again."""
    lane = Body("lane", "map", carried=2)
    x, y, scale, offset = lane.param("x", F64), lane.param("y", F64), lane.param("scale", F64), lane.param("off", F64)
    product = lane.op("multiply", x, scale, type=F64)
    total = lane.op("add", lane.op("add", product, y, type=F64), offset, type=F64)
    main = Body("main", "main")
    xs, ys, by = main.param("xs", FLOATS), main.param("ys", FLOATS), main.param("by", F64)
    squared = main.op("multiply", by, by, type=F64)
    args = (xs, ys, squared, const(0.5))
    made = main.add("map", *args, types=(FLOATS, FLOATS), name="map", body="lane").node
    return library(main.finish([Port(made, 0), Port(made, 1)]), lane.finish([total, x]))


def map_of_tokens() -> Library:
    """A map whose lanes give nothing but the news that they have run."""
    lane = Body("lane", "map", carried=1)
    lane.param("x", F64)
    main = Body("main", "main")
    made = main.add("map", main.param("xs", FLOATS), types=(CTL,), name="map", body="lane")
    return library(main.finish([made]), lane.finish([Port(0)]))


def tokens_all_over() -> Library:
    """An order token as argument, result, loop variable and invariant, and of a map: f(t) twice, n times, per lane."""
    f = Body("f")
    f_done = f.op("identity", f.param("t", CTL), type=CTL, name="done")

    loop = Body("loop", "loop", carried=2)
    i, token = loop.param("i"), loop.param("t", CTL)
    p = loop.op("less_equal", const(1), i, type=BOOL, name="p")
    then, _ = loop.branch(p)
    (i_on, _), (token_on, _) = loop.switch(p, i), loop.switch(p, token, CTL)
    after = loop.call("f", token_on, name="f", types=(CTL,), region=then)
    less = loop.op("subtract", i_on, const(1), region=then)

    lane = Body("lane", "map", carried=1)
    x, before = lane.param("x"), lane.param("t", CTL)
    lane_done = lane.add("loop", x, before, types=(I64, CTL), name="loop", body="loop").node

    main = Body("main", "main")
    xs = main.param("xs", i64[None])
    ready = main.call("f", Port(0), name="ready", types=(CTL,))
    made = main.add("map", xs, ready, types=(CTL, i64[None]), name="map", body="lane").node
    return library(
        main.finish([Port(made, 0), Port(made, 1)]),
        lane.finish([Port(lane_done, 1), Port(lane_done, 0)]),
        loop.finish([p, less, after]),
        f.finish([f_done]),
    )


def map_of_calls() -> Library:
    """[fac(x) for x in xs] if flag else -xs: the map stands in a branch."""
    lane = Body("lane", "map", carried=1)
    made = lane.call("fac", lane.param("x"), name="fac")
    many = i64[None]
    main = Body("main", "main")
    flag, xs = main.param("flag", BOOL), main.param("xs", many)
    then, other = main.branch(flag)
    yes, no = main.switch(flag, xs, many)
    result = main.add("map", yes, types=(many,), name="map", region=then, body="lane")
    minus = main.op("negative", no, type=many, region=other)
    return library(
        main.finish([main.op("merge", result, minus, type=many)]), lane.finish([made]), factorial().functions["fac"]
    )


def two_phases() -> Library:
    """depth(n) visits n + 1 activations; the second phase comes back with dy and gives dy * n! on the way up.

    Main calls it twice and resumes only the first call. Phase 2 is never visited.
    """
    f = Body("f", phases=3)
    n, dy, ddy = f.param("n"), f.param("dy", phase=1), f.param("ddy", phase=2)
    p = f.op("less_equal", n, const(0), type=BOOL, name="p")
    _, other = f.branch(p)
    base, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("f", less, name="f", region=other)
    deeper = f.op("add", below, const(1), region=other)
    depth = f.op("merge", base, deeper, name="depth")
    dy_base, dy_on = f.switch(p, dy)
    dy_below = f.op("multiply", dy_on, m, region=other)
    back = f.add("resume", below, dy_below, types=(I64,), name="f_back", region=other, phase=1)
    dn = f.op("merge", dy_base, back, name="dn")
    never = f.add("call", ddy, types=(I64,), name="never", callee="f")
    main = Body("main", "main")
    x, y = main.param("x"), main.param("y")
    first = main.call("f", x, name="first")
    second = main.call("f", y, name="second")
    again = main.add("resume", first, const(1), types=(I64,), name="again", phase=1)
    return library(main.finish([first, second, again]), f.finish([depth], [dn], [never]))


def deep_branches(depth: int) -> Library:
    """A call with a constant argument inside `depth` nested branches, none of which has a pivot but the last."""
    f = Body("main", "main")
    p = f.param("p", BOOL)
    region, pred, merges = 0, p, []
    for _ in range(depth):
        then, _ = f.branch(pred, region)
        inside, outside = f.switch(pred, pred, BOOL, region)
        merges.append((region, outside))
        region, pred = then, inside
    made = f.call("not", pred, name="not", types=(BOOL,), region=region)
    for at, outside in reversed(merges):
        made = f.op("merge", made, outside, type=BOOL, region=at)
    g = Body("not")
    return library(f.finish([made]), g.finish([g.op("logical_not", g.param("x", BOOL), type=BOOL)]))


def loop_in_branch() -> Library:
    """sum of 1..n if flag else n"""
    whole = sum_loop()
    main = Body("main", "main")
    flag, n, by = main.param("flag", BOOL), main.param("n"), main.param("by")
    then, _ = main.branch(flag)
    yes, no = main.switch(flag, n)
    step, _ = main.switch(flag, by)
    made = main.add("loop", yes, const(0), step, types=(I64, I64), name="sum", region=then, body="sum")
    return library(main.finish([main.op("merge", Port(made.node, 1), no)]), whole.functions["sum"])


def dividing() -> Library:
    """A map over a loop over calls: while i > 0: total += share(x, i); i -= 1. share(x, i) = 12 // (x - i)."""
    share = Body("share")
    x, i = share.param("x"), share.param("i")
    gap = share.op("subtract", x, i)
    quotient = share.op("floor_divide", const(12), gap, name="quotient")

    loop = Body("loop", "loop", carried=2)
    at, total, by = loop.param("i"), loop.param("total"), loop.param("x")
    p = loop.op("less_equal", const(1), at, type=BOOL, name="p")
    then, _ = loop.branch(p)
    at_on, total_on, by_on = (loop.switch(p, port)[0] for port in (at, total, by))
    more = loop.call("share", by_on, at_on, name="share", region=then)
    sum_ = loop.op("add", total_on, more, region=then)
    after = loop.op("subtract", at_on, const(1), region=then)

    lane = Body("lane", "map", carried=1)
    element = lane.param("x")
    made = lane.add("loop", const(5), const(0), element, types=(I64, I64), name="loop", body="loop")
    main = Body("main", "main")
    result = main.add("map", main.param("xs", i64[None]), types=(i64[None],), name="map", body="lane")
    return library(
        main.finish([result]),
        lane.finish([Port(made.node, 1)]),
        loop.finish([p, after, sum_]),
        share.finish([quotient]),
    )


PROGRAMS = {
    program.__name__: program
    for program in (
        factorial,
        fibonacci,
        even_odd,
        sum_loop,
        nested_loop,
        scaled_map,
        map_of_calls,
        map_of_tokens,
        tokens_all_over,
        two_phases,
    )
}

_SMALL = (3, 0, 1, 2, 7)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    **{name: [(n,) for n in _SMALL] for name in ("factorial", "fibonacci", "even_odd")},
    **{name: [(n, 2) for n in _SMALL] for name in ("sum_loop", "nested_loop", "two_phases")},
    "scaled_map": [(np.arange(n) * 1.0, np.ones(n), 2.0) for n in (2, 0, 1, 4)],
    "map_of_calls": [(flag, np.array([3, 0, 2])) for flag in (True, False)],
    "map_of_tokens": [(np.ones(n),) for n in (2, 0)],
    "tokens_all_over": [(np.array(xs, np.int64),) for xs in ([3, 0, 2], [], [0])],
}
