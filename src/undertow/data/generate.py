"""Generated trees with the exact label of every node: data for tests and examples that needs no download.

The same seed gives the same trees on every machine.

>>> forest = arithmetic(2, seed=1)
>>> forest
<Forest: 2 trees, 82 nodes, binary>
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from undertow.data.checks import check_whole, is_part
from undertow.data.expressions import (
    ARITHMETIC,
    BOOLEANS,
    LISTOPS,
    LISTOPS_OPERATORS,
    arithmetic_values,
    boolean_values,
    listops_values,
)
from undertow.data.forest import Forest
from undertow.data.parse import parse_listops
from undertow.data.unparse import to_listops
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError, brief
from undertow.tracebacks import boundaries


def listops(
    trees: int = 1000,
    seed: int = 0,
    max_depth: int = 20,
    max_args: int = 5,
    chance: float = 0.25,
    operators: Sequence[str] = ("MIN", "MAX", "MED", "SM"),
    max_nodes: int | None = None,
    binary: bool = False,
    distinct: bool = False,
) -> Forest:
    """Expressions of ListOps: digits under MIN, MAX, MED (median) and SM (sum modulo 10), nested; labels are values.

    Rules and defaults are those of Nangia and Bowman 2018: an argument is an expression with this chance, else a
    digit; operators have 2 to `max_args` arguments and nest `max_depth` deep. `binary=True` gives the trees that the
    published data has, in which operators are applied to one argument at a time; `distinct=True`, as there, repeats
    no tree: otherwise many short trees of a test set also occur in the training set.
    """
    check_whole("max_args", max_args, 2)
    kinds, rules = [(LISTOPS[name], 2, max_args) for name in _known(operators, LISTOPS_OPERATORS)], (chance, max_depth)
    forest = _grown(trees, seed, lambda r: r.randrange(10), kinds, *rules, max_nodes, LISTOPS, False, distinct)
    if distinct:  # short trees run out early: shuffled, so that splits are alike
        forest = forest.batch(random.Random(seed).sample(range(trees), trees))
    forest = replace(forest, label=listops_values(forest).astype(np.int32))
    return parse_listops(to_listops(forest), binary=True) if binary else forest


def booleans(
    trees: int = 1000,
    seed: int = 0,
    max_depth: int = 6,
    chance: float = 0.6,
    operators: Sequence[str] = ("and", "or", "xor", "not"),
    max_nodes: int | None = None,
) -> Forest:
    """Boolean expressions over `true` and `false`; labels are values. Without `not` the forest is binary."""
    chosen = _known(operators, BOOLEANS.words[2:])
    kinds = [(BOOLEANS[name], 1, 1) if name == "not" else (BOOLEANS[name], 2, 2) for name in chosen]
    is_binary = "not" not in operators
    forest = _grown(trees, seed, lambda r: r.randrange(2), kinds, chance, max_depth, max_nodes, BOOLEANS, is_binary)
    return replace(forest, label=boolean_values(forest).astype(np.int32))


def arithmetic(
    trees: int = 1000,
    seed: int = 0,
    max_depth: int = 6,
    chance: float = 0.6,
    operators: Sequence[str] = ("+", "-", "*"),
    modulus: int = 10,
    max_nodes: int | None = None,
) -> Forest:
    """Sums, differences and products of digits, as binary trees; labels are values modulo `modulus`."""
    check_whole("modulus", modulus, 1)
    kinds = [(ARITHMETIC[name], 2, 2) for name in _known(operators, ARITHMETIC.words[10:])]
    forest = _grown(trees, seed, lambda r: r.randrange(10), kinds, chance, max_depth, max_nodes, ARITHMETIC, True)
    return replace(forest, label=arithmetic_values(forest, modulus).astype(np.int32))


def _grown(
    trees: int,
    seed: int,
    leaf: Callable[[random.Random], int],
    kinds: Sequence[tuple[int, int, int]],
    chance: float,
    max_depth: int,
    max_nodes: int | None,
    vocabulary: Vocabulary,
    binary: bool,
    distinct: bool = False,
) -> Forest:
    """Expressions whose root is an operator; each argument is an expression with probability `chance`."""
    check_whole("trees", trees, 0)
    check_whole("seed", seed, 0)  # Python's generator takes -1 for 1
    check_whole("max_depth", max_depth, 1)
    if max_nodes is not None:
        check_whole("max_nodes", max_nodes, 1)
    if not is_part(chance):
        raise DataError(f"chance is {brief(chance)}", hint="it must be a number from 0 to 1")
    source = random.Random(seed)
    depths: list[int] = []
    words: list[int] = []
    refused = 0
    known: set[tuple[bytes, bytes]] = set()
    for _ in range(trees):
        start = len(depths)
        stack = [0]
        while stack:
            depth = stack.pop()
            depths.append(depth)
            if depth == 0 or (depth < max_depth and source.random() < chance):
                word, least, most = kinds[source.randrange(len(kinds))]
                stack += [depth + 1] * (least + source.randrange(most - least + 1))
                words.append(word)
            else:
                words.append(leaf(source))
            is_long = max_nodes is not None and len(depths) + len(stack) - start > max_nodes
            is_known = False
            if distinct and not stack and not is_long:
                tree = array("q", depths[start:]).tobytes(), array("q", words[start:]).tobytes()
                is_known = tree in known
                known.add(tree)
            if is_long or is_known:
                refused += 1
                if refused > 1000 * trees:
                    which = f"has at most {max_nodes} nodes" if is_long else "is new"
                    raise DataError(f"almost no tree {which}", hint="allow more nodes or depth, or reduce the chance")
                del depths[start:], words[start:]
                stack = [0]
    return Forest.from_depths(depths, words, binary=binary, vocabulary=vocabulary)


def _known(operators: Sequence[str], all_of_them: Sequence[str]) -> Sequence[str]:
    if not isinstance(operators, Iterable):
        raise DataError(f"operators is {brief(operators)}", hint=f"it must be a list from {', '.join(all_of_them)}")
    for name in operators:
        if name not in all_of_them:
            raise DataError(f"unknown operator {brief(name)}", hint=f"choose from {', '.join(all_of_them)}")
    if not operators:
        raise DataError("expressions need at least one operator", hint=f"choose from {', '.join(all_of_them)}")
    return operators


boundaries(globals(), ("arithmetic", "booleans", "listops"))
