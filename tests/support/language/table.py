"""The language table: its sections, and which cases of each are tried."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.support.language import names, standard, syntax
from tests.support.language.case import Case

# Cases that differ by design, by a part of their text, and why: the last table of docs/reference/promises.md.
BY_DESIGN = {
    "m[0]": "a single boolean computes as Python's bool, also where NumPy has np.bool",
    "n.shape": "a single number has the attributes of NumPy's scalars",
    "(1,) is": "CPython makes one object of two equal constants",
    "ut.reciprocal": "functions of floats make f64 of integers",
}
# Sums and products with 0 of what has nan in it: BLAS leaves the products out.
BY_BLAS = frozenset(
    f"{call})" for call in ("np.dot(x, 0", "np.dot(x, n", "np.dot(l, n", "np.inner(x, 0", "np.inner(x, n", "np.inner(l, n",
                            "x.dot(0", "x.dot(n", "np.dot(2, n", "np.dot(0, x")
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A part of the table: a title, a sentence, and its cases."""

    title: str
    about: str
    cases: Callable[[], Iterable[Case]]
    most: int = 6  # cases of one row and column


def _of_module(section: str) -> Callable[[], Iterable[Case]]:
    return lambda: names.tried(names.candidates(section))


def _of_class(section: str) -> Callable[[], Iterable[Case]]:
    return lambda: names.tried(names.method_candidates(section))


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
    "numpy": Section("NumPy", "Everything in `numpy.__all__` but modules.", _of_module("numpy")),
    "numpy.linalg": Section("The module numpy.linalg", "Everything in `numpy.linalg`.", _of_module("numpy.linalg"), 3),
    "numpy.fft": Section("The module numpy.fft", "Everything in `numpy.fft`.", _of_module("numpy.fft"), 2),
    "array API": Section(
        "The array API standard",
        "The functions of `ut` beside NumPy's of the same name: all names of the Python array API standard, 2024.12.",
        lambda: names.tried(standard.candidates("array API")),
        4,
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
        for group in by_column.values():
            kept += spread(group, section.most)
    return kept


def is_by_design(case: Case) -> bool:
    text = case.source.partition("return ")[2]
    return any(part in text for part in BY_DESIGN) or any(call in text for call in BY_BLAS)


def spread(cases: list[Case], most: int) -> list[Case]:
    """At most so many of them, from the first to the last."""
    if len(cases) <= most:
        return cases
    return [cases[round(k * (len(cases) - 1) / (most - 1))] for k in range(most)]
