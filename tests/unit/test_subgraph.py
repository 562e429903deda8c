"""`ut.SubGraph`: blocks, hidden arguments found late, names, lines, what is refused. Equal libraries: test_faces.py."""

from __future__ import annotations

import contextlib
import inspect
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.threads import in_threads

import undertow as ut
from undertow.api.options import ENGINES
from undertow.frontend.values.traced import context
from undertow.ir import spec, text

LEFT = np.array([1, -1, -1], np.int32)


def printed(work: Any) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        work()
    return out.getvalue()


def fac() -> ut.SubGraph:
    with ut.SubGraph(returns=ut.i64) as fac:
        n = fac.input(ut.i64)
        fac.output(ut.cond(n == 0, lambda: 1, lambda: n * fac(n - 1)))
    return fac


# -- it is a function --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_like_a_function(engine: str) -> None:
    f = fac()
    assert isinstance(f, ut.Function)
    result, stats = f.run(5, engine=engine, stats=True)
    assert result == 120 and stats.activations == 6
    assert f.map([3, 4, 5]).tolist() == [6, 24, 120]
    assert f(n=4) == 24
    assert "call" in str(f.library(1)) and len(f.graph(1)) > 3
    assert repr(f) == "<undertow subgraph fac>"
    assert (f.__name__, str(inspect.signature(f))) == ("fac", "(n)")


def test_is_called_by_functions_and_other_blocks() -> None:
    f = fac()

    @ut.function
    def binomial(n: ut.i64, k: ut.i64) -> ut.i64:
        return f(n) // (f(k) * f(n - k))

    with ut.SubGraph() as both:
        n = both.input(ut.i64)
        both.output(f(n) + binomial(n, 2))
    with ut.SubGraph() as twice:
        m = twice.input(ut.i64)
        twice.output(both(m) + f(m))
    assert binomial(5, 2) == 10
    assert both(5) == 130
    assert twice(5) == 250
    assert list(twice.library(5).functions).count("fac") == 1
    assert not any(name.startswith("fac~") for name in twice.library(5).functions), "one graph serves all callers"


def test_an_own_function_of_the_block_calls_it_back() -> None:
    """A SubGraph and an @ut.function that call each other."""
    with ut.SubGraph(returns=ut.i64) as ping:
        n = ping.input(ut.i64)

        @ut.function
        def pong(k: ut.i64) -> ut.i64:
            return 0 if k <= 0 else ping(k - 1) + 1

        ping.output(ut.cond(n <= 0, lambda: 0, lambda: pong(n - 1) + 10))
    assert ping(4) == 22
    spec.check(ping.library(4))


def test_saves_and_loads(tmp_path: Path) -> None:
    f = fac()
    f(3)
    ut.save(f, tmp_path / "fac.ut")
    assert ut.load(tmp_path / "fac.ut")(6) == 720


def test_is_no_method() -> None:
    class Model:
        step = fac()

    assert Model().step(3) == 6


# -- inputs and outputs ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    low: ut.i64
    high: ut.i64


def test_containers() -> None:
    with ut.SubGraph(returns=Pair) as order:
        pair = order.input({"a": ut.i64, "b": (ut.i64, ut.f32[None])})
        x = pair["b"][1]
        swapped = {"a": pair["b"][0], "b": (pair["a"], x)}
        order.output(ut.cond(pair["a"] <= pair["b"][0], lambda: Pair(pair["a"], pair["b"][0]), lambda: order(swapped)))
    assert order({"a": 5, "b": (3, np.zeros(4, np.float32))}) == Pair(3, 5)
    assert "pair.b.0: i64" in str(order.library({"a": 5, "b": (3, np.zeros(4, np.float32))}))


def test_needs_no_declaration_where_nothing_recurses() -> None:
    with ut.SubGraph() as area:
        w, h = area.input(ut.f32), area.input(ut.f32)
        area.output(w * h, {"around": 2 * (w + h)})
    found = area(2, 3)
    assert found == (6.0, {"around": 10.0}) and found[0].dtype == np.float32


def test_no_inputs() -> None:
    with ut.SubGraph(name="seven") as f:
        f.output(7)
    assert f() == 7


def test_names_come_from_variables() -> None:
    made = ut.SubGraph()
    first = made.input(ut.i64)
    made.input(ut.i64)
    third = made.input(ut.i64, name="c")
    with made as renamed:
        total = first + third
        scaled = ut.cond(total > 0, lambda: total, lambda: first)
        renamed.output(scaled * 2)
    assert str(inspect.signature(made)) == "(first, x1, c)"
    shown = str(made.library(1, 2, 3))
    assert "function made(first: i64, x1: i64, c: i64)" in shown
    assert "total: i64" in shown and "total.if" in shown and "scaled: i64" in shown


