"""Trees made by rule: the same for the same seed, within their limits, with labels that are the exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import data
from undertow.data import Forest

MAKERS = [data.listops, data.booleans, data.arithmetic, data.sentiment]


def words(forest: Forest, node: int) -> str:
    assert forest.vocabulary is not None
    return forest.vocabulary.word(forest.word[node])


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make: Callable[..., Forest]) -> None:
    assert make(20) == make(20, seed=0) != make(20, seed=1)
    assert len(make(20)) == 20 and len(make(0)) == 0
    assert make(20)[:10] == make(10)
    assert make(20).label.min() >= 0


@pytest.mark.parametrize("make", [data.listops, data.booleans, data.arithmetic])
def test_limits(make: Callable[..., Forest]) -> None:
    assert make(50, max_depth=2).depths.max() == 2
    assert max(tree.size for tree in make(50, max_nodes=9)) <= 9
    with pytest.raises(ut.DataError, match="almost no tree has at most 1 nodes"):
        make(5, max_nodes=1)
    for wrong, what in [
        ({"max_depth": 0}, "max_depth is 0"),
        ({"max_nodes": 0}, "max_nodes is 0"),
        ({"trees": -1}, "trees is -1"),
        ({"trees": 1.5}, "trees is 1.5"),
        ({"trees": "5"}, "trees is '5'"),
        ({"chance": 1.5}, "chance is 1.5"),
        ({"chance": "often"}, "chance is 'often'"),
        ({"seed": []}, r"seed is \[\]"),
        ({"operators": None}, "operators is None"),
    ]:
        with pytest.raises(ut.DataError, match=f"{what}(?s:.*)hint: "):
            make(**wrong)
    with pytest.raises(ut.DataError, match="unknown operator 'FOO'"):
        make(5, operators=["FOO"])
    with pytest.raises(ut.DataError, match="at least one operator"):
        make(5, operators=[])


def test_limits_of_one_kind() -> None:
    with pytest.raises(ut.DataError, match=r"max_args is 1(?s:.*)from 2 on"):
        data.listops(3, max_args=1)
    with pytest.raises(ut.DataError, match=r"modulus is 0(?s:.*)from 1 on"):
        data.arithmetic(3, modulus=0)
    for wrong in ({"trees": -1}, {"trees": 2.5}, {"max_depth": None}, {"seed": []}):
        with pytest.raises(ut.DataError, match=f"{next(iter(wrong))} is "):
            data.sentiment(**wrong)  # type: ignore[arg-type]
    assert data.listops(np.int64(3)) == data.listops(3)


@pytest.mark.parametrize("operators", [("MIN", "MAX", "MED", "SM"), ("FIRST", "LAST")])
def test_listops_values(operators: tuple[str, ...]) -> None:
    forest = data.listops(60, seed=3, operators=operators)
    rules: dict[str, Callable[[list[int]], int]] = {
        "MIN": min, "MAX": max, "MED": lambda xs: int(np.median(xs)), "SM": lambda xs: sum(xs) % 10,
        "FIRST": lambda xs: xs[0], "LAST": lambda xs: xs[-1],
    }  # fmt: skip
    counts = set()
    for node in range(forest.size):
        given = forest.label[forest.children(node)].tolist()
        counts.add(len(given))
        assert forest.label[node] == (rules[words(forest, node)](given) if given else int(words(forest, node)))
    assert counts == {0, 2, 3, 4, 5}


def test_listops_in_the_published_form() -> None:
    forest = data.listops(30, seed=1)
    text = data.to_listops(forest)
    assert data.parse_listops(text) == forest
    pairs = data.listops(30, seed=1, binary=True)
    assert pairs.is_binary and pairs == data.parse_listops(text, binary=True)
    np.testing.assert_array_equal(pairs.label[pairs.roots], forest.label[forest.roots])
    for line in text.splitlines():
        assert line.count("(") == line.count(")")
    with pytest.raises(ut.DataError, match="not n-ary ListOps"):
        data.to_listops(pairs)


def test_listops_without_repeats() -> None:
    """Short trees are few: all of them are made, and parts of the forest have as many of them as others."""
    some = {"max_depth": 1, "max_args": 2, "operators": ["SM"]}  # 100 trees
    assert len(set(data.to_listops(data.listops(100, **some)).splitlines())) < 75
    forest = data.listops(100, distinct=True, **some)
    assert len(set(data.to_listops(forest).splitlines())) == 100
    assert forest == data.listops(100, distinct=True, **some) != data.listops(100, distinct=True, seed=1, **some)
    with pytest.raises(ut.DataError, match="almost no tree is new"):
        data.listops(101, distinct=True, **some)
    sizes = np.diff(data.listops(4000, distinct=True).roots)
    assert abs(np.mean(sizes[:2000] < 5) - np.mean(sizes[2000:] < 5)) < 0.05


def test_boolean_values() -> None:
    forest = data.booleans(60)
    assert not forest.is_binary and data.booleans(5, operators=["and", "xor"]).is_binary
    rules: dict[str, Callable[..., Any]] = {
        "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a ^ b, "not": lambda a: 1 - a,
    }  # fmt: skip
    for node in range(forest.size):
        given = forest.label[forest.children(node)].tolist()
        assert forest.label[node] == (rules[words(forest, node)](*given) if given else words(forest, node) == "true")


def test_arithmetic_values() -> None:
    for modulus in (7, 10):
        forest = data.arithmetic(30, modulus=modulus)
        assert forest.is_binary
        for tree, line in zip(forest, data.to_sexpressions(forest).splitlines(), strict=True):
            assert tree.label[0] == _value(line) % modulus


def _value(text: str) -> int:
    """An S-expression of digits, exactly."""
    stack: list[list[Any]] = [[]]
    for token in text.replace("(", "( ").replace(")", " )").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            sign, a, b = stack.pop()
            stack[-1].append({"+": a + b, "-": a - b, "*": a * b}[sign])
        else:
            stack[-1].append(int(token) if token.isdecimal() else token)
    return int(stack[0][0])


def test_sentiment() -> None:
    forest = data.sentiment(300)
    assert forest.is_binary
    assert set(forest.label[forest.roots].tolist()) == {0, 1, 2, 3, 4}
    assert data.parse_brackets(data.to_brackets(forest), vocabulary=forest.vocabulary) == forest
    for node in np.flatnonzero(forest.left >= 0):
        left, right = forest.left[node], forest.right[node]
        score = forest.label[right] - 2
        if forest.word[left] >= 0 and words(forest, left) in ("not", "never"):
            assert forest.label[node] - 2 == -score
        elif forest.word[left] >= 0 and words(forest, left) in ("very", "really", "so"):
            assert forest.label[node] - 2 == np.clip(2 * score, -2, 2)


def test_undertow_computes_the_labels() -> None:
    """The values of ListOps are what a recursive function makes of them."""
    forest = data.listops(20, operators=("MIN", "MAX", "SM"))

    @ut.function
    def value(forest, node: ut.i32) -> ut.i32:
        if forest.is_leaf(node):
            return forest.word[node]
        given = ut.map(lambda child: value(forest, child), forest.children(node))
        if forest.word[node] == 10:
            return ut.min(given)
        if forest.word[node] == 11:
            return ut.max(given)
        return ut.astype(ut.sum(given) % 10, ut.i32)

    found = value.map(ut.shared(forest), forest.roots, engine="waves")
    np.testing.assert_array_equal(found, forest.label[forest.roots])
