"""Random graphs of compat.v1: every tensor has the value that plain Python gives it, whatever is fetched and fed.

Branches, loops, functions and feeds of tensors that have values of their own are nested at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function
from undertow.ir import spec, text

Env = dict[Any, int]


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor, and how Python computes it; what is fed counts before what is computed."""

    tensor: Any
    compute: Callable[[Env], int]

    def __call__(self, env: Env) -> int:
        if self.tensor not in env:
            env[self.tensor] = self.compute(env)
        return env[self.tensor]


class Maker:
    """Makes values out of those that there are."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions = 0

    def value(self, known: list[Value], depth: int) -> Value:
        makers = [self.sum, self.product, self.rest, self.constant]
        if depth > 0:
            makers += [self.choice, self.choice, self.loop, self.call]
        return self.random.choice(makers)(known, depth)

    def body(self, known: list[Value], depth: int) -> Value:
        """A few values, the last of which counts."""
        inside = list(known)
        for _ in range(self.random.randint(1, 3)):
            inside.append(self.value(inside, depth))
        return inside[-1]

    def pick(self, known: list[Value]) -> Value:
        return self.random.choice(known[-5:])

    def constant(self, known: list[Value], depth: int) -> Value:
        number = self.random.randint(-9, 9)
        return Value(tf.constant(number), lambda env: number)

    def sum(self, known: list[Value], depth: int) -> Value:
        a, b = self.pick(known), self.pick(known)
        return Value(a.tensor - b.tensor + 1, lambda env: a(env) - b(env) + 1)

    def product(self, known: list[Value], depth: int) -> Value:
        a, b = self.pick(known), self.pick(known)
        return Value(tf.mod(a.tensor * b.tensor, 101), lambda env: a(env) * b(env) % 101)

    def rest(self, known: list[Value], depth: int) -> Value:
        a, by = self.pick(known), self.random.randint(2, 9)
        return Value(a.tensor % by, lambda env: a(env) % by)

    def choice(self, known: list[Value], depth: int) -> Value:
        a, sides = self.pick(known), []

        def side() -> Any:
            sides.append(self.body(known, depth - 1))
            return sides[-1].tensor

        tensor = tf.cond(tf.equal(a.tensor % 2, 0), side, side)
        # What a branch computes is not kept: another branch may have other values for it.
        return Value(tensor, lambda env: sides[0 if a(env) % 2 == 0 else 1](dict(env)))

    def loop(self, known: list[Value], depth: int) -> Value:
        start, made = self.pick(known), []
        state = self.random.getstate()

        def step(i: Any, x: Any) -> Any:
            self.random.setstate(state)  # a body may be written more than once
            inner = Value(x, lambda env: 0)
            made[:] = [(inner, self.body([*known, inner], depth - 1))]
            return i + 1, made[0][1].tensor % 1009

        tensor = tf.while_loop(lambda i, x: i < 3, step, [0, start.tensor])[1]

        def compute(env: Env) -> int:
            inner, after = made[0]
            x = start(env)
            for _ in range(3):
                x = after({**env, inner.tensor: x}) % 1009
            return x

        return Value(tensor, compute)

    def call(self, known: list[Value], depth: int) -> Value:
        """f(n, x) = x for n = 0, else f(n - 1, some body of x)."""
        a = self.pick(known)
        self.functions += 1
        name, types = f"f{self.functions}", [("n", tf.int32), ("x", tf.int32)]
        f = function.Declare(name, types, [("r", tf.int32)])
        made: list[tuple[Value, Value]] = []
        body = Maker(self.random.randint(0, 10**6))
        body.functions = self.functions * 100

        @function.Defun(tf.int32, tf.int32, func_name=name)
        def impl(n: Any, x: Any) -> Any:
            def again() -> Any:
                inner = Value(x, lambda env: 0)
                made.append((inner, body.body([inner], depth - 1)))
                return f(n - 1, made[0][1].tensor % 1009)

            return tf.cond(n > 0, again, lambda: x)

        impl.add_to_graph(tf.get_default_graph())
        tensor = f(2, a.tensor)

        def compute(env: Env) -> int:
            if not made:
                graph = tf.get_default_graph()
                graph.body_of(graph.callees_of(name)[0])  # traced now
            inner, after = made[0]
            x = a(env)
            for _ in range(2):
                x = after({inner.tensor: x}) % 1009
            return x

        return Value(tensor, compute)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    with tf.Graph().as_default() as graph:
        maker = Maker(seed)
        x, y = tf.placeholder(tf.int32, [], "x"), tf.placeholder(tf.int32, [], "y")
        known = [Value(x, lambda env: 0), Value(y, lambda env: 0)]
        for _ in range(maker.random.randint(2, 7)):
            known.append(maker.value(known, 2))
        for trial in range(4):
            fetched = maker.random.sample(known, maker.random.randint(1, 3))
            fed = maker.random.sample(known[2:], maker.random.randint(0, 2)) if trial else []
            feeds = {value.tensor: maker.random.randint(-20, 20) for value in (*known[:2], *fed)}
            env: Env = dict(feeds)
            expected = [value(env) for value in fetched]
            fetches = [value.tensor for value in fetched]
            library = graph.library(fetches)
            spec.check(library)
            assert text.dump(text.parse(text.dump(library))) == text.dump(library)
            for options in [{"engine": name} for name in ENGINES] + [{"simplify": False}]:
                with tf.Session() as session, ut.options(**options):
                    assert session.run(fetches, feeds) == expected, (seed, trial, options)
