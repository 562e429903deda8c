"""Trees from nested Python values and back, and vocabularies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.data import Vocabulary, from_nested, to_nested


@dataclass
class Node:
    word: str | None = None
    left: Any = None
    right: Any = None
    height: float = 0.0


class Tree(list):
    """As NLTK has them: a list of children with a method `label`."""

    def __init__(self, label: str, children: list[Any]) -> None:
        super().__init__(children)
        self._label = label

    def label(self) -> str:
        return self._label


def test_tuples_and_lists() -> None:
    forest = from_nested([("not", ["a", "bad"]), "film"])
    assert forest.is_binary and forest.roots.tolist() == [0, 5]
    assert forest.vocabulary is not None and forest.vocabulary.words == ("<unk>", "not", "a", "bad", "film")
    assert to_nested(forest) == [("not", ("a", "bad")), "film"]


def test_numbers_are_words() -> None:
    forest = from_nested([(3, (np.int64(1), 4), 0)])
    assert forest.word.tolist() == [-1, 3, -1, 1, 4, 0] and forest.vocabulary is None
    assert to_nested(forest) == [(3, (1, 4), 0)]


def test_dicts() -> None:
    tree = {"word": "ate", "label": 2, "children": [{"word": "I", "label": 0, "x": 1.5}, {"word": "it", "label": 1}]}
    forest = from_nested([tree])
    assert forest.label.tolist() == [2, 0, 1]
    assert forest.field("x").tolist() == [0.0, 1.5, 0.0]
    assert from_nested(to_nested(forest, "dicts")) == forest
    assert to_nested(forest, "dicts")[0]["children"][0] == {"word": "I", "label": 0, "x": 1.5}


def test_dataclasses() -> None:
    forest = from_nested([Node(left=Node("a", height=1.0), right=Node("b"), height=2.0)])
    assert forest.is_binary and forest.left[0] == 1 and forest.right[0] == 2
    assert forest.field("height").tolist() == [2.0, 1.0, 0.0]


def test_trees_of_nltk() -> None:
    forest = from_nested([Tree("S", [Tree("NP", ["the", Tree("NN", ["dog"])]), Tree("VP", ["sat"])])])
    assert forest.labels is not None and forest.vocabulary is not None
    assert [forest.labels.word(n) if n >= 0 else "" for n in forest.label] == ["S", "NP", "", "NN", "VP"]
    assert [forest.vocabulary.word(n) for n in forest.word if n >= 0] == ["the", "dog", "sat"]


def test_vector_fields() -> None:
    forest = from_nested([{"v": [1, 2], "children": [{"word": 0, "v": [3, 4]}, {"word": 1, "v": [5, 6]}]}])
    assert forest.field("v").tolist() == [[1, 2], [3, 4], [5, 6]]

    @ut.function
    def total(forest, node: ut.i32) -> ut.i64[2]:
        if forest.is_leaf(node):
            return forest.field("v")[node]
        return forest.field("v")[node] + ut.sum(ut.map(lambda c: total(forest, c), forest.children(node)), axis=0)

    assert total(forest, 0).tolist() == [9, 12]
    assert total(from_nested([{"word": 0, "v": [7, 8]}], binary=True), 0).tolist() == [7, 8]
    assert len(total.__undertow_programs__) == 1


def test_a_part_may_be_there_twice() -> None:
    part = ("a", "b")
    assert from_nested([(part, part)]).size == 7


def test_a_tree_in_itself() -> None:
    tree: list[Any] = ["a"]
    tree.append(tree)
    with pytest.raises(ut.DataError, match="tree 0 contains itself"):
        from_nested([tree])


@pytest.mark.parametrize(
    ("tree", "what"),
    [
        ((), "an empty tuple"),
        (2.5, "is not a valid node"),
        (True, "is not a valid node"),
        (("a", 1), "1 is a word, but other words are strings"),
        ({"left": "a", "children": ["b"]}, "`children` and `left`"),
        ({"word": "a", "x": "text"}, "field 'x' must contain numbers"),
        ({"wrd": "a"}, "field 'wrd' must contain numbers(?s:.*)hint: did you mean `word`"),
        ({"word": "a", "childs": ["b"]}, "field 'childs' must contain numbers(?s:.*)hint: did you mean `children`"),
        ({"text": "a"}, "field 'text' (?s:.*)hint: .*`word`, `label`, `children`"),
        ([{"word": "a", "x": [1]}, {"word": "a", "x": [1, 2]}], "field 'x' must contain numbers"),
    ],
)
def test_what_is_no_tree(tree: Any, what: str) -> None:
    with pytest.raises(ut.DataError, match=what):
        from_nested([tree])


def test_form() -> None:
    with pytest.raises(ut.DataError, match="form='text'"):
        to_nested(from_nested(["a"]), "text")


# -- vocabularies ----------------------------------------------------------------------------------------------------


def test_vocabulary() -> None:
    words = Vocabulary.of(["b", "a", "b", "c", "b", "a"])
    assert words.words == ("<unk>", "b", "a", "c")
    assert (words["b"], words["zebra"], words.word(3), len(words), "a" in words) == (1, 0, "c", 4, True)
    assert words.ids(["c", "x"]).tolist() == [3, 0] and words.ids(["c"]).dtype == np.int32
    assert Vocabulary.of(["b", "a", "b"], size=1).words == ("<unk>", "b")
    assert Vocabulary.of(["b", "a", "b", "<unk>"], min_count=2).words == ("<unk>", "b")
    strict = Vocabulary.of(["a", "b"], unknown=None)
    assert strict.words == ("a", "b") and strict.ids(["b"]).tolist() == [1]
    for wrong in (lambda: strict["c"], lambda: strict.word(2), lambda: strict.word(-1), lambda: strict.ids(["c"])):
        with pytest.raises(ut.DataError):
            wrong()
    with pytest.raises(ut.DataError, match="'a' occurs twice"):
        Vocabulary(("a", "a"))


def test_vocabulary_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    for words in (Vocabulary.of(["a", "b\u2028c"[:1], "é"]), Vocabulary(("x", "y"), unknown=None), Vocabulary(())):
        words.save(path)
        assert Vocabulary.load(path) == words
    assert path.read_text(encoding="utf-8") == "<unk>\n"
    with pytest.raises(ut.DataError, match="not a single line of text"):
        Vocabulary(("a\nb",)).save(path)


def test_labels_may_be_a_list_of_names():
    forest = ut.data.from_nested([{"word": "a", "label": "pos"}], labels=["neg", "pos"])
    assert forest.label.tolist() == [1] and forest.labels.words == ("neg", "pos")


@pytest.mark.parametrize("trees", [5, "abc", None])
def test_what_is_no_list_of_trees(trees):
    with pytest.raises(ut.DataError, match="is not a list of trees"):
        ut.data.from_nested(trees)


@pytest.mark.parametrize("name", ["nope", "nope.txt"])
def test_a_file_that_is_not_there(name, tmp_path):
    with pytest.raises(ut.DataError, match="there is no file"):
        ut.data.read(tmp_path / name)
    with pytest.raises(ut.DataError, match="is a folder"):
        ut.data.read(tmp_path)


def test_maps_over_what_is_no_array():
    @ut.function
    def twice(n: ut.i64) -> ut.i64:
        return 2 * n

    with pytest.raises(ut.TypeMismatch, match="cannot run over the tuple"):
        twice.map((5, 6))
    for wrong in (["a"], (x for x in range(3)), "abc"):
        with pytest.raises(ut.TypeMismatch, match="runs over arrays of numbers"):
            twice.map(wrong)


@pytest.mark.parametrize("tree", [("a", "b"), ("a", ("b", "c")), {"word": "a"}, {"children": ["a", "b"]}, ()])
def test_a_tree_without_a_list_around_it(tree):
    """Each part of it would silently be a tree of its own."""
    with pytest.raises(ut.DataError, match=r"is one tree, not a list of trees(?s:.*)from_nested\(\[tree\]\)"):
        ut.data.from_nested(tree)


def test_one_tree_of_nltk_or_a_forest_is_no_list_of_trees():
    class Tree(list):
        def label(self):
            return "S"

    for tree in (Tree(["a", "b"]), ut.data.from_nested(["a"])):
        with pytest.raises(ut.DataError, match=r"already a forest|not a list of trees"):
            ut.data.from_nested(tree)
    assert len(ut.data.from_nested(tree for tree in ("a", "b"))) == len(ut.data.from_nested(["a", "b"])) == 2
    assert len(ut.data.from_nested([])) == 0


@pytest.mark.parametrize("number", [2**40 + 3, -(2**40), 2**31, 2**70])
def test_numbers_of_more_than_32_bits(number: int) -> None:
    """They would become others without a word."""
    for tree in ({"label": number, "word": "a"}, (number, 1)):
        with pytest.raises(ut.DataError, match=f"{number} is not a valid (label|word)"):
            from_nested([tree])
    with pytest.raises(ut.DataError, match=f"(?s)line 2: {number} is not a valid label"):
        ut.data.parse_jsonl(f'{{"label": 3, "word": "a"}}\n{{"label": {number}, "word": "a"}}\n')
    if abs(number) < 2**62:
        for given in ({"word": [number]}, {"label": np.array([number])}):
            with pytest.raises(ut.DataError, match=f"cannot contain {number}"):
                ut.data.Forest.from_depths([0], **given)
    assert from_nested([2**31 - 1]).word.tolist() == [2**31 - 1]


@pytest.mark.parametrize("wrong", [1.5, True, [1]])
def test_labels_that_are_neither_text_nor_integers(wrong: Any) -> None:
    for labels in ([wrong], [1, wrong]):
        with pytest.raises(ut.DataError, match="is not a valid"):
            from_nested([{"word": "a", "label": label} for label in labels])
    with pytest.raises(ut.DataError, match="1 is a label, but other labels are strings"):
        from_nested([{"word": "a", "label": label} for label in ("x", 1)])
