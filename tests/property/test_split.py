"""Random loops with recursive calls, split and as written: the same bits, draws, calls and depth, or the same fault."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, currently_in_test_context, given, note, settings
from hypothesis import strategies as st
from tests.support.random_programs import function_of
from tests.support.validity import valid

import undertow as ut
from undertow.engines.waves import Waves
from undertow.ir.text import dump
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.passes.simplify import simplify
from undertow.passes.split import split_loops

_RANGES = ("n", "n", "0, n, 2", "n - 1, -1, -1", "1, n", "n, 0, -3", "2")
_NUMBERS = ("{k}", "n", "w[0]", "a", "b", "{k} * 3 - 1", "t[{k} % 3]")
_TESTS = ("{k} % 2 == 0", "w[1] > {k}", "w[0] % 3 != {k} % 3", "a % 2 == 0", "b > a", "ut.random.uniform() < 0.6")
_VECTORS = ("w", "w + {k}", "w * 2 - 1", "w[::-1]", "w + a % 5")
_FUELS = ("{k} - 1", "{k} // 2", "n - 2 - {k}", "min({k}, n - 1)")


class _Writer:
    """Writes a function whose calls have less fuel `n` than it has itself."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []

    def pick(self, forms: tuple[str, ...], k: str) -> str:
        return self.chance.choice(forms).format(k=k)

    def call(self, k: str) -> str:
        fuel = self.pick(_FUELS, k)
        return f"f({self.pick(_VECTORS, k)}, min({fuel}, n - 1))"

    def statement(self, indent: str, k: str, depth: int) -> None:
        kind = self.chance.randrange(9 if depth else 6)
        call, number = self.call(k), self.pick(_NUMBERS, k)
        if kind == 0:
            self.lines.append(f"{indent}a += {call}")
        elif kind == 1:
            self.lines.append(f"{indent}b = {self.chance.choice(('min', 'max'))}(b, {call} + {number})")
        elif kind == 2:
            self.lines.append(f"{indent}t[{k} % 3] = {call} % 100 - {number}")
        elif kind == 3:
            self.lines.append(f"{indent}a = a * 3 % 1009 + {number}")
        elif kind == 4:
            self.lines.append(f"{indent}x = {call} + {number}")
            self.lines.append(f"{indent}a, b = b - x, {self.chance.choice(('a', 'x', number))}")
        elif kind == 5:
            self.lines.append(f"{indent}b += {number} // ({self.chance.choice((call, number))} % 4 + {kind % 2})")
        elif kind == 6:
            self.lines.append(f"{indent}for {k}j in range({self.chance.choice((k, '2', 'n - ' + k))}):")
            self.block(indent, f"{k}j", depth - 1)
        else:
            self.lines.append(f"{indent}if {self.pick(_TESTS, k) if self.chance.random() < 0.8 else call + ' > 3'}:")
            self.block(indent, k, depth - 1)
            if self.chance.random() < 0.3:
                self.lines.append(f"{indent}else:")
                self.block(indent, k, depth - 1)

    def block(self, indent: str, k: str, depth: int) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.statement(indent + "    ", k, depth)

    def program(self) -> str:
        self.lines += [
            "@ut.function",
            "def f(w: ut.i64[2], n: ut.i64) -> ut.i64:",
            "    if n <= 0:",
            "        return w[0] * 2 - w[1] + (w[1] // (w[0] % 50) if n == -1 else 0)",
            "    a, b = n, w[1]",
            "    t = np.zeros(3, np.int64)",
        ]
        for _ in range(self.chance.randint(1, 2)):
            self.lines.append(f"    for k in range({self.chance.choice(_RANGES)}):")
            self.block("    ", "k", 2)
        self.lines.append("    return (a * 7 + b - t.sum() * 3) % 10007")
        return "\n".join(self.lines) + "\n"


def compare(chance: random.Random) -> int:
    """Run one program; how many of its loops were split."""
    source = _Writer(chance).program()
    if currently_in_test_context():
        note(source)
    function = function_of(source, "f")
    w = np.array([3, 4])
    library = function.library(w, 2)
    after, count = split_loops(simplify(library)[0])
    valid(after)
    as_written = Waves().plan(flatten(make_library(library)))
    for n in range(4):
        try:
            value, stats = function.run(w + n, n, seed=5, stats=True, timeout=30.0)
        except ut.Fault as fault:
            with pytest.raises(ut.Fault, match=f"^{re.escape(str(fault))}$"):
                function.run(w + n, n, seed=5, engine="reference")
            continue
        seed = [np.int64(5)] if "seed" in dump(library).partition("\n\n")[2].partition("->")[0] else []
        (wanted, *_), expected = as_written.run([w + n, np.int64(n), *seed])
        assert value.tobytes() == wanted.tobytes()
        assert (stats.activations, stats.max_depth) == (expected.activations, expected.max_depth)
    return count["split loop"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_random_loops_keep_their_meaning(chance: random.Random) -> None:
    compare(chance)


def test_some_loops_are_split() -> None:
    """The test above is about something."""
    assert sum(compare(random.Random(seed)) for seed in range(4)) >= 3