def test_arrays_are_indexed_in_the_block() -> None:
    with ut.SubGraph(returns=ut.i32) as depth:
        node = depth.input(ut.i32)
        child = ut.asarray(LEFT)[node]
        part = ut.asarray(LEFT)[node : node + 1]
        assert ut.asarray(LEFT)[0] == 1
        depth.output(ut.cond(child < 0, lambda: part[0] * 0, lambda: depth(child) + 1))
    assert depth(0) == 1


def test_every_node_has_its_line() -> None:
    with ut.SubGraph() as f:
        x = f.input(ut.f64)
        y = x * 2.0
        z = np.exp(y)
        f.output(z)
    first = inspect.getsourcelines(test_every_node_has_its_line)[1]
    lines = {node.op: node.span for node in f.library(1.0).functions["f"].nodes}
    assert lines["multiply"].line - first == 3 and lines["exp"].line - first == 4
    assert lines["multiply"].function == "f" and lines["multiply"].file == __file__


# -- results that nothing declares --------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_results_are_learned_from_the_other_branch(engine: str) -> None:
    with ut.SubGraph() as power:
        n = power.input(ut.i64)
        power.output(ut.cond(n == 0, lambda: 1.0, lambda: 2.0 * power(n - 1)))
    assert power.run(10, engine=engine) == 1024.0
    assert power.run(10, engine=engine).dtype == np.float64


def test_the_recursion_may_stand_first() -> None:
    with ut.SubGraph() as fib:
        n = fib.input(ut.i64)

        def inner():
            return fib(n - 1) + fib(n - 2)

        fib.output(ut.cond(n >= 2, inner, lambda: n))
    assert fib(10) == 55


def test_learned_types_widen() -> None:
    """The base case gives an integer, the other branch a float: all are floats. So for lengths that differ."""
    with ut.SubGraph() as halves:
        n = halves.input(ut.i64)
        halves.output(ut.cond(n == 0, lambda: 1, lambda: halves(n - 1) / 2))
    assert halves(2) == 0.25 and "function halves(n: i64) -> (merge)" in str(halves.library(2))

    with ut.SubGraph() as ones:
        n = ones.input(ut.i64)

        def longer():
            return ut.concat([ones(n - 1), ut.ones(1)])

        ones.output(ut.cond(n == 0, lambda: ut.ones(1), longer))
    assert ones(3).tolist() == [1.0] * 4


def test_several_results_are_learned() -> None:
    with ut.SubGraph() as fibs:
        n = fibs.input(ut.i64)

        def inner():
            before, last = fibs(n - 1)
            return last, before + last

        fibs.output(*ut.cond(n == 0, lambda: (0, 1), inner))
    assert fibs(10) == (55, 89)


def test_what_is_learned_leaves_no_trace() -> None:
    """Helpers that call it, effects and draws are written once: the library is that of a declared one."""

    def made(**declared: Any) -> ut.SubGraph:
        with ut.SubGraph(**declared) as f:
            n = f.input(ut.i64)

            @ut.function
            def helper(k: ut.i64) -> ut.f64:
                return 0.0 if k <= 0 else f(k - 1) + ut.random.uniform()

            def inner():
                ut.print("{}", n)
                looped = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + f(n - 2)), (0, 0.0))[1]
                return looped + helper(n - 1) + f(n - 1)

            f.output(ut.cond(n <= 0, lambda: 1.0, inner) * ut.random.uniform())
        return f

    declared, learned = (made(**given) for given in ({"returns": ut.f64}, {}))
    dumps = [text.dump(f.library(3), spans=False) for f in (declared, learned)]
    assert dumps[0] == dumps[1]
    outputs = [printed(lambda f=f: print(f.run(4, seed=3))) for f in (declared, learned)]
    assert outputs[0] == outputs[1]


def test_one_that_is_called_in_both_of_its_blocks_conditions() -> None:
    """The second `cond` of a block knows what the first one has taught."""
    with ut.SubGraph() as f:
        n = f.input(ut.i64)
        one = ut.cond(n <= 0, lambda: 1, lambda: f(n - 1))
        two = ut.cond(n <= 1, lambda: 1, lambda: f(n - 2))
        f.output(one + two)

    def plain(n: int) -> int:
        return (1 if n <= 0 else plain(n - 1)) + (1 if n <= 1 else plain(n - 2))

    assert [int(f(n)) for n in range(6)] == [plain(n) for n in range(6)]


