"""Where operators run: at their device, or where their body does."""

from __future__ import annotations

import re

import pytest
from tests.support.graphs import captured

import undertow as ut
from undertow.ir.graph import StaticGraph
from undertow.ir.text import parse
from undertow.passes.place import places_of

DEVICES = ("", "worker:0", "worker:1", "worker:2")


def where(graph: StaticGraph, *ops: str) -> dict[str, int]:
    """The parts of the nodes with these operators, by name."""
    places = places_of(graph, DEVICES)
    return {
        re.sub(r"^test_\w+\.", "", node.name): place
        for node, place in zip(graph.nodes, places, strict=True)
        if node.op in ops
    }


@ut.function
def double(x: ut.i64) -> ut.i64:
    return x * 2


@ut.function
def walk(n: ut.i64) -> ut.i64:
    """Calls itself from another device; that does not count."""
    if n <= 0:
        return 0
    with ut.device("worker:2"):
        return walk(n - 1) - 1


@ut.function
def loop_walk(n: ut.i64) -> ut.i64:
    """Calls itself from a loop with a device."""
    total = n * 2
    with ut.device("worker:2"):
        for k in range(n):
            total += loop_walk(k)
    return total


def test_a_body_follows_its_only_call() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            y = double(x)
        return y + 1

    assert where(captured(f, 3), "multiply", "add") == {"double/multiply": 2, "f/add": 0}


def test_a_body_with_calls_in_one_place() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            return double(double(x)) + double(x)

    assert where(captured(f, 3), "multiply") == {"double/multiply": 2}


def test_a_body_with_calls_in_several_places() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            y = double(x)
        with ut.device("worker:0"):
            return double(y) + 1

    assert where(captured(f, 3), "multiply", "add") == {"double/multiply": 0, "f/add": 1}


def test_a_body_follows_the_body_that_calls_it() -> None:
    """f (main) -> outer, at worker:1 -> double, without a device; and of its loop, what has none."""

    @ut.function
    def outer(x: ut.i64) -> ut.i64:
        return double(x) + 1

    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            return outer(x)

    assert where(captured(f, 3), "multiply", "add") == {"double/multiply": 2, "outer/add": 2}


def test_calls_of_a_function_by_itself_do_not_count() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:0"):
            return walk(x) + loop_walk(x)

    found = where(captured(f, 3), "less_equal", "multiply", "subtract")
    assert found["walk/less_equal"] == 1 and found["loop_walk/total"] == 1
    assert found["walk/if1.else/subtract"] == 3


def test_mutual_recursion_from_one_place() -> None:
    @ut.function
    def even(n: ut.i64) -> ut.bool:
        return True if n == 0 else odd(n - 1)

    @ut.function
    def odd(n: ut.i64) -> ut.bool:
        return False if n == 0 else even(n - 1)

    @ut.function
    def f(x: ut.i64) -> ut.bool:
        with ut.device("worker:2"):
            return even(x)

    assert set(where(captured(f, 3), "equal", "subtract").values()) == {3}


def test_none_is_where_main_is() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            for _ in range(x):
                with ut.device(None):
                    x = x - 1
        return x

    assert [place for name, place in where(captured(f, 3), "subtract").items()] == [0]


def test_what_has_no_device_in_a_loop_or_map() -> None:
    """It follows the loop or map: here the library is written by hand, as passes may write it."""
    graph = parse("""
        static 1 f
        inputs x
        fetches y
        site 1 map y: main -> lanes
        main main ^start
          start: ctl            = start
          x: f64[?]             = input index=0
          y.start: ctl, i64     = fan_start x device="worker:1" site=1 ^start
          y.x: f64              = fan x index=0 site=1
          y: f64[?]             = gather lanes/double index=0 site=1 ^y.start#1
        map lanes in main ^y.start#0
          lanes/double: f64     = add y.x, y.x
          lanes/half: f64       = multiply y.x, 0.5:f64 device="worker:0"
    """)
    assert isinstance(graph, StaticGraph)
    assert where(graph, "add", "multiply") == {"lanes/double": 2, "lanes/half": 1}


def test_what_acts_stays() -> None:
    total = ut.Variable(0, name="total")

    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            y = x * 3
            print("y =", y)
            assert y < 100
            total.assign_add(y)
            return y + total

    found = where(captured(f, 3), "multiply", "print", "assert", "assign", "read", "add")
    assert {name.split("/")[-1]: place for name, place in found.items()} == {
        "y": 2, "print": 0, "assert": 2, "total.add": 0, "total": 0, "add": 2,
    }  # fmt: skip


def test_gradients_are_where_their_operators_are() -> None:
    @ut.function
    def f(x: ut.f64) -> ut.f64:
        with ut.device("worker:1"):
            y = ut.sin(x)
        return y * 2.0

    found = where(captured_grad(f), "cos")
    assert set(found.values()) == {2}


def captured_grad(function: ut.Function) -> StaticGraph:
    return ut.grad(function).graph(1.5).static


def test_replicas_that_nobody_made() -> None:
    """A graph that has not been through `replicate` runs on the first of them."""

    @ut.device(["worker:1", "worker:2"])
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        return x * 2

    assert set(where(captured(f, 3), "multiply").values()) == {2}


def test_there_is_no_such_worker() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:7"):
            return x * 2

    with pytest.raises(ut.GraphError, match="placed on 'worker:7', and there is no such worker") as caught:
        places_of(captured(f, 3), ("", "worker:0"))
    assert caught.value.hint == "there are worker:0: name one of them, or have more workers"
    assert caught.value.span is not None


def test_where_everything_is() -> None:
    """Without devices all is in part 0."""
    assert set(places_of(captured(walk_plain, 3), ("",))) == {0}


@ut.function
def walk_plain(n: ut.i64) -> ut.i64:
    return 0 if n <= 0 else walk_plain(n - 1) + n
