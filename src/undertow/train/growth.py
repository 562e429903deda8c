"""A report on a model that generates trees: its perplexity on unseen trees, and some samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from undertow.data.forest import Forest
from undertow.models.classifier import Params
from undertow.models.generator import TreeGenerator
from undertow.tracebacks import boundary
from undertow.train.score import score

_LINES = 30  # of a drawn tree


@dataclass(frozen=True)
class Growth:
    """The mean loss of unseen trees, and trees sampled from the model."""

    loss: float  # mean per tree
    nodes: float  # mean per unseen tree
    samples: tuple[Forest, ...]

    @property
    def perplexity(self) -> float:
        """The perplexity per node, over words and shapes."""
        return perplexity(self.loss, self.nodes)

    def __str__(self) -> str:
        lines = [f"perplexity {self.perplexity:.2f} per node; trees have {self.nodes:.1f} nodes on average"]
        for number, tree in enumerate(self.samples):
            drawn = tree.text().splitlines()
            more = [f"... and {len(drawn) - _LINES} more nodes"] if len(drawn) > _LINES else []
            lines += ["", f"grown, with seed {number}:", *drawn[:_LINES], *more]
        return "\n".join(lines)


def perplexity(loss: float, nodes: float) -> float:
    """The perplexity per node, from the mean loss and the mean number of nodes of a tree."""
    with np.errstate(over="ignore"):  # inf if it is too large
        return float(np.exp(loss / nodes))


@boundary
def growth(model: TreeGenerator, params: Params, forest: Forest, samples: int = 3) -> Growth:
    """Score every tree, and generate some."""
    grown = tuple(model.sample(params, seed, forest.vocabulary) for seed in range(samples))
    return Growth(score(model, params, forest).loss, forest.size / max(len(forest), 1), grown)
