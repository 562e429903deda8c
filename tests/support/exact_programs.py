"""Random recursive programs whose every bit is known: NumPy values under plain Python are the oracle.

They are made of what has one right result: signed zeros, nan, infinities, subnormal numbers and the ends of integers;
operators on traced values, on NumPy constants and on Python numbers, mixed; branches, loops, calls, arrays that are
indexed, and a variable. Left out is what NumPy leaves open (the larger of two zeros) or does by other rules than ours
(integers with f32, division by the integer 0, arithmetic on booleans), and what is only right to a few units.

Results are an i64, an i32, an f64, an f32 and a bool; so are the arguments, after fuel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

DTYPES: tuple[Any, ...] = (np.int64, np.int32, np.float64, np.float32, np.bool_)
_LETTERS = "ijxyp"  # of each dtype, in this order
_HEAD = "(n: ut.i64, i0: ut.i64, j0: ut.i32, x0: ut.f64, y0: ut.f32, p0: ut.bool)"
_RESULT = "tuple[ut.i64, ut.i32, ut.f64, ut.f32, ut.bool]"
_FLOATS = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "-2.5", "3.0", 'float("nan")', 'float("inf")', '-float("inf")']
_START = [
    "A = np.array([3, -4, 0])",
    "F = np.array([0.0, -0.0, np.nan, 2.5])",
    "X = np.float64(-1.0)",
    "def same(x, y=-0.0):",
    "    return x if x == x else x + y",
]
_CONSTANTS = {
    "i": ["0", "1", "-1", "7", str(2**63 - 1), str(-(2**63))],
    "j": ["0", "1", "-1", "5", str(2**31 - 1), str(-(2**31))],
    "x": [*_FLOATS, "5e-324", "1.7e308", "0.1"],
    "y": [*_FLOATS, "1e-45", "3.4e38", "0.1"],
    "p": ["True", "False"],
}
_TYPES = dict(zip(_LETTERS, ("np.int64", "np.int32", "np.float64", "np.float32", "np.bool_"), strict=True))

# `{x}` is an expression of that type, `{kx}` a Python number beside it, `~a b~` is a or b.
_ORDER = "~< <= == != > >=~"
_INTEGERS = [
    "({e} ~+ - *~ {e})", "({e} ~+ - *~ {k})", "({k} ~+ - *~ {e})", "({e} ~// %~ ({e} % 5 + 1))",
    "({e} ~// %~ ~3 -1 7~)", "(-{e})", "abs({e})", "({e} ~& | ^~ {e})", "(~{e})", "({e} ~<< >>~ ({e} & 7))",
    "~min max~({e}, {e})",    "({e} if {p} else {e})", "np.~add subtract multiply~({e}, {e})",
]  # fmt: skip
_REALS = [
    "({e} ~+ - * / // %~ {e})", "({e} ~+ - * /~ {k})", "({k} ~+ - * / // %~ {e})", "(-{e})", "(+{e})", "abs({e})",
    "~min max~({e}, {e})", "min({e}, {e}, {e})", "({e} if {p} else {e})", "np.~floor ceil trunc rint sign sqrt~({e})",
    "np.~add subtract multiply divide floor_divide remainder~({e}, {e})", "({e} * {k} + {k})",
    "ut.~maximum minimum~({e}, {e})", "ut.where({p}, {e}, {e})", "ut.~max min~(ut.stack([{e}, {e}, {e}]))",
    "ut.sort(ut.stack([{e}, {e}, {e}]))[~0 1 2~]", "ut.cumulative_sum(ut.stack([{e}, {e}]))[1]", "ut.relu({e})",
    "[{e}, {e}][~0 1~]", "same({e})", "ut.clip({e}, {e}, {e})",
]  # fmt: skip
_FORMS = {
    "i": [*(form.replace("{e}", "{i}").replace("{k}", "{ki}") for form in _INTEGERS), "({i} + {j})", "A[{i} % 3]"],
    "j": [*(form.replace("{e}", "{j}").replace("{k}", "{kj}") for form in _INTEGERS), "{i}.astype(np.int32)"],
    "x": [
        *(form.replace("{e}", "{x}").replace("{k}", "{kx}") for form in _REALS),
        "({y} * X)", "({i} * ~0.5 -0.0~)", "(F ~+ - *~ {x})[{i} % 4]", "(F * X)[{i} % 4]", "np.abs(F)[{i} % 4]",
        "(F ~+ - *~ A.sum())[{i} % 4]", "ut.sum(ut.asarray([{x}]))", "({x} + {i})",
        "({x} * (0.0 if {p} else -0.0))", "F[{i} % 4]", "({i} / 4)",
    ],
    "y": [*(form.replace("{e}", "{y}").replace("{k}", "{ky}") for form in _REALS), "{x}.astype(np.float32)"],
    "p": [
        *(f"({{{a}}} {_ORDER} {{{b}}})" for a, b in ("ii", "jj", "xx", "yy", "ij", "xy", "ix")), "(not {p})",
        "({p} ~and or~ {p})", "({x} < {x} <= {x})", "(1.0 / {x} < 0)",
    ],
}  # fmt: skip


@dataclass(frozen=True)
class ExactProgram:
    """The text of a program; with `decorated` in front of each `def` it is captured, without it is plain Python."""

    text: str
    has_state: bool

    @property
    def plain(self) -> str:
        return self.text.replace("@ut.function\n", "")


class _Writer:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.has_state = chance.random() < 0.2
        self.functions = chance.randint(1, 2)
        self.calls = 0
        self.count = 0

    def expression(self, letter: str, names: list[str], depth: int) -> str:
        own = [name for name in names if name[0] == letter]
        if depth <= 0 or self.chance.random() < 0.2:
            if own and self.chance.random() < 0.7:
                return self.chance.choice(own)
            return f"{_TYPES[letter]}({self.chance.choice(_CONSTANTS[letter])})"
        form = self.chance.choice(_FORMS[letter])

        def fill(gap: re.Match[str]) -> str:
            if gap[2] is not None:
                return self.chance.choice(gap[2].split())
            if gap[1][0] == "k":
                small = _CONSTANTS[gap[1][1]][: 4 if gap[1][1] in "ij" else None]
                return f"({self.chance.choice(small)})"
            return self.expression(gap[1], names, depth - 1)

        return re.sub(r"{(\w+)}|~([^~{}]+)~", fill, form)

    def assign(self, names: list[str], indent: str) -> None:
        letter = self.chance.choice(_LETTERS)
        own = [name for name in names if name[0] == letter]
        self.lines.append(f"{indent}{self.chance.choice(own)} = {self.expression(letter, names, 2)}")

    def statement(self, names: list[str], indent: str, number: int) -> None:
        kind = self.chance.random()
        if kind < 0.45:
            self.assign(names, indent)
        elif kind < 0.7:
            self.lines.append(f"{indent}if {self.expression('p', names, 2)}:")
            self.assign(names, indent + "    ")
            if self.chance.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.assign(names, indent + "    ")
        elif kind < 0.8:
            self.count += 1
            self.lines.append(f"{indent}for k{self.count} in range({self.chance.choice(['2', 'n'])}):")
            self.assign(names, indent + "    ")
        elif self.has_state and kind < 0.9:
            self.lines.append(f"{indent}S.assign_add({self.expression('x', names, 1)})")
            self.lines.append(f"{indent}x0 = S.read()")
        elif self.calls > 0:
            self.calls -= 1
            callee = self.chance.randrange(self.functions)
            given = ", ".join(self.expression(letter, names, 1) for letter in _LETTERS)
            self.lines.append(f"{indent}i1, j1, x1, y1, p1 = f{callee}(n - 1, {given})")
            names += [name for name in ("i1", "j1", "x1", "y1", "p1") if name not in names]

    def results(self, names: list[str]) -> str:
        return ", ".join(self.expression(letter, names, 1) for letter in _LETTERS)

    def program(self) -> ExactProgram:
        self.lines += _START
        if self.has_state:
            self.lines.append("S = ut.Variable(0.0)")
        for number in range(self.functions):
            self.calls = 2
            self.lines += ["", "", "@ut.function", f"def f{number}{_HEAD} -> {_RESULT}:"]
            names = [f"{letter}0" for letter in _LETTERS]
            self.lines += ["    if n <= 0:", f"        return {self.results(names)}"]
            for _ in range(self.chance.randint(2, 6)):
                self.statement(names, "    ", number)
            self.lines.append(f"    return {self.results(names)}")
        return ExactProgram("\n".join(self.lines) + "\n", self.has_state)


def exact_program(chance: Random) -> ExactProgram:
    """A program whose function `f0` is to be called."""
    return _Writer(chance).program()


def exact_arguments(chance: Random) -> tuple[Any, ...]:
    """Arguments of `f0`: fuel, and special values of each dtype."""
    values = [dtype(eval(chance.choice(_CONSTANTS[k]))) for k, dtype in zip(_LETTERS, DTYPES, strict=True)]
    return np.int64(chance.randint(0, 3)), *values
