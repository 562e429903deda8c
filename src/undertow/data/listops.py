"""ListOps: what its words are, and the value of every node.

N. Nangia and S. R. Bowman, "ListOps: A Diagnostic Dataset for Latent Tree Learning", NAACL student workshop 2018. MIN
and MAX of digits, MED their median (of an even number, the mean of the middle two, rounded down), SM their sum modulo
10; their code also has FIRST and LAST.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.data.forest import Forest
from undertow.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]

OPERATORS = ("MIN", "MAX", "MED", "SM", "FIRST", "LAST")
SYMBOLS = Vocabulary((*map(str, range(10)), *OPERATORS, "]"), unknown=None)  # a digit's number is the digit


def evaluate(forest: Forest) -> Array:
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
    """The values of some nodes whose children have theirs."""
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
    found: Array = np.choose(forest.word[nodes] - 10, results)
    return found
