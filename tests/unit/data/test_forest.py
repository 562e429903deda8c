"""Forests: trees as arrays, taken by recursive functions; batches of any size share one capture and one plan."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.data import Forest

H = 3

#    tree 0: ((a b) c)    tree 1: (d e)    tree 2: f
DEPTHS = [0, 1, 2, 2, 1, 0, 1, 1, 0]
WORDS = [-1, -1, 0, 1, 2, -1, 3, 4, 5]


def small(**kwargs: Any) -> Forest:
    return Forest.from_depths(DEPTHS, WORDS, range(9), {"weight": np.linspace(0, 1, 9)}, **kwargs)


def random_forest(trees: int, seed: int = 0) -> Forest:
    """Binary trees of random shapes."""
    random = np.random.default_rng(seed)
    depths: list[int] = []
    words: list[int] = []
    for _ in range(trees):
        stack = [(0, int(random.integers(1, 9)))]
        while stack:
            depth, leaves = stack.pop()
            depths.append(depth)
            words.append(int(random.integers(20)) if leaves == 1 else -1)
            if leaves > 1:
                left = int(random.integers(1, leaves))
                stack += [(depth + 1, leaves - left), (depth + 1, left)]
    return Forest.from_depths(depths, words)


def params() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {"embed": random.normal(size=(20, H)), "W": random.normal(size=(2 * H, H))}


def make_encode() -> Any:
    @ut.function
    def encode(params, forest, node: ut.i32) -> ut.f64[H]:
        if forest.is_leaf(node):
            return params["embed"][forest.word[node]]
        left = encode(params, forest, forest.left[node])
        right = encode(params, forest, forest.right[node])
        return ut.tanh(ut.concat([left, right]) @ params["W"])

    return encode


def encode_plainly(params: Any, forest: Forest, node: int) -> Any:
    if forest.is_leaf(node):
        return params["embed"][forest.word[node]]
    left = encode_plainly(params, forest, forest.left[node])
    right = encode_plainly(params, forest, forest.right[node])
    return np.tanh(np.concatenate([left, right]) @ params["W"])


# -- the arrays ----------------------------------------------------------------------------------------------------


def test_arrays() -> None:
    forest = small()
    assert forest.left.tolist() == [1, 2, -1, -1, -1, 6, -1, -1, -1]
    assert forest.right.tolist() == [4, 3, -1, -1, -1, 7, -1, -1, -1]
    assert [forest.children(node).tolist() for node in range(9)] == [[1, 4], [2, 3], [], [], [], [6, 7], [], [], []]
    assert forest.roots.tolist() == [0, 5, 8]
    assert forest.depths.tolist() == DEPTHS
    assert forest.is_leaf(2) and not forest.is_leaf(0)
    assert forest.child_count(0) == 2
    assert forest.size == 9 and len(forest) == 3
    assert {a.dtype for a in (forest.word, forest.label, forest.offsets, forest.child, forest.roots, forest.left)} == {
        np.dtype(np.int32)
    }
    assert repr(forest) == "<Forest: 3 trees, 9 nodes, binary, fields weight>"


def test_many_children() -> None:
    forest = Forest.from_depths([0, 1, 1, 1, 2, 0, 1])
    assert not forest.is_binary
    assert [forest.children(node).tolist() for node in range(7)] == [[1, 2, 3], [], [], [4], [], [6], []]
    assert forest.word.tolist() == forest.label.tolist() == [-1] * 7
    with pytest.raises(ut.DataError, match="not binary"):
        forest.left
    assert not Forest.from_depths([0, 1, 1], binary=False).is_binary
    with pytest.raises(ut.DataError, match="node 2 of tree 0 has 1 child,"):
        Forest.from_depths([0, 1, 1, 2], binary=True)


def test_nothing() -> None:
    forest = Forest.from_depths([])
    assert len(forest) == 0 and forest.size == 0 and forest.is_binary
    assert forest.batch([]) == forest
    assert repr(forest) == "<Forest: 0 trees, 0 nodes, binary>"


@pytest.mark.parametrize("depths", [[1], [0, 2], [0, -1], [0, 1, 3]])
def test_depths_are_checked(depths: list[int]) -> None:
    with pytest.raises(ut.DataError, match="do not describe trees in preorder"):
        Forest.from_depths(depths)


@pytest.mark.parametrize(
    ("kwargs", "what"),
    [
        ({"depths": [0.5]}, "must be one row of integers"),
        ({"depths": [0], "word": [1, 2]}, "has 1 nodes, but `word` has the shape"),
        ({"depths": [0], "word": ["a"]}, "must be one row of integers"),
        ({"depths": [0], "fields": {"x": 3.0}}, "`x` has the shape"),
    ],
)
def test_columns_are_checked(kwargs: dict[str, Any], what: str) -> None:
    with pytest.raises(ut.DataError, match=what):
        Forest.from_depths(**kwargs)


def test_field() -> None:
    assert small().field("weight")[8] == 1.0
    with pytest.raises(ut.DataError, match="no field 'height'"):
        small().field("height")


# -- choosing trees --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [None, False])
@pytest.mark.parametrize("chosen", [[0], [2], [0, 1], [1, 2], [0, 1, 2], [1, 0], [2, 2, 0, 1], [-1], [-2, -1], []])
def test_batch(chosen: list[int], binary: bool | None) -> None:
    """A batch is the same as a forest made of the trees' own depths."""
    forest = small(binary=binary)
    ranges = [range(0, 5), range(5, 8), range(8, 9)]
    nodes = [node for tree in chosen for node in ranges[tree]]
    rows = [forest.word[nodes], forest.label[nodes], {"weight": forest.field("weight")[nodes]}]
    expected = Forest.from_depths([DEPTHS[n] for n in nodes], *rows, binary=binary)
    found = forest.batch(chosen)
    assert found == expected
    assert found.is_binary == forest.is_binary
    if found.is_binary:
        np.testing.assert_array_equal(found.left, expected.left)
        np.testing.assert_array_equal(found.right, expected.right)


