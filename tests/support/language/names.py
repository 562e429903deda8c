"""Cases for everything that has a name: built-in functions, modules of Python, methods and attributes, NumPy.

Names are enumerated, never listed, so that a new one cannot be forgotten. What a function is called with is found by
trying: every text of arguments below with which CPython gives a value is a case.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from tests.support.language.case import Case, expression
from tests.support.language.judge import functions_of, outcome_of

# Texts of arguments, for any function.
ARGUMENTS = (
    "", "3", "-7, 2", "2.5", "True", "'ab'", "[3, 1, 2]", "(2, 2)", "[1.0, 2.0], [3.0, 4.0]", "'ab', 1", "'3'",
    "n", "a", "b", "n, 2", "2, n", "n, n", "a, a", "a, 2.0", "n, n, n", "a, a, a", "n, 0, 5", "a, -1",
    "(2, 2), a", "(n, n)", "[n, a]", "[1, n]",
    "x", "k", "m", "A", "x, y", "k, k", "m, m", "A, x[:2]", "A, A", "x, 2", "2, x", "x, 0", "x, n", "x, a", "k, n", "m, 1",
    "A, 0", "A, 1", "x, y, y", "m, x, y", "x, 0.0, 2.0", "x, k", "k, x", "x, k, y", "[x, y]", "(x, y)", "[A, A]",
    "x, (2, 2)", "A, (0, 1)", "A, 0, 1", "A, (1, 0)", "x, [1, 2]", "x, 1, 9.0", "(x, y), 1", "'i,i->', x, y",
    "lambda w: w * 2, x", "lambda w: w * 2, 0, A", "m, x", "x, m", "x, 'a'", "x, x > 1", "(2, 2), x[0]",
    "A, axis=0", "A, axis=1, keepdims=True", "A, axis=-1", "x, dtype=np.float32", "k, dtype=float", "x, out=y",
    "x, y, out=x", "x, where=m", "x, y, where=m", "A, axis=None", "[A, A], axis=1", "A, x[:2], axis=1", "x, initial=1.0",
    "x, axis=0, out=y", "A, order='F'", "x, x[0], x[1]", "A, ddof=1", "x, key=abs", "x, default=1",
    "l", "t", "d", "v", "l, l", "l, 2", "t, 1", "v, 1", "v, v", "lambda w: w * 2, l", "lambda w: w > 1, l", "l, x[:3]",
    "l, n", "d, 'p'", "*t", "*l", "lambda p, q: p + q, l", "lambda p, q: p + q, l, 1.0", "2.0, l", "l, reverse=True",
    "l, key=lambda w: -w", "l, 1.0", "l, strict=True", "t, t", "d.values()", "d.items()", "enumerate(l)",
    "lambda w, z: w + z, l, l", "l, key=None", "*l, key=abs", "l, default=0.0", "iter(l)", "iter(l), 1.0", "[], default=n",
    "l, [1, 0, 1]", "[(1, n), (2, a)]", "[l, l]",
)  # fmt: skip
# Arguments that only a method or an attribute wants.
OF_METHODS = (
    "", "1", "0", "n", "a", "1.5", "'a'", "'b'", "'a', 'b'", "1, 2", "0, n", "[1, 2]", "[n]", "(2, 2)", "2, 2", "-1", "x", "k", "y", "l",
    "'p'", "'p', 1", "'z', n", "p=n", "{'p': n}", "float", "np.float32", "'i8'", "axis=0", "0, 1", "{1, 2}", "{1}, {2}", "key=abs",
    "reverse=True", "reverse=True, key=lambda w: -w", "2", "['p'], n", "'utf-8'", "b'a'", "b'a', b'b'", "{97: 'x'}", "10",
    "0.0, 2.0", "min=0", "out=y", "np.int32", "dtype=np.float32", "axis=0, keepdims=True", "ddof=1", "copy=False", "m",
    "'C'", "order='F'", "[1], [2.0]", "m, x", "1, 0", "'{}', 1", "'abc'", "['a', 'b']", "99, 1", "3.0", "1.0",
)  # fmt: skip
# Their calls act on the terminal, the file system or the state of a library: the cases are written out.
BY_HAND = {
    "input": ("",), "breakpoint": (), "exit": ("",), "quit": ("",), "help": (), "copyright": (), "credits": (), "license": (),
    "open": ("'some.txt', 'w'",), "id": (), "hash": ("n", "a", "x", "l", "t", "3", "'a'"), "__import__": ("'math'",),
    "__build_class__": (), "__debug__": (), "exec": ("'1'", "n"), "eval": ("'1 + 1'", "'n + n'", "n"),
    "compile": ("'1', 'some.py', 'eval'",), "print": ("n", "a, x", "l", "n, sep='-'", "n, end=''"),
    "np.test": (), "np.save": ("'some.npy', x",), "np.savez": ("'some.npz', x",), "np.savez_compressed": ("'some.npz', x",),
    "np.savetxt": ("'some.txt', x",), "np.load": ("'some.npy'",), "np.loadtxt": ("'some.txt'",), "np.genfromtxt": ("'some.txt'",),
    "np.fromfile": ("'some.npy'",), "np.memmap": ("'some.npy'",), "np.info": ("x",), "np.show_config": (), "np.show_runtime": (),
    "np.setbufsize": ("8192",), "np.seterr": ("all='ignore'",), "np.seterrcall": ("None",), "np.set_printoptions": ("precision=8",),
    "np.get_include": ("",), "np.getbufsize": ("",), "np.geterr": ("",), "np.geterrcall": ("",),
    "np.get_printoptions": ("",), "np.empty": ("n", "(0, 2)"), "np.empty_like": ("x[:0]",), "np.frompyfunc": ("abs, 1, 1",),
    "np.fromregex": (), "np.bmat": ("'A'",), "itertools.count": ("", "n"), "itertools.cycle": ("l",), "itertools.repeat": ("n, 2", "2, n"),
    "itertools.tee": ("l",), "functools.singledispatch": (), "functools.singledispatchmethod": (),
    "functools.cached_property": (), "functools.lru_cache": ("None", ""), "functools.cache": ("abs",),
    "functools.wraps": ("abs",), "functools.update_wrapper": (), "functools.total_ordering": (), "functools.partialmethod": (),
}  # fmt: skip
# What the receivers of methods are: text, and the row's class.
RECEIVERS = {
    "list": ("[1, 2, 3]", "l", "v"), "dict": ("{'a': 1}", "d"), "set": ("{1, 2}",), "frozenset": ("frozenset({1, 2})",),
    "tuple": ("(1, 2)", "t"), "str": ("'a b'",), "bytes": ("b'a b'",), "range": ("range(5)", "range(n)"),
    "int": ("3", "n"), "float": ("2.5", "a"), "bool": ("True", "b"), "complex": ("1j",), "slice": ("slice(1, 2)",),
    "ndarray": ("x", "k", "m", "A", "np.arange(4.0)"), "generic": ("x[0]", "k[0]", "m[0]", "a", "np.float64(2.5)"),
}  # fmt: skip
CLASSES: dict[str, type] = {
    **{c.__name__: c for c in (list, dict, set, frozenset, tuple, str, bytes, range, int, float, bool, complex, slice)},
    "ndarray": np.ndarray, "generic": np.generic,
}  # fmt: skip
MODULES: dict[str, tuple[ModuleType, str]] = {
    "builtins": (builtins, ""), "math": (math, "math."), "operator": (operator, "operator."),
    "functools": (functools, "functools."), "itertools": (itertools, "itertools."),
    "numpy": (np, "np."), "numpy.linalg": (np.linalg, "np.linalg."), "numpy.fft": (np.fft, "np.fft."),
}  # fmt: skip


def names_in(module: ModuleType) -> list[str]:
    """What a module offers; of builtins, all but the exceptions, which have one row."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module is builtins:
        names = [name for name in dir(module) if not is_exception(getattr(module, name)) and name != "_"]
    return sorted(names)


