"""The language table: everything that a program may use works as in CPython when it is captured, or is refused.

`--update` writes docs/reference/language.md. A case that is neither fails here: make it right, or refuse it with a
hint. `tests/support/language` says how cases are found.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from tests.support.language import names, page, standard, syntax
from tests.support.language.judge import judge_all
from tests.support.language.table import SECTIONS, cases_of, spread

import undertow as ut
from undertow.api.options import ENGINES

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "language.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_nothing_is_in_neither_column(name: str, request: pytest.FixtureRequest) -> None:
    cases = cases_of(name)
    verdicts = judge_all(cases)
    wrong = [f"{c.source}-> {v.reason}" for c, v in zip(cases, verdicts, strict=True) if v.status == "wrong"]
    assert not wrong, "\n\n".join([f"{len(wrong)} cases of {name}", *wrong])
    made = page.block(name, cases, verdicts)
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    blocks = page.blocks_of(text)
    if request.config.getoption("--update"):
        PAGE.write_text(page.page_of({**blocks, name: made}), encoding="utf-8")
    elif page.versions() in text:  # with others, there are other names
        assert blocks[name].rstrip() == made.rstrip(), (
            f"{PAGE} is out of date; `pytest tests/language --update` writes it"
        )


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "waves"])
def test_engines_agree(engine: str) -> None:
    """On a sample: what operators do on each engine is tested elsewhere."""
    cases = spread(cases_of("syntax"), 120)
    verdicts = judge_all(cases, engine)
    assert not [f"{c.source}-> {v}" for c, v in zip(cases, verdicts, strict=True) if v.status == "wrong"]


def test_every_class_of_syntax_has_a_case() -> None:
    seen = {type(node).__name__ for case in syntax.cases() for node in ast.walk(ast.parse(case.source))}
    assert set(syntax.classes()) <= seen


@pytest.mark.parametrize("name", [n for n in (*names.MODULES, *names.CLASSES) if n != "numpy"])
def test_every_name_has_a_case(name: str) -> None:
    if name in names.MODULES:
        module, before = names.MODULES[name]
        wanted = {before + n for n in names.names_in(module) if not inspect.ismodule(getattr(module, n))}
        found = {row for row, _ in names.candidates(name)}
    else:
        wanted = {f".{n}" for n in dir(names.CLASSES[name]) if not n.startswith("_")}
        found = {row for row, _ in names.method_candidates(name)}
    assert wanted <= found | set(names.BY_HAND)


def test_every_name_of_the_standard_has_a_case() -> None:
    assert {f"ut.{n}" for n in standard.NAMES} == {case.row for case in standard.cases("array API")}


def test_differences_are_by_design() -> None:
    """What docs/reference/promises.md says of numbers: of two kinds, single ones, and those that depend on a path."""

    @ut.function
    def kinds(n: ut.i64, x: ut.f32) -> ut.f32:
        return n * x

    @ut.function
    def counted(m):
        return m[0] + m[1], m[0].shape

    @ut.function
    def chosen(n):
        return max(n, 0.5), 1 if n > 0 else 2.5

    assert kinds(3, 0.5).dtype == np.float32
    assert counted(np.array([True, True])) == (2, ())
    assert [type(value) for value in chosen(3)] == [np.float64, np.float64]


def test_differences_of_comparisons_are_by_design() -> None:
    """An integer beside a float is converted; zeros of either sign are equal."""

    @ut.function
    def compared(n: ut.i64, x: ut.f64):
        return n == x, n > x

    @ut.function
    def larger(x, y):
        return np.maximum(x, y)

    assert compared(2**53 + 1, 2.0**53) == (True, False)
    assert larger(np.array([0.0, -0.0]), np.array([-0.0, 0.0])).tolist() == [0.0, 0.0]
