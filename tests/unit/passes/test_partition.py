"""Placement by estimate: what it cuts, what it leaves whole, and what it counts."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest
from tests.support.placed import homes_by_chance, type_rule
from tests.support.slopes import smooth

import undertow as ut
from undertow.engines.reference.placed import PlacedPlan
from undertow.ir import spec
from undertow.ir.graph import StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.text import parse
from undertow.ops.effects import acts, is_stateful
from undertow.passes.cut import cut
from undertow.passes.flatten import flatten
from undertow.passes.hypergraph import Net, divide, improve
from undertow.passes.partition import estimate, partition, runs_of
from undertow.passes.pipeline import make_library

A = np.ones((200, 200))


@ut.function
def chains(a: ut.f64[200, 200], b: ut.f64[200, 200]) -> ut.f64:
    x, y = a, b
    for _ in range(6):
        x = ut.tanh(x @ a)
        y = ut.tanh(y @ b)
    return ut.sum(x) + ut.sum(y)


@ut.function
def cell(w: ut.f64[96, 64], h: ut.f64[32], g: ut.f64[32], n: ut.i64) -> ut.f64[32]:
    """The gates of a TreeLSTM, more or less."""
    if n <= 0:
        return h * 0.5
    a, b = cell(w, h, g, n - 1), cell(w, g, h, n - 2)
    z = w @ ut.concat([a, b])
    gate, candidate, out = z[:32], z[32:64], z[64:]
    return ut.sigmoid(out) * ut.tanh(ut.sigmoid(gate) * ut.tanh(candidate) + a + b)


@ut.function
def total_of_cell(w: ut.f64[96, 64], h: ut.f64[32], g: ut.f64[32], n: ut.i64) -> ut.f64:
    return ut.sum(cell(w, h, g, n))


def places_by_op(graph: StaticGraph, places: list[int], op: str) -> list[int]:
    return [place for node, place in zip(graph.nodes, places, strict=True) if node.op == op]


def run(graph: StaticGraph, places: list[int], count: int, inputs: list[object]) -> tuple[list[object], list[int]]:
    placed = cut(graph, places, count)
    for part in placed.parts:
        spec.check(part.graph, type_rule)
    plan = PlacedPlan(placed, Random(0).randrange)
    return plan.run(inputs)[0], plan.fired


def test_independent_chains_end_in_two_parts() -> None:
    """Nothing crosses but an input and a number."""
    graph = chains.graph(A, A).static
    places = partition(graph, 2)
    found = estimate(graph, places, 2)
    assert sorted(places_by_op(graph, places, "matmul")) == [0] * 6 + [1] * 6
    assert [(crossing.source, crossing.target) for crossing in found.crossings] == [(0, 1), (1, 0)]
    assert [crossing.bytes for crossing in found.crossings] == [8 * 200 * 200, 8]
    assert max(found.work) < 0.55 * sum(found.work)
    assert str(found) == "work: part 0 50%, part 1 50%; 2.0 tokens cross, 320,008 bytes"
    inputs = [A * 0.01, A * 0.02]
    results, fired = run(graph, places, 2, inputs)
    np.testing.assert_allclose(results[0], chains(*inputs), rtol=1e-12)
    assert min(fired) > 6


def test_little_work_stays_whole() -> None:
    """A TreeLSTM's body of 32 numbers is not worth the tokens that its calls would cost."""
    for function in (cell, ut.grad(total_of_cell, 0)):
        graph = function.graph(np.ones((96, 64)), np.ones(32), np.ones(32), 3).static
        for count in (1, 2, 4):
            assert partition(graph, count) == [0] * len(graph.nodes)


@ut.function
def heavy(w: ut.f64[600, 600], x: ut.f64[600, 600], n: ut.i64) -> ut.f64[600, 600]:
    return x if n <= 0 else ut.tanh(w @ heavy(w, x, n - 1) + x @ heavy(w, x, n - 2)) @ (w @ x)


def test_heavy_bodies_are_cut() -> None:
    """Products are shared out; what crosses is less than what it saves."""
    w = np.ones((600, 600))
    graph = heavy.graph(w, w, 3).static
    places = partition(graph, 2)
    assert sorted(places_by_op(graph, places, "matmul")) == [0, 0, 1, 1]
    whole = estimate(graph, [0] * len(places), 2)
    assert estimate(graph, places, 2).cost < 0.9 * whole.cost
    assert whole.crossings == ()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 5])
def test_never_worse_than_whole(count: int) -> None:
    for seed in range(12):
        program = smooth(Random(seed))
        graph = ut.value_and_grad(program.value, program.places).graph(*program.inputs[0]).static
        places = partition(graph, count)
        assert estimate(graph, places, count).cost <= estimate(graph, [0] * len(places), count).cost
        assert places == partition(graph, count)


@pytest.mark.slow
def test_estimates_count_what_cut_does() -> None:
    """Inputs and fetches aside, as many crossings as edges; a few more where a part turns out to need nothing."""
    crossings = edges = 0
    for seed in range(20):
        program = smooth(Random(seed))
        library = ut.value_and_grad(program.value, program.places).library(*program.inputs[0])
        graph = flatten(make_library(library))
        places = homes_by_chance(graph, 3, Random(seed))
        outside = {node.name for node in graph.nodes if node.op == "input"}
        fetched = {graph.nodes[port.node].name for port in graph.fetches}
        found = estimate(graph, places, 3).crossings
        crossings += sum(x.name not in outside and x.name.rpartition(".")[0] not in fetched for x in found)
        edges += len(cut(graph, places, 3).edges)
    assert edges > 300
    assert edges * 0.95 <= crossings <= edges * 1.1


