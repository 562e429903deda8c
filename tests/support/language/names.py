"""Cases for everything that has a name: built-in functions, modules of Python, methods and attributes, NumPy.

Names are enumerated, never listed, so that a new one cannot be forgotten. What a function is called with is found by
trying: every text of arguments below with which CPython gives a value is a case.
"""

from __future__ import annotations

import builtins
import copy
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from tests.support.language.case import VALUES, Case, expression, statements
from tests.support.language.judge import ITERATOR, SPACE, VIEW, elsewhere, outcome_of

# Texts of arguments, for any function.
_ARGUMENTS = """
     | 3 | -7, 2 | 2.5 | True | 'ab' | [3, 1, 2] | (2, 2) | [1.0, 2.0], [3.0, 4.0] | 'ab', 1 | '3' | n | a | b |
    n, 2 | 2, n | n, n | a, a | a, 2.0 | n, n, n | a, a, a | n, 0, 5 | a, -1 | (2, 2), a | (n, n) | [n, a] | [1,
    n] | x | k | m | A | x, y | k, k | m, m | A, x[:2] | A, A | x, 2 | 2, x | x, 0 | x, n | x, a | k, n | m, 1 |
    A, 0 | A, 1 | x, y, y | m, x, y | x, 0.0, 2.0 | x, k | k, x | x, k, y | [x, y] | (x, y) | [A, A] | x, (2, 2)
    | A, (0, 1) | A, 0, 1 | A, (1, 0) | x, [1, 2] | x, 1, 9.0 | (x, y), 1 | 'i,i->', x, y | lambda w: w * 2, x |
    lambda w: w * 2, 0, A | m, x | x, m | x, 'a' | x, x > 1 | (2, 2), x[0] | A, axis=0 | A, axis=1,
    keepdims=True | A, axis=-1 | x, dtype=np.float32 | k, dtype=float | x, out=y | x, y, out=x | x, where=m | x,
    y, where=m | A, axis=None | [A, A], axis=1 | A, x[:2], axis=1 | x, initial=1.0 | x, axis=0, out=y | A,
    order='F' | x, x[0], x[1] | A, ddof=1 | x, key=abs | x, default=1 | l | t | d | v | l, l | l, 2 | t, 1 | v,
    1 | v, v | lambda w: w * 2, l | lambda w: w > 1, l | l, x[:3] | l, n | d, 'p' | *t | *l | lambda p, q: p +
    q, l | lambda p, q: p + q, l, 1.0 | 2.0, l | l, reverse=True | l, key=lambda w: -w | l, 1.0 | l, strict=True
    | t, t | d.values() | d.items() | enumerate(l) | lambda w, z: w + z, l, l | l, key=None | *l, key=abs | l,
    default=0.0 | iter(l) | iter(l), 1.0 | [], default=n | l, [1, 0, 1] | [(1, n), (2, a)] | [l, l]
"""
ARGUMENTS = tuple(" ".join(text.split()) for text in _ARGUMENTS.split("|"))
# Arguments that only a method or an attribute wants.
_OF_METHODS = """
     | 1 | 0 | n | a | 1.5 | 'a' | 'b' | 'a', 'b' | 1, 2 | 0, n | [1, 2] | [n] | (2, 2) | 2, 2 | -1 | x | k | y
    | l | 'p' | 'p', 1 | 'z', n | p=n | {'p': n} | float | np.float32 | 'i8' | axis=0 | 0, 1 | {1, 2} | {1}, {2}
    | key=abs | reverse=True | reverse=True, key=lambda w: -w | 2 | ['p'], n | 'utf-8' | b'a' | b'a', b'b' |
    {97: 'x'} | 10 | 0.0, 2.0 | min=0 | out=y | np.int32 | dtype=np.float32 | axis=0, keepdims=True | ddof=1 |
    copy=False | m | 'C' | order='F' | [1], [2.0] | m, x | 1, 0 | '{}', 1 | 'abc' | ['a', 'b'] | 99, 1 | 3.0 |
    1.0
"""
OF_METHODS = tuple(" ".join(text.split()) for text in _OF_METHODS.split("|"))
# Their calls act on the terminal, the file system or the state of a library: the cases are written out.
BY_HAND = {
    "input": ("",),
    "breakpoint": (),
    "exit": ("",),
    "quit": ("",),
    "help": (),
    "copyright": (),
    "credits": (),
    "license": (),
    "open": ("'some.txt', 'w'",),
    "id": (),
    "hash": ("n", "a", "x", "l", "t", "3", "'a'"),
    "__import__": ("'math'",),
    "__build_class__": (),
    "__debug__": (),
    "exec": ("'1'", "n"),
    "eval": ("'1 + 1'", "'n + n'", "n"),
    "compile": (),
    "print": ("n", "a, x", "l", "n, sep='-'", "n, end=''"),
    "np.test": (),
    "np.save": ("'some.npy', x",),
    "np.savez": ("'some.npz', x",),
    "np.savez_compressed": ("'some.npz', x",),
    "np.savetxt": ("'some.txt', x",),
    "np.load": ("'some.npy'",),
    "np.loadtxt": ("'some.txt'",),
    "np.genfromtxt": ("'some.txt'",),
    "np.fromfile": ("'some.npy'",),
    "np.memmap": ("'some.npy'",),
    "np.info": ("x",),
    "np.show_config": (),
    "np.show_runtime": (),
    "np.setbufsize": ("8192",),
    "np.seterr": ("all='ignore'",),
    "np.seterrcall": ("None",),
    "np.set_printoptions": ("precision=8",),
    "np.get_include": ("",),
    "np.getbufsize": ("",),
    "np.geterr": ("",),
    "np.geterrcall": ("",),
    "np.get_printoptions": ("",),
    "np.empty": ("(0, n)", "(0, 2)"),
    "np.empty_like": ("x[:0]",),
    "np.frompyfunc": ("abs, 1, 1",),
    "np.fromregex": (),
    "np.bmat": ("'A'",),
    "itertools.count": ("", "n"),
    "itertools.cycle": ("l",),
    "itertools.repeat": ("n, 2", "2, n"),
    "itertools.tee": ("l",),
    "functools.singledispatch": (),
    "functools.singledispatchmethod": (),
    "functools.cached_property": (),
    "functools.lru_cache": (),
    "functools.cache": (),
    "functools.cmp_to_key": (),
    "functools.wraps": (),
    "functools.update_wrapper": (),
    "functools.total_ordering": (),
    "functools.partialmethod": (),
    "functools.partial": (),
    "operator.attrgetter": (),
    "operator.itemgetter": (),
    "operator.methodcaller": (),
    "np.ndarray": ("(0,)",),
}
# What is used otherwise than by a call with some of the arguments above: whole expressions.
WHOLE = {
    "functools.partial": (
        "functools.partial(max, 3)(2)",
        "functools.partial(max, n)(2)",
        "functools.partial(np.sum, axis=0)(A)",
        "functools.partial(sum, l)()",
    ),
    "functools.reduce": (
        "functools.reduce(operator.add, l)",
        "functools.reduce(lambda p, q: p * q, t, n)",
        "functools.reduce(np.maximum, v)",
    ),
    "functools.cmp_to_key": (
        "sorted([3, 1, 2], key=functools.cmp_to_key(lambda p, q: p - q))",
        "sorted(l, key=functools.cmp_to_key(lambda p, q: p - q))",
    ),
    "functools.cache": ("functools.cache(lambda p: p + 1)(2)", "functools.cache(lambda p: p + 1)(n)"),
    "functools.lru_cache": (
        "functools.lru_cache(None)(lambda p: p + 1)(2)",
        "functools.lru_cache(None)(lambda p: p + 1)(n)",
    ),
    "functools.wraps": ("functools.wraps(abs)(lambda p: p + 1)(2)", "functools.wraps(abs)(lambda p: p + 1)(n)"),
    "functools.singledispatch": (
        "functools.singledispatch(lambda p: p)(3)",
        "functools.singledispatch(lambda p: p)(n)",
    ),
    "operator.attrgetter": (
        "operator.attrgetter('real')(3)",
        "operator.attrgetter('real')(n)",
        "operator.attrgetter('T')(A)",
    ),
    "operator.itemgetter": (
        "operator.itemgetter(0)([3])",
        "operator.itemgetter(1)(x)",
        "operator.itemgetter(0, 1)(l)",
        "operator.itemgetter('p')(d)",
        "operator.itemgetter(n)([1, 2, 3, 4])",
    ),
    "operator.methodcaller": (
        "operator.methodcaller('upper')('a')",
        "operator.methodcaller('sum')(x)",
        "operator.methodcaller('get', 'p')(d)",
    ),
    "property": ("property(abs)", "type('C', (), {'p': property(lambda s: 3)})().p"),
    "super": ("super()",),
    "slice": ("[1, 2, 3][slice(1, None)]", "x[slice(1, 3)]", "x[slice(n)]", "l[slice(1)]"),
    "np.vectorize": ("np.vectorize(lambda p: p + 1)(np.arange(3))", "np.vectorize(lambda p: p + 1)(x)"),
    "np.frompyfunc": ("np.frompyfunc(abs, 1, 1)(x)",),
    "np.ufunc": (
        "np.add.reduce(x)",
        "np.add.accumulate(x)",
        "np.multiply.outer(x, y)",
        "np.add.at(x, [0], 1.0)",
        "np.add.reduce([1, 2])",
    ),
    "np.nditer": ("[float(p) for p in np.nditer(x)]",),
    "np.ndenumerate": ("list(np.ndenumerate(x))", "list(np.ndenumerate(np.arange(2)))"),
    "np.s_": ("x[np.s_[1:3]]",),
    "np.r_": ("np.r_[1, 2]", "np.r_[x, y]", "np.r_[1, n]"),
    "np.c_": ("np.c_[x, y]",),
    "np.ix_": ("A[np.ix_([0], [1])]",),
    "np.mgrid": ("np.mgrid[0:2]", "np.mgrid[0:n]"),
    "np.ogrid": ("np.ogrid[0:2]",),
    "np.newaxis": ("x[np.newaxis]",),
    "np.index_exp": ("x[np.index_exp[0]]",),
    "np.errstate": ("np.errstate()",),
    "np.poly1d": ("np.poly1d([1, 2])(3)", "np.poly1d([1, 2])(a)", "np.poly1d(l)(2)"),
}
# What the receivers of methods are: text, and the row's class.
RECEIVERS = {
    "list": ("[1, 2, 3]", "l", "v"),
    "dict": ("{'a': 1}", "d"),
    "set": ("{1, 2}",),
    "frozenset": ("frozenset({1, 2})",),
    "tuple": ("(1, 2)", "t"),
    "str": ("'a b'",),
    "bytes": ("b'a b'",),
    "range": ("range(5)", "range(n)"),
    "int": ("3", "n"),
    "float": ("2.5", "a"),
    "bool": ("True", "b"),
    "complex": ("1j",),
    "slice": ("slice(1, 2)",),
    "ndarray": ("x", "k", "m", "A", "np.arange(4.0)"),
    "generic": ("x[0]", "k[0]", "m[0]", "a", "np.float64(2.5)"),
}
CLASSES: dict[str, type] = {
    **{c.__name__: c for c in (list, dict, set, frozenset, tuple, str, bytes, range, int, float, bool, complex, slice)},
    "ndarray": np.ndarray,
    "generic": np.generic,
}
MODULES: dict[str, tuple[ModuleType, str]] = {
    "builtins": (builtins, ""),
    "math": (math, "math."),
    "operator": (operator, "operator."),
    "functools": (functools, "functools."),
    "itertools": (itertools, "itertools."),
    "numpy": (np, "np."),
    "numpy.linalg": (np.linalg, "np.linalg."),
    "numpy.fft": (np.fft, "np.fft."),
}


