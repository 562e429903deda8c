"""f.map: over arrays, lists of anything, and items of several shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES


@dataclass
class Tree:
    value: float
    children: list[Any]


@ut.function
def total(x):
    return x.sum()


@ut.function
def doubled(x):
    return x * 2


@ut.function
def weighed(tree):
    found = tree.value
    for child in tree.children:
        found = found + weighed(child)
    return found


@ut.function
def scaled(x, w):
    return x @ w


@pytest.mark.parametrize("engine", ENGINES)
def test_lists_of_arrays_are_nested_lists(engine: str) -> None:
    rows = [[1, 2], [3, 4]]
    for given in (rows, np.array(rows), [np.array(row) for row in rows]):
        assert total.map(given, engine=engine).tolist() == [3, 7]


@pytest.mark.parametrize("engine", ENGINES)
def test_items_of_several_shapes(engine: str) -> None:
    assert total.map([[1, 2], [3], [4, 5]], engine=engine).tolist() == [3, 3, 9]
    found = doubled.map([np.ones(2), np.ones(3), np.zeros(2)], engine=engine)
    assert [row.tolist() for row in found] == [[2, 2], [2, 2, 2], [0, 0]]
    trees = [Tree(1.0, []), Tree(2.0, [Tree(3.0, [])]), Tree(4.0, [])]
    assert weighed.map(trees, engine=engine).tolist() == [1.0, 5.0, 4.0]


@ut.function
def leaves(tree):
    return tree[0] if len(tree) == 1 else leaves(tree[0]) + 2 * leaves(tree[1])


@pytest.mark.parametrize("engine", ENGINES)
def test_trees_of_lists(engine: str) -> None:
    trees: list[Any] = [[1], [[1], [2]], [[[1], [3]], [4]], [[1], [[2], [3]]], [[[2], [3]], [5]]]
    assert leaves.map(trees, engine=engine).tolist() == [1, 5, 15, 17, 18]
    nested = ut.function(lambda pair: pair[0] * pair[1][0])
    assert nested.map([[2, [3]], [4, [5]]], engine=engine).tolist() == [6, 20]


def test_items_that_are_containers_stack() -> None:
    added = ut.function(lambda x: x["a"] + x["b"])
    assert added.map([{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}]).tolist() == [3.0, 7.0]
    assert added.map({"a": np.arange(2), "b": np.ones(2)}).tolist() == [1.0, 2.0]


def test_arguments_are_mapped_one_by_one() -> None:
    xs, w = np.arange(6.0).reshape(3, 2), np.array([1.0, 10.0])
    wanted = (xs @ w).tolist()
    assert scaled.map(xs, ut.shared(w)).tolist() == wanted
    assert scaled.map(xs, w, in_axes=(0, None)).tolist() == wanted
    assert scaled.map(xs.T, w, in_axes=(1, None)).tolist() == wanted
    assert scaled.map([xs[0], xs[1]], w, in_axes=(0, None)).tolist() == wanted[:2]
    with pytest.raises(ut.TypeMismatch, match="in_axes"):
        scaled.map(xs, w, in_axes=(0,))


def test_shared_and_listed_arguments_beside_ragged_ones() -> None:
    plus = ut.function(lambda x, y: x.sum() + y)
    ragged = [np.ones(2), np.ones(3)]
    assert plus.map(ragged, [1, 2]).tolist() == plus.map(ragged, np.array([1, 2])).tolist() == [3.0, 5.0]
    assert plus.map(ragged, ut.shared(5)).tolist() == [7.0, 8.0]
    with pytest.raises(ut.TypeMismatch, match="1 and 2 items"):
        plus.map(ragged, [1])


def test_no_items() -> None:
    assert doubled.map([]).tolist() == [] and doubled.map(np.zeros((0, 3))).shape == (0, 3)


def test_counts_of_all_groups_are_added_up() -> None:
    stats = total.map([[1, 2], [3], [4, 5]], stats=True)[1]
    assert stats.activations == 3 and stats.engine == "waves"


def test_random_numbers_of_groups_differ() -> None:
    noisy = ut.function(lambda x: ut.random.normal() + 0 * x.sum())
    found = noisy.map([np.ones(2), np.ones(3), np.ones(2)], seed=3)
    assert len(set(found.tolist())) == 3
    assert found.tolist() == noisy.map([np.ones(2), np.ones(3), np.ones(2)], seed=3).tolist()


def test_effects_need_one_shape() -> None:
    printing = ut.function(lambda x: print(x))
    with pytest.raises(ut.TypeMismatch, match="differ in shape"):
        printing.map([np.ones(2), np.ones(3)])


def test_inside_a_captured_function() -> None:
    both = ut.function(lambda x, y: ut.map(lambda v: v.sum(), [x, y]))
    assert both(np.ones(2), np.zeros(2)).tolist() == [2.0, 0.0]
    with pytest.raises(ut.TypeMismatch, match="differ in shape"):
        both(np.ones(2), np.zeros(3))


def test_texts_cannot_be_collected() -> None:
    with pytest.raises(ut.CaptureError, match="texts"):
        ut.function(lambda x: f"{x}").map([1, 2])


# -- objects -----------------------------------------------------------------------------------------------------


class Branch:
    def __init__(self, v: float, *kids: Branch) -> None:
        self.v, self.kids = v, kids


@ut.function
def scaled_sum(tree: Any, scale: ut.f64) -> ut.f64:
    result = tree.v * scale
    for kid in tree.kids:
        result = result + scaled_sum(kid, scale)
    return result


def test_lists_of_objects() -> None:
    leaf = Branch(4.0)
    trees = [Branch(1.0, Branch(2.0)), leaf, leaf, Branch(1.0, Branch(2.0), Branch(5.0))]
    assert scaled_sum.map(trees, ut.shared(2.0)).tolist() == [6.0, 8.0, 8.0, 16.0]
    assert scaled_sum.map(trees, [1.0, 2.0, 3.0, 4.0]).tolist() == [3.0, 8.0, 12.0, 32.0]
    assert scaled_sum.map([leaf, leaf], ut.shared(1.0)).tolist() == [4.0, 4.0]
    leaf.v = 5.0
    assert scaled_sum.map(trees, ut.shared(2.0)).tolist() == [6.0, 10.0, 10.0, 16.0]
    assert scaled_sum.map(trees, ut.shared(2.0), engine="python").tolist() == [6.0, 10.0, 10.0, 16.0]


def test_objects_that_draw() -> None:
    @ut.function
    def drawn(tree: Any) -> ut.f64:
        return tree.v + ut.random.uniform()

    leaf = Branch(1.0)
    found = drawn.map([leaf, leaf, leaf], seed=0)
    assert len(set(found.tolist())) == 3
    assert found.tolist() == drawn.map([leaf, leaf, leaf], seed=0).tolist()
