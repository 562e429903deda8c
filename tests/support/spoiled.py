"""Plans that are no plans: rows of programs, and mutations of them.

Only the rows that bind kernels are left as they are: what an operator may be given is known to the catalogue, whose
type rules have checked it, and the core does not check it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.support.recursions import even, fib

import undertow as ut
from undertow.engines.native import Encoded
from undertow.ir.graph import StaticGraph
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library


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


def plans(encode: Callable[[StaticGraph], Encoded], first: int) -> list[Program]:
    """Programs as an engine encodes them: some numbers, the last of which counts kernels; the kernels; and the rest."""
    w, table = np.eye(3) * 0.5, np.arange(15.0).reshape(5, 3) / 10
    wide = np.arange(200.0).reshape(20, 10) / 200
    made: list[tuple[Any, tuple[Any, ...]]] = [
        (fib, (6,)),
        (chain, (4, 0.5)),
        (even, (5,)),
        (arrays, (np.ones(3), 4)),
        (network, (w, table, 4)),
        (pairs, (wide, wide[3], 4)),
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
            ends = first, end_of_kernels(encoded.rows.tolist(), first)
            found.append(Program(graph, encoded.rows, encoded.words, encoded.constants, inputs, ends))
    return found


def end_of_kernels(rows: list[int], first: int) -> int:
    """A kernel is an operator, attributes, types."""
    at = first
    for _ in range(rows[first - 1]):
        count, at = rows[at + 2], at + 3
        for _ in range(count):
            at += 3 if rows[at + 1] != 2 else 3 + 2 * rows[at + 2]
        for _ in range(2):
            at += 1 + 2 * rows[at]
    return at


def mutate(program: Program, chance: random.Random) -> npt.NDArray[np.int64]:
    begin, end = program.kernels
    head, kernels, found = program.rows[:begin].copy(), program.rows[begin:end], program.rows[end:].copy()
    if chance.random() < 0.02:
        head[chance.randrange(begin - 1)] += chance.choice((-1, 1, 2**20, 2**40))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(found))
        kind = chance.random()
        if kind < 0.35:
            found[at] += chance.choice((-1, 1))
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
    return np.concatenate([head, kernels, found])