def test_a_batch_has_arrays_of_its_own() -> None:
    forest = small()
    for chosen in ([1], [0, 1], [1, 0]):
        batch = forest.batch(chosen)
        for array in (batch.word, batch.label, batch.roots, *batch.sides, batch.field("weight")):
            array[...] = 7
    assert forest == small() and forest.left.tolist() == small().left.tolist()
    assert forest.batch([1]) == small().batch([1]) and forest.batch([1]).left.tolist() == [1, -1, -1]


def test_items() -> None:
    forest = small()
    assert forest[1] == forest.batch([1])
    assert forest[1:] == forest.batch([1, 2])
    assert forest[[2, 0]] == forest.batch([2, 0])
    assert [len(tree) for tree in forest] == [1, 1, 1]
    assert forest != forest[1:] and forest != 3
    for wrong in ([3], [-4], [0.5], "ab", True, [[0]]):
        with pytest.raises(ut.DataError):
            forest.batch(wrong)


def test_masks() -> None:
    forest = small()
    assert forest[np.array([True, False, True])] == forest[[0, 2]]
    assert forest[[False, True, False]] == forest[1]
    assert forest[forest.ends - forest.roots > 1] == forest[:2]
    assert len(forest[np.zeros(3, bool)]) == 0
    for wrong in ([True], [True] * 4):
        with pytest.raises(ut.DataError, match=r"the mask has .* but the forest has 3"):
            forest[wrong]


def test_join() -> None:
    forest = random_forest(12)
    joined = ut.data.join([forest[:5], forest[5:5], forest[5:]])
    assert joined == forest and joined.is_binary == forest.is_binary
    assert ut.data.join(forest) == forest  # tree by tree
    trees = ut.data.from_nested([{"word": "a", "label": "x", "height": 1.5}, {"word": "b", "height": 2.5}])
    again = ut.data.join([trees[1], trees[0]])
    assert again == trees[[1, 0]] and again.vocabulary == trees.vocabulary and again.labels == trees.labels
    wide = ut.data.from_nested([("a", "b", "a")], vocabulary=trees.vocabulary)
    pair = ut.data.from_nested([("a", "b")], vocabulary=trees.vocabulary)
    assert not ut.data.join([pair, wide]).is_binary and ut.data.join([pair, pair]).is_binary


