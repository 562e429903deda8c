"""Plans that are no plans: rows of programs as the core takes them, mutations of them, and runs under small limits."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.support.recursions import even, fib

import undertow as ut
from undertow import _core
from undertow.engines.expand.encode import encode as encode_templates
from undertow.engines.native import Encoded, Host, traits_of
from undertow.engines.waves.encode import encode as encode_plan
from undertow.ir.graph import StaticGraph
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.plan.pipeline import make_plan

FIRST = 4  # version, nodes, constants, the number of kernels


@ut.function
def chain(n: ut.i64, x: ut.f64) -> ut.f64:
    if n == 0:
        return x
    total = 0.0
    for k in range(n):
        total = total * x + 1.0 / (k + 1)
    return chain(n - 1, x * 0.5) + total


@ut.function
def arrays(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    if n <= 1:
        return x
    left = arrays(ut.concat([x, x[:1]]), n - 1)
    return ut.map(lambda v: v * 2.0 + ut.sum(left), arrays(x * 0.5, n - 2)) + 1.0


@ut.function
def network(w: ut.f64[3, 3], table: ut.f64[5, 3], n: ut.i64) -> ut.f64:
    """Weights and rows that all activations read."""

    @ut.function
    def encode(w: ut.f64[3, 3], table: ut.f64[5, 3], n: ut.i64) -> ut.f64[3]:
        if n <= 1:
            return table[n]
        return ut.tanh((encode(w, table, n - 1) + encode(w, table, n - 2)) @ w)

    return ut.sum(encode(w, table, n))


@ut.function
def looks(x: ut.f64[None], y: ut.i32[4], n: ut.i64) -> ut.f64:
    """Elements of arrays, one lane at a time."""
    return 0.0 if n == 0 else x[n] * 2.0 + looks(x, y, n - 1) * y[n % 4]


@ut.function
def pairs(w: ut.f64[20, 10], x: ut.f64[10], n: ut.i64) -> ut.f64:
    """Vectors that are not copied along: results of calls side by side, and parts of one value that calls are given."""

    @ut.function
    def below(w: ut.f64[20, 10], x: ut.f64[10], n: ut.i64) -> ut.f64[10]:
        if n <= 1:
            return x * 0.5
        both = ut.concat([below(w, x + 1.0, n - 1), below(w, ut.flip(x), n - 2)])
        return ut.tanh(both @ w + below(w, both[5:15], n - 2))

    return ut.sum(below(w, x, n))


@ut.function
def changes(x: ut.f64[10], y: ut.f64[None], n: ut.i64):
    """Arrays that change where they are, in a loop and below a call."""

    @ut.function
    def below(x: ut.f64[10], y: ut.f64[None], n: ut.i64) -> ut.f64:
        if n == 0:
            return x[1]
        for k in range(n):
            x[k] = y[k] + 1.0
            y[k] += x[k]
        return below(x, y, n - 1) + x[n]

    return below(x, y, n), x, y


@ut.function
def speaks(n: ut.i64) -> ut.i64:
    print("at", n)
    if n == 0:
        return 0
    speaks(n - 1)
    return n


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A plan that is one, to be spoiled."""

    graph: StaticGraph
    rows: npt.NDArray[np.int64]
    words: list[str]
    constants: list[Any]
    inputs: list[Any]
    kernels: tuple[int, int]  # where the rows of kernels begin and end


def wave_plans() -> list[Program]:
    """Programs as waves encodes them."""
    return _programs(lambda graph: encode_plan(make_plan(graph, traits_of), [node.name for node in graph.nodes]))


def templates() -> list[Program]:
    """Programs as expand encodes them."""
    return _programs(encode_templates)


