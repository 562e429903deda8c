"""Cases for every class of syntax nodes, on constants, single numbers, arrays and containers.

Operators are tried with every pair of operands below; other syntax has texts of its own. `test_table.py` asserts that
no class of `ast` is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.language.case import Case, expression, statements

PAIRS = (
    ("7", "2"),
    ("-7", "2.5"),
    ("True", "True"),
    ("'a'", "'b'"),
    ("[1, 2]", "[3]"),
    ("(1,)", "(1,)"),
    ("{1}", "{1, 2}"),
    ("None", "None"),
    ("'ab'", "2"),
    ("np.arange(3)", "2"),
    ("np.arange(3) > 0", "np.arange(3) > 1"),
    ("n", "2"),
    ("2", "n"),
    ("n", "n"),
    ("n", "-3"),
    ("a", "2"),
    ("2.0", "a"),
    ("a", "a"),
    ("n", "a"),
    ("b", "b"),
    ("b", "n"),
    ("b", "True"),
    ("n", "'a'"),
    ("'a'", "n"),
    ("n", "None"),
    ("None", "a"),
    ("n", "[1, 2]"),
    ("(1, 2)", "n"),
    ("n", "(2, 3)"),
    ("a", "{'p': 1}"),
    ("n", "{1, 2}"),
    ("n", "range(5)"),
    ("n", "np.arange(3)"),
    ("n", "2**70"),
    ("x", "2"),
    ("2.0", "x"),
    ("x", "y"),
    ("x", "n"),
    ("a", "x"),
    ("k", "2"),
    ("k", "k"),
    ("k", "0.5"),
    ("k", "x"),
    ("m", "m"),
    ("m", "x"),
    ("m", "True"),
    ("m", "1"),
    ("b", "m"),
    ("A", "x[:2]"),
    ("A", "A"),
    ("x", "x[:2]"),
    ("x", "'a'"),
    ("x", "None"),
    ("x", "[1, 2, 3, 4]"),
    ("(1, 2, 3, 4)", "x"),
    ("x", "np.arange(4)"),
    ("np.arange(4)", "x"),
    ("2.5", "x"),
    ("x[0]", "2"),
    ("x[0]", "x[1]"),
    ("m[0]", "m[1]"),
    ("l", "l"),
    ("l", "2"),
    ("2", "l"),
    ("l", "n"),
    ("n", "l"),
    ("t", "t"),
    ("t", "(1,)"),
    ("l", "[1.0]"),
    ("l", "x[:3]"),
    ("x[:3]", "l"),
    ("d", "d"),
    ("v", "v"),
    ("l", "t"),
    ("l", "None"),
    ("'p'", "d"),
    ("3.0", "l"),
    ("a", "l"),
    ("n", "t"),
    ("x", "v"),
    ("n", "d"),
    ("[n, a]", "[n, a]"),
    ("(n, 1)", "(n, 2)"),
    ("d", "{'q': 1}"),
)
BINARY = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "MatMult": "@",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LShift": "<<",
    "RShift": ">>",
}
COMPARE = {
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
    "In": "in",
    "NotIn": "not in",
    "Is": "is",
    "IsNot": "is not",
}
UNARY = {"USub": "-", "UAdd": "+", "Invert": "~", "Not": "not "}
OPERANDS = (
    "3",
    "2.5",
    "True",
    "[]",
    "'a'",
    "np.arange(3)",
    "n",
    "a",
    "b",
    "x",
    "k",
    "m",
    "A",
    "l",
    "t",
    "d",
    "v",
    "x[0]",
    "m[0]",
)
_TEXTS = Path(__file__).with_suffix(".txt")


def texts() -> dict[str, list[str]]:
    """Other syntax: expressions, or statements that return what they made, by the class that they are about."""
    found: dict[str, list[str]] = {}
    for section in _TEXTS.read_text(encoding="utf-8").split("## ")[1:]:
        row, _, listed = section.partition("\n")
        found[row] = [
            text.rstrip("\n").replace("\n  ", "\n") for text in re.split(r"^- ", listed, flags=re.MULTILINE)[1:]
        ]
    return found


# Abstract classes, ways to parse, and what Python keeps for old programs.
NO_SYNTAX = frozenset(
    (
        "AST",
        "mod",
        "stmt",
        "expr",
        "expr_context",
        "boolop",
        "operator",
        "unaryop",
        "cmpop",
        "excepthandler",
        "pattern",
        "type_ignore",
        "slice",
        "type_param",
        "Module",
        "Interactive",
        "Expression",
        "FunctionType",
        "TypeIgnore",
        "Suite",
        "AugLoad",
        "AugStore",
        "Param",
        "Index",
        "ExtSlice",
        "Num",
        "Str",
        "Bytes",
        "NameConstant",
        "Ellipsis",
    )
)
_NEWER = {
    "TypeAlias": "type P = int\nreturn n",
    "TypeVar": "def g[P](p: P) -> P:\n    return p\nreturn g(n)",
    "ParamSpec": "def g[**P](p):\n    return p\nreturn g(n)",
    "TypeVarTuple": "def g[*P](p):\n    return p\nreturn g(n)",
    "TemplateStr": "return t'{n}'",
    "Interpolation": "return t'{n}'",
}


def classes() -> list[str]:
    """The classes of syntax nodes of this Python."""
    found = {name: value for name, value in vars(ast).items() if isinstance(value, type) and issubclass(value, ast.AST)}
    return sorted(name for name in found if name not in NO_SYNTAX and not name.startswith("_"))


def case_of(row: str, text: str) -> Case:
    first = text.partition("\n")[0]
    is_statement = (
        "\n" in text or first.split()[0] in ("return", "raise", "assert", "yield", "pass") or "return" in text
    )
    return (statements if is_statement else expression)("syntax", row, text)


def cases() -> Iterator[Case]:
    """Every case of syntax."""
    for row, sign in BINARY.items():
        for left, right in PAIRS:
            if right != "2**70" or row not in ("Pow", "LShift"):  # Python would compute it
                yield expression("syntax", row, f"{left} {sign} {right}")
    for row, sign in COMPARE.items():
        for left, right in PAIRS:
            if row not in ("Is", "IsNot") or not left[0].isalnum() or left.isalpha():
                yield expression("syntax", row, f"{left} {sign} {right}")
    for row, sign in UNARY.items():
        for operand in OPERANDS:
            yield expression("syntax", row, f"{sign}{operand}")
    newer = {name: (text,) for name, text in _NEWER.items() if hasattr(ast, name)}
    for row, listed in {**texts(), **newer}.items():
        for text in listed:
            if row != "TryStar" or hasattr(ast, "TryStar"):
                yield case_of(row, text)
