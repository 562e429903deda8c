"""The language table: its sections, and which cases of each are tried."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.support.language import names, standard, syntax
from tests.support.language.case import Case

from undertow.frontend.values.traced import NUMPY

# Cases that differ by design, by a part of their text, and why: the last table of docs/reference/promises.md.
BY_DESIGN = {
    "m[0]": "a single boolean computes as Python's bool, also where NumPy has np.bool",
    "n.shape": "a single number has the attributes of NumPy's scalars",
    "(1,) is": "CPython makes one object of two equal constants",
    "sorted(x": "nan comes last, where Python's order depends on what it compares first",
    "ut.unique_values": "the standard leaves their order open, and so does NumPy; ours ascend",
    "ut.result_type": "the dtypes of ut are its own",
    "np.linalg.pinv": "what is 0 but for rounding is rounded otherwise",
    "np.linalg.lstsq": "what is 0 but for rounding is rounded otherwise",
    "ut.reciprocal": "functions of floats make f64 of integers",
}
# Sums and products with 0 of what has nan in it: BLAS leaves the products out.
BY_BLAS = re.compile(r"(dot|inner)\((.*, )?(0|n)\)")


@dataclass(frozen=True)
class Section:
    """A part of the table: a title, a sentence, and its cases."""

    title: str
    about: str
    cases: Callable[[], Iterable[Case]]
    most: int = 6  # cases of one row and column


def _of_module(section: str) -> Callable[[], Iterable[Case]]:
    return lambda: names.tried(section, names.candidates(section))


def _of_class(section: str) -> Callable[[], Iterable[Case]]:
    return lambda: names.tried(section, names.method_candidates(section))


SECTIONS: dict[str, Section] = {
    "syntax": Section(
        "Syntax", "The classes of Python's syntax nodes, as the module `ast` names them.", syntax.cases, 99
    ),
    "builtins": Section("Built-in functions", "Everything in `builtins` but exceptions.", _of_module("builtins"), 8),
    **{
        module: Section(f"The module {module}", f"Everything in `{module}`.", _of_module(module))
        for module in ("math", "operator", "functools", "itertools")
    },
    **{
        name: Section(f"Methods of {name}", f"Methods and attributes of `{name}`.", _of_class(name))
        for name in names.CLASSES
        if name not in ("ndarray", "generic")
    },
    "ndarray": Section("Methods of arrays", "Methods and attributes of `np.ndarray`.", _of_class("ndarray")),
    "generic": Section(
        "Methods of NumPy's scalars",
        "Methods and attributes of `np.generic`: of elements of arrays.",
        _of_class("generic"),
        3,
    ),
    "numpy": Section("NumPy", "Everything in `numpy.__all__` but modules.", _of_module("numpy"), 5),
    "numpy.linalg": Section("The module numpy.linalg", "Everything in `numpy.linalg`.", _of_module("numpy.linalg"), 3),
    "numpy.fft": Section("The module numpy.fft", "Everything in `numpy.fft`.", _of_module("numpy.fft"), 2),
    "array API": Section(
        "The array API standard",
        "The functions of `ut` beside NumPy's of the same name: all names of the Python array API standard, 2024.12.",
        lambda: standard.cases("array API"),
        3,
    ),
}


def cases_of(name: str) -> list[Case]:
    """The cases of a section: of each row and column a few, spread over all that there are."""
    section = SECTIONS[name]
    wanted = [case for case in section.cases() if not is_by_design(case)]
    kept: list[Case] = []
    for _, of_row in itertools.groupby(wanted, lambda case: case.row):
        by_column: dict[str, list[Case]] = {}
        for case in of_row:
            by_column.setdefault(case.column, []).append(case)
        for column, group in by_column.items():
            kept += spread(group, 1 if is_numpys_own(name, group[0].row, column) else section.most)
    return kept


def is_numpys_own(section: str, row: str, column: str) -> bool:
    """Is it NumPy alone that computes it, or nobody, so that one case says as much as ten?"""
    if not section.startswith("numpy"):
        return False
    function: Any = functools.reduce(
        lambda value, part: getattr(value, part, None),
        row.split(".")[1:],
        np,  # type: ignore[arg-type, return-value]
    )
    return column == "static" or not isinstance(function, Hashable) or function not in NUMPY


def is_by_design(case: Case) -> bool:
    text = case.source.partition("return ")[2]
    return any(part in text for part in BY_DESIGN) or BY_BLAS.search(text) is not None


def spread(cases: list[Case], most: int) -> list[Case]:
    """At most so many of them, from the first to the last."""
    if len(cases) <= most:
        return cases
    return [cases[round(k * (len(cases) - 1) / max(most - 1, 1))] for k in range(most)]
