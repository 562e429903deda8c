"""Every operator at the edges of its dtypes has the bits that `tests/support/claims.py` promises, on every engine.

Lanes are the pairs of special values, or short rows of them; waves run them all at once, a few at a time, and alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.bits import same
from tests.support.claims import CLAIMS, PRODUCT, REFERENCE
from tests.support.graphs import captured
from tests.support.kernels import ELEMENTWISE
from tests.support.op_examples import ALL, EXAMPLES, FLOATS
from tests.support.written import function_of

import undertow as ut
from undertow.engines.contract import Plan
from undertow.engines.demand import Demand
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import Reference
from undertow.engines.waves import WavesPlan
from undertow.ir.graph import StaticGraph
from undertow.ops.op import CATALOGUE
from undertow.types import DTYPES, type_of

SPECIAL: dict[str, list[Any]] = {
    "bool": [False, True],
    "i32": [0, 1, -1, 2, 7, 40, 2**31 - 1, -(2**31)],
    "i64": [0, 1, -1, 2, 7, 70, 2**63 - 1, -(2**63)],
    "f32": [0.0, -0.0, 1.0, -1.0, 2.5, -0.4, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -3e9],
    "f64": [0.0, -0.0, 1.0, -1.0, 2.5, -0.4, np.inf, -np.inf, np.nan, 5e-324, 1.7e308, -1e19],
}
NOT_ZERO, NOT_NEGATIVE = ("floor_divide", "remainder"), ("power", "bitwise_left_shift", "bitwise_right_shift")


def definitions(graph: StaticGraph) -> Iterator[tuple[str, Plan]]:
    """The engines that run reference kernels."""
    yield "reference", Reference().plan(graph)
    yield "demand", Demand().plan(graph)


def natives(graph: StaticGraph) -> Iterator[tuple[str, Plan]]:
    for width, schedule in ((4096, "lockstep"), (7, "lockstep"), (1, "lockstep"), (7, "agenda")):
        yield f"{schedule} {width}", WavesPlan(graph, width, schedule)
    yield "expand", ExpandPlan(graph)


def check(name: str, text: str, columns: list[Any]) -> None:
    """Run `f` of a text for each lane, on every engine."""
    graph = captured(function_of(text, "main"), *columns)
    with np.errstate(all="ignore"):
        kinds = (
            [definitions(graph), natives(graph)]
            if CLAIMS[name] != REFERENCE
            else [itertools.chain(definitions(graph), natives(graph))]
        )
        for plans in kinds:
            results = [(engine, plan.run(columns)[0]) for engine, plan in plans]
            for engine, found in results:
                assert all(map(same, found, results[0][1])), (name, engine, columns, found, results[0])


def text_of(call: str, operands: str) -> str:
    return f"""
@ut.function
def f({operands}):
    z = {call}
    return z, z == z

@ut.function
def main({operands}):
    return ut.map(f, {operands})
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n in ELEMENTWISE if n == "cast" or hasattr(ut, CATALOGUE[n].public)))
def test_elements(name: str) -> None:
    row = CATALOGUE[name]
    for dtype in sorted({type_of(np.asarray(values[-1])).dtype.name for values, _ in EXAMPLES[name]}):
        special = np.array(SPECIAL[dtype], DTYPES[dtype].numpy)
        if name == "cast":
            for to in ALL:
                check(name, text_of(f'ut.astype(x, "{to}")', "x"), [special])
        elif row.arity == 1:
            check(name, text_of(f"ut.{row.public}(x)", "x"), [special])
        elif row.arity == 2:
            x, y = (v.ravel() for v in np.meshgrid(special, special))
            if dtype[0] == "i":
                fits = y != 0 if name in NOT_ZERO else y >= 0 if name in NOT_NEGATIVE else y == y
                x, y = x[fits], y[fits]
            check(name, text_of(f"ut.{row.public}(x, y)", "x, y"), [x, y])
        else:
            x, y = (v.ravel() for v in np.meshgrid(special, special))
            check(name, text_of("ut.where(c, x, y)", "c, x, y"), [np.arange(len(x)) % 2 == 0, x, y])


ROWS = {
    "sum": "ut.sum(x)", "prod": "ut.prod(x)", "max": "ut.max(x)", "min": "ut.min(x)", "argmax": "ut.argmax(x)",
    "argmin": "ut.argmin(x)", "cumsum": "ut.cumulative_sum(x)", "sort": "ut.sort(x)", "argsort": "ut.argsort(x)",
    "logsumexp": "ut.logsumexp(x)", "softmax": "ut.softmax(x)", "log_softmax": "ut.log_softmax(x)",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    for dtype in FLOATS:
        few = [0.0, -0.0, np.nan, np.inf, -1.0]
        rows = np.array(list(itertools.product(few, repeat=3)), DTYPES[dtype].numpy)
        check(name, text_of(ROWS[name], "x"), [rows])
        if "sort" in name:
            check(name, text_of(ROWS[name].replace("x)", "x, descending=True)"), "x"), [rows])


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrices_of_negative_zeros(dtype: str) -> None:
    """Of products, engines promise no bits, but zeros have one sign."""
    assert CLAIMS["matmul"] == PRODUCT
    numpy = DTYPES[dtype].numpy
    for k in (1, 3):
        x, w = np.full((5, k), -0.0, numpy), np.ones((k, 40), numpy)
        graph = captured(function_of("@ut.function\ndef f(x, w): return ut.map(lambda v: v @ w, x)", "f"), x, w)
        for engine, plan in itertools.chain(definitions(graph), natives(graph)):
            assert not np.signbit(plan.run([x, w])[0][0]).any(), engine
