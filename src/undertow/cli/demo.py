"""`undertow demo`: what Undertow does, step by step, on small programs. Everything that it prints has just been run."""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import undertow as ut
from undertow.cli import demo_programs as programs
from undertow.ir import text
from undertow.ir.trace import FrameStarted, Tags, read_trace, show_tag
from undertow.train.curve import write_curve

DEPTH = 200_000
LESSON_SECONDS = 40.0  # no epoch starts later than this


def show(console: Console, folder: Path, lesson: int) -> None:
    """Run all steps; pictures and traces go to `folder`. The last step trains on `lesson` trees."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    page = _Page(console, folder)
    page.say(f"Undertow {ut.__version__}: recursive functions in static dataflow graphs")
    for step in (show_capture, show_graph, show_sizes, show_schedules, show_map, show_tree, show_gradient, show_mutual,
                 show_error, show_depth, show_trace):  # fmt: skip
        step(page)
    if lesson:
        show_lesson(page, lesson)
    page.step("Where to go from here")
    page.say("docs/guides/first_function.md, then docs/from_scratch.py: the whole idea in one file that you can run.")
    page.say(f"(That took {time.perf_counter() - began:.1f} s.)")


class _Page:
    """Numbered steps on a console: colours on a terminal, plain lines in a log."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.console, self.folder = console, folder
        self._numbers = itertools.count(1)
        self._has_gap = False  # was the last line empty?

    def _gap(self) -> None:
        if not self._has_gap:
            self.console.print()
        self._has_gap = True

    def step(self, title: str) -> None:
        self._gap()
        self.console.rule(f"[bold]{next(self._numbers)}. {title}", align="left", characters="-", style="cyan")
        self.console.print()

    def say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False)
        self._has_gap = line.endswith("\n")

    def code(self, source: str, language: str = "text") -> None:
        """Text as it is; highlighted on a terminal."""
        source = source.rstrip("\n")
        if self.console.is_terminal and language != "text":
            self.console.print(Syntax(source, language, theme="ansi_dark", background_color="default", word_wrap=True))
        else:
            self.console.print(source, markup=False, highlight=False, soft_wrap=True)
        self._has_gap = False
        self._gap()

    def source(self, *functions: ut.Function) -> None:
        self.code("\n\n".join(inspect.getsource(inspect.unwrap(f)) for f in functions), "python")

    def table(self, columns: Iterable[str], rows: Iterable[Iterable[Any]], words: Iterable[str] = ()) -> None:
        """Numbers to the right, `words` to the left."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, justify="left" if column in words else "right")
        for row in rows:
            table.add_row(*(f"{cell:,}" if isinstance(cell, (int, np.integer)) else str(cell) for cell in row))
        self.console.print(table)
        self._has_gap = False
        self._gap()


# --------------------------------------------------------------------------------------------------------------
# The steps


def show_capture(page: _Page) -> None:
    page.step("A recursive Python function, and the library captured from it")
    page.source(programs.fib)
    page.say("Its body becomes a small graph, in which a call is still a single node:\n")
    page.code(text.dump(programs.fib.library(3), spans=False))


def show_graph(page: _Page) -> None:
    page.step("The static graph: each body occurs once, calls become nodes that change tags")
    graph = programs.fib.graph(3)
    page.code(str(graph))
    picture = page.folder / "fib.svg"
    picture.write_text(graph.svg(), encoding="utf-8")
    page.say(f"A picture of it: {picture}")


def show_sizes(page: _Page) -> None:
    page.step("The graph does not grow; the number of tags does")
    rows = []
    for n in (1, 5, 10, 20, 30):
        result, stats = programs.fib.run(n, stats=True)
        rows.append((n, result, len(programs.fib.graph(n)), stats.activations, stats.waves, stats.max_depth))
    page.table(("n", "fib(n)", "nodes", "activations", "waves", "deepest call"), rows)
    page.say("Independent activations run together: a wave is a batch of them.")


def show_schedules(page: _Page) -> None:
    page.step("Any order of firings gives the same result")
    rows = []
    for scheduler in ("fifo", "lifo", "random"):
        result, stats = programs.fib.run(7, scheduler=scheduler, stats=True)
        counts = stats.firings, stats.dead_firings, stats.activations, stats.peak_frames
        rows.append((scheduler, result, *counts, show_tag(stats.deepest_tag)))
    columns = ("scheduler", "fib(7)", "firings", "dead", "activations", "frames", "deepest tag")
    page.table(columns, rows, words=("scheduler", "deepest tag"))


def show_map(page: _Page) -> None:
    page.step("Many calls in one run")
    results, stats = programs.fib.map(range(12), stats=True)
    page.say(f"fib.map(range(12)) = {results.tolist()}")
    page.say(f"{stats.activations:,} activations in {stats.waves:,} waves")


def show_tree(page: _Page) -> None:
    page.step("Recursion over arrays: a small recursive neural network")
    page.source(programs.encode)
    random = np.random.default_rng(0)
    params = {"embed": random.normal(size=(4, 3)), "weights": random.normal(size=(6, 3)), "bias": np.zeros(3)}
    root, stats = programs.encode.run(params, 6, stats=True)
    page.say(f"encode(params, 6) = {np.round(root, 4).tolist()}")
    page.say(f"{stats.activations} activations, one for each node of the tree, {stats.max_depth} calls deep")


def show_gradient(page: _Page) -> None:
    page.step("Gradients: a second visit to the same activations")
    page.source(programs.power)
    slope, step = ut.value_and_grad(programs.power), 1e-6
    rows = []
    for n in (1, 10, 100, 1000):
        plain, alone = programs.power.run(1.01, n, stats=True)
        (value, gradient), stats = slope.run(1.01, n, stats=True)
        assert value == plain
        above, below = programs.power.map([1.01 + step, 1.01 - step], ut.shared(n))
        difference = (above - below) / (2 * step)
        numbers = (f"{x:.7g}" for x in (value, gradient, difference))
        rows.append((n, *numbers, alone.activations, stats.activations, len(slope.graph(1.01, n))))
    page.say(
        "x = 1.01: gradient and finite difference; activations without and with the gradient; nodes of its graph:\n"
    )
    page.table(("n", "power(x, n)", "gradient", "difference", "calls", "calls with gradient", "nodes"), rows)
    page.say(f"grad(grad(power))(3.0, 4) = {ut.grad(ut.grad(programs.power))(3.0, 4)}, which is 4 * 3 * 3.0**2")


def show_mutual(page: _Page) -> None:
    page.step("Mutual recursion: two bodies in one graph")
    page.source(programs.is_even, programs.is_odd)
    graph = programs.is_even.graph(0)
    page.say(f"is_even.map(range(8)) = {programs.is_even.map(range(8)).tolist()}, from a graph of {len(graph)} nodes")


def show_error(page: _Page) -> None:
    page.step("An error knows its tag, and the tag is a traceback")
    page.source(programs.harmonic)
    try:
        programs.harmonic(50)
    except ut.RunError as error:
        page.say("harmonic(50) raises:\n")
        page.code(f"{type(error).__name__}: {error}")


def show_depth(page: _Page) -> None:
    page.step("Depth is data")
    page.source(programs.depth)
    result, stats = programs.depth.run(DEPTH, stats=True)
    page.say(f"depth({DEPTH}) = {result}: calls nested {stats.max_depth:,} deep, in {stats.seconds:.2f} s.")
    page.say(f"Python's own recursion limit is {sys.getrecursionlimit():,}, and is unchanged.")


def show_trace(page: _Page) -> None:
    page.step("A trace of every firing")
    file = page.folder / "fib.jsonl"
    programs.fib.run(3, engine="reference", trace=file)
    lines = file.read_text(encoding="utf-8").splitlines()
    shown = 8
    page.code("\n".join([*lines[:shown], f"... {len(lines) - shown} more lines in {file}"]), "text")
    page.say("Each frame names its parent; together they give the tags of fib(3):\n")
    events = list(read_trace(file))
    tags = Tags(events)
    sites = programs.fib.graph(3).static.sites
    rows = [
        (event.frame, show_tag(tags[event.frame]), sites[event.site - 1].label)
        for event in events
        if isinstance(event, FrameStarted) and event.site is not None
    ]
    page.table(("frame", "tag", "called at"), rows, words=("tag", "called at"))


def show_lesson(page: _Page, trees: int) -> None:
    page.step("A TreeLSTM learns ListOps: the values of nested MIN, MAX, MED and SM (sum modulo 10) of digits")
    source = ut.train.open_source("listops", trees)
    model = ut.models.TreeLSTM(len(source.vocabulary), source.classes, width=32, embedding=32)
    recipe = ut.train.Recipe(rate=0.01, epochs=6, batch=50, decay="cosine")
    nodes = source.train.size
    page.say(f"{len(source.train):,} trees of {nodes:,} nodes, up to {source.train.depths.max()} deep; all trees of a")
    page.say("batch run together, whatever their shapes. Every digit and expression has a loss.\n")
    rows, began = [], time.perf_counter()
    best: Any = model.init(recipe.seed)
    history: tuple[Any, ...] = ()
    for event in ut.train.fit(model, source.train, source.dev, recipe):
        if isinstance(event, ut.train.Epoch):
            record, best, history = event.record, event.state.best, event.state.history
            rows.append(
                (record.epoch, f"{record.train_loss:.2f}", f"{record.dev_accuracy:.0%}", int(record.trees_per_second))
            )
            if time.perf_counter() - began > LESSON_SECONDS:
                break
    page.table(("epoch", "loss", "dev accuracy", "trees per second"), rows)
    report, curve = ut.train.report(model, best, source.test), write_curve(page.folder / "listops.png", history)
    page.say(
        f"On {len(source.test):,} unseen trees, {report.accuracy:.0%} are right; always guessing the most frequent"
    )
    page.say(f"value would give {report.majority:.0%}. Learning curve in {page.folder}: {curve}")
