"""Replicas: what is copied, how calls choose, and that what they choose stays."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.support.placed import type_rule
from tests.support.replicated import on_devices, parts_of

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.reference.placed import PlacedPlan
from undertow.engines.reference.plan import number_graph
from undertow.ir import spec
from undertow.ir.graph import Library, StaticGraph
from undertow.ir.path import ROOT, child, choice
from undertow.ir.text import dump, parse
from undertow.passes.cut import cut
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import library_steps, make_library
from undertow.passes.replicate import replicate
from undertow.passes.simplify import simplify
from undertow.passes.split import split_loops

TWO, THREE = ("worker:0", "worker:1"), ("worker:0", "worker:1", "worker:2")


@ut.function
def height(x: ut.f64, n: ut.i64) -> ut.f64:
    return ut.tanh(x) if n <= 0 else ut.sin(height(x * 0.5, n - 1) + height(x + 1.0, n - 2))


@ut.function
def heights(xs: ut.f64[None], n: ut.i64) -> ut.f64:
    return ut.sum(ut.map(lambda x: height(x, n), xs))


def static_of(library: Library, **options: bool) -> StaticGraph:
    made = make_library(library, is_placed=True, **options)
    spec.check(made, type_rule)
    graph = flatten(made)
    spec.check(graph, type_rule)
    return graph


def placed_plan(graph: StaticGraph, count: int) -> PlacedPlan:
    placed = cut(graph, parts_of(graph), count)
    for part in placed.parts:
        spec.check(part.graph, type_rule)
    return PlacedPlan(placed, random.Random(0).randrange)


def whole(graph: StaticGraph, inputs: Sequence[Any]) -> list[Any]:
    return ENGINES["reference"].plan(graph).run(inputs)[0]


@pytest.mark.slow
def test_lanes_spread_over_replicas() -> None:
    """Each replica gets its share of 600 lanes, whole or in parts, and the sum stays."""
    xs = np.linspace(0.0, 1.0, 600)
    graph = static_of(on_devices(heights.library(xs, 0), ["height"], THREE))
    plan = placed_plan(graph, 4)
    inputs = [xs, np.int64(0)]
    np.testing.assert_allclose(plan.run(inputs)[0][0], heights(xs, 0), rtol=1e-12)
    lanes = [
        stats.per_node[node.name]
        for stats in [ENGINES["reference"].plan(graph).run(inputs)[1]]
        for node in graph.nodes
        if node.op == "tanh"
    ]
    assert sum(lanes) == 600
    assert min(lanes) > 150
    assert min(plan.fired[1:]) > 0


def test_recursion_stays_in_its_replica() -> None:
    """One call from outside: everything below it is in one part."""
    graph = static_of(on_devices(height.library(0.5, 5), ["height"], TWO))
    _, stats = ENGINES["reference"].plan(graph).run([np.float64(0.5), np.int64(5)])
    fired = Counter[str]()
    for node in graph.nodes:
        if node.op in ("tanh", "sin"):
            fired[str(node.attrs["device"])] += stats.per_node[node.name]
    assert sorted(fired.values())[0] == 0
    assert sum(fired.values()) > 10


@pytest.mark.slow
@pytest.mark.parametrize("is_simple", [True, False])
def test_gradients_take_the_same_route(is_simple: bool) -> None:
    """What an activation is resumed in is what it was begun in: both phases fire equally often in each replica."""
    xs = np.linspace(-1.0, 1.0, 40)
    graph = static_of(on_devices(ut.grad(heights).library(xs, 3), ["height"], TWO), is_simple=is_simple)
    plan = placed_plan(graph, 3)
    inputs = [xs, np.int64(3)]
    np.testing.assert_allclose(plan.run(inputs)[0][0], ut.grad(heights)(xs, 3), rtol=1e-12)
    per_node = ENGINES["reference"].plan(graph).run(inputs)[1].per_node
    for device in TWO:
        fired = {
            op: sum(per_node[n.name] for n in graph.nodes if n.op == op and n.attrs.get("device") == device)
            for op in ("sin", "cos")
        }
        assert fired["sin"] == fired["cos"] > 0
    assert min(plan.fired[1:]) > 0


def test_arguments_cross_to_the_replica_that_is_called() -> None:
    """The other one is told nothing: it chooses for itself."""
    graph = static_of(on_devices(height.library(0.5, 0), ["height"], TWO))
    edges = cut(graph, parts_of(graph), 3).edges
    assert {(edge.source, edge.target) for edge in edges} == {(1, 0), (2, 0)}  # results, for main; arguments are inputs
    assert not any("replica" in edge.name.rpartition("/")[2] for edge in edges)


@ut.function
def outer(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else inner(x * 2.0, n - 1) + helper(x)


@ut.function
def inner(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else outer(x * 0.5, n - 1)


@ut.function
def helper(x: ut.f64) -> ut.f64:
    return ut.tanh(x)


def test_two_lists_choose_between_each_other() -> None:
    """A call out of one list of devices into another one is a call from outside."""
    library = on_devices(outer.library(0.5, 6), ["outer"], TWO)
    library = on_devices(library, ["inner"], ("worker:2", "worker:3"))
    made, count = replicate(library)
    assert count == {"replicated function": 2, "choice": 1 + 2 * 1 + 2 * 1}
    assert {name for name in made.functions if name.startswith("helper")} == {"helper.replica0", "helper.replica1"}
    graph = static_of(library)
    np.testing.assert_allclose(whole(graph, [np.float64(0.5), np.int64(6)])[0], outer(0.5, 6), rtol=1e-12)
    np.testing.assert_allclose(placed_plan(graph, 5).run([np.float64(0.5), np.int64(6)])[0][0], outer(0.5, 6))


def test_what_has_a_device_of_its_own_is_not_copied() -> None:
    library = on_devices(outer.library(0.5, 6), ["outer", "inner"], TWO)
    made, count = replicate(on_devices(library, ["helper"], ["worker:2"]))
    assert count["choice"] == 1
    assert [name for name in made.functions if "helper" in name] == ["helper"]


def test_parts_of_a_function_may_be_elsewhere() -> None:
    """What has a device of its own, in a function with a list of them, is not on the replica's."""

    @ut.device(["worker:0", "worker:1"])
    @ut.function
    def half(x: ut.f64) -> ut.f64:
        y = ut.tanh(x)
        with ut.device("worker:2"):
            z = ut.sin(y)
        return z + y

    made, count = replicate(half.library(0.5))
    assert count == {"replicated function": 1, "choice": 1}
    copies = [graph for name, graph in made.functions.items() if "half.replica" in name]
    assert len(copies) == 2
    for k, graph in enumerate(copies):
        devices = {node.op: node.attrs.get("device") for node in graph.nodes}
        assert [devices[op] for op in ("tanh", "sin", "add")] == [f"worker:{k}", "worker:2", f"worker:{k}"]


