"""Random recursive programs on vectors of a known length: results of calls side by side, parts that are handed on."""

from __future__ import annotations

from random import Random

LENGTH = 10  # of a vector: more than what is copied along
_HEAD = "import undertow as ut\n\nD = {length}\n"
_SIGNATURE = "(w: ut.f64[3 * D, D], x: ut.f64[D], n: ut.i64) -> tuple[ut.f64[D], ut.f64]:"
_VECTORS = [
    "ut.tanh({v} + {v})", "({v}) * {s}", "ut.tanh({v} @ w[:D])", "ut.concat([{v}, {v}])[{k}:{k} + D]", "ut.flip({v})",
    "({v} if {s} > 0.1 else {v})", "ut.concat([({v})[D // 2:], ({v})[:D // 2]])",
    "ut.map(lambda e: e * 0.5 + {s}, {v})",
]  # fmt: skip
_SIDES = [
    "ut.tanh(ut.concat([{a}, {b}]) @ w[:2 * D])", "ut.concat([{b}, {a}])[{k}:{k} + D]",
    "ut.sum(ut.stack([{a}, {b}]), axis=0)",
    "ut.tanh(ut.reshape(ut.stack([{a}, {b}, {c}]), (-1,)) @ w)", "ut.tanh(ut.concat([{c}, {a}, {b}]) @ w)",
    "ut.tanh(ut.reshape(ut.stack([{b}, {a}]), (-1,)) @ w[D:])",
]  # fmt: skip
_SCALARS = ["ut.sum({v}) * 0.1", "ut.max({v})", "ut.tanh({s} + {s})", "({v})[{k}]", "{s} * 0.5"]


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.names = 0

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def vector(self, known: list[str], scalars: list[str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.35:
            return self.random.choice(known)
        return self.fill(self.random.choice(_VECTORS), known, scalars, depth)

    def scalar(self, known: list[str], scalars: list[str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.35:
            return self.random.choice(scalars)
        return self.fill(self.random.choice(_SCALARS), known, scalars, depth)

    def fill(self, form: str, known: list[str], scalars: list[str], depth: int) -> str:
        while "{v}" in form:
            form = form.replace("{v}", self.vector(known, scalars, depth - 1), 1)
        while "{s}" in form:
            form = form.replace("{s}", self.scalar(known, scalars, depth - 1), 1)
        return form.replace("{k}", str(self.random.randrange(LENGTH)))

    def side_by_side(self, results: list[str]) -> str:
        a, b, c = (self.random.sample(results, 3) + results)[:3] if len(results) > 2 else (results * 3)[:3]
        form = self.random.choice(_SIDES).replace("{k}", str(self.random.randrange(LENGTH)))
        return form.format(a=a, b=b, c=c)

    def function(self, name: str, others: list[str]) -> None:
        known, scalars = ["x"], ["ut.sum(x) * 0.1", "0.3"]
        say = self.lines.append
        say(f"@ut.function\ndef {name}{_SIGNATURE}")
        first = self.fresh("v")
        say(f"    {first} = {self.vector(known, scalars)}")
        known.append(first)
        say("    if n <= 0:")
        say(f"        return {self.vector(known, scalars)}, {self.scalar(known, scalars)}")
        results: list[str] = []
        for _ in range(self.random.randint(2, 3)):
            result, number = self.fresh("r"), self.fresh("s")
            callee = name if self.random.random() < 0.7 else self.random.choice(others)
            argument = self.vector(known + (results if self.random.random() < 0.2 else []), scalars)
            say(f"    {result}, {number} = {callee}(w, {argument}, n - {self.random.randint(1, 2)})")
            results.append(result)
            scalars.append(number)
        joined = self.fresh("v")
        say(f"    {joined} = {self.side_by_side(results)}")
        if self.random.random() < 0.4:  # one more call, on one side of a branch
            say(f"    if {self.scalar(known, scalars)} > 0.0:")
            say(f"        {joined} = ut.tanh({joined} + {name}(w, {joined} * 0.5, n - 2)[0])")
        if self.random.random() < 0.4:
            say(f"    {joined} = {joined} + {self.side_by_side(results)}")
        known += [joined, *results]
        say(f"    return ut.tanh({self.vector(known, scalars)} + {joined}), ut.tanh({self.scalar(known, scalars)})\n\n")


def vector_program(random: Random) -> str:
    """The text of a module; `first(w, x, n)` gives a vector and a number."""
    writer = _Writer(random)
    names = ["first", "second"]
    for name in names:
        writer.function(name, names)
    return _HEAD.format(length=LENGTH) + "\n\n" + "\n".join(writer.lines)
