"""Scores of a model on a forest: the loss, and for labelling models the accuracy at roots and at all nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import undertow as ut
from undertow.data.forest import Forest
from undertow.models.classifier import Params, TreeClassifier
from undertow.models.generator import TreeGenerator
from undertow.tracebacks import boundary

Model = TreeClassifier | TreeGenerator


class Score(NamedTuple):
    """The mean loss of a tree, and the accuracy on labelled roots and nodes; nan if there are none."""

    loss: float
    accuracy: float
    node_accuracy: float


@dataclass(frozen=True)
class Tally:
    """Sums over the trees seen so far."""

    trees: int = 0
    labelled_roots: int = 0
    labelled_nodes: int = 0
    loss: float = 0.0
    roots_right: int = 0
    nodes_right: int = 0

    def plus(self, model: Model, batch: Forest, loss: Any, hits: Any) -> Tally:
        """The sums with one more batch added: its mean loss and its [roots right, nodes right]."""
        known = batch.label >= 0 if isinstance(model, TreeClassifier) else np.zeros(batch.size, bool)
        return Tally(
            self.trees + len(batch),
            self.labelled_roots + int(known[batch.roots].sum()),
            self.labelled_nodes + int(known.sum()),
            self.loss + float(loss) * len(batch),
            self.roots_right + int(hits[0]),
            self.nodes_right + int(hits[1]),
        )

    def score(self) -> Score:
        """The score of these sums."""
        return Score(
            self.loss / max(self.trees, 1),
            self.roots_right / self.labelled_roots if self.labelled_roots else float("nan"),
            self.nodes_right / self.labelled_nodes if self.labelled_nodes else float("nan"),
        )


def judged(model: Model, at: str) -> ut.Function:
    """The function (params, forest) -> (loss, [roots right, nodes right])."""
    return model.loss(at) if isinstance(model, TreeClassifier) else model.judged()


@boundary
def score(model: Model, params: Params, forest: Forest, at: str = "nodes", batch: int = 256) -> Score:
    """Loss and accuracy on these trees, without dropout. With at="root" the accuracy at nodes is nan."""
    loss = judged(replace(model, dropout=0.0) if isinstance(model, TreeClassifier) else model, at)
    tally = Tally()
    for trees in forest.batches(batch):
        tally = tally.plus(model, trees, *loss(params, trees))
    total = tally.score()
    return total if at == "nodes" else total._replace(node_accuracy=float("nan"))


def predicted(model: TreeClassifier, params: Params, forest: Forest, batch: int = 256) -> Any:
    """The best class of each tree."""
    labels = [model.predict(params, trees) for trees in forest.batches(batch)]
    return np.concatenate(labels) if labels else np.zeros(0, np.int32)
