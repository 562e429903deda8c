"""Random recursive programs on vectors and matrices of known lengths: results of calls side by side, parts handed on.

Some have, beside these, a vector whose length only the run knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.written import names_of

import undertow as ut

LENGTH = 10  # of a vector: more than what is copied along
_HEAD = "import undertow as ut\n\nD = {length}\n"
_RESULT = "-> tuple[ut.f64[D], ut.f64, ut.f64[2, D]]:"
_SIGNATURE = (
    "(w: ut.f64[3 * D, D], x: ut.f64[D], n: ut.i64)",
    "(w: ut.f64[3 * D, D], x: ut.f64[D], n: ut.i64, q: ut.f64[None])",
)

# By what they give: a vector, a scalar, a matrix of two rows. {k} is a place in a vector, {i} a row. Bounds are odd, so
# that no sum equals one but for rounding.
_FORMS = {
    "v": [
        "ut.tanh({v} + {v})", "({v}) * {s}", "ut.tanh({v} @ w[:D])", "ut.concat([{v}, {v}])[{k}:{k} + D]",
        "ut.flip({v})", "({v} if {s} > 0.117 else {v})", "ut.concat([({v})[D // 2:], ({v})[:D // 2]])",
        "ut.map(lambda e: e * 0.5 + {s}, {v})", "({m})[{i}]", "ut.sum({m}, axis=0)", "ut.cumsum({v} * 0.3)",
        "ut.reshape(ut.transpose({m}), (-1,))[{k}:{k} + D]", "ut.softmax({v})", "ut.where({v} > 0.117, {v}, {v})",
        "ut.reshape(ut.cumsum(ut.reshape({v}, (2, D // 2)), axis=0), (-1,))",
    ],
    "s": [
        "ut.sum({v}) * 0.1", "ut.max({v})", "ut.tanh({s} + {s})", "({v})[{k}]", "{s} * 0.5", "ut.sum(({v})[:n]) * 0.1",
    ],
    "m": [
        "ut.stack([{v}, {v}])", "({m}) * {s}", "ut.tanh({m} @ w[:D])", "ut.concat([({m})[1:], ({m})[:1]])",
        "ut.tanh({m} + {m})", "({m} if {s} > 0.117 else {m})", "ut.reshape(ut.concat([{v}, {v}]), (2, D))",
        "ut.map(lambda r: r * 0.5 + {v}, {m})", "({m}) + {v}",
    ],
}  # fmt: skip
_OPEN = [
    "ut.sum(q) * 0.1",
    "ut.sum(q[:n]) * 0.1",
    "ut.sum(ut.concat([q, {v}])) * 0.1",
    "ut.sum(ut.map(lambda e: e * {s}, q))",
]
_HANDED = ["q", "q * 0.5", "ut.concat([q, q[:1]])", "q[1:]"]

# Of results of calls: what is made of them side by side.
_SIDES = {
    "v": [
        "ut.tanh(ut.concat([{a}, {b}]) @ w[:2 * D])", "ut.concat([{b}, {a}])[{k}:{k} + D]",
        "ut.sum(ut.stack([{a}, {b}]), axis=0)", "ut.tanh(ut.concat([{c}, {a}, {b}]) @ w)",
        "ut.tanh(ut.reshape(ut.stack([{a}, {b}, {c}]), (-1,)) @ w)",
        "ut.tanh(ut.reshape(ut.stack([{b}, {a}]), (-1,)) @ w[D:])",
        "ut.reshape(ut.cumsum(ut.concat([ut.reshape({a}, (1, D)), ut.reshape({b}, (1, D))]), axis=0)[1:], (-1,))",
        "ut.sum(ut.map(lambda r: ut.tanh(r * 0.5), ut.stack([{a}, {b}, {c}])), axis=0)",
        "(ut.concat([{a}, {b}]) if n % 2 == 0 else ut.concat([{b}, {a}]))[{k}:{k} + D]",
    ],
    "m": [
        "ut.tanh(ut.concat([{a}, {b}], axis=1) @ w[:2 * D])", "ut.concat([{a}, {b}])[{i}:{i} + 2]",
        "ut.sum(ut.stack([{a}, {b}, {c}]), axis=0)", "ut.tanh(ut.reshape(ut.concat([{a}, {b}]), (2, 2 * D)) @ w[D:])",
        "ut.tanh(ut.reshape(ut.stack([{c}, {a}, {b}]), (2, 3 * D)) @ w)",
    ],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class VectorProgram:
    text: str  # of a module; first(w, x, n) gives a vector, a number and a matrix
    is_open: bool  # it takes q as well


class _Writer:
    def __init__(self, random: Random, is_open: bool) -> None:
        self.random = random
        self.is_open = is_open
        self.lines: list[str] = []
        self.names = 0
        self.known: dict[str, list[str]] = {}

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def some(self, kind: str, depth: int = 2) -> str:
        known = self.known[kind]
        if known and (depth <= 0 or self.maybe(0.35)):
            return self.random.choice(known)
        forms = _FORMS[kind][:1] if depth <= 0 else _FORMS[kind]
        form = self.random.choice(forms + _OPEN if kind == "s" and self.is_open else forms)
        for inner in "vsm":
            while f"{{{inner}}}" in form:
                form = form.replace(f"{{{inner}}}", self.some(inner, depth - 1), 1)
        return self.placed(form)

    def placed(self, form: str) -> str:
        return form.replace("{k}", str(self.random.randrange(LENGTH))).replace("{i}", str(self.random.randrange(2)))

    def side_by_side(self, kind: str, results: list[str]) -> str:
        a, b, c = (self.random.sample(results, 3) + results)[:3] if len(results) > 2 else (results * 3)[:3]
        form = self.random.choice(_SIDES[kind])
        return self.placed(form.replace("{a}", a).replace("{b}", b).replace("{c}", c))

    def call(self, callee: str, argument: str, less: int) -> str:
        handed = f", {self.random.choice(_HANDED)}" if self.is_open else ""
        return f"{callee}(w, {argument}, n - {less}{handed})"

    def let(self, letter: str, value: str, indent: str = "    ") -> str:
        name = self.fresh(letter)
        self.lines.append(f"{indent}{name} = {value}")
        return name

    def function(self, name: str, others: list[str]) -> None:
        self.known = {"v": ["x"], "s": ["ut.sum(x) * 0.1", "0.3"], "m": []}
        say = self.lines.append
        say(f"@ut.function\ndef {name}{_SIGNATURE[self.is_open]} {_RESULT}")
        self.known["v"].append(self.let("v", self.some("v")))
        self.closure()
        say("    if n <= 0:")
        say(f"        return {self.some('v')}, {self.some('s')}, {self.some('m')}")
        self.loop()
        vectors, matrices = self.calls(name, others)
        joined = self.let("v", self.side_by_side("v", vectors))
        self.more_calls(name, joined)
        if self.maybe(0.4):
            say(f"    {joined} = {joined} + {self.side_by_side('v', vectors)}")
        both = self.let("m", self.side_by_side("m", matrices))
        self.known["v"] += [joined, *vectors]
        self.known["m"] = [both, *matrices]
        vector, matrix = f"ut.tanh({self.some('v')} + {joined})", f"ut.tanh({self.some('m')} + {both})"
        say(f"    return {vector}, ut.tanh({self.some('s')}), {matrix}\n\n")

    def closure(self) -> None:
        if not self.maybe(0.3):
            return
        name = self.fresh("mix")
        self.lines.append(
            f"    def {name}(z):\n        return ut.tanh(z @ w[D:2 * D] + {self.random.choice(self.known['v'])})"
        )
        self.known["v"].append(self.let("v", f"{name}({self.some('v')})"))

    def loop(self) -> None:
        if not self.maybe(0.3):
            return
        variable = self.let("v", self.some("v"))
        self.lines.append(f"    for _ in range({self.random.choice(['2', 'n'])}):")
        self.lines.append(f"        {variable} = ut.tanh({self.some('v')} + {variable})")
        self.known["v"].append(variable)

    def calls(self, name: str, others: list[str]) -> tuple[list[str], list[str]]:
        vectors: list[str] = []
        matrices: list[str] = []
        before = list(self.known["v"])
        for _ in range(self.random.randint(2, 3)):
            vector, number, matrix = self.fresh("r"), self.fresh("s"), self.fresh("m")
            callee = name if self.maybe(0.7) else self.random.choice(others)
            self.known["v"] = before + (vectors if self.maybe(0.2) else [])
            called = self.call(callee, self.some("v"), self.random.randint(1, 2))
            self.lines.append(f"    {vector}, {number}, {matrix} = {called}")
            vectors.append(vector)
            matrices.append(matrix)
            self.known["s"].append(number)
        self.known["v"] = before
        return vectors, matrices

    def more_calls(self, name: str, joined: str) -> None:
        """On one side of a branch, in a loop, in a map."""
        say = self.lines.append
        if self.maybe(0.3):
            say(f"    if {self.some('s')} > 0.017:")
            pair = [self.let("y", f"{self.call(name, f'{joined} * {k}', 2)}[0]", " " * 8) for k in (0.5, 0.7)]
            say(f"        {joined} = {self.side_by_side('v', pair)}")
            if self.maybe(0.5):
                say(f"    else:\n        {joined} = {joined} + {self.some('v')}")
        if self.maybe(0.2):
            say(f"    for _ in range(2):\n        {joined} = ut.tanh({joined} + {self.call(name, joined, 3)}[0])")
        if self.maybe(0.2):
            pair = [f"{self.call(name, f'{vector} * e', 3)}[0]" for vector in self.random.choices(self.known["v"], k=2)]
            body = f"ut.tanh(ut.concat([{pair[0]}, {pair[1]}]) @ w[:2 * D])"
            say(f"    {joined} = {joined} + ut.sum(ut.map(lambda e: {body}, x[:3]), axis=0)")


def vector_program(random: Random) -> VectorProgram:
    writer = _Writer(random, is_open=random.random() < 0.3)
    names = ["first", "second"]
    for name in names:
        writer.function(name, names)
    return VectorProgram(_HEAD.format(length=LENGTH) + "\n\n" + "\n".join(writer.lines), writer.is_open)


def loss_of(program: VectorProgram) -> Any:
    """One number that depends on all that a program gives."""
    function = names_of(program.text)["first"]

    @ut.function
    def loss(w: ut.f64[3 * LENGTH, LENGTH], x: ut.f64[LENGTH], q: ut.f64[None], n: ut.i64) -> ut.f64:
        vector, number, matrix = function(w, x, n, q) if program.is_open else function(w, x, n)
        return ut.sum(vector * vector) + number + ut.sum(matrix * matrix)

    return loss
