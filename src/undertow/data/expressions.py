"""Expressions as trees: their words, and the value of every node.

Words are numbered so that a leaf's number is its value: a digit is itself, `false` is 0 and `true` is 1.

ListOps is by N. Nangia and S. R. Bowman, "ListOps: A Diagnostic Dataset for Latent Tree Learning", NAACL student
workshop 2018. MIN and MAX of digits, MED the median (for an even count, the mean of the middle two, rounded down), SM
the sum modulo 10; their code also has FIRST and LAST.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.data.forest import Forest
from undertow.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]

LISTOPS_OPERATORS = ("MIN", "MAX", "MED", "SM", "FIRST", "LAST")
LISTOPS = Vocabulary((*map(str, range(10)), *LISTOPS_OPERATORS, "]"), unknown=None)  # a digit's number is the digit
BOOLEANS = Vocabulary(("false", "true", "and", "or", "xor", "not"), unknown=None)
ARITHMETIC = Vocabulary((*map(str, range(10)), "+", "-", "*"), unknown=None)


def listops_values(forest: Forest) -> Array:
    """The value of every node of n-ary ListOps trees: deepest first, all nodes of a level together."""
    values = np.where(forest.word < 10, forest.word, -1).astype(np.int64)
    counts = np.diff(forest.offsets)
    inner = np.flatnonzero(counts)
    inner = inner[np.argsort(-forest.depths[inner], kind="stable")]
    cuts = np.flatnonzero(np.diff(forest.depths[inner])) + 1
    for nodes in np.split(inner, cuts):
        if len(nodes):
            values[nodes] = _apply(forest, nodes, counts[nodes], values)
    return values


def _apply(forest: Forest, nodes: Array, counts: Array, values: Array) -> Array:
    """The values of some nodes, given those of their children."""
    starts = np.cumsum(counts) - counts
    places = np.arange(int(counts.sum())) + (forest.offsets[nodes] - starts).repeat(counts)
    arguments = values[forest.child[places]]
    owner = np.arange(len(nodes)).repeat(counts)
    ordered = arguments[np.lexsort((arguments, owner))]
    low, high = ordered[starts + (counts - 1) // 2], ordered[starts + counts // 2]
    results = (
        ordered[starts],
        ordered[starts + counts - 1],
        (low + high) // 2,
        np.add.reduceat(arguments, starts) % 10,
        arguments[starts],
        arguments[starts + counts - 1],
    )
    value_of_node: Array = np.choose(forest.word[nodes] - 10, results)
    return value_of_node


def listops_pairs(forest: Forest) -> list[str]:
    """The text of n-ary ListOps trees, bracketed in pairs: `( ( ( [MAX 2 ) 9 ) ] )`."""
    if not forest.size:
        return []
    words = [LISTOPS.word(n) for n in forest.word.tolist()]
    counts = np.diff(forest.offsets).tolist()
    # A head opens one bracket per argument and one for the end; one closes after each of them.
    heads = [f"{'( ' * (n + 1)}[{word}" if n else word for word, n in zip(words, counts, strict=True)]
    closes = np.maximum(forest.depths - np.append(forest.depths[1:], 0) + (np.array(counts) == 0) - 1, 0)
    ends = np.append(forest.depths[1:] == 0, True)
    lines: list[str] = []
    line: list[str] = []
    for head, count, depth, close, end in zip(
        heads, counts, forest.depths.tolist(), closes.tolist(), ends.tolist(), strict=True
    ):
        line.append(head)
        if count == 0 and depth > 0:
            line.append(")" + " ] ) )" * close)
        if end:
            text = " ".join(line)
            lines.append(text.removesuffix(" )") if depth > 0 else text)
            line = []
    return lines


def boolean_values(forest: Forest) -> Array:
    """The value of every node of boolean expressions, 0 or 1."""
    rules: dict[int, Callable[[list[int]], int]] = {
        BOOLEANS["and"]: min,
        BOOLEANS["or"]: max,
        BOOLEANS["xor"]: lambda arguments: sum(arguments) % 2,
        BOOLEANS["not"]: lambda arguments: 1 - arguments[0],
    }
    return fold_up(forest, lambda node, word, arguments: rules[word](arguments) if arguments else word)


def arithmetic_values(forest: Forest, modulus: int) -> Array:
    """The value of every node of sums, differences and products, modulo a number."""
    rules: dict[int, Callable[[int, int], int]] = {
        ARITHMETIC["+"]: operator.add,
        ARITHMETIC["-"]: operator.sub,
        ARITHMETIC["*"]: operator.mul,
    }

    def value(node: int, word: int, arguments: list[int]) -> int:
        return (functools.reduce(rules[word], arguments) if arguments else word) % modulus

    return fold_up(forest, value)


def fold_up(forest: Forest, value: Callable[[int, int, list[int]], int]) -> Array:
    """A value for every node, computed bottom-up by `value(node, word, values of its children)`."""
    values = [0] * forest.size
    words, offsets, child = forest.word.tolist(), forest.offsets.tolist(), forest.child.tolist()
    for node in range(forest.size - 1, -1, -1):  # children have higher numbers
        values[node] = value(node, words[node], [values[c] for c in child[offsets[node] : offsets[node + 1]]])
    return np.array(values, np.int64)
