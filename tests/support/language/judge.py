"""Tries a case: the plain function under CPython is the oracle, and the captured one must give the same or be refused.

A verdict is `works` (the same values, or an error where CPython has one), `error` (CPython has nothing else), `refused`
(an error of ours with the user's line and a hint), or `wrong`: everything else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import math
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from tests.support.language.case import VALUES, Case
from tests.support.written import load_text

import undertow as ut

_HEAD = """\
import builtins, copy, dataclasses, functools, itertools, math, operator
import numpy as np
import undertow as ut

"""
SPACE: dict[str, Any] = {}  # what an expression of a case knows, besides the values
exec(_HEAD, SPACE)
_OURS = frozenset(map(np.dtype, ("bool", "int32", "int64", "float32", "float64")))
# Rows in which a value may be an integer on one path and a float on another; then it is a float.
PROMOTING = frozenset(("max", "min", "sorted", "If", "IfExp", "BoolOp", "Return"))
# Errors of Python's floats, where IEEE 754 has a value instead.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
ITERATOR, VIEW = "iterator", "view"  # the first item of the list that stands for one
_IEEE = (ZeroDivisionError, OverflowError, ValueError)


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    status: str  # "works", "error", "refused" or "wrong"
    reason: str = ""  # of a refusal, what and why; of what is wrong, both results

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


@dataclass(frozen=True)
class Outcome:
    """A value or an error, and what was printed."""

    value: Any = None
    error: BaseException | None = None
    printed: str = ""

    def __str__(self) -> str:
        shown = f"{type(self.error).__name__}: {self.error}" if self.error is not None else repr(self.value)
        return " ".join(shown.split())[:160] + (f", printed {self.printed!r}" if self.printed else "")


@contextlib.contextmanager
def elsewhere() -> Iterator[Path]:
    """A folder of its own as the current one: some cases write files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


@contextlib.contextmanager
def functions_of(cases: Sequence[Case], are_oracles: bool = True) -> Iterator[list[Any]]:
    """The plain functions of cases, in a file of their own."""
    sources = [(case.oracle if are_oracles else "") or case.source for case in cases]
    texts = [source.replace("def f(", f"def f{number}(", 1) for number, source in enumerate(sources)]
    with elsewhere() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `n is 2` is a case as well
        module = load_text(_HEAD + "\n\n".join(texts), folder)
        yield [getattr(module, f"f{number}") for number in range(len(cases))]


def judge_all(cases: Sequence[Case], engine: str = "waves") -> list[Verdict]:
    """The verdicts of cases, in order."""
    with functions_of(cases) as oracles, functions_of(cases, are_oracles=False) as functions:
        return [judge(*one, engine) for one in zip(cases, oracles, functions, strict=True)]


def judge(case: Case, oracle: Any, function: Any, engine: str = "waves") -> Verdict:
    """Call a function and its captured twin with all sets of values."""
    captured = ut.function(function)
    refusals: list[str] = []
    has_value = False
    for number in range(len(VALUES) if case.parameters else 1):
        expected = outcome_of(oracle, case.arguments(number))
        has_value |= expected.error is None
        with ut.options(engine=engine, timeout=20.0):
            got = outcome_of(captured, case.arguments(number))
        if got.error is None or not isinstance(got.error, ut.UndertowError):
            is_open = case.row.startswith("np.fft.") and _spreads(got) and _spreads(expected)
            is_open |= case.row in PROMOTING and _promoted(got, expected)
            is_open |= case.row == "np.linalg.qr" and _same_product(got, expected)
            problem = "" if is_open else difference(got, expected)
            if problem:
                return Verdict("wrong", f"{problem}: got {got}, not {expected} (values {number})")
            continue
        if problem := unhelpful(got.error, expected):
            return Verdict("wrong", f"{problem}: got {got}, not {expected} (values {number})")
        if expected.error is None:
            refusals.append(said_by(got.error))
    return Verdict("refused", refusals[0]) if refusals else Verdict("works" if has_value else "error")


def outcome_of(function: Any, arguments: list[Any]) -> Outcome:
    printed = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = plain(function(*arguments))
    except (Exception, SystemExit) as error:
        return Outcome(None, error, printed.getvalue())
    return Outcome(value, None, printed.getvalue())


def plain(value: Any) -> Any:
    """A value that can be compared: iterators and views as lists, files by their class."""
    if isinstance(value, io.IOBase):
        value.close()
        return type(value)
    if isinstance(value, (map, filter, zip, enumerate, reversed, itertools.chain)) or (
        hasattr(value, "__next__") and not isinstance(value, np.generic)
    ):
        return [ITERATOR, *map(plain, itertools.islice(value, 20))]
    if isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
        return [VIEW, *map(plain, value)]
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value


def said_by(error: ut.UndertowError) -> str:
    return f"{' '.join(error.what.split())}; {error.hint}"


