"""Random programs before and after `delay`: the same values and prints, never more calls; programs that end only
because arguments are late end on every engine, with what eduction says of the captured graph.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.support.agreement import drained
from tests.support.bits import same
from tests.support.engines import EVERY, forced
from tests.support.graphs import captured
from tests.support.random_programs import random_program
from tests.support.validity import valid
from tests.support.written import names_of

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.demand import Demand
from undertow.errors import UndertowError
from undertow.ir.text import dump, parse
from undertow.passes.delay import delay_arguments

INPUTS = ((2, 3, 0.5, True), (1, -1, -0.0, False), (3, 0, float("nan"), True), (0, 7, float("inf"), False))

# What may be done with values that need not be there.
HELPERS = """
@ut.function
def ite(c, a, b):
    return a if c else b

@ut.function
def pick(k, a, b, c):
    if k % 3 == 0:
        return a + b
    if k % 3 == 1:
        return b
    return c * 2 - b if k > 4 else c

@ut.function
def sometimes(p, q, a):
    s = 1
    if p:
        s = s + a
    return s * 3 if q else a - s

@ut.function
def two(a, b):
    return a, b + 1

@ut.function
def keep(n: ut.i64, a: ut.i64, b: ut.i64) -> ut.i64:
    if n <= 0:
        return a
    return keep(n - 1, b, a) if n % 2 == 0 else keep(n - 2, a, b)

@ut.function
def folded(n: ut.i64, a: ut.i64) -> ut.i64:
    if n < 0:
        return n
    return a if n == 0 else folded(n - 2, ite(n > 3, a, folded(n - 1, n)))

@ut.function
def counted(n: ut.i64) -> ut.i64:
    k = 0
    while k * k < n:
        k = k + 1
    return k
"""


class Writer:
    """Functions f0, f1, ... that call each other only where `n` is larger than 0: in arguments of `ite`."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = chance.randint(1, 3)
        self.calls = 0  # that the present body may still make

    def text(self) -> str:
        return HELPERS + "".join(self.function(k) for k in range(self.count))

    def function(self, k: int) -> str:
        self.calls = 3
        base, step = self.leaf(), self.expression(4)
        lines = f"\n@ut.function\ndef f{k}(n: ut.i64, x: ut.i64) -> ut.i64:\n"
        if self.chance.random() < 0.3:
            lines += f"    y = {self.leaf()}\n    x = x + y if y > 2 else x\n"
        return lines + f"    return ite(n <= 0, {base}, {step})\n"

    def leaf(self) -> str:
        return self.chance.choice(["x", "n", "x - n", "x * n + 1", "2", "7", "abs(x) // (abs(n) + 1)"])

    def test(self) -> str:
        return self.chance.choice(["x > 3", "n % 2 == 0", "x % 5 < n", "n == 1", "x != n"])

    def call(self) -> str:
        if self.calls <= 0:
            return self.leaf()
        self.calls -= 1
        return f"f{self.chance.randrange(self.count)}(n - {self.chance.randint(1, 2)}, {self.expression(1)})"

    def expression(self, depth: int) -> str:
        if depth <= 0:
            return self.leaf()
        one = lambda: self.expression(depth - 1)  # noqa: E731
        kind = self.chance.randrange(12)
        if kind <= 2:
            return self.call()
        if kind == 3:
            return f"({one()} + {one()}) % 1000"
        if kind <= 5:
            return f"ite({self.test()}, {one()}, {one()})"
        if kind == 6:
            return f"pick(abs({self.leaf()}), {one()}, {one()}, {one()})"
        if kind == 7:
            return f"sometimes({self.test()}, {self.test()}, {one()})"
        if kind == 8:
            return f"two({one()}, {one()})[{self.chance.randrange(2)}]"
        if kind == 9:
            return f"keep({self.chance.choice(['n', '3', 'abs(x) % 4'])}, {one()}, {one()})"
        if kind == 10:
            return f"folded({self.leaf()} % 5, {one()})"
        return f"(counted({one()}) if {self.test()} else {one()})"


def check_lazy(chance: random.Random) -> None:
    """A program against EVAL on its captured graph."""
    source = Writer(chance).text()
    note(source)
    main = names_of(source)["f0"]
    library = main.library(3, 4)
    delayed, _ = delay_arguments(library)
    valid(delayed)
    assert parse(dump(delayed)) == delayed
    plan = Demand().plan(captured(main, 3, 4))
    for n, x in ((0, 5), (1, 2), (2, 9), (3, 4), (4, -3)):
        (expected,), stats = plan.run([np.int64(n), np.int64(x)], Options(timeout=60.0))
        with forced():
            for engine in EVERY:
                for simple in (True, False):
                    found, counted = main.run(n, x, engine=engine, simplify=simple, stats=True, timeout=60.0)
                    assert found == expected, (engine, n, x)
                    assert engine != "demand" or counted.activations <= stats.activations


def check_eager(chance: random.Random) -> None:
    """Any program, before and after."""
    function, source = random_program(chance)
    note(source)
    before = function.library(*INPUTS[0])
    after, _ = delay_arguments(before)
    valid(after)
    for args in INPUTS:
        try:
            values, printed, stats = drained(before, args, Options(timeout=20.0))
        except UndertowError:
            continue
        got, lines, counted = drained(after, args, Options(timeout=20.0))
        assert all(map(same, got, values)), (args, got, values)
        assert lines == printed
        assert counted.activations <= stats.activations


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_lazy_programs_end_everywhere(chance: random.Random) -> None:
    check_lazy(chance)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_programs_keep_their_meaning(chance: random.Random) -> None:
    check_eager(chance)


def test_gradients_of_late_arguments() -> None:
    """Two engines, and the derivative that Python's own `if` has."""
    source = """
@ut.function
def ite(c, a, b):
    return a if c else b

@ut.function
def late(x: ut.f64, n: ut.i64) -> ut.f64:
    return ite(n <= 0, ut.sin(x), x * late(x + 0.5, n - 1) + ite(n > 2, late(x, n - 2), x))

@ut.function
def early(x: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return ut.sin(x)
    return x * early(x + 0.5, n - 1) + (early(x, n - 2) if n > 2 else x)
"""
    names = names_of(source)
    late, early = names["late"], names["early"]
    with forced():
        for engine in EVERY:
            for n in (0, 1, 5):
                found, stats = ut.grad(late).run(0.3, n, engine=engine, stats=True)
                np.testing.assert_allclose(found, ut.grad(early)(0.3, n), rtol=1e-12)
                assert stats.late >= 2
    twice = ut.grad(ut.grad(late))(0.3, 4)
    np.testing.assert_allclose(twice, ut.grad(ut.grad(early))(0.3, 4), rtol=1e-12)
    np.testing.assert_allclose(ut.jvp(late, (0.3, 4), (1.0, 0))[1], ut.grad(early)(0.3, 4), rtol=1e-12)