def _programs(encode: Callable[[StaticGraph], Encoded]) -> list[Program]:
    """Both begin with some numbers, the last of which counts kernels; the kernels; and the rest."""
    w, table = np.eye(3) * 0.5, np.arange(15.0).reshape(5, 3) / 10
    wide = np.arange(200.0).reshape(20, 10) / 200
    made: list[tuple[Any, tuple[Any, ...]]] = [
        (fib, (6,)),
        (chain, (4, 0.5)),
        (even, (5,)),
        (arrays, (np.ones(3), 4)),
        (network, (w, table, 4)),
        (pairs, (wide, wide[3], 4)),
        (changes, (wide[2], np.ones(5), 3)),
        (speaks, (3,)),
        (looks, (np.ones(5), np.arange(4, dtype=np.int32), 4)),
        (ut.grad(looks), (np.ones(5), np.arange(4, dtype=np.int32), 4)),
        (ut.grad(chain, 1), (3, 0.5)),
        (ut.grad(network, (0, 1)), (w, table, 3)),
        (ut.grad(network, 1, sparse_rows=True), (w, table, 3)),
        (ut.grad(pairs, (0, 1)), (wide, wide[3], 4)),
        (ut.grad(lambda x: ut.sum(arrays(x, 3))), (np.ones(2),)),
        (ut.grad(ut.grad(lambda x: chain(2, x))), (0.5,)),
    ]
    found = []
    for function, args in made:
        captured = function.library(*args)
        for is_simple in (True, False):
            graph = flatten(make_library(captured, True, is_simple))
            encoded = encode(graph)
            inputs = [np.asarray(value, order="C") for value in args]
            ends = FIRST, _end_of_kernels(encoded.rows.tolist(), FIRST)
            found.append(Program(graph, encoded.rows, encoded.words, encoded.constants, inputs, ends))
    return found


def _end_of_kernels(rows: list[int], first: int) -> int:
    """A kernel is an operator, attributes, types."""
    at = first
    for _ in range(rows[first - 1]):
        count, at = rows[at + 2], at + 3
        for _ in range(count):
            at += 3 if rows[at + 1] != 2 else 3 + 2 * rows[at + 2]
        for _ in range(2):
            at += 1 + 2 * rows[at]
    return at


def mutate(program: Program, chance: random.Random, kernels_too: bool = False) -> npt.NDArray[np.int64]:
    """Other rows: in most cases the kernels stay as they are, for little can be run without them."""
    begin, end = program.kernels
    head, kernels, rest = program.rows[:begin].copy(), program.rows[begin:end], program.rows[end:]
    if chance.random() < 0.02:
        head[chance.randrange(begin - 1)] += chance.choice((-1, 1, 2**20, 2**40))
    if kernels_too and len(kernels) and chance.random() < 0.25:
        return np.concatenate([head, _mutated(kernels, chance, chance.choice((1, 1, 2))), rest])
    return np.concatenate([head, kernels, _mutated(rest, chance, chance.choice((1, 1, 1, 2, 3, 8)))])


def _mutated(rows: npt.NDArray[np.int64], chance: random.Random, times: int) -> npt.NDArray[np.int64]:
    found = rows.copy()
    for _ in range(times):
        at = chance.randrange(len(found))
        kind = chance.random()
        if kind < 0.35:
            found[at : at + 1] += chance.choice((-1, 1))  # of an array: it wraps without a warning
        elif kind < 0.6:
            found[at] = found[chance.randrange(len(found))]
        elif kind < 0.75:
            found[at] = chance.choice((0, 1, 2, 3, -1, -2, -(2**31), 2**31 - 1, 2**40, -(2**63), 2**63 - 1))
        elif kind < 0.85:
            other = chance.randrange(len(found))
            found[[at, other]] = found[[other, at]]
        elif kind < 0.92:
            found = np.delete(found, at) if len(found) > 1 else found
        elif kind < 0.98:
            found = np.insert(found, at, chance.choice((0, 1, -1, 5)))
        else:
            found = found[: at + 1].copy()
    return found


def run_plan(program: Program, rows: npt.NDArray[np.int64], chance: random.Random) -> str:
    """Decode and run on waves under small limits; how it ended."""

    def run(host: Host) -> object:
        width, frames = chance.choice((1, 3, 4096)), chance.choice((50, 2000))
        is_finite, goes_deep, threads = chance.random() < 0.2, chance.random() < 0.4, chance.choice((1, 1, 2))
        limits = (frames, 60, 1 << 22, 0.05, is_finite, False)
        return plan.run(program.inputs, host.apply, [], width, *limits, goes_deep, threads)

    try:
        plan = _core.decode(rows, program.words, program.constants)
    except ValueError:
        return "refused"
    return _end_of(run, program)


def run_templates(program: Program, rows: npt.NDArray[np.int64], chance: random.Random) -> str:
    """The same on expand."""

    def run(host: Host) -> object:
        limits = (chance.choice((50, 2000)), 60, 1 << 22, 0.05, chance.random() < 0.2, False)
        return plan.run(program.inputs, host.apply, [], *limits)

    try:
        plan = _core.decode_templates(rows, program.words, program.constants)
    except ValueError:
        return "refused"
    return _end_of(run, program)


def _end_of(run: Callable[[Host], object], program: Program) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run(Host(program.graph, {}))
    except Exception as error:
        return "stopped" if isinstance(error, _core.Stopped) else type(error).__name__
    return "ran"