def test_what_cannot_be_joined() -> None:
    one, other = (ut.data.from_nested([word]) for word in ("a", "b"))
    for wrong, what in [
        ([], "no forests"),
        (5, "5 is not a list of forests"),
        ([one, "a"], "'a' is not a forest"),
        ([one, other], r"different vocabulary(?s:.*)hint: .*vocabulary="),
        ([one, ut.data.from_nested([{"word": "a", "label": "x"}])], r"different labels(?s:.*)hint: .*labels="),
        ([one, ut.data.from_nested([{"word": "a", "height": 1}])], "different fields"),
        ([ut.data.from_nested([{"word": "a", "at": at}]) for at in ([1], [1, 2])], "field 'at' has a different shape"),
    ]:
        with pytest.raises(ut.DataError, match=what):
            ut.data.join(wrong)  # type: ignore[arg-type]


def test_batches() -> None:
    forest = random_forest(23)
    assert [len(b) for b in forest.batches(10)] == [10, 10, 3]
    assert [len(b) for b in forest.batches(10, drop_last=True)] == [10, 10]
    assert next(forest.batches(10)) == forest[:10]
    once, again, other = (list(forest.batches(10, seed=s)) for s in (0, 0, 1))
    assert once == again and once != other
    for wrong in (0, 2.5, True):
        with pytest.raises(ut.DataError, match="batch size"):
            forest.batches(wrong)  # type: ignore[arg-type]


def test_split() -> None:
    forest = random_forest(20)
    train, test = forest.split(0.9, seed=0)
    assert (len(train), len(test)) == (18, 2)
    assert [len(part) for part in forest.split(0.5, 0.25)] == [10, 5, 5]
    assert forest.split(0.5)[0] == forest[:10]
    assert train.size + test.size == forest.size
    for wrong in ((), (1.5,), (0.7, 0.7), ("a",), ([0.5, 0.5],), (None,), (True,)):
        with pytest.raises(ut.DataError, match="cannot be split"):
            forest.split(*wrong)  # type: ignore[arg-type]


def test_seeds() -> None:
    forest = small()
    for wrong in ("a", -1, 0.5):
        with pytest.raises(ut.DataError, match="seed is "):
            forest.split(0.5, seed=wrong)  # type: ignore[arg-type]
        with pytest.raises(ut.DataError, match="seed is "):
            forest.batches(2, seed=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("binary", [True, False])
def test_nodes_that_are_not_there(binary: bool) -> None:
    forest = Forest.from_depths(DEPTHS, binary=binary)
    for ask in (forest.children, forest.child_count, forest.is_leaf):
        for node in (99, 9, -1, "a", None):
            with pytest.raises(ut.DataError, match=r"node .* is out of range: the forest has 9"):
                ask(node)
    assert forest.is_leaf(np.arange(9)).tolist() == [False, False, True, True, True, False, True, True, True]
    assert forest.children(np.array(0)).tolist() == [1, 4]


def test_copies() -> None:
    forest = small()
    for other in (copy.copy(forest), copy.deepcopy(forest), pickle.loads(pickle.dumps(forest))):
        assert other == forest and other.left.tolist() == forest.left.tolist()
    with pytest.raises(TypeError):
        hash(forest)


# -- in captured functions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_a_recursive_function_takes_a_forest(engine: str) -> None:
    encode, weights, forest = make_encode(), params(), random_forest(4)
    found = encode.map(ut.shared(weights), ut.shared(forest), forest.roots, engine=engine)
    expected = [encode_plainly(weights, forest, root) for root in forest.roots]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    one = encode.run(weights, forest, int(forest.roots[1]), engine=engine)
    np.testing.assert_allclose(one, expected[1], rtol=1e-12)


def test_twenty_batches_one_capture_and_one_plan() -> None:
    encode, weights, forest = make_encode(), params(), random_forest(100)
    loss = ut.function(lambda p, f: ut.sum(ut.map(lambda n: ut.sum(encode(p, f, n)), f.roots)))
    step = ut.value_and_grad(loss)
    sizes = set()
    for batch in forest.batches(5, seed=0):
        sizes.add(batch.size)
        encode.map(ut.shared(weights), ut.shared(batch), batch.roots, engine="waves")
        encode.run(weights, batch, batch.roots[0], engine="waves")
        step.run(weights, batch, engine="waves")
    assert len(sizes) > 5
    for function, programs in ((encode, 2), (step, 1)):  # called and mapped
        found = [program for _, program in function.__undertow_programs__.items()]
        assert len(found) == programs
        assert [len(program.plans) for program in found] == [1] * programs


def test_arrays_are_hoisted() -> None:
    """Each call is given the node alone; the arrays of the forest belong to the entry."""
    encode, forest = make_encode(), random_forest(2)
    graph = encode.graph(params(), forest, 0).static
    calls = [node.name for node in graph.nodes if node.op == "call"]
    assert calls and all(name.endswith(".node") for name in calls)


def test_gradient() -> None:
    encode, weights, forest = make_encode(), params(), random_forest(5)
    loss = ut.function(lambda p, f: ut.sum(ut.map(lambda n: ut.sum(encode(p, f, n)), f.roots)))
    expected = None
    for engine in ("reference", "waves", "expand"):
        value, found = ut.value_and_grad(loss).run(weights, forest, engine=engine)
        assert value == pytest.approx(sum(encode_plainly(weights, forest, r).sum() for r in forest.roots))
        expected = expected or found
        for name in weights:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)


