"""Values that may be None: what branches know of them, and what goes beyond one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut


@ut.function
def half(n: ut.i64) -> ut.i64 | None:
    return n // 2 if n % 2 == 0 else None


def asked(n: Any) -> Any:
    h = half(n)
    if h is None:
        return -1
    return h + 1


def asked_beside_others(n: Any) -> Any:
    h = half(n)
    return h + 1 if n > 0 and h is not None and h > 3 else 0


def asked_the_other_way(n: Any) -> Any:
    h = half(n)
    if n < 0 or h is None:
        return 0
    return h + 1


def asked_in_a_loop(n: Any) -> Any:
    h = half(n)
    total = 0
    if h is not None:
        for k in range(n):
            total += h + k
    return total


def asked_by_truth(n: Any) -> Any:
    h = half(n)
    return h + 1 if h else 0


def asked_by_match(n: Any) -> Any:
    match half(n):
        case None:
            return 0
        case h:
            return h + 1


@pytest.mark.parametrize(
    "python",
    [asked, asked_beside_others, asked_the_other_way, asked_in_a_loop, asked_by_truth, asked_by_match],
    ids=lambda python: python.__name__,
)
def test_branches_know_whether_there_is_a_value(python: Any) -> None:
    function = ut.function(python)
    assert "raise" not in str(function.graph(4, simplify=False))
    twin = python.__globals__
    for n in (-4, 0, 3, 8, 9):
        assert function(n) == _with_plain_half(python)(n)
    assert twin["half"] is half


def _with_plain_half(python: Any) -> Any:
    return type(python)(python.__code__, {**python.__globals__, "half": half.__wrapped__})


def test_a_value_that_nobody_has_asked_for_is_an_error_of_the_run() -> None:
    function = ut.function(lambda n: half(n) + 1)
    assert function(4) == 3
    with pytest.raises(TypeError, match="'NoneType' and 'int'"):
        function(5)


def test_a_result_that_must_not_be_none() -> None:
    @ut.function
    def whole(n: ut.i64) -> ut.i64:
        return half(n)

    assert whole(4) == 2
    with pytest.raises(TypeError, match="is None, but annotated as i64"):
        whole(5)


def test_a_map_gives_a_list() -> None:
    assert half.map(np.array([4, 5, 6])) == [2, None, 3]


def test_saved_and_loaded(tmp_path: Path) -> None:
    assert half(4) == 2
    ut.save(half, tmp_path / "half.ut")
    loaded = ut.load(tmp_path / "half.ut")
    assert loaded(8) == 4 and loaded(3) is None


def test_gradients() -> None:
    @ut.function
    def inverse(x: ut.f64) -> ut.f64 | None:
        return None if x == 0 else 1 / x

    @ut.function
    def squared(x: ut.f64) -> ut.f64:
        y = inverse(x)
        return x if y is None else y * y

    assert ut.grad(squared)(2.0) == -0.25 and ut.grad(squared)(0.0) == 1
    with pytest.raises(ut.TypeMismatch, match="f64 or None"):
        ut.grad(inverse)(2.0)


def test_an_argument_that_is_known_to_be_none_is_a_constant() -> None:
    @ut.function
    def total(x: ut.f64[2, 3], axis: int | None = None) -> Any:
        return ut.sum(x) if axis is None else ut.sum(x) + axis

    assert total(np.ones((2, 3))) == 6 and total(np.ones((2, 3)), 1) == 7
    assert "branch" not in str(total.graph(np.ones((2, 3)), simplify=False))
