"""The rows of the language table, and the values that they are tried with.

A case is the source of a small function. Its parameters are named after their values, so that a case says what it is
about: `np.dot(A, x)` takes a matrix and a vector. It is captured with the first set of values and called with all of
them: what was frozen at the first call shows at the second.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

# What each parameter is, by the column of the table that it belongs to.
KINDS = {
    "scalar": ("n", "a", "b"),
    "array": ("x", "y", "k", "m", "A"),
    "container": ("l", "t", "d", "v"),
}
COLUMNS = ("static", *KINDS)
_NAN = float("nan")
# Sets of values. All have the same types; the first is captured, the second differs in every value and sign, the
# third has what floats alone have.
VALUES: tuple[dict[str, Any], ...] = (
    {
        "n": 3, "a": 2.5, "b": True,
        "x": np.array([2.5, 1.0, 4.0, 3.5]), "y": np.array([0.5, 2.0, 1.5, 1.0]), "k": np.array([2, 0, 3, 1]),
        "m": np.array([True, False, True, True]), "A": np.array([[4.0, 1.0], [2.0, 3.0]]),
        "l": [3.0, 1.0, 2.0], "t": (2, 3), "d": {"p": 1.5, "q": 2.5},
        "v": [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
    },
    {
        "n": -2, "a": -0.5, "b": False,
        "x": np.array([-1.5, 0.0, 2.0, -3.0]), "y": np.array([1.0, -2.0, 0.25, 3.0]), "k": np.array([1, 3, 0, 1]),
        "m": np.array([False, False, True, False]), "A": np.array([[-1.0, 2.0], [0.5, -3.0]]),
        "l": [-1.0, 0.0, -7.5], "t": (0, -1), "d": {"p": -1.0, "q": 0.0},
        "v": [np.array([-1.0, 0.5]), np.array([0.0, -4.0])],
    },
    {
        "n": 0, "a": _NAN, "b": True,
        "x": np.array([_NAN, -0.0, np.inf, 1.0]), "y": np.array([-np.inf, 0.0, _NAN, 2.0]), "k": np.array([0, 0, 2, 3]),
        "m": np.array([True, True, True, True]), "A": np.array([[0.0, 1.0], [np.inf, 2.0]]),
        "l": [0.5, np.inf, -0.0], "t": (7, 7), "d": {"p": -0.0, "q": 1e300},
        "v": [np.array([0.0, 0.0]), np.array([_NAN, 1.0])],
    },
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One function to try, in a row and a column of the table."""

    section: str
    row: str
    source: str  # of a function named `f`
    oracle: str = ""  # what CPython runs, if it is something else

    @property
    def parameters(self) -> tuple[str, ...]:
        function = ast.parse(self.source).body[0]
        assert isinstance(function, ast.FunctionDef)
        return tuple(arg.arg for arg in function.args.args)

    @property
    def column(self) -> str:
        """The column of its last parameter in the order of the columns: a list beside a number is about the list."""
        used = [kind for kind, names in KINDS.items() if set(self.parameters) & set(names)]
        return used[-1] if used else "static"

    def arguments(self, number: int) -> list[Any]:
        """Its arguments from a set of values; its own to change."""
        return [copy.deepcopy(VALUES[number][name]) for name in self.parameters]


def expression(section: str, row: str, text: str) -> Case:
    """The case of an expression: the names of values in it become parameters."""
    return Case(section, row, f"def f({', '.join(parameters_of(text))}):\n    return {text}\n")


def statements(section: str, row: str, text: str) -> Case:
    """The case of statements, which return what they made."""
    body = "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
    return Case(section, row, f"def f({', '.join(parameters_of(text))}):\n{body}")


def parameters_of(text: str) -> list[str]:
    """The values that a text reads before it assigns them, by name."""
    tree = ast.parse(text if "\n" in text else f"({text})" if _is_expression(text) else text)
    known = {name for names in KINDS.values() for name in names}
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    read = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return sorted({name for name in read if name in known and name not in own})


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