def names_in(module: ModuleType) -> list[str]:
    """What a module offers; of builtins, all but the exceptions, which have one row."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module is builtins:
        own = ("__build_class__", "__debug__", "__import__")  # the other ones with underscores are those of any module
        names = [n for n in dir(module) if not is_exception(getattr(module, n)) and (n in own or not n.startswith("_"))]
    return sorted(names)


def is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def candidates(section: str) -> Iterator[tuple[str, str]]:
    """The rows of a module, each with every expression that could be tried."""
    module, before = MODULES[section]
    for name in names_in(module):
        value, called = getattr(module, name), before + name
        for text in WHOLE.get(called, ()):
            yield called, text
        if isinstance(value, ModuleType):
            continue
        if not callable(value):
            yield called, called
            continue
        for arguments in BY_HAND.get(called, ARGUMENTS):
            yield called, f"{called}({arguments})"


def method_candidates(section: str) -> Iterator[tuple[str, str]]:
    """The rows of a class: its methods and attributes, each with every expression that could be tried."""
    for name in sorted(name for name in dir(CLASSES[section]) if not name.startswith("_")):
        for receiver in RECEIVERS[section]:
            text = f"({receiver}).{name}" if receiver[0].isdigit() else f"{receiver}.{name}"
            if not callable(getattr(CLASSES[section], name)):
                yield f".{name}", text
                continue
            for arguments in OF_METHODS:
                yield f".{name}", f"{text}({arguments})"


def tried(section: str, texts: Iterable[tuple[str, str]]) -> list[Case]:
    """Cases of the expressions with which CPython gives a value; of each row at least one, whatever it gives."""
    kept: list[Case] = []
    with elsewhere():
        for row, of_row in itertools.groupby(texts, lambda pair: pair[0]):
            every = [text for _, text in of_row]
            good = [made for text in every if (made := _case(section, row, text)) is not None]
            kept += good or [expression(section, row, every[0])]
    return kept


def _case(section: str, row: str, text: str) -> Case | None:
    """The case of an expression, if CPython has a value for it: of one that gives an iterator, what is in it."""
    code = compile(text, "<case>", "eval")
    inner = [c.co_names for c in code.co_consts if hasattr(c, "co_names")]
    names = {
        name: copy.deepcopy(VALUES[0][name]) for used in (code.co_names, *inner) for name in used if name in VALUES[0]
    }
    outcome = outcome_of(eval, [code, {**SPACE, **names}])
    if outcome.error is not None:
        return None
    value = outcome.value
    if isinstance(value, list) and value and value[0] is ITERATOR:
        return expression(section, row, f"list(itertools.islice({text}, 9))")
    if isinstance(value, list) and value and value[0] is VIEW:
        return expression(section, row, f"list({text})")
    receiver, _, arguments = text.partition(row)
    if section in ("list", "dict", "set") or (section == "ndarray" and value is None):
        # What changes in place is seen under all of its names. A set cannot be returned, but its sorted elements can.
        shown = "sorted({}, key=str)" if section == "set" else "{}"
        result = "sorted(r, key=str) if isinstance(r, set) else r" if section == "set" else "r"
        both = f"{shown.format('p')}, {shown.format('q')}"
        return statements(section, row, f"p = {receiver}\nq = p\nr = p{row}{arguments}\nreturn ({result}), {both}")
    return expression(section, row, text)