def test_part_of_a_function_has_one_device() -> None:
    library = parse("""
library 1 main=main

main main(x: f64) -> (z)
  y: f64 = tanh x device="worker:0,worker:1"
  z: f64 = multiply y, 0.5:f64
""")
    with pytest.raises(ut.GraphError, match="only a whole function") as caught:
        replicate(library)
    assert "@ut.device" in str(caught.value)


def test_libraries_without_lists_stay() -> None:
    library = heights.library(np.ones(3), 3)
    assert replicate(library) == (library, Counter())
    assert not any(step.name == "replicate" for step in library_steps(library))
    assert next(step.name for step in library_steps(library, is_placed=True)) == "replicate"


def test_choices_are_never_merged_or_folded() -> None:
    """Two replica nodes may differ, even in one activation."""
    library = parse("""
library 1 main=main

main main(n: i64) -> (x)
  a: i64 = replica count=5 salt=1 ^start
  b: i64 = replica count=5 salt=2 ^start
  x: i64 = subtract a, b
""")
    after = dump(simplify(library)[0])
    assert len(re.findall("= replica", after)) == 2
    values = [choice(ROOT, salt, 5) for salt in (1, 2)]
    assert whole(flatten(library), [np.int64(0)])[0] == values[0] - values[1]


def test_a_choice_is_of_the_tag() -> None:
    """In a lane of a map it is what `ir/path.py` says of the lane's tag."""
    library = parse("""
library 1 main=main

main main(ns: i64[?]) -> (m)
  m: i64[?] = map ns body="lane"

map lane(n: i64) -> (r) carried=1
  r: i64 = replica count=7 salt=3 ^start
""")
    graph = flatten(library)
    (got,) = whole(graph, [np.arange(50)])
    assert got.tolist() == [choice(child(ROOT, 1, lane), 3, 7) for lane in range(50)]
    assert number_graph(graph).has_paths
    assert not number_graph(height.graph(0.5, 3).static).has_paths