def unhelpful(error: ut.UndertowError, expected: Outcome) -> str:
    """What is missing from an error of ours; nothing if CPython has an error too."""
    if isinstance(error, ut.InternalError):
        return "an internal error"
    if isinstance(error, ut.Timeout):
        return "it takes too long"
    if expected.error is not None:
        return ""
    if error.span is None:
        return "no line"
    if not error.hint and "sorted() of nan" not in error.what:
        return "no hint"
    if error.what.startswith("Python raised"):
        return "a raw error"
    return ""


def difference(got: Outcome, expected: Outcome) -> str:
    """What differs; nothing if both are the same."""
    if got.error is not None and expected.error is not None:
        return "" if isinstance(got.error, type(expected.error)) else "another error"
    if got.error is not None:
        return "a raw error"
    if expected.error is not None:
        by_ieee = isinstance(expected.error, _IEEE) and not _finite(got.value)
        return "" if by_ieee or _saturates(expected.error) else "no error"
    if isinstance(expected.value, complex) and not _finite(got.value):
        return ""  # the root of a negative number is nan
    if got.printed != expected.printed:
        return "printed something else"
    return differs(got.value, expected.value)


def _saturates(error: BaseException) -> bool:
    """Is it a conversion to an integer of a float that has none? Ours is the nearest integer, and 0 for nan."""
    return isinstance(error, (ValueError, OverflowError)) and "cannot convert float" in str(error)


def _promoted(got: Outcome, expected: Outcome) -> bool:
    """Are they equal, but one of Python's integers, chosen at run time, is a float?"""
    pairs = [(got.value, expected.value)]
    if isinstance(got.value, list) and isinstance(expected.value, list) and len(got.value) == len(expected.value):
        pairs = list(zip(got.value, expected.value, strict=True))
    return all(type(e) in (int, float) and isinstance(g, float) and (g == e or e != e) for g, e in pairs)


def _spreads(outcome: Outcome) -> bool:
    """Is there inf or nan in an array? What becomes of one in a transform is the algorithm's."""
    value = outcome.value
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and not np.isfinite(value).all()


def _same_product(got: Outcome, expected: Outcome) -> bool:
    """Have both factorisations one product? Of a singular matrix, rounding decides what is below its rank."""
    if not all(isinstance(factors, tuple) and len(factors) == 2 for factors in (got.value, expected.value)):
        return False
    return np.allclose(got.value[0] @ got.value[1], expected.value[0] @ expected.value[1], equal_nan=True)


def _finite(value: Any) -> bool:
    leaves = value if isinstance(value, (list, tuple)) else [value]
    try:
        return all(math.isfinite(leaf) for leaf in leaves)
    except (TypeError, ValueError, OverflowError):
        return True


def differs(got: Any, expected: Any) -> str:
    """How two values differ.

    A scalar may be Python's or NumPy's; floats agree to a few units in the last place (others test their bits). What
    a float without an integer is as an integer, NumPy leaves to the machine, which says the smallest one.
    """
    if _is_number(expected) or isinstance(expected, np.ndarray):
        return _numbers_differ(got, expected)
    if type(got) is not type(expected):
        return "another type"
    if isinstance(expected, (list, tuple)):
        if len(got) != len(expected):
            return "another length"
        return next(filter(None, map(differs, got, expected)), "")
    if isinstance(expected, dict):
        if list(got) != list(expected):
            return "other keys"
        return next((d for key in expected if (d := differs(got[key], expected[key]))), "")
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        names = [f.name for f in dataclasses.fields(expected)]
        return differs([getattr(got, n) for n in names], [getattr(expected, n) for n in names])
    if isinstance(expected, slice):
        return differs([got.start, got.stop, got.step], [expected.start, expected.stop, expected.step])
    if type(expected).__eq__ is object.__eq__ and not isinstance(expected, FunctionType):
        return ""  # objects of one type that know no equality
    if isinstance(expected, str):
        return "" if _ADDRESS.sub("", got) == _ADDRESS.sub("", expected) else "another value"
    try:
        return "" if bool(got == expected) else "another value"
    except Exception:
        return "values that cannot be compared"


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic)) and not isinstance(value, (np.str_, np.bytes_))


def _numbers_differ(got: Any, expected: Any) -> str:
    if not _is_number(got) and not isinstance(got, np.ndarray):
        return "another type"
    if isinstance(expected, np.ndarray) != isinstance(got, np.ndarray) and np.ndim(expected):
        return "another type"
    if isinstance(got, np.ndarray) and got.dtype == np.dtype(object):
        return "an array of objects"
    left, right = np.asarray(got), np.asarray(expected)
    if right.dtype == np.dtype(object) and type(expected) is int:
        return "" if got == expected else "another value"
    if left.dtype != right.dtype:
        return f"another dtype, {left.dtype} for {right.dtype}"
    if left.shape != right.shape:
        return "another shape"
    if right.dtype.kind in "fc":
        near = np.allclose(left, right, rtol=1e-12 if right.dtype.itemsize > 4 else 1e-5, atol=0, equal_nan=True)
        return "" if near else "another value"
    undefined = right == np.iinfo(right.dtype).min if right.dtype.kind == "i" else np.zeros(right.shape, bool)
    return "" if np.array_equal(left[~undefined], right[~undefined]) else "another value"
