"""Trees for the race: read from treebank files, or made up in the same shape. NumPy only, as all rivals read this.

A tree is a set of arrays in post-order, so children come before their parents and the root is last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 5
VOCABULARY = 16_500  # of made-up trees: about what the Stanford Sentiment Treebank has, in lower case
SEED = 1234
Split = Callable[[int], int]  # from the words below a node to those on its left


@dataclass(eq=False)
class Tree:
    """One tree. A leaf has a word and no children (-1), an inner node two children and no word (-1)."""

    word: np.ndarray
    left: np.ndarray
    right: np.ndarray
    label: np.ndarray
    height: np.ndarray  # of the subtree at a node; a leaf's is 0
    kept: dict[str, Any] = field(default_factory=dict)  # what a rival keeps of a tree from one epoch to the next
    among: list[Tree] = field(default_factory=list)  # the set that it belongs to, and its place there
    number: int = 0

    @property
    def words(self) -> int:
        return (len(self.word) + 1) // 2


Columns = Sequence[Sequence[int]]  # words, left and right children, labels


def tree(columns: Columns) -> Tree:
    word, left, right, label = columns
    height = [0] * len(word)
    for node, (first, second) in enumerate(zip(left, right, strict=True)):
        if first >= 0:
            height[node] = 1 + max(height[first], height[second])
    return Tree(*(np.array(column, np.int32) for column in (word, left, right, label, height)))


def parse(line: str, number: Callable[[str], int]) -> Columns:
    """A line like `(3 (2 good) (2 film))`."""
    word, left, right, label = [], [], [], []
    open_nodes: list[list[int]] = []  # label, then children
    for token in re.findall(r"[()]|[^ \t\n()]+", line):
        if token == "(":
            open_nodes.append([])
        elif token == ")":
            mine, *children = open_nodes.pop()
            if children:
                word.append(-1)
            left.append(children[0] if children else -1)
            right.append(children[1] if children else -1)
            label.append(mine)
            if open_nodes:
                open_nodes[-1].append(len(left) - 1)
        elif not open_nodes[-1]:
            open_nodes[-1].append(int(token))
        else:
            word.append(number(token.lower()))
    return word, left, right, label


def treebank(folder: Path, training: int, testing: int) -> tuple[list[Tree], list[Tree], int]:
    """Trees of `train.txt` and of `test.txt`, drawn at random, and how many words there are."""
    numbers = {"<unknown>": 0}

    def read(name: str, number: Callable[[str], int]) -> list[Columns]:
        return [parse(line, number) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    train = read("train.txt", lambda word: numbers.setdefault(word, len(numbers)))
    test = [columns for columns in read("test.txt", lambda word: numbers.get(word, 0)) if len(columns[0]) > 1]
    random = np.random.default_rng(SEED)
    first = [train[i] for i in random.permutation(len(train))[:training]]
    second = [test[i] for i in random.permutation(len(test))[:testing]]
    chosen = [[tree(c) for c in some if len(c[0]) > 1] for some in (first, second)]
    return together(chosen[0]), together(chosen[1]), len(numbers)


def build(words: Sequence[int], split: Split, label: Callable[[], int]) -> Tree:
    """A tree over a sentence; `split` decides its shape."""
    word, left, right, labels = [], [], [], []
    done: list[int] = []  # nodes without a parent as yet
    waiting = [(0, len(words), False)]  # from, to, and are the children done?
    while waiting:
        start, stop, is_second = waiting.pop()
        if not is_second and stop - start > 1:
            middle = start + split(stop - start)
            waiting += [(start, stop, True), (middle, stop, False), (start, middle, False)]
            continue
        second, first = (done.pop(), done.pop()) if is_second else (-1, -1)
        done.append(len(word))
        word.append(-1 if is_second else words[start])
        left.append(first)
        right.append(second)
        labels.append(label())
    return tree((word, left, right, labels))


def shapes(random: np.random.Generator) -> dict[str, Split]:
    """How sentences may be split. Parsed ones lean to the right; the constants give them their height."""

    def parsed(count: int) -> int:
        return min(max(round(count * random.beta(0.26, 0.9)), 1), count - 1)

    return {
        "parsed": parsed,
        "balanced": lambda count: count // 2,
        "moderate": lambda count: int(random.integers(1, count)),
        "linear": lambda count: count - 1,
    }


def generate(count: int, seed: int = SEED, shape: str = "parsed", words: int | None = None) -> list[Tree]:
    """Made-up trees: as long and as high as those of the treebank, words by Zipf's law. `words`: all of this length."""
    random = np.random.default_rng(seed)
    often = 1 / np.arange(1, VOCABULARY + 1)
    often /= often.sum()
    split = shapes(random)[shape]
    made = []
    for _ in range(count):
        length = words or int(np.clip(round(random.gamma(4.2, 4.52)), 2, 52))
        sentence = random.choice(VOCABULARY, length, p=often).tolist()
        made.append(build(sentence, split, lambda: int(random.integers(CLASSES))))
    return together(made)


def together(trees: list[Tree]) -> list[Tree]:
    """The same as one set, where each knows its place."""
    for number, one in enumerate(trees):
        one.among, one.number = trees, number
    return trees


def batches(trees: list[Tree], size: int) -> list[list[Tree]]:
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def save(file: Path, sets: dict[str, list[Tree]]) -> None:
    """Trees of several sets in one file, from which another process reads them."""
    arrays: dict[str, np.ndarray] = {}
    for name, trees in sets.items():
        arrays[f"{name}.sizes"] = np.array([len(t.word) for t in trees])
        for column in ("word", "left", "right", "label", "height"):
            arrays[f"{name}.{column}"] = np.concatenate([getattr(t, column) for t in trees])
    np.savez(file, **arrays)


def restore(file: Path) -> dict[str, list[Tree]]:
    with np.load(file) as arrays:
        sets = {}
        for name in {key.partition(".")[0] for key in arrays}:
            cuts = np.cumsum(arrays[f"{name}.sizes"])[:-1]
            columns = [np.split(arrays[f"{name}.{c}"], cuts) for c in ("word", "left", "right", "label", "height")]
            sets[name] = together([Tree(*row) for row in zip(*columns, strict=True)])
        return sets


def describe(trees: list[Tree]) -> str:
    words = np.mean([t.words for t in trees])
    height = np.mean([t.height[-1] for t in trees])
    return f"{len(trees)} trees, {words:.1f} words, mean height {height:.1f}"