def test_a_global_forest_may_be_asked_too() -> None:
    forest = small()

    @ut.function
    def total(node: ut.i32) -> ut.f64:
        if forest.is_leaf(node):
            return forest.field("weight")[node]
        return forest.field("weight")[node] + ut.sum(ut.map(total, forest.children(node)))

    weight = forest.field("weight")
    np.testing.assert_allclose(total.map(forest.roots), [weight[:5].sum(), weight[5:8].sum(), weight[8]])


def test_results_may_be_forests() -> None:
    @ut.function
    def relabelled(forest):
        return forest

    found = relabelled(small())
    assert isinstance(found, Forest) and found == small()


def test_left_of_a_forest_that_is_not_binary() -> None:
    @ut.function
    def first(forest, node: ut.i32):
        return forest.left[node]

    with pytest.raises(ut.DataError, match="not binary"):
        first(small(binary=False), 0)


def test_number_of_trees_is_not_known_at_capture() -> None:
    @ut.function
    def count(forest):
        return len(forest)

    with pytest.raises(ut.TypeMismatch, match="known only at run time"):
        count(small())


@pytest.mark.parametrize("binary", [None, False])
def test_functions_of_forests_are_saved(tmp_path: Path, binary: bool | None) -> None:
    """With all sizes of forests: their lengths are no part of the signature."""

    @ut.function
    def weight(forest, node: ut.i32) -> ut.f64:
        below = ut.map(lambda child: weight(forest, child), forest.children(node))
        return forest.field("weight")[node] + ut.sum(below)

    forest = small(binary=binary)
    expected = weight(forest, 0)
    ut.save(weight, tmp_path / "weight.ut")
    loaded = ut.load(tmp_path / "weight.ut")
    assert loaded(forest, 0) == expected
    assert loaded(forest[2], 0) == forest.field("weight")[8]
    with pytest.raises(ut.TypeMismatch, match="was not saved for"):
        loaded(Forest.from_depths([0]), 0)


@pytest.mark.parametrize("known", [[True], [1, []], [True, ["a", "a"]], [True, [1]], [True, "ab"], [True, [], 3]])
def test_files_with_wrong_forests(known: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Forest.__undertow_token__(known)


def test_neighbours_are_found_in_lists_too() -> None:
    forest = ut.data.Forest.from_depths([0, 1, 1, 0, 0, 1, 1, 0], word=np.arange(8))
    for numbers in ([0], [1], [3], [1, 2], [0, 1, 2, 3], [2, 1], [0, 2], [-1], [1, 1], []):
        assert forest.batch(numbers) == forest.batch(np.array(numbers, np.int64))
    for wrong in ([4], [3, 4], [True], [1.0], [-5]):
        with pytest.raises(ut.UndertowError):
            forest.batch(wrong)


def test_a_forest_that_is_mapped_over_by_mistake():
    @ut.function
    def size(forest, node: ut.i32) -> ut.i64:
        return 1 + ut.sum(ut.map(size, forest, forest.children(node)))

    with pytest.raises(ut.TypeMismatch, match=r"(?s)ut.map cannot run over a Forest.*hint: .*ut.shared\(forest\)"):
        size(ut.data.booleans(1), 0)
