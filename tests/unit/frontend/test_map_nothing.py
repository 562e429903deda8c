"""A map over no lanes: dimensions of its results that are known at capture stay, those known only at run time are 0."""

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES

NONE, TWO = np.zeros(0), np.array([2.0, 3.0])
LEAF = ut.data.from_nested(["a"], binary=False)
BUSH = ut.data.from_nested([("a", ("b", "c", "a"), "c")], binary=False)
EMBED = np.array([[0.5, -1.0, 2.0], [1.0, 3.0, 0.25], [4.0, 1.0, -2.0], [0.5, 0.5, 1.5], [1.0, -1.0, 1.0]])


@ut.function
def scaled(by: ut.f64[None], static: ut.f64[3], row: ut.f64[None]):
    """A number, a row of known width, a row whose width is known only at run time, and a matrix of both."""

    def lane(x: Any) -> Any:
        return x, x * static, x * row, ut.expand_dims(static, axis=1) * row * x

    return ut.map(lane, by)


@pytest.mark.parametrize("engine", ENGINES)
def test_shapes(engine: str) -> None:
    found = scaled.run(NONE, np.ones(3), np.ones(4), engine=engine)
    assert [x.shape for x in found] == [(0,), (0, 3), (0, 0), (0, 3, 0)]
    assert {x.dtype.name for x in found} == {"float64"}
    found = scaled.run(TWO, np.ones(3), np.ones(4), engine=engine)
    assert [x.shape for x in found] == [(2,), (2, 3), (2, 4), (2, 3, 4)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_sum_over_nothing_is_zero(engine: str) -> None:
    @ut.function
    def total(by: ut.f64[None], row: ut.f64[3]) -> ut.f64[3]:
        return row + ut.sum(ut.map(lambda x: x * row, by), axis=0)

    row = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(total.run(NONE, row, engine=engine), row)
    np.testing.assert_array_equal(total.run(TWO, row, engine=engine), 6 * row)
    slopes = ut.grad(lambda by, row: ut.sum(total(by, row)), argnums=(0, 1))
    for by, wanted in ((NONE, ([], [1.0] * 3)), (TWO, ([7.0, 7.0], [6.0] * 3))):
        for found, slope in zip(slopes.run(by, row, engine=engine), wanted, strict=True):
            np.testing.assert_array_equal(found, slope)


@pytest.mark.parametrize("engine", ENGINES)
def test_children_of_a_leaf(engine: str) -> None:
    """Summed, where the width is known; folded, whatever it is: nothing is added to what a leaf has."""

    @ut.function
    def summed(embed, forest, node: ut.i32) -> ut.f64[3]:
        below = ut.map(lambda child: summed(embed, forest, child), forest.children(node))
        return embed[forest.word[node] + 1] + ut.sum(below, axis=0)

    @ut.function
    def folded(embed, forest, node: ut.i32) -> ut.f64[None]:
        state = embed[forest.word[node] + 1]
        for below in ut.map(lambda child: folded(embed, forest, child), forest.children(node)):
            state = state + below
        return state

    for encode in (summed, folded):
        slope = ut.grad(lambda embed, forest, f=encode: ut.sum(f(embed, forest, 0)))
        for forest in (LEAF, BUSH):
            found = encode.run(EMBED, forest, 0, engine=engine)
            np.testing.assert_allclose(found, EMBED[forest.word + 1].sum(axis=0))
            counts = np.bincount(forest.word + 1, minlength=len(EMBED))
            np.testing.assert_array_equal(
                slope.run(EMBED, forest, engine=engine), np.repeat(counts[:, None], 3, axis=1)
            )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_width_that_nobody_knows(engine: str) -> None:
    @ut.function
    def total(by: ut.f64[None], row: ut.f64[None]):
        return row + ut.sum(ut.map(lambda x: x * row, by), axis=0)

    np.testing.assert_array_equal(total.run(TWO, np.ones(3), engine=engine), [6.0] * 3)
    with pytest.raises(ut.Fault, match=r"add: the shapes \[3\] and \[0\]") as fault:
        total.run(NONE, np.ones(3), engine=engine)
    assert "an empty ut.map" in str(fault.value) and "annotate" in str(fault.value)