def is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def candidates(section: str) -> Iterator[Case]:
    """Every case of a module that could be tried."""
    module, before = MODULES[section]
    for name in names_in(module):
        value, called = getattr(module, name), before + name
        if isinstance(value, ModuleType):
            continue
        if not callable(value):
            yield expression(section, called, called)
            continue
        for arguments in BY_HAND.get(called, ARGUMENTS):
            yield expression(section, called, f"{called}({arguments})")


def method_candidates(section: str) -> Iterator[Case]:
    """Every case of the methods and attributes of a class that could be tried."""
    for name in sorted(name for name in dir(CLASSES[section]) if not name.startswith("_")):
        for receiver in RECEIVERS[section]:
            row = f".{name}"
            text = f"({receiver}).{name}" if receiver[0].isdigit() else f"{receiver}.{name}"
            if not callable(getattr(CLASSES[section], name)):
                yield expression(section, row, text)
                continue
            for arguments in OF_METHODS:
                yield expression(section, row, f"{text}({arguments})")


def tried(cases: Iterable[Case], most: int = 40) -> list[Case]:
    """Those with which CPython gives a value; of each row at least one, whatever it gives."""
    every = list(cases)
    kept: list[Case] = []
    with functions_of(every) as functions:
        by_row = itertools.groupby(zip(every, functions, strict=True), lambda pair: pair[0].row)
        for _, pairs in by_row:
            of_row = list(pairs)
            good = [case for case, f in of_row if outcome_of(f, case.arguments(0)).error is None][:most]
            kept += good or [of_row[0][0]]
    return kept