def test_mutual_recursion_where_one_is_declared() -> None:
    even, odd = ut.SubGraph(), ut.SubGraph(returns=ut.bool)
    n, m = even.input(ut.i64), odd.input(ut.i64)
    with even:
        even.output(ut.cond(n == 0, lambda: True, lambda: odd(n - 1)))
    with odd:
        odd.output(ut.cond(m == 0, lambda: False, lambda: even(m - 1)))
    assert even(10) and not odd(10)


# -- hidden arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_effects_through_mutual_recursion(engine: str) -> None:
    """Only one of the two prints, after the calls; the other hands the order on."""
    down, up = ut.SubGraph(returns=ut.i64), ut.SubGraph(returns=ut.i64)
    n, m = down.input(ut.i64), up.input(ut.i64)
    with down:
        down.output(ut.cond(n <= 0, lambda: 0, lambda: up(n - 1) + up(n - 2)))
    with up:

        def inner():
            below = down(m - 1)
            ut.print("{}", m)
            return below + 1

        up.output(ut.cond(m <= 0, lambda: 1, inner))
    out = printed(lambda: down.run(5, engine=engine))
    assert out.split() == ["2", "1", "4", "1", "3"]
    spec.check(down.library(5))
    assert "effect: ctl" in str(down.library(5))


def test_lifted_through_forward_declarations_and_loops() -> None:
    """outer(x) has a and b, which call each other; only b uses x, and a calls b in a loop."""
    with ut.SubGraph() as outer:
        n, x = outer.input(ut.i64), outer.input(ut.i64)
        y = x * 10
        a, b = ut.SubGraph(returns=ut.i64), ut.SubGraph(returns=ut.i64)
        k, j = a.input(ut.i64), b.input(ut.i64)
        with a:

            def loop():
                return ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + b(k - 1)), (0, 0))[1]

            a.output(ut.cond(k <= 0, lambda: 1, loop))
        with b:
            b.output(ut.cond(j <= 0, lambda: y, lambda: a(j - 1) + x))
        outer.output(a(n) + ut.sum(ut.map(lambda i: b(i), ut.arange(3))))

    def plain(n: int, x: int) -> int:
        def a(k: int) -> int:
            return 1 if k <= 0 else 2 * b(k - 1)

        def b(j: int) -> int:
            return x * 10 if j <= 0 else a(j - 1) + x

        return a(n) + sum(b(i) for i in range(3))

    for engine in ENGINES:
        assert outer.run(5, 7, engine=engine) == plain(5, 7)
    spec.check(outer.library(5, 7))


def test_inner_block_calls_the_outer_one() -> None:
    with ut.SubGraph(returns=ut.i64) as outer:
        n = outer.input(ut.i64)
        with ut.SubGraph() as inner:
            k = inner.input(ut.i64)
            inner.output(ut.cond(k <= 0, lambda: n, lambda: outer(k - 1) + n))
        outer.output(ut.cond(n <= 0, lambda: 5, lambda: inner(n - 1)))

    def plain(n: int) -> int:
        return 5 if n <= 0 else (n if n - 1 <= 0 else plain(n - 2) + n)

    assert [int(outer(n)) for n in range(7)] == [plain(n) for n in range(7)]
    spec.check(outer.library(3))


def test_pure_helper_stays_pure() -> None:
    """A finished inner SubGraph has exactly the hidden arguments that it needs, whatever the outer one does."""
    with ut.SubGraph(returns=ut.i64) as outer:
        n = outer.input(ut.i64)
        with ut.SubGraph(returns=ut.i64) as helper:
            k = helper.input(ut.i64)
            helper.output(ut.cond(k <= 0, lambda: 0, lambda: helper(k - 1) + n))
        ut.print("{}", n)
        outer.output(ut.cond(n <= 0, lambda: 0, lambda: outer(n - 1) + helper(n)))
    assert "function helper(k: i64, n: i64)" in str(outer.library(2))
    assert printed(lambda: outer(2)) == "2\n1\n0\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_declared_first_and_pure(engine: str) -> None:
    """A SubGraph that was called before its block ran takes no token and no key where it needs none."""
    helper = ut.SubGraph(returns=ut.f64)
    k = helper.input(ut.i64)
    with ut.SubGraph(returns=ut.f64) as noisy:
        n = noisy.input(ut.i64)

        def inner():
            first = helper(n) + noisy(n - 1)
            ut.print("{}", n)
            looped = ut.while_loop(lambda v: v < n, lambda v: v + ut.astype(helper(1), ut.i64), 0)
            return first + helper(looped) + ut.random.uniform() * 0.0

        noisy.output(ut.cond(n <= 0, lambda: 0.0, inner))
    with helper:
        helper.output(k * 1.0)
    assert "function helper(k: i64) ->" in str(noisy.library(3))
    spec.check(noisy.library(3))
    out = printed(lambda: noisy.run(3, engine=engine))
    assert out == "1\n2\n3\n"
    assert noisy.run(3, engine=engine) == 12.0


