"""The papers' tables and figures of networks on trees, with our engines, beside what the papers printed.

Claims: one static graph (the waves engine) is faster than a graph that grows (expand), than iteration (ut.while_loop)
and than unrolling (PyTorch eager); its throughput rises with the batch; time grows slowly with the length of a
sentence, as siblings run together. One thread; rivals take turns, and their losses agree. The papers had other machines
and more threads: their columns show relations, not ours against theirs.
Usage: python benchmarks/papers.py [--quick] [--only NAME,NAME] [--sst FOLDER] [--python-of torch=PATH]
                                   [--repeat N] [--budget SECONDS] [--json FILE]
Plots go to build/bench/, if Matplotlib is installed.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import numpy as np
from rivals import forests, networks, top_down, turns
from rivals.turns import Case, Rival

KOSTOPOULOU = "Kostopoulou, Charalambidis, Rondogiannis: Recursive Function Definitions in Static Dataflow Graphs"
VASILAKOPOULOS = "Vasilakopoulos' thesis (2024)"
JEONG = "Jeong et al., EuroSys 2018; two 18-core Xeon E5-2695, TensorFlow 1.3, PyTorch on a Titan X"
# Instances per second where nothing else is said. By batch: recursion, iteration (and folding).
TABLE_3 = {1: (143.33, 84.56), 5: (103.06, 186.96), 10: (101.27, 228.60), 25: (110.72, 235.69)}
TABLE_2 = {"static": (143.33, 161.29), "iteration": (84.56, 138.8), "unrolling": (0.99, 1.74)}  # training, inference
TABLE_6_1 = {"static": (179.57, 7.41), "iteration": (268.91, 8.24)}  # seconds: 4 epochs of 700 trees; 200 trees
EPOCHS, TRAINED, INFERRED = 4, 700, 200
JEONG_1 = {1: (46.7, 27.3, 7.6), 10: (125.2, 78.2, 22.7), 25: (129.7, 83.1, 45.4)}  # balanced, moderate, linear
JEONG_2 = {  # inference and training: iteration, recursion, folding
    1: ((19.2, 81.4, 16.5), (2.5, 4.8, 9.0)),
    10: ((49.3, 217.9, 52.2), (4.0, 4.2, 37.5)),
    25: ((72.1, 269.9, 61.6), (5.5, 3.6, 54.7)),
}
JEONG_3 = {1: (0.30, 5.59), 64: (0.34, 9.30)}  # iteration, recursion
SHAPES = ("balanced", "moderate", "linear")
LENGTHS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
WORKS = {"train": "train", "infer": "test"}
SAME = 0.99  # of the trees that grow must get the same size: a decision may hang on a last bit


@dataclass
class Book:
    """The rivals that are installed, and the figures so far."""

    options: Any
    folder: Path
    here: dict[str, Rival]
    vocabulary: int
    train: list[forests.Tree]
    figures: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, list[Rival]] = field(default_factory=dict)  # by model, those that agree

    def race(self, model: str, names: list[str], cases: list[Case]) -> None:
        """Times of these rivals, which must agree first."""
        if model not in self.fit:
            params = networks.init(model, self.vocabulary)
            np.savez(self.folder / f"{model}.npz", **params)
            able = [rival for key, rival in self.here.items() if not key.startswith("grow")]
            self.fit[model] = turns.agree(model, able, networks.loss(model, params, self.train[: turns.CHECKED]))
        else:
            for rival in self.fit[model]:
                rival.failed = ""
                rival.ask("start", model=model)
        runners = [rival for rival in self.fit[model] if rival.key in names]
        for case in cases:
            turns.race(runners, [case], self.options.repeat, self.options.budget, on_clock=False)

    def speed(self, name: str, case: Case) -> float | None:
        return self.here[name].speed(case) if name in self.here else None


def shown(value: float | None, form: str = "{:,.3g}") -> str:
    if value is None:
        return "-"
    return form.format(value) if value < 1000 else f"{value:,.0f}"


def rivals() -> list[Rival]:
    return [
        Rival("static", "static graph (waves)", "ours", "undertow"),
        Rival("expand", "graph that grows (expand)", "ours", "undertow", "expand"),
        Rival("iteration", "iteration (ut.while_loop)", "ours_iterative", "undertow"),
        Rival("unrolling", "unrolling (PyTorch eager)", "torch_eager", "torch"),
        Rival("grow-static", "static graph (waves)", "ours_top_down", "undertow"),
        Rival("grow-expand", "graph that grows (expand)", "ours_top_down", "undertow", "expand"),
        Rival("grow-eager", "PyTorch eager", "torch_top_down", "torch"),
        Rival("grow-frontier", "PyTorch, levels by hand", "torch_top_down", "torch", "frontier"),
    ]


def by_batch(book: Book) -> None:
    """Batch sizes: Tables 2 and 3, and what the thesis counts in seconds."""
    names = ["static", "expand", "iteration"]
    cases = {(batch, work): ("treernn", batch, work, WORKS[work]) for batch in TABLE_3 for work in WORKS}
    book.race("treernn", [*names, "unrolling"], [case for (batch, _), case in cases.items() if batch == 1])
    book.race("treernn", names, [case for (batch, work), case in cases.items() if batch > 1 and work == "train"])
    rows = [
        [str(batch), *(shown(book.speed(name, cases[batch, "train"])) for name in names), *map(shown, printed)]
        for batch, printed in TABLE_3.items()
    ]
    common.table(
        "TreeRNN, training: trees per second by batch size (Table 3)",
        ["batch", *names, "paper: recursion", "paper: iteration"], rows, [f"{KOSTOPOULOU}; machine not stated."],
    )  # fmt: skip
    rows = []
    for name in (*names, "unrolling"):
        found = [book.speed(name, cases[1, work]) for work in WORKS]
        printed = TABLE_2.get(name, (None, None))
        seconds = [EPOCHS * TRAINED / found[0] if found[0] else None, INFERRED / found[1] if found[1] else None]
        thesis = TABLE_6_1.get(name, (None, None))
        rows.append([name, *map(shown, [*found, *printed, *seconds, *thesis])])
    common.table(
        "TreeRNN, one tree at a time: trees per second (Table 2); seconds of 4 epochs and of inference (Table 6.1)",
        ["", "training", "inference", "paper", "paper", "4 × 700, s", "200, s", "thesis, s", "thesis, s"], rows,
        [f"Tables 2 and 3: {KOSTOPOULOU}. Table 6.1: {VASILAKOPOULOS}; machines not stated."],
    )  # fmt: skip
    book.figures["batch"] = [
        {"batch": batch, "work": work, **{name: book.speed(name, case) for name in (*names, "unrolling")}}
        for (batch, work), case in cases.items()
    ]


def by_shape(book: Book) -> None:
    """Balanced, moderate and linear trees: Table 1 of Jeong et al."""
    cases = {(batch, shape): ("treernn", batch, "train", shape) for batch in JEONG_1 for shape in SHAPES}
    names = ["static", "expand"]
    book.race("treernn", names, list(cases.values()))
    rows = []
    for batch, printed in JEONG_1.items():
        found = [book.speed(name, cases[batch, shape]) for name in names for shape in SHAPES]
        rows.append([str(batch), *map(shown, [*found, *printed])])
    common.table(
        "TreeRNN, training: trees per second on balanced, moderate and linear trees (Table 1)",
        ["batch", *(f"{name}, {shape}" for name in (*names, "paper") for shape in SHAPES)], rows, [JEONG],
    )  # fmt: skip
    book.figures["shape"] = [
        {"batch": batch, "shape": shape, **{name: book.speed(name, case) for name in names}}
        for (batch, shape), case in cases.items()
    ]


def by_model(book: Book) -> None:
    """The three networks: Table 2 and figures 7 and 8 of Jeong et al."""
    names = ["static", "expand", "iteration", "unrolling"]
    found: list[dict[str, Any]] = []
    for model in networks.WIDTHS:
        cases = {(work, batch): (model, batch, work, WORKS[work]) for work in WORKS for batch in JEONG_2}
        book.race(model, names, list(cases.values()))
        rows = []
        for (work, batch), case in cases.items():
            speeds = {name: book.speed(name, case) for name in names}
            found.append({"model": model, "work": work, "batch": batch, **speeds})
            inference, training = JEONG_2[batch]
            printed = (training if work == "train" else inference) if model == "treelstm" else (None,) * 3
            rows.append([f"{work}, {batch}", *map(shown, [*speeds.values(), *printed])])
        common.table(
            f"{model}: trees per second (figures 7 and 8{', Table 2' if model == 'treelstm' else ''})",
            ["batch", *names, "paper: iteration", "paper: recursion", "paper: folding"], rows, [JEONG],
        )  # fmt: skip
    book.figures["model"] = found
    panels = {
        f"{model}, {'training' if work == 'train' else 'inference'}": {
            name: [(str(row["batch"]), row[name]) for row in found if (row["model"], row["work"]) == (model, work)]
            for name in names
        }
        for work in WORKS
        for model in networks.WIDTHS
    }
    plot("models", panels, "batch", "trees per second", is_bar=True)


def by_length(book: Book) -> None:
    """Time against the length of a sentence: figure 11 of Jeong et al."""
    names = ["static", "iteration"]
    cases = {(work, length): ("treelstm", 1, work, f"length{length}") for work in WORKS for length in LENGTHS}
    book.race("treelstm", names, list(cases.values()))
    times = {
        (name, work): [(length, 1 / speed) for length in LENGTHS if (speed := book.speed(name, cases[work, length]))]
        for name in names
        for work in WORKS
    }
    rows = [[str(length), *(common.seconds(dict(line).get(length)) for line in times.values())] for length in LENGTHS]
    slopes, exponents = [], []
    for line in times.values():
        x, y = np.array(line).T
        slopes.append(common.seconds(float(np.polyfit(x, y, 1)[0])))
        exponents.append(f"{np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}")
    common.table(
        "TreeLSTM, batch 1: time of a tree by the words of its sentence (figure 11)",
        ["words", *(f"{name}, {work}" for name, work in times)],
        [*rows, ["per word more", *slopes], ["grows with the power", *exponents]],
        ["Power 1: time goes with the number of nodes, one after the other; less: nodes run together.", JEONG],
    )  # fmt: skip
    book.figures["length"] = {f"{name}, {work}": line for (name, work), line in times.items()}
    panels = {
        title: {name: [(length, 1e3 * taken) for length, taken in times[name, work]] for name in names}
        for work, title in (("train", "training"), ("infer", "inference"))
    }
    plot("length", panels, "words in the sentence", "ms for one tree")


def by_growth(book: Book) -> None:
    """A tree that grows from computed values: Table 3 of Jeong et al."""
    params = top_down.init()
    np.savez(book.folder / f"{top_down.MODEL}.npz", **params)
    wanted = top_down.grown(params)
    fit = []
    for rival in [rival for key, rival in book.here.items() if key.startswith("grow")]:
        rival.ask("start", model=top_down.MODEL)
        found = rival.ask("answers", batch=64, trees="roots").get("answers")
        if rival.failed or np.mean(np.array(found) == wanted) < SAME:
            common.fail(f"{rival.name}: {rival.failed or 'its trees have other sizes'}")
        fit.append(rival)
    cases = {batch: (top_down.MODEL, batch, "infer", "roots") for batch in JEONG_3}
    for case in cases.values():
        turns.race(fit, [case], book.options.repeat, book.options.budget, on_clock=False)
    rows = [
        [rival.name, *(shown(rival.speed(case)) for case in cases.values())] for rival in fit
    ] + [
        [f"paper: {name}", *(shown(JEONG_3[batch][number]) for batch in cases)]
        for number, name in ((1, "recursion"), (0, "iteration"))
    ]  # fmt: skip
    common.table(
        f"A top-down TreeLSTM, {wanted.mean():.1f} nodes a tree, inference: trees per second (Table 3)",
        ["", *(f"batch {batch}" for batch in cases)], rows, [JEONG],
    )  # fmt: skip
    book.figures["growth"] = {rival.name: {batch: rival.speed(case) for batch, case in cases.items()} for rival in fit}


def depth(book: Book) -> None:
    """Recursion depth, figure 6.1 of the thesis: `depth.py` has measured it, if it has run; plotted here."""
    file = common.ROOT / "build" / "bench" / "depth.json"
    if not file.exists():
        print(f"Recursion depth: run benchmarks/depth.py first; no {file.name} as yet.\n")
        return
    rows = json.loads(file.read_text())["descent"]
    names = dict.fromkeys(name for row in rows for name in row["seconds"])
    lines = {name: [(row["n"], row["seconds"][name]) for row in rows if name in row["seconds"]] for name in names}
    common.table(
        "100 steps of gradient descent on x^n (figure 6.1)", ["n", *names],
        [[f"{row['n']:,}", *(common.seconds(row["seconds"].get(name)) for name in names)] for row in rows],
        [f"{VASILAKOPOULOS} prints a plot up to n = 500; measured by benchmarks/depth.py."],
    )  # fmt: skip
    plot("depth", {"x^n": lines}, "n", "seconds", is_log=True)


def plot(
    name: str, panels: dict[str, dict[str, list[Any]]], across: str, up: str, is_bar: bool = False, is_log: bool = False
) -> None:
    """A picture of lines (or bars), one panel beside the other."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print(f"No picture of {name}: Matplotlib is not installed.\n")
        return
    columns = min(len(panels), 3)
    shape = -(-len(panels) // columns), columns
    figure, axes = pyplot.subplots(*shape, figsize=(5 * shape[1], 3.6 * shape[0]), squeeze=False)
    for axis, (title, lines) in zip(axes.flat, panels.items(), strict=False):
        for number, (label, points) in enumerate(lines.items()):
            known = [(x, y) for x, y in points if y]
            if is_bar:
                width = 0.8 / len(lines)
                places = [at + number * width for at, (_, y) in enumerate(points) if y]
                axis.bar(places, [y for _, y in known], width, label=label)
            elif known:
                axis.plot(*zip(*known, strict=True), marker="o", markersize=3, label=label)
        if is_bar:
            some = next(iter(lines.values()))
            axis.set_xticks([at + 0.3 for at in range(len(some))], [x for x, _ in some])
        if is_log:
            axis.set(xscale="log", yscale="log")
        else:
            axis.set_ylim(bottom=0)
        axis.set(title=title, xlabel=across, ylabel=up)
        axis.legend(fontsize=7)
    figure.tight_layout()
    file = common.ROOT / "build" / "bench" / f"papers-{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    pyplot.close(figure)
    print(f"Picture: {file.relative_to(common.ROOT)}\n")


SECTIONS: dict[str, Callable[[Book], None]] = {
    "batch": by_batch, "shape": by_shape, "model": by_model, "growth": by_growth, "length": by_length, "depth": depth,
}  # fmt: skip


def main() -> None:
    parser = common.parser(__doc__, repeat=3)
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--sst", type=Path, help="a folder with train.txt and test.txt of the treebank")
    parser.add_argument("--python-of", action="append", default=[], metavar="NAME=PATH", help="torch")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of a rival in a case, after two rounds")
    options = parser.parse_args()
    count = 60 if options.quick else TRAINED
    options.repeat, options.budget = (2, 0.0) if options.quick else (options.repeat, options.budget)
    if options.sst:
        train, test, vocabulary = forests.treebank(options.sst, count, min(count, INFERRED))
    else:
        train, vocabulary = forests.generate(count), forests.VOCABULARY
        test = forests.generate(min(count, INFERRED), forests.SEED + 1)
    sets = {"train": train, "test": test, "roots": top_down.numbered()}
    sets |= {shape: forests.generate(min(count, INFERRED), shape=shape) for shape in SHAPES}
    sets |= {f"length{n}": forests.generate(3 if options.quick else 10, words=n) for n in LENGTHS}
    known = rivals()
    with tempfile.TemporaryDirectory() as folder:
        forests.save(Path(folder, "trees.npz"), sets)
        with turns.started(known, turns.python_of(options.python_of), folder) as here:
            for rival in known:
                if rival.missing:
                    print(f"{rival.name}: {rival.missing}")
            book = Book(options, Path(folder), {rival.key: rival for rival in here}, vocabulary, train)
            for name in options.only.split(","):
                SECTIONS[name](book)
    print(f"Trees: {options.sst or 'made up'}: {forests.describe(train)}. One thread; load: {common.load()}.")
    common.write(options.json, {"trees": forests.describe(train), "repeat": options.repeat, **book.figures})


if __name__ == "__main__":
    main()
