"""Random programs as Python text: recursion, branches, loops, maps, effects, and many ways to write nothing.

`random_program` gives a captured function `f0(n, a, x, b)`; small n, or it takes long. Every program ends: calls hand
on n - 1, loops count. Expressions are rich in what passes look for: constants, x - x, x * 1, tests of a value against
itself, equal expressions, branches on one condition, variables and results that nobody uses.

With `invariants`, functions take `w` and `k` besides, which most calls hand on as they are, and are mapped too; `f0` is
not recursive itself, so there are several entries.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

from tests.support.written import function_of

_HEAD = "(n: ut.i64, a: ut.i64, x: ut.f64, b: ut.bool) -> tuple[ut.i64, ut.f64, ut.bool]:"
_INVARIANT_HEAD = _HEAD.replace(") ->", ", w: ut.f64, k: ut.i64) ->")

_INTS = [
    "{i} + {i}", "{i} - {i}", "{i} * {i}", "-{i}", "{i} & {i}", "{i} | {i}", "{i} ^ {i}", "abs({i})", "{i} // 1",
    "{i} % 1", "{i} % 3", "{i} << 0", "min({i}, {i})", "ut.where({b}, {i}, {i})", "{i} * 0", "{i} + 0",
    "ut.astype({b}, ut.i64)", "({i} if {b} else {i})", "{i} // 2", "ut.astype(ut.astype({b}, ut.f64), ut.i64)",
]  # fmt: skip
_FLOATS = [
    "{f} + {f}", "{f} - {f}", "{f} * {f}", "-{f}", "{f} * 1.0", "{f} - 0.0", "{f} + 0.0", "{f} / 1.0", "{f} ** 1.0",
    "ut.tanh({f})", "ut.where({b}, {f}, {f})", "ut.astype({i}, ut.f64)", "({f} if {b} else {f})", "ut.floor({f})",
    "ut.sum(ut.stack([{f}, {f}]))", "ut.sum(ut.reshape(ut.stack([{f}, {f}]), (2, 1)).T * 2.0)", "abs({f})",
    "ut.sum(ut.map(lambda e: e * {f}, ut.stack([{f}, {f}])))",
]  # fmt: skip
_BOOLS = [
    "{i} < {i}", "{i} == {i}", "{f} < {f}", "{f} == {f}", "not {b}", "({b} and {b})", "({b} or {b})", "{i} != {i}",
    "ut.logical_and({b}, {b})", "ut.logical_xor({b}, {b})", "({b}) == ({b})", "ut.logical_not({i} < {i})",
]  # fmt: skip


class _Writer:
    """Writes one program."""

    def __init__(self, chance: random.Random, effects: bool, invariants: bool) -> None:
        self.chance = chance
        self.invariants = invariants
        self.effects = effects
        self.lines: list[str] = []
        self.fresh = itertools.count()
        self.functions = 1 + chance.randrange(3) + invariants
        self.number = 0  # of the function that is being written
        self.calls = 0  # in the body that is being written

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def expression(self, kind: str, names: dict[str, list[str]], depth: int = 0) -> str:
        if depth > 2 or self.chance.random() < 0.35:
            atoms = {"i": ["0", "1", "-1", "2"], "f": ["0.0", "1.0", "-0.5", "2.0"], "b": ["True", "False"]}
            chosen = names[kind] * 3 + (atoms[kind] if depth else [])
            return self.chance.choice(chosen)
        form = self.chance.choice({"i": _INTS, "f": _FLOATS, "b": _BOOLS}[kind])
        parts: dict[str, str] = {}  # a form often gets the same operand twice

        def operand(wanted: str) -> str:
            if wanted not in parts or self.chance.random() < 0.6:
                parts[wanted] = self.expression(wanted, names, depth + 1)
            return parts[wanted]

        pieces = [piece if k % 2 == 0 else operand(piece) for k, piece in enumerate(_split(form))]
        return f"({''.join(pieces)})"

    def statements(self, depth: int, names: dict[str, list[str]], budget: int) -> None:
        for _ in range(self.chance.randint(1, budget)):
            choice = self.chance.random()
            kind = self.chance.choice("ifb")
            if choice < 0.4:
                name = f"v{next(self.fresh)}"
                self.line(depth, f"{name} = {self.expression(kind, names)}")
                names[kind] = [*names[kind], name]
            elif choice < 0.6:
                target = self.chance.choice([name for name in names[kind] if name != "n"])  # calls hand on n - 1
                self.line(depth, f"{target} = {self.expression(kind, names)}")
            elif choice < 0.75 and depth < 4:
                test = self.chance.choice(names["b"]) if self.chance.random() < 0.5 else self.expression("b", names)
                self.line(depth, f"if {test}:")
                self.statements(depth + 1, dict(names), 2)
                if self.chance.random() < 0.6:
                    self.line(depth, "else:")
                    self.statements(depth + 1, dict(names), 2)
            elif choice < 0.82 and depth < 3:
                self.line(depth, f"for k{next(self.fresh)} in range({self.expression('i', names)} % 3):")
                self.statements(depth + 1, dict(names), 2)
            elif choice < 0.92 and self.calls < 2:
                self.call(depth, names)
            elif self.invariants and self.calls < 2 and self.chance.random() < 0.5:
                self.calls += 1
                name, callee = f"v{next(self.fresh)}", self.chance.randrange(1, self.functions)
                w, k = self.handed_on("f", "w", names), self.handed_on("i", "k", names)
                lane = f"lambda e: f{callee}(n - 1, {self.expression('i', names)}, e, b, {w}, {k})[1]"
                self.line(depth, f"{name} = ut.sum(ut.map({lane}, ut.stack([{self.expression('f', names)}, x])))")
                names["f"] = [*names["f"], name]
            elif self.effects:
                self.line(depth, f'print("{next(self.fresh)}", {self.expression("i", names)})')
            else:
                self.line(depth, "pass")

    def call(self, depth: int, names: dict[str, list[str]]) -> None:
        self.calls += 1
        made = [f"v{next(self.fresh)}" for _ in "ifb"]
        given = ", ".join(self.expression(k, names) for k in "ifb")
        callee = self.chance.randrange(self.invariants, self.functions)
        if self.invariants:
            given += f", {self.handed_on('f', 'w', names)}, {self.handed_on('i', 'k', names)}"
        self.line(depth, f"{', '.join(made)} = f{callee}(n - 1, {given})")
        for k, name in zip("ifb", made, strict=True):
            names[k] = [*names[k], name]

    def handed_on(self, kind: str, name: str, names: dict[str, list[str]]) -> str:
        return name if self.chance.random() < (0.9 if self.number else 0.4) else self.expression(kind, names)

    def results(self, names: dict[str, list[str]]) -> str:
        return ", ".join(self.expression(kind, names) for kind in "ifb")

    def program(self) -> str:
        for number in range(self.functions):
            self.calls, self.number = 0, number
            names = {"i": ["n", "a"], "f": ["x"], "b": ["b"]}
            self.line(0, "@ut.function")
            if self.invariants:
                names = {"i": ["n", "a", "k"], "f": ["x", "w"], "b": ["b"]}
            self.line(0, f"def f{number}{_INVARIANT_HEAD if self.invariants else _HEAD}")
            if self.invariants and self.chance.random() < 0.6:
                own = {"i": ["k"], "f": ["w"], "b": ["True"]}
                self.line(1, f"u = {self.expression('f', own)}")
                names["f"] = [*names["f"], "u"]
                if self.chance.random() < 0.5:
                    names["f"].remove("w")
            self.line(1, "if n <= 0:")
            self.line(2, f"return {self.results(names)}")
            if self.invariants:
                self.call(1, names)
            self.statements(1, names, 6)
            self.line(1, f"return {self.results(names)}")
        return "\n".join(self.lines) + "\n"


def _split(form: str) -> list[str]:
    """Texts and, at odd places, the kinds of operands between them."""
    return [piece for part in form.split("{") for piece in part.split("}")]


def random_program(
    chance: random.Random, effects: bool = True, invariants: bool = False, floats: str = "f64"
) -> tuple[Any, str]:
    """The function `f0` of a random program, and the program's text; `floats` says which kind it computes with."""
    source = _Writer(chance, effects, invariants).program().replace("ut.f64", f"ut.{floats}")
    return function_of(source, "f0"), source
