"""Random recursive programs that change arrays in place, while others may still hold them.

Arrays are handed to calls, copied, read after a change, changed on one side of a branch, in loops and in maps; one has
a length that only the run knows, and one is so small that it shares the memory of its table.
"""

from __future__ import annotations

from random import Random

LENGTH = 12  # of x: more than what is copied along
_HEAD = "import undertow as ut\n\n"
_SIGNATURE = "(x: ut.f64[12], y: ut.f64[None], z: ut.i64[3], n: ut.i64)"

_NUMBERS = (
    "{a}[{i}]", "{a}[(n + {i}) % 3]", "ut.sum({a})", "ut.max({a}[1:{j}])", "s * 0.5", "n * 0.25", "{c}",
    "{a}[{i}] * 0.5 + {b}[{i}]", "ut.sum({a}[:n % 3])", "z[n % 3] * 0.125",
)  # fmt: skip
_CHANGES = (
    "{a}[{i}] = {e}", "{a}[(n + {i}) % 3] = {e}", "{a}[{i}] += {e}", "{a}[1:3] = {e}", "{a}[:] = {a}[::-1]",
    "{a}[n % 3:n % 3 + 2] = {b}[1:3]", "{a}[1:4] = {a}[:3]", "{a}[:] = {a} * 0.5", "{a}[0], {a}[1] = {a}[1], {a}[0]",
    "{a}[{a} > {e}] = {c}", "z[n % 3] += {i}", "z[{i} % 3] = n", "{a}[1:4][1] = {e}",
)  # fmt: skip


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.held: list[str] = []  # arrays besides x and y that may be read
        self.names = 0

    def say(self, depth: int, text: str) -> None:
        self.lines.extend("    " * depth + line for line in text.split("; "))

    def filled(self, form: str) -> str:
        if "{e}" in form:
            form = form.replace("{e}", self.random.choice(_NUMBERS))
        a, b = self.random.choice("xxy"), self.random.choice(["x", "y", *self.held])
        fields = {"a": a, "b": b, "c": self.random.choice(["0.75", "-1.5", "2.0"])}
        return form.format(**fields, i=self.random.randrange(4), j=self.random.randrange(2, 6))

    def number(self) -> str:
        return self.filled(self.random.choice(_NUMBERS))

    def some(self, depth: int, calls: list[str]) -> None:
        """Some statements."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, calls)

    def statement(self, depth: int, calls: list[str]) -> None:
        kind = self.random.choice(
            ["change"] * 6 + ["hold", "read", "read", "if", "for", "while", "map", "call", "call"]
        )
        if depth > 3 and kind in ("if", "for", "while"):
            kind = "change"
        if kind == "hold":
            self.names += 1
            name = f"h{self.names}"
            self.say(depth, f"{name} = {self.random.choice(['x.copy()', 'y.copy()', 'x + 0.0', 'x * 2.0'])}")
            if depth == 1:
                self.held.append(name)
        elif kind == "read":
            self.say(depth, f"s = s * 0.5 + {self.number()}")
        elif kind == "if":
            self.say(depth, f"if {self.number()} > {self.random.choice(['0.3', '1.1', 's'])}:")
            self.some(depth + 1, calls)
            if self.random.random() < 0.6:
                self.say(depth, "else:")
                self.some(depth + 1, calls)
        elif kind == "for":
            self.say(depth, f"for k in range({self.random.choice(['2', 'n', '3'])}):")
            self.some(depth + 1, [])
            self.say(depth + 1, f"{self.random.choice('xy')}[k] += 0.5")
        elif kind == "while":
            self.names += 1
            name = f"t{self.names}"
            self.say(depth, f"{name} = 0; while {name} < n and x[{name}] < 5.0:")
            self.some(depth + 1, [])
            self.say(depth + 1, f"{name} += 1")
        elif kind == "map":
            given = self.random.choice(["x", "y", *self.held])
            self.say(depth, f"s += ut.sum(ut.map(lambda e: marked({given} * 0.5, e), x[:{self.random.randint(1, 3)}]))")
        elif kind == "call" and calls:
            arrays = self.random.choice(["x, y, z", "x, y, z", "x.copy(), y, z", "x, y.copy(), z", "x + 1.0, y, z"])
            self.say(depth, f"s = s * 0.5 + {self.random.choice(calls)}({arrays}, n - {self.random.randint(1, 2)})")
        else:
            self.say(depth, self.filled(self.random.choice(_CHANGES)))

    def function(self, name: str, calls: list[str]) -> None:
        self.held = []
        self.say(0, f"\n\n@ut.function\ndef {name}{_SIGNATURE} -> ut.f64:")
        self.say(1, "s = 0.1")
        self.say(1, "if n <= 0:")
        self.some(2, [])
        self.say(2, "return s")
        for _ in range(self.random.randint(2, 4)):
            self.statement(1, calls)
        for callee in self.random.choices(calls, k=self.random.randint(1, 2)):
            self.say(1, f"s = s * 0.5 + {callee}(x, y, z, n - {self.random.randint(1, 2)})")
            self.some(1, calls)
        self.say(1, f"return s + {self.number()}")


def changing_program(random: Random) -> str:
    """The text of a module; first(x, y, z, n) gives the arrays and a number."""
    writer = _Writer(random)
    writer.say(0, "def marked(v, e):\n    v[0] = e\n    v[1] += v[2]\n    return v".replace("\n", "; "))
    for name in ("one", "other"):
        writer.function(name, ["one", "other"])
    writer.say(0, f"\n\n@ut.function\ndef first{_SIGNATURE}:")
    writer.say(1, "before = x.copy(); s = one(x, y, z, n); x[n % 3] = s; s = s * 0.5 + other(x, y, z, n - 1)")
    writer.say(1, "return x, y, z, s, before")
    return _HEAD + "\n".join(writer.lines) + "\n"
