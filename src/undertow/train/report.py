"""A report on a trained model: accuracy by sentence length, and a confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.data.forest import Forest
from undertow.models.classifier import Params, TreeClassifier
from undertow.tracebacks import boundary
from undertow.train.score import predicted

_MOST = 40  # classes in a table


@dataclass(frozen=True)
class Report:
    """A model's predictions for labelled trees; trees without a label are left out."""

    actual: Any  # [trees]: true labels
    predicted: Any  # [trees]: predicted labels
    lengths: Any  # [trees]: number of leaves
    classes: int
    names: tuple[str, ...] = ()  # of the classes, if they have names

    @property
    def accuracy(self) -> float:
        """The share of trees that are right."""
        return float(np.mean(self.actual == self.predicted)) if len(self.actual) else 0.0

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        counts = np.bincount(self.actual, minlength=1)
        return float(counts.max() / max(counts.sum(), 1))

    @property
    def confusion(self) -> Any:
        """The number of trees by true class (row) and predicted class (column)."""
        return self._table(np.arange(self.classes))

    def _table(self, classes: Any) -> Any:
        """The confusion matrix of these classes alone, in order."""
        table = np.zeros((len(classes), len(classes)), np.int64)
        in_table = np.isin(self.actual, classes) & np.isin(self.predicted, classes)
        cells = tuple(np.searchsorted(classes, labels[in_table]) for labels in (self.actual, self.predicted))
        np.add.at(table, cells, 1)
        return table

    def _shown(self) -> Any:
        """The classes that the printed table has: all if they are few, else the most frequent ones."""
        if self.classes <= _MOST:
            return np.arange(self.classes)
        occurring, counts = np.unique(np.concatenate([self.actual, self.predicted]), return_counts=True)
        return np.sort(occurring[np.argsort(-counts, kind="stable")[:_MOST]])

    def by_length(self, parts: int = 5) -> list[tuple[int, int, int, float]]:
        """(shortest, longest, trees, accuracy) for groups of about as many trees each."""
        if not len(self.lengths):
            return []
        edges = np.unique(np.quantile(self.lengths, np.linspace(0, 1, parts + 1)[1:], method="higher"))
        where = np.searchsorted(edges, self.lengths)
        is_right = self.actual == self.predicted
        grouped = ((self.lengths[where == part], is_right[where == part]) for part in np.unique(where))
        return [(int(sizes.min()), int(sizes.max()), len(sizes), float(np.mean(right))) for sizes, right in grouped]

    def __str__(self) -> str:
        shown = self._shown()
        cut = f"; {len(shown)} of {self.classes:,} classes" if len(shown) < self.classes else ""
        lines = [
            f"{self.accuracy:.1%} of {len(self.actual):,} trees right; the most frequent class has {self.majority:.1%}",
            "",
            "leaves          trees   right",
            *(f"{least:5} - {most:<5} {trees:8,}   {right:5.1%}" for least, most, trees, right in self.by_length()),
            "",
            f"rows: true class; columns: predicted class{cut}",
        ]
        names = [self.names[k] if k < len(self.names) else str(k) for k in shown.tolist()]
        table = self._table(shown)
        first = max([5, *map(len, names)])
        width = max([5, len(f"{table.max(initial=0):,}") + 1, *(len(name) + 1 for name in names)])
        lines.append(" " * first + "".join(f"{name:>{width}}" for name in names))
        for name, row in zip(names, table, strict=True):
            lines.append(f"{name:>{first}}" + "".join(f"{count:>{width},}" for count in row))
        return "\n".join(lines)


@boundary
def report(model: TreeClassifier, params: Params, forest: Forest) -> Report:
    """Predict every tree."""
    label = forest.label[forest.roots]
    leaves = np.concatenate([[0], np.cumsum(np.diff(forest.offsets) == 0)])
    lengths = leaves[forest.ends] - leaves[forest.roots]
    known = label >= 0
    names = () if forest.labels is None else forest.labels.words
    return Report(label[known], predicted(model, params, forest)[known], lengths[known], model.classes, names)
