"""What the sections of `papers.py` share: the rivals that are installed, the trees, and the exhibits so far.

An exhibit is a table, the plots that belong to it, and which table or figure of which paper it stands beside.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import common
import numpy as np
from rivals import forests, networks, turns
from rivals.turns import Case, Rival

SHAPES = ("balanced", "moderate", "linear")
LENGTHS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
WORKS = {"train": "train", "infer": "test"}  # and the trees for it
Line = list[tuple[Any, float | None]]


@dataclass
class Plot:
    """A picture: panels side by side, each with lines (or bars) by name."""

    name: str
    across: str
    up: str
    panels: dict[str, dict[str, Line]]
    is_bar: bool = False
    log: str = ""  # axes: "xy", "y"
    level: float | None = None  # a line at this height


@dataclass
class Exhibit:
    """One table, with its plots."""

    title: str
    of: str  # the table or figure of the paper
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)


def rivals() -> list[Rival]:
    return [
        Rival("static", "static graph (waves)", "ours", "undertow"),
        Rival("expand", "graph that grows (expand)", "ours", "undertow", "expand"),
        Rival("iteration", "iteration (ut.while_loop)", "ours_iterative", "undertow"),
        Rival("tf1", "iteration (TensorFlow, sessions)", "tf_loop", "tensorflow", "v1"),
        Rival("unrolling", "unrolling (PyTorch eager)", "torch_eager", "torch"),
        Rival("folding", "folding (PyTorch by levels)", "torch_levels", "torch", "autograd"),
        Rival("grow-static", "recursion, static graph (waves)", "ours_top_down", "undertow"),
        Rival("grow-expand", "recursion, graph that grows (expand)", "ours_top_down", "undertow", "expand"),
        Rival("grow-queue", "iteration, a queue of nodes", "ours_top_down_loops", "undertow"),
        Rival("grow-levels", "folding by hand: a loop over levels", "ours_top_down_loops", "undertow", "levels"),
        Rival("grow-eager", "PyTorch eager, recursion", "torch_top_down", "torch"),
        Rival("grow-frontier", "PyTorch, folding by hand", "torch_top_down", "torch", "frontier"),
    ]


@dataclass
class Book:
    """The rivals that are installed, and the exhibits so far."""

    options: Any
    folder: Path
    here: dict[str, Rival]
    vocabulary: int
    trees: dict[str, list[forests.Tree]]  # by the name of the set
    exhibits: dict[str, list[Exhibit]] = field(default_factory=dict)  # by section
    about: dict[str, dict[str, Any]] = field(default_factory=dict)  # of sections that another script has measured
    fit: dict[str, list[Rival]] = field(default_factory=dict)  # by model, those that agree

    def named(self, *keys: str) -> list[str]:
        """Those of these rivals that are here."""
        return [key for key in keys if key in self.here]

    def start(self, model: str) -> list[Rival]:
        """Rivals with fresh parameters, which agree with NumPy and with each other."""
        if model not in self.fit:
            params = networks.init(model, self.vocabulary)
            np.savez(self.folder / f"{model}.npz", **params)
            able = [rival for key, rival in self.here.items() if not key.startswith("grow")]
            self.fit[model] = turns.agree(
                model, able, networks.loss(model, params, self.trees["train"][: turns.CHECKED])
            )
        for rival in self.fit[model]:
            rival.failed = ""
            rival.ask("start", model=model)
        return self.fit[model]

    def race(self, model: str, names: list[str], cases: list[Case]) -> None:
        """Times of these rivals."""
        runners = [rival for rival in self.start(model) if rival.key in names]
        for case in cases:
            turns.race(runners, [case], self.options.repeat, self.options.budget, on_clock=False)

    def speed(self, name: str, case: Case) -> float | None:
        return self.here[name].speed(case) if name in self.here else None

    def show(self, section: str, exhibit: Exhibit) -> None:
        common.table(f"{exhibit.title} ({exhibit.of})", exhibit.columns, exhibit.rows, exhibit.notes)
        self.exhibits.setdefault(section, []).append(exhibit)

    def figures(self) -> dict[str, Any]:
        return {
            section: {**self.about.get(section, {}), "exhibits": [asdict(exhibit) for exhibit in found]}
            for section, found in self.exhibits.items()
        }


def shown(value: float | None, form: str = "{:,.3g}") -> str:
    if value is None:
        return "-"
    return form.format(value) if value < 1000 else f"{value:,.0f}"