def test_sums_cross_once_for_each_part_that_adds() -> None:
    @ut.function
    def total(w: ut.f64[50], n: ut.i64) -> ut.f64:
        return 0.0 if n <= 0 else ut.sum(w * w) + total(w, n - 1)

    graph = ut.grad(total).graph(np.ones(50), 3).static
    adds = [number for number, node in enumerate(graph.nodes) if node.op == "collect"]
    assert adds
    places = [2 if number in adds else 0 for number in range(len(graph.nodes))]
    sums = [x for x in estimate(graph, places, 3).crossings if "collected" in x.name]
    assert [(x.source, x.target, x.tokens, x.bytes) for x in sums] == [(2, 0, 1.0, 400.0)]


def test_what_is_kept_stays() -> None:
    """Nodes with a part keep it; what acts or is stateful is in part 0."""
    counter = ut.Variable(np.zeros((200, 200)), name="counter")

    @ut.function
    def counted(a: ut.f64[200, 200], b: ut.f64[200, 200]) -> ut.f64:
        counter.assign_add(a @ a)
        print(ut.sum(b))
        return chains(a, b)

    graph = counted.graph(A, A).static
    kept = {number: 1 for number, node in enumerate(graph.nodes) if node.op == "tanh"}
    places = partition(graph, 2, kept)
    assert set(places_by_op(graph, places, "tanh")) == {1}
    tied = [place for node, place in zip(graph.nodes, places, strict=True) if acts(node.op) or is_stateful(node.op)]
    assert len(tied) >= 2
    assert set(tied) == {0}


def test_how_often_regions_run() -> None:
    graph = flatten(
        parse("""
library 1 main=main

main main(xs: f64[?], n: i64) -> (m, y)
  m: f64[?] = map xs body="lane"
  y: f64 = call n callee="f"

map lane(x: f64) -> (s) carried=1
  s: f64 = sin x

function f(n: i64) -> (r)
  p: bool = less n, 1:i64
  branch if1 p ^start.if
  start.if: ctl, ctl = switch p, start
  n.if: i64, i64 = switch p, n
  if1.then/one: f64 = identity 1.0:f64 ^start.if#0
  if1.else/k: i64 = subtract n.if#1, 1:i64
  if1.else/f: f64 = call if1.else/k callee="f"
  r: f64 = merge if1.then/one, if1.else/f
""")
    )
    runs = dict(zip((region.name for region in graph.regions), runs_of(StaticIndex(graph)), strict=True))
    assert runs == {"main": 1.0, "lane": 16.0, "f": 64.0, "if1.then": 32.0, "if1.else": 32.0}


def grid(width: int, height: int) -> tuple[list[float], list[Net]]:
    """Two anchors, then rows of vertices; each makes something for its neighbours to the right and below."""
    work = [0.0, 0.0, *([1.0] * (width * height))]
    nets = []
    for k in range(width * height):
        users = [k + 1] * (k % width < width - 1) + [k + width] * (k + width < width * height)
        nets.append(Net({k + 2: 1.0}, tuple(user + 2 for user in users)))
    return work, nets


def test_grids_are_cut_across() -> None:
    """A grid of 40 by 10 in two halves: some ten values cross, and neither half has more than its share by a tenth."""
    work, nets = grid(40, 10)
    (parts,) = divide(work, nets, 2, [1.1])
    assert parts[:2] == [0, 1]
    assert 180 <= sum(parts[2:]) <= 220
    crossing = [net for net in nets if {parts[pin] for pin in net.pins} - {parts[maker] for maker in net.sources}]
    assert len(crossing) <= 20
    again = improve(work, nets, 2, 1.1, [0, 1, *(k % 2 for k in range(400))])
    assert 180 <= sum(again[2:]) <= 220


@pytest.mark.slow
def test_large_graphs_take_seconds() -> None:
    """Work grows with the graph: eight times the nodes take less than thirty times as long."""
    chance, times = Random(1), []
    for size in (1500, 12000):
        lines = ["library 1 main=main", "", "main main(a: f64[40,40]) -> (r)"]
        names = ["a"]
        for k in range(size):
            op = "matmul" if k % 3 == 0 else "add"
            names.append(f"v{k}" if k < size - 1 else "r")
            x, y = chance.choice(names[-20:-1]), chance.choice(names[-4:-1])
            lines.append(f"  {names[-1]}: f64[40,40] = {op} {x}, {y}")
        graph = flatten(parse("\n".join(lines) + "\n"))
        began = time.perf_counter()
        places = partition(graph, 3)
        times.append(time.perf_counter() - began)
        assert len(set(places)) == 3
    assert times[1] < 30 * times[0]


@ut.function
def grow(w: ut.f64[64, 64], x: ut.f64[64, 64], n: ut.i64) -> ut.f64[64, 64]:
    return x if n <= 0 else ut.tanh(grow(w, x @ w, n - 1) + grow(w, w @ x, n - 2))


def test_more_workers_are_never_worse() -> None:
    """Two equal products: two parts are best, also where there might be five."""
    w = np.eye(64)
    graph = grow.graph(w, w, 5).static
    costs = [estimate(graph, partition(graph, count), count).cost for count in range(1, 6)]
    assert costs[0] > costs[1] == costs[2] == costs[3] == costs[4]