LOOP = """
library 1 main=main

main main(x: f64[2], n: i64) -> (y)
  y: f64 = call x, n callee="f"

function f(x: f64[2], n: i64) -> (t#1)
  m: f64 = max x axes=[0] keepdims=false
  t: i64, f64 = loop 0:i64, m, n, x body="f.loop"

loop f.loop(k: i64, t: f64, n: i64, x: f64[2]) -> (p, if1.then/m, if1.then/s) carried=2
  p: bool = less k, n
  branch if1 p ^start.if
  k.if: i64, i64 = switch p, k
  t.if: f64, f64 = switch p, t
  x.if: f64[2], f64[2] = switch p, x
  start.if: ctl, ctl = switch p, start
  if1.then/r: i64 = replica count=2 salt=0 ^start.if#0
  if1.then/c: bool = equal if1.then/r, 0:i64
  branch if1.then.if2 if1.then/c
  if1.then/k.if: i64, i64 = switch if1.then/c, k.if#0
  if1.then/t.if: f64, f64 = switch if1.then/c, t.if#0
  if1.then/x.if: f64[2], f64[2] = switch if1.then/c, x.if#0
  if1.then.if2.then/f: f64 = call if1.then/x.if#0, if1.then/k.if#0 callee="f"
  if1.then.if2.else/f: f64 = call if1.then/x.if#1, if1.then/k.if#1 callee="f"
  if1.then.if2.then/s: f64 = add if1.then/t.if#0, if1.then.if2.then/f
  if1.then.if2.else/s: f64 = add if1.then/t.if#1, if1.then.if2.else/f
  if1.then/s: f64 = merge if1.then.if2.then/s, if1.then.if2.else/s
  if1.then/m: i64 = add k.if#0, 1:i64
"""


def test_a_loop_that_is_split_does_not_choose_again() -> None:
    """A lane of the map chooses, and the loop reads that: in its own iteration it might choose the other side."""
    library = parse(LOOP)
    made, count = split_loops(library)
    assert count["split loop"] == 1
    spec.check(made, type_rule)
    assert {name for name, graph in made.functions.items() if "replica" in {n.op for n in graph.nodes}} == {"f.map"}
    inputs = [np.array([0.5, 1.5]), np.int64(6)]
    assert whole(flatten(made), inputs) == whole(flatten(library), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["checkpoint", "jvp", "second"])
def test_other_derivatives(way: str) -> None:
    """Calls that other nodes refer to, those made again, and those that take tangents."""

    def derivative(x, n):
        if way == "checkpoint":
            return ut.grad(lambda v: ut.checkpoint(height)(v, n) * 2.0)(x)
        if way == "jvp":
            return ut.jvp(lambda v: height(v, n), (x,), (1.0,))[1]
        return ut.grad(ut.grad(lambda v: height(v, n)))(x)

    @ut.function
    def total(xs: ut.f64[None], n: ut.i64) -> ut.f64:
        return ut.sum(ut.map(lambda x: derivative(x, n), xs))

    xs = np.linspace(0.0, 1.0, 12)
    graph = static_of(on_devices(total.library(xs, 3), ["height"], TWO))
    plan = placed_plan(graph, 3)
    np.testing.assert_allclose(plan.run([xs, np.int64(3)])[0][0], total(xs, 3), rtol=1e-10)
    assert min(plan.fired[1:]) > 0


@pytest.mark.parametrize("engine", ["waves", "demand", "expand"])
def test_other_engines_refuse(engine: str) -> None:
    graph = static_of(on_devices(height.library(0.5, 2), ["height"], TWO))
    with pytest.raises(ut.GraphError, match="tag"):
        ENGINES[engine].plan(graph).run([np.float64(0.5), np.int64(2)])
