"""Accuracy against time: figure 9 of Jeong et al., where recursion and iteration learn the same at another speed.

Everybody trains on the same trees in the same order from the same numbers, and is tried on trees apart after each
epoch. Trying is not timed. Without a treebank, the trees are the film reviews that `ut.data.sentiment` makes up.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
from rivals import forests, networks
from rivals.turns import Rival

import undertow as ut

from .book import Book, Exhibit, Plot
from .printed import JEONG, JEONG_9

BATCH = 25  # the papers of the three networks say that it learns best
TRIED = 64  # trees of a batch when accuracy is counted
EPOCHS = {"treernn": 60, "rntn": 20, "treelstm": 10}  # until the level is reached on made-up reviews
LEVEL = 0.9  # there a TreeRNN learns little more than 92 %
ON_TREEBANK = 0.35  # of five classes, when word vectors are learned from nothing, and from some of the sentences
NAMES = ("static", "expand", "iteration", "tf1", "folding")


@dataclass
class Curve:
    """What one rival has learned after so many seconds of the processor."""

    seconds: list[float] = field(default_factory=lambda: [0.0])
    accuracy: list[float] = field(default_factory=list)

    def reached(self, level: float) -> float | None:
        """Seconds until the accuracy is that for the first time, between two epochs along a line."""
        for k, value in enumerate(self.accuracy):
            if value >= level:
                if k == 0:
                    return 0.0
                before = self.accuracy[k - 1]
                share = (level - before) / (value - before)
                return self.seconds[k - 1] + share * (self.seconds[k] - self.seconds[k - 1])
        return None


def reviews(count: int, seed: int) -> list[forests.Tree]:
    """Made-up reviews as trees of the race: children before their parents, so a forest's order backwards."""
    made = []
    for forest in ut.data.sentiment(count, seed=seed):
        last = forest.size - 1

        def turned(nodes: np.ndarray, last: int = last) -> list[int]:
            return np.where(nodes < 0, -1, last - nodes)[::-1].tolist()

        columns = (forest.word[::-1].tolist(), turned(forest.left), turned(forest.right), forest.label[::-1].tolist())
        made.append(forests.tree(columns))
    return forests.together(made)


def learn(rivals: list[Rival], roots: np.ndarray, epochs: int) -> dict[str, Curve]:
    """Everybody does an epoch in turn, and then says what the trees apart are."""
    curves = {rival.key: Curve() for rival in rivals}
    for epoch in range(epochs + 1):
        for rival in rivals:
            curve = curves[rival.key]
            if epoch:
                found = rival.ask("learn", batch=BATCH, trees="learn", seed=epoch)
                if rival.failed:
                    continue
                curve.seconds.append(curve.seconds[-1] + found["processor"])
            answers = rival.ask("answers", batch=TRIED, trees="apart").get("answers", [])
            if not rival.failed:
                curve.accuracy.append(float(np.mean(np.array(answers) == roots)))
        print(f"epoch {epoch} of {epochs}", file=sys.stderr)
    for rival in rivals:
        if rival.failed:
            print(f"{rival.name}: {rival.failed}", file=sys.stderr)
            del curves[rival.key]
    return curves


def by_accuracy(book: Book) -> None:
    """Accuracy after each epoch against the time it took, for the three networks."""
    names = book.named(*NAMES)
    level = ON_TREEBANK if book.options.sst else LEVEL
    roots = np.array([tree.label[-1] for tree in book.trees["apart"]])
    rows, panels = [], {}
    for model in networks.WIDTHS:
        epochs = 3 if book.options.quick else book.options.epochs or EPOCHS[model]
        curves = learn([rival for rival in book.start(model) if rival.key in names], roots, epochs)
        panels[model] = {name: list(zip(curve.seconds, curve.accuracy, strict=True)) for name, curve in curves.items()}
        for name, curve in curves.items():
            taken = curve.reached(level)
            best = int(np.argmax(curve.accuracy))
            rows.append(
                [
                    f"{model}, {name}",
                    f"{curve.seconds[-1] / epochs:.3g} s",
                    f"{max(curve.accuracy):.1%}",
                    str(best),
                    "-" if taken is None else f"{taken:.3g} s",
                ]
            )
    count, trees = len(book.trees["learn"]), "sentences of the treebank" if book.options.sst else "made-up reviews"
    book.about["accuracy"] = {"trees": ""}  # others than those of throughput
    book.show(
        "accuracy",
        Exhibit(
            f"Accuracy of roots, five classes: {count:,} {trees} in batches of {BATCH}, {len(roots)} apart",
            f"{JEONG}, figure 9",
            ["", "an epoch", "best", "in epoch", f"time to {level:.0%}"],
            rows,
            [
                f"Figure 9 is a plot, for two classes of film reviews: the text has {JEONG_9:.0%}, but no times.",
                "A dash: not reached. What a network has learned after an epoch is the same for all, but for rounding.",
            ],
            [Plot("accuracy", "seconds of the processor", "accuracy of roots", panels, level=level)],
        ),
    )
