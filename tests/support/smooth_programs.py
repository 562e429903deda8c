"""Random recursive programs with derivatives almost everywhere, as Python text.

`smooth_program` gives `rec0(n, x, v, w)`: small n; a float; an array of a length known only at run time; and weights
that most calls hand on as they are. There are recursion (several functions, nested calls), branches on integers and on
floats, loops, maps, closures, arrays that change their length, checkpoints. Numbers stay small: what is handed on goes
through tanh.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
from tests.support.written import function_of

_HEAD = "(n: ut.i64, x: ut.f64, v: ut.f64[None], w) -> tuple[ut.f64, ut.i64, ut.f64[None]]:"

_FORMS = {
    "f": [
        "{f} + {f}", "{f} - {f}", "{f} * {f}", "{f} / (1.5 + ut.cos({f}))", "ut.sin({f})", "ut.tanh({f})",
        "ut.exp(-({f}) ** 2.0)", "ut.sum({v}) * 0.3", "({v})[0]", "({v})[-1]", "ut.mean(({v}) ** 2.0)", 'w["b"] * {f}',
        'w["a"][n % 2]', 'ut.sum(w["a"] * {f})', "({f} if {b} else {f})", "ut.where({b}, {f}, {f})", "n * {f} * 0.2",
        "ut.sum(ut.map(lambda e: ut.sin(e * {f}), {v}))", "ut.max({v})", "0.7", "ut.stop_gradient(0.0 * {f} + 0.4)",
        'ut.sum(ut.stack([{f}, {f}]) @ w["m"])', "ut.sum(ut.cumulative_sum({v})) * 0.2",
    ],
    "v": [
        "({v}) * {f}", "{v} + ({v})[:1]", "ut.concat([{v}, {v}])[:3]", "ut.flip({v})", "ut.sin({v})",
        "ut.stack([{f}, {f}])", "({v} if {b} else {v})", "ut.map(lambda e: ut.tanh(e + {f}), {v})",
        "({v})[: n % 2 + 1]", 'w["a"] * {f}', "ut.softmax({v})", "ut.reshape({v}, (-1, 1))[:, 0]",
    ],
    "b": ["n % 2 == 0", "n > 1", "{f} < {f}", "({v}).shape[0] > 1", "{f} > 0.1"],
}  # fmt: skip


class _Writer:
    """Writes one program."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.fresh = itertools.count()
        self.functions = 1 + chance.randrange(3)
        self.calls = 0  # that may still be written into this function

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def expression(self, kind: str, names: dict[str, list[str]], depth: int = 2) -> str:
        if kind != "b" and (depth <= 0 or self.chance.random() < 0.35):
            return self.chance.choice(names[kind])
        text = self.chance.choice(_FORMS[kind])
        while "{" in text:
            at = text.index("{")
            inner = self.expression(text[at + 1], names, depth - 1)
            text = f"{text[:at]}({inner}){text[at + 3 :]}"
        return text

    def call(self, names: dict[str, list[str]]) -> str:
        self.calls -= 1
        x = self.expression("f", names)
        if self.calls > 0 and self.chance.random() < 0.25:  # a call whose argument is a call
            self.calls -= 1
            x = f"{self.callee()}(n - 2, ut.tanh({x}), {self.chance.choice(names['v'])}, w)[0]"
        w = "w" if self.chance.random() < 0.8 else f'{{"a": w["a"] * 0.9, "b": ut.tanh({x}), "m": w["m"]}}'
        return f"{self.callee()}(n - 1, ut.tanh({x}), ut.tanh({self.expression('v', names)}), {w})"

    def callee(self) -> str:
        name = f"rec{self.chance.randrange(self.functions)}"
        return f"ut.checkpoint({name})" if self.chance.random() < 0.1 else name

    def statements(self, depth: int, names: dict[str, list[str]], count: int) -> None:
        for _ in range(self.chance.randint(1, count)):
            choice, number = self.chance.random(), next(self.fresh)
            if choice < 0.3:
                kind = self.chance.choice("ffv")
                self.line(depth, f"{kind}{number} = {self.expression(kind, names)}")
                names[kind] = [*names[kind], f"{kind}{number}"]
            elif choice < 0.5 and self.calls > 0:
                self.line(depth, f"f{number}, i{number}, v{number} = {self.call(names)}")
                names["f"], names["v"] = [*names["f"], f"f{number}"], [*names["v"], f"v{number}"]
            elif choice < 0.65 and depth < 4:
                self.line(depth, f"f{number} = {self.expression('f', names)}")
                self.line(depth, f"if {self.expression('b', names)}:")
                inner = {kind: list(known) for kind, known in names.items()}
                self.statements(depth + 1, inner, 2)
                self.line(depth + 1, f"f{number} = {self.expression('f', inner)}")
                names["f"] = [*names["f"], f"f{number}"]
            elif choice < 0.8 and depth < 3:
                self.line(depth, f"f{number} = {self.expression('f', names)}")
                inner = {kind: list(known) for kind, known in names.items()}
                inner["f"].append(f"f{number}")
                self.line(depth, f"for k{number} in range(n % {self.chance.randint(2, 4)}):")
                self.statements(depth + 1, inner, 1)
                self.line(depth + 1, f"f{number} = ut.tanh({self.expression('f', inner)} + 0.1 * k{number})")
                names["f"] = [*names["f"], f"f{number}"]
            elif choice < 0.9 and self.calls > 0:
                self.calls -= 1
                lane = f"lambda e: {self.callee()}(n - 1, e, {self.chance.choice(names['v'])}, w)[0]"
                self.line(depth, f"v{number} = ut.map({lane}, {self.expression('v', names)})")
                names["v"] = [*names["v"], f"v{number}"]
            else:
                inner = {kind: list(known) for kind, known in names.items()}
                inner["f"].append("y")
                self.line(depth, f"g{number} = lambda y: {self.expression('f', inner)}")
                self.line(depth, f"f{number} = g{number}({self.expression('f', names)})")
                names["f"] = [*names["f"], f"f{number}"]

    def program(self) -> str:
        for number in range(self.functions):
            self.calls = 2
            names = {"f": ["x", "x", 'w["b"]'], "v": ["v"]}
            self.line(0, "@ut.function")
            self.line(0, f"def rec{number}{_HEAD}")
            self.line(1, "if n <= 0:")
            self.line(2, f"return ut.tanh({self.expression('f', names)}), n, {self.expression('v', names)}")
            self.statements(1, names, 5)
            self.line(1, f"return {self.expression('f', names)}, n + 1, ut.tanh({self.expression('v', names)})")
        return "\n".join(self.lines) + "\n"


def smooth_program(chance: random.Random) -> tuple[Any, str]:
    """The function `rec0` of a random program, and the program's text."""
    source = _Writer(chance).program()
    return function_of(source, "rec0"), source


def arguments(chance: random.Random) -> tuple[Any, ...]:
    """For `rec0`."""
    rng = np.random.default_rng(chance.randrange(1 << 30))
    draw = lambda *shape: np.round(rng.uniform(-1, 1, shape), 3)  # noqa: E731
    return (
        chance.randint(0, 3),
        float(draw()),
        draw(chance.randint(1, 3)),
        {"a": draw(2), "b": float(draw()), "m": draw(2, 2)},
    )
