"""What has the same bits where: the promises of docs/design/0006-kernels.md, held for every operator.

Which those are says `tests/support/claims.py`. That engines agree is tested in conformance/test_edges.py, and that the
number of threads changes nothing with whole runs, in unit/engines/waves/test_threads.py.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.support.bits import same
from tests.support.claims import CLAIMS, EVERYWHERE, FUSED, PRODUCT, REFERENCE
from tests.support.kernels import ISAS, OPS, attrs_of, edges, is_naming, lane_of, run, spread
from tests.support.op_examples import EXAMPLES, FLOATS

from undertow.ops.op import CATALOGUE, evaluate
from undertow.types import DTYPES, type_of

# Instruction sets with fused multiply-add. (A machine with one set has nothing to compare.)
FUSED_ISAS = [isa for isa in ISAS if isa != "baseline"] or ISAS


def cases(name: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """Examples of an operator: two for each combination of dtypes."""
    kinds = itertools.groupby(EXAMPLES[name], lambda case: [np.asarray(v).dtype for v in case[0]])
    return [case for _, group in kinds for case in list(group)[-2:] if case[0]]


def is_float(name: str, values: list[Any], given: dict[str, Any]) -> bool:
    types = CATALOGUE[name].type([type_of(np.asarray(v)) for v in values], attrs_of(given))
    return any(t.dtype.is_inexact for t in types)


def lanes_of(name: str, values: list[Any], count: int) -> tuple[list[Any], tuple[bool, ...]]:
    """An example for many lanes; special values stand among its floats."""
    shared = tuple(is_naming(name, k) for k in range(len(values)))
    lanes = spread(name, values, shared, count)
    chance = np.random.default_rng(1)
    for k, value in enumerate(lanes):
        if value.dtype.kind == "f" and not shared[k] and name != "arange":
            special = chance.choice(edges(type_of(value).dtype.name), value.shape).astype(value.dtype)
            lanes[k] = np.where(chance.random(value.shape) < 0.3, special, value)
    return lanes, shared


def test_every_operator_makes_a_claim() -> None:
    assert set(CLAIMS) == set(OPS), "tests/support/claims.py says of every operator what its bits do not depend on"


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_instruction_sets(name: str) -> None:
    for values, given in cases(name):
        lanes, shared = lanes_of(name, values, 40)
        if all(shared):
            continue
        claim = CLAIMS[name] if is_float(name, values, given) else REFERENCE
        isas = {REFERENCE: ISAS, EVERYWHERE: ISAS, FUSED: FUSED_ISAS, PRODUCT: ISAS[:1]}[claim]
        results = [run(name, lanes, shared, given, isa)[0] for isa in isas]
        for isa, result in zip(isas, results, strict=True):
            assert same(result, results[0]), (name, given, isa)
        for lane in range(0, 40, 3) if claim == REFERENCE else ():
            with np.errstate(all="ignore"):
                (wanted,) = evaluate(name, lane_of(lanes, shared, lane), attrs_of(given))
            if np.asarray(wanted).dtype != bool or name != "assert":
                assert same(results[0][lane], wanted), (name, given, lane_of(lanes, shared, lane))


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_lanes(name: str) -> None:
    """Any number of lanes from 1 to 40, wherever they begin."""
    for values, given in cases(name)[-2:]:
        lanes, shared = lanes_of(name, values, 80)
        if all(shared) or (CLAIMS[name] == PRODUCT and is_float(name, values, given)):
            continue
        (together,) = run(name, lanes, shared, given)
        for count in range(1, 41):
            first = 41 - count
            some = [v if s else v[first : first + count] for v, s in zip(lanes, shared, strict=True)]
            (part,) = run(name, some, shared, given)
            assert same(part, together[first : first + count]), (name, given, count)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_times_a_matrix(dtype: str) -> None:
    """What products do promise: x @ W is one chain of multiply-adds for each element, for any number of rows."""
    random = np.random.default_rng(0)
    for k, n in ((1, 40), (5, 3), (12, 24), (40, 129)):
        x, w = (random.normal(size=shape).astype(DTYPES[dtype].numpy) for shape in ((40, k), (k, n)))
        results = [run("matmul", [x, w], [False, True], {}, isa)[0] for isa in FUSED_ISAS]
        assert all(same(result, results[0]) for result in results)
        for count in range(1, 41):
            (some,) = run("matmul", [x[:count], w], [False, True], {}, FUSED_ISAS[0])
            assert same(some, results[0][:count]), (k, n, count)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_and_products_of_negative_zeros_are_zero(dtype: str, isa: str) -> None:
    """They begin with 0.0, whatever the layout, as NumPy's do."""
    numpy = DTYPES[dtype].numpy
    for length, axes in itertools.product((1, 2, 40), ((0,), (1,), (0, 1), ())):
        (got,) = run("sum", [np.full((2, length, 3), -0.0, numpy)], [False], {"axes": axes, "keepdims": False}, isa)
        assert not np.signbit(got).any(), (length, axes)
    for k, n in itertools.product((1, 2, 17), (1, 5, 40)):
        x, w = np.full((3, k), -0.0, numpy), np.ones((k, n), numpy)
        turned = np.ones((n, k), numpy)
        for operands, shared in (([x, w], [False, True]), ([turned, x], [True, False]), ([x, x], [False, False])):
            if operands[1] is x and operands[0] is x:
                operands = [x, np.ones((3, k), numpy)]
            assert not np.signbit(run("matmul", operands, shared, {}, isa)[0]).any(), (k, n)