def test_nothing_comes_out() -> None:
    with ut.SubGraph(returns=()) as count_down:
        n = count_down.input(ut.i64)
        ut.print("{}", n)
        count_down.output(*ut.cond(n <= 0, lambda: (), lambda: count_down(n - 1)))
    assert printed(lambda: count_down(2)) == "2\n1\n0\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_random_numbers_in_loops_and_maps(engine: str) -> None:
    """The draw comes after the recursive calls: keys reach them all the same, each another one."""
    with ut.SubGraph(returns=ut.f64) as f:
        n = f.input(ut.i64)

        def inner():
            looped = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + f(n - 1)), (0, 0.0))[1]
            mapped = ut.map(lambda _: f(n - 1), ut.arange(3))
            return looped + ut.sum(mapped) + ut.random.uniform()

        f.output(ut.cond(n <= 0, lambda: ut.random.uniform(), inner))
    assert f.run(2, seed=1, engine=engine) == f.run(2, seed=1) != f.run(2, seed=2)
    spec.check(f.library(2))


def test_nothing_is_left_of_tokens_and_keys() -> None:
    """In a map over traced children and in loops, a call in advance of its callee would need both."""
    with ut.SubGraph(returns=ut.i64) as f:
        n, xs = f.input(ut.i64), f.input(ut.i64[None])

        def inner():
            looped = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + f(n - 1, xs)), (0, 0))[1]
            return looped + ut.sum(ut.map(lambda x: f(n - 1, xs) + x, xs))

        f.output(ut.cond(n <= 0, lambda: 1, inner))

    @ut.function
    def g(n: ut.i64, xs: ut.i64[None]) -> ut.i64:
        def inner():
            looped = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + g(n - 1, xs)), (0, 0))[1]
            return looped + ut.sum(ut.map(lambda x: g(n - 1, xs) + x, xs))

        return ut.cond(n <= 0, lambda: 1, inner)

    shown = [text.dump(h.library(2, [3, 4]), spans=False) for h in (f, g)]
    assert "fold_in" not in shown[0] and "arange" not in shown[0] and f(2, [3, 4]) == g(2, [3, 4])
    assert len(shown[0].splitlines()) == len(shown[1].splitlines())


# -- what is refused (the messages are in tests/errors/bad_programs/subgraph.md) ----------------------------


def test_an_error_leaves_the_context_clean() -> None:
    f = ut.SubGraph()
    f.input(ut.i64)
    with pytest.raises(ZeroDivisionError), f:
        raise ZeroDivisionError
    assert context() is None
    with ut.SubGraph() as g:
        n = g.input(ut.i64)
        with pytest.raises(ValueError, match="inner"), ut.SubGraph() as h:
            raise ValueError("inner")
        g.output(n + 1)
    assert g(1) == 2
    for broken, args in ((f, (1,)), (h, ())):
        with pytest.raises(ut.CaptureError, match="raised an error"):
            broken(*args)


def test_other_threads_see_nothing_of_a_block() -> None:
    with ut.SubGraph() as f:
        n = f.input(ut.i64)
        found = in_threads(lambda _: (context(), fac()(5)), 1)
        f.output(n)
    assert found == [(None, 120)]


def test_runs_inside_a_block_are_runs() -> None:
    g = fac()
    with ut.SubGraph() as f:
        n = f.input(ut.i64)
        assert g.run(3) == 6
        f.output(n + g.run(3))
    assert f(1) == 7


def test_errors_in_captured_functions_show_their_line() -> None:
    def leaf(n: Any) -> Any:
        return n.nothing

    f = ut.SubGraph()
    n = f.input(ut.i64)
    with pytest.raises(ut.CaptureError, match="has no attribute `nothing`") as caught, f:
        f.output(ut.cond(n > 0, leaf, abs, n))
    assert caught.value.span is not None and "n.nothing" in caught.value.span.source()


@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_variables(engine: str) -> None:
    count, other = ut.Variable(0, name="count"), ut.Variable(10, name="count")
    with ut.SubGraph(returns=ut.i64) as fib:
        n = fib.input(ut.i64)
        count.assign_add(1)
        fib.output(ut.cond(n <= 1, lambda: 1, lambda: fib(n - 1) + fib(n - 2)))

    @ut.function
    def both(n):
        before = count.read()
        y = fib(n)
        other.assign(count)
        return before, y, count.read()

    assert fib.run(6, engine=engine) == 13 and count.value == 25
    assert both.run(5, engine=engine) == (25, 8, 40)
    assert (count.value, other.value) == (40, 40)
