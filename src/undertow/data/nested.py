"""Conversion between trees and nested Python values. Trees may be deep, so nothing here recurses.

>>> forest = from_nested([("not", ("a", "bad")), "film"])
>>> forest
<Forest: 2 trees, 6 nodes, binary>
>>> to_nested(forest)
[('not', ('a', 'bad')), 'film']
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from undertow.data.forest import Forest
from undertow.data.vocabulary import UNKNOWN, Vocabulary, vocabulary_of
from undertow.errors import DataError, brief
from undertow.tracebacks import boundaries

_OWN = ("word", "label", "children", "left", "right")


def from_nested(
    trees: Iterable[Any],
    vocabulary: Vocabulary | Sequence[str] | None = None,
    labels: Vocabulary | Sequence[str] | None = None,
    min_count: int = 1,
    binary: bool | None = None,
) -> Forest:
    """A forest from a list of trees as Python values; for one tree, write `from_nested([tree])`.

    A word (a string or its number) is a leaf; a tuple or list is a node with these children. A dict or dataclass has
    any of `word`, `label`, `children` (or `left` and `right`); other entries become its fields. An object with
    a method `label()` that iterates over its children is read as an NLTK tree. Words form a vocabulary unless one is
    given; `labels` are the names of labels in the order of their numbers, as in `labels=["neg", "pos"]`. Words and
    labels that are numbers count from 0; -1, like None, means none.
    """
    if isinstance(trees, (str, bytes)) or not isinstance(trees, Iterable):
        raise DataError(f"{brief(trees)} is not a list of trees", hint="write from_nested([tree]), even for one tree")
    if isinstance(trees, Forest):
        raise DataError(f"{trees!r} is already a forest", hint="use it as it is")
    # A tuple may be a tree that was not put into a list: each of its children would become a tree.
    if isinstance(trees, (tuple, Mapping)) or callable(getattr(trees, "label", None)):
        hint = "write from_nested([tree]), even for one tree; if a tuple holds several, from_nested(list(trees))"
        raise DataError(f"{brief(trees)} is one tree, not a list of trees", hint=hint)
    depths: list[int] = []
    words: list[Any] = []
    names: list[Any] = []
    fields: dict[str, dict[int, Any]] = {}
    for number, tree in enumerate(trees):
        open_now: set[int] = set()  # containers around the node, by identity
        stack: list[tuple[Any, int]] = [(tree, 0)]
        while stack:
            value, depth = stack.pop()
            if depth < 0:
                open_now.discard(value)
                continue
            word, label, below, others = _node(value, number)
            if below:
                if id(value) in open_now:
                    raise DataError(f"tree {number} contains itself", hint="trees must not have cycles")
                open_now.add(id(value))
                stack.append((id(value), -1))
                stack += [(child, depth + 1) for child in reversed(below)]
            for name, entry in others.items():
                fields.setdefault(name, {})[len(depths)] = entry
            depths.append(depth)
            words.append(word)
            names.append(label)
    word_numbers, known = _numbers(words, vocabulary_of(vocabulary, "vocabulary", UNKNOWN), "word", min_count)
    label_numbers, known_labels = _numbers(names, vocabulary_of(labels, "labels", None), "label", 1)
    columns = {name: _field(name, values, len(depths)) for name, values in fields.items()}
    return Forest.from_depths(depths, word_numbers, label_numbers, columns, binary, known, known_labels)


def to_nested(forest: Forest, form: str = "tuples") -> list[Any]:
    """The trees as nested Python values: `tuples` of words, or `dicts` with everything.

    From dicts, `from_nested` restores an equal forest.
    """
    if form not in ("tuples", "dicts"):
        raise DataError(f"form={brief(form)}", hint='write form="tuples" or form="dicts"')
    values: list[Any] = [None] * forest.size
    offsets, child = forest.offsets.tolist(), forest.child.tolist()
    for node in range(forest.size - 1, -1, -1):  # children have higher numbers, so they are done first
        below = [values[c] for c in child[offsets[node] : offsets[node + 1]]]
        if form == "dicts":
            values[node] = _dict(forest, node, below)
        else:
            values[node] = tuple(below) if below else name_of(forest.word[node], forest.vocabulary)
    return [values[root] for root in forest.roots.tolist()]


def name_of(number: int, names: Vocabulary | None) -> Any:
    """The name of a word or label, else its number; None if there is none."""
    return None if number < 0 else names.word(number) if names is not None else int(number)


def _dict(forest: Forest, node: int, below: list[Any]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    if forest.word[node] >= 0:
        entries["word"] = name_of(forest.word[node], forest.vocabulary)
    if forest.label[node] >= 0:
        entries["label"] = name_of(forest.label[node], forest.labels)
    entries |= {name: values[node].tolist() for name, values in forest.fields.items()}
    return {**entries, "children": below} if below else entries


def _node(value: Any, tree: int) -> tuple[Any, Any, list[Any], Mapping[str, Any]]:
    """The word, label, children and other fields of one node."""
    if isinstance(value, str) or _is_number(value):
        return value, None, [], {}
    if callable(getattr(value, "label", None)):
        below = _children(value, tree)
        if len(below) == 1 and isinstance(below[0], str):  # (NN dog) is one node, as in brackets
            return below[0], value.label(), [], {}
        return None, value.label(), below, {}
    if isinstance(value, (tuple, list)):
        if not value:
            raise DataError(f"an empty {type(value).__name__} in tree {tree}", hint="a node has children or a word")
        return None, None, list(value), {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if not isinstance(value, Mapping):
        raise DataError(
            f"{brief(value)} in tree {tree} is not a valid node",
            hint="a node is a word, a word number, a tuple, list, dict or dataclass",
        )
    below = [] if value.get("children") is None else _children(value["children"], tree)
    sides = [value[side] for side in ("left", "right") if value.get(side) is not None]
    if below and sides:
        raise DataError(f"a node of tree {tree} has both `children` and `left` or `right`", hint="use one or the other")
    others = {name: entry for name, entry in value.items() if name not in _OWN and entry is not None}
    return value.get("word"), value.get("label"), below or sides, others


def _children(value: Any, tree: int) -> list[Any]:
    """The children of a node. Words are iterable too, letter by letter, and dicts key by key."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return list(value)
    raise DataError(
        f"the children of a node of tree {tree} are {brief(value)}", hint="they must be a list of nodes, as in [node]"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _numbers(
    items: list[Any], names: Vocabulary | None, what: str, min_count: int
) -> tuple[list[int], Vocabulary | None]:
    """Words or labels as numbers, -1 for None, and their names."""
    present = [item for item in items if item is not None]
    if all(map(_is_number, present)):
        for item in present:
            if not -1 <= item < 2**31:
                hint = f"{what} numbers have 32 bits and count from 0; -1 means no {what}"
                raise DataError(f"{item} is not a valid {what}", hint=hint)
        return [-1 if item is None else int(item) for item in items], names
    for item in present:
        if not (isinstance(item, str) or _is_number(item)):
            raise DataError(f"{brief(item)} is not a valid {what}", hint="use a string or an integer")
    for item in present:
        if not isinstance(item, str):
            raise DataError(
                f"{brief(item)} is a {what}, but other {what}s are strings",
                hint=f"use strings for all {what}s, or numbers for all",
            )
    if names is None:
        names = Vocabulary.of(present, min_count, unknown=None if what == "label" else UNKNOWN)
    return [-1 if item is None else names[item] for item in items], names


def _field(name: str, values: dict[int, Any], count: int) -> Any:
    """The values of a field, one for each node; zeros where a node has none."""
    try:
        rows = np.array(list(values.values()))
        if rows.dtype.kind not in "biuf":
            raise ValueError
    except ValueError:
        near = difflib.get_close_matches(name, _OWN, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"remove it; nodes have {', '.join(f'`{o}`' for o in _OWN)}"
        raise DataError(f"the field {name!r} must contain numbers, or arrays of one shape", hint=hint) from None
    column = np.zeros((count, *rows.shape[1:]), rows.dtype)
    column[list(values)] = rows
    return column


boundaries(globals(), ("from_nested", "to_nested"))
