"""The schedule of a batch by levels: all nodes of all trees that have the same height go together. NumPy only.

Nodes are numbered anew by height, so that leaves come first and every level is one range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .forests import CLASSES, Tree


@dataclass
class Levels:
    """What a rival needs to know of a batch; `slot` is the new number of a node."""

    sizes: list[int]  # nodes by level, leaves first
    children: np.ndarray  # slots of the children of inner nodes: left, right, left, right ...
    parents: np.ndarray  # by slot, where it stands in `children`; one past the end for roots
    words: np.ndarray  # of leaves
    labels: np.ndarray  # by slot
    roots: np.ndarray  # slots

    @property
    def leaves(self) -> int:
        return self.sizes[0]

    @property
    def nodes(self) -> int:
        return len(self.labels)

    @property
    def chosen(self) -> np.ndarray:
        """Where the right class stands in a flat array of [nodes, classes]."""
        return np.arange(0, self.nodes * CLASSES, CLASSES) + self.labels


def levels(trees: list[Tree]) -> Levels:
    if len(trees) == 1:
        (tree,) = trees
        height, left, right, word, label = tree.height, tree.left, tree.right, tree.word, tree.label
        last = np.array([len(word) - 1])
    else:
        lengths = np.array([len(tree.word) for tree in trees])
        last = np.cumsum(lengths) - 1
        offset = np.repeat(last + 1 - lengths, lengths)
        height = np.concatenate([tree.height for tree in trees])
        left = np.concatenate([tree.left for tree in trees]) + offset
        right = np.concatenate([tree.right for tree in trees]) + offset
        word = np.concatenate([tree.word for tree in trees])
        label = np.concatenate([tree.label for tree in trees])
    sizes = np.bincount(height)
    order = np.argsort(height.astype(np.int16), kind="stable")  # 16 bits: a radix sort
    slot = np.empty(len(order), np.int64)
    slot[order] = np.arange(len(order))
    leaves, inner = order[: sizes[0]], order[sizes[0] :]
    children = np.empty((len(inner), 2), np.int64)
    children[:, 0] = slot[left[inner]]
    children[:, 1] = slot[right[inner]]
    children = children.reshape(-1)
    parents = np.full(len(order), len(children))
    parents[children] = np.arange(len(children))
    return Levels(
        sizes.tolist(), children, parents, word[leaves].astype(np.int64), label[order].astype(np.int64), slot[last]
    )
