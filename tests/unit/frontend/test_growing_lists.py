"""Lists of run-time length at the border of a program: what a caller passes and gets."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES


@ut.function
def longer(items, n: ut.i64):
    for i in range(n):
        items.append(i)
    return items


@ut.function
def largest_first(items: list[float]):
    items.sort(reverse=True)
    return items, len(items)


@ut.function
def total(items: list[ut.f32]) -> ut.f32:
    return items[0] + total(items[1:]) if items else 0.0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_list_of_the_caller_is_never_changed(engine: str) -> None:
    with ut.options(engine=engine):
        own, other = [1, 2], [1.0, 3.0, 2.0]
        assert longer(own, 3) == [1, 2, 0, 1, 2]
        assert largest_first(other) == ([3.0, 2.0, 1.0], 3)
        assert (own, other) == ([1, 2], [1.0, 3.0, 2.0])


def test_an_annotated_list_may_have_any_length() -> None:
    assert [float(total([1.5] * n)) for n in (0, 1, 5, 2)] == [0.0, 1.5, 7.5, 3.0]
    assert total([1.0]).dtype == np.float32
    assert [str(total.library([1.5] * n)) for n in (1, 3)] == [str(total.library([]))] * 2


def test_items_are_of_the_annotated_type() -> None:
    with pytest.raises(ut.TypeMismatch, match="annotated"):
        longest([1.5, 2.5])
    with pytest.raises(ut.TypeMismatch, match="annotated"):
        longest([[1], [2]])
    assert longest([]) == 0
    assert longest(range(4)) == 3


@ut.function
def longest(items: list[int]):
    return max(items, default=0)


def test_a_gradient_of_a_list_is_a_list() -> None:
    slopes = ut.grad(squares)([1.0, 2.0, 3.0])
    assert slopes == [2.0, 4.0, 6.0]


@ut.function
def squares(items: list[float]) -> float:
    return sum([x * x for x in items])


def test_calls_of_a_comprehension_share_waves() -> None:
    value, stats = partitions.run(12, stats=True)
    assert value == 2**10
    assert stats.waves == 12


@ut.function
def partitions(n: ut.i64) -> ut.i64:
    if n < 2:
        return 1
    return sum([partitions(n - k) for k in range(1, n)])
