"""TreeRNN, RNTN and TreeLSTM: throughput by batch, by model and by shape; time against length."""

from __future__ import annotations

import common
import numpy as np
from rivals import networks

from .book import LENGTHS, SHAPES, WORKS, Book, Exhibit, Plot, shown
from .printed import (
    EPOCHS,
    INFERRED,
    JEONG,
    JEONG_1,
    JEONG_2,
    KOSTOPOULOU,
    TABLE_2,
    TABLE_3,
    TABLE_6_1,
    TRAINED,
    VASILAKOPOULOS,
)

TITLES = {"train": "training", "infer": "inference"}


def by_batch(book: Book) -> None:
    """Batch sizes: Tables 2 and 3, and what the thesis counts in seconds."""
    names = book.named("static", "expand", "iteration", "tf1")
    alone = [*names, *book.named("unrolling")]
    cases = {(batch, work): ("treernn", batch, work, WORKS[work]) for batch in TABLE_3 for work in WORKS}
    book.race("treernn", alone, [case for (batch, _), case in cases.items() if batch == 1])
    book.race("treernn", names, [case for (batch, work), case in cases.items() if batch > 1 and work == "train"])
    lines = {name: [(batch, book.speed(name, cases[batch, "train"])) for batch in TABLE_3] for name in names}
    printed = {
        name: [(batch, TABLE_3[batch][k]) for batch in TABLE_3] for k, name in ((0, "recursion"), (1, "iteration"))
    }
    book.show(
        "batch",
        Exhibit(
            "TreeRNN, training: trees per second by batch size",
            f"{KOSTOPOULOU}, Table 3",
            ["batch", *names, "paper: recursion", "paper: iteration"],
            [
                [str(batch), *(shown(dict(line)[batch]) for line in lines.values()), *map(shown, TABLE_3[batch])]
                for batch in TABLE_3
            ],
            ["The paper's machine is not stated."],
            [Plot("batch", "batch", "trees per second", {"here": lines, "the paper": printed})],
        ),
    )
    rows = []
    for name in alone:
        found = [book.speed(name, cases[1, work]) for work in WORKS]
        seconds = [EPOCHS * TRAINED / found[0] if found[0] else None, INFERRED / found[1] if found[1] else None]
        told = [*TABLE_2.get(name, (None, None)), *seconds, *TABLE_6_1.get(name, (None, None))]
        rows.append([name, *map(shown, [*found, *told])])
    book.show(
        "batch",
        Exhibit(
            "TreeRNN, one tree at a time: trees per second; seconds of 4 epochs of 700 trees, and of inference on 200",
            f"{KOSTOPOULOU}, Table 2; {VASILAKOPOULOS}, Table 6.1",
            [
                "",
                "training",
                "inference",
                "paper, training",
                "inference",
                "4 × 700, s",
                "200, s",
                "thesis, s",
                "thesis, s",
            ],
            rows,
            ["Machines of the paper and of the thesis are not stated."],
        ),
    )


def by_shape(book: Book) -> None:
    """Balanced, moderate and linear trees: Table 1 of Jeong et al."""
    cases = {(batch, shape): ("treernn", batch, "train", shape) for batch in JEONG_1 for shape in SHAPES}
    names = book.named("static", "expand")
    book.race("treernn", names, list(cases.values()))
    rows = []
    for batch, printed in JEONG_1.items():
        found = [book.speed(name, cases[batch, shape]) for name in names for shape in SHAPES]
        rows.append([str(batch), *map(shown, [*found, *printed])])
    panels = {
        name: {shape: [(batch, book.speed(name, cases[batch, shape])) for batch in JEONG_1] for shape in SHAPES}
        for name in names
    }
    panels["the paper"] = {shape: [(batch, JEONG_1[batch][k]) for batch in JEONG_1] for k, shape in enumerate(SHAPES)}
    book.show(
        "shape",
        Exhibit(
            "TreeRNN, training: trees per second on balanced, moderate and linear trees",
            f"{JEONG}, Table 1",
            ["batch", *(f"{name}, {shape}" for name in (*names, "paper") for shape in SHAPES)],
            rows,
            [],
            [Plot("shape", "batch", "trees per second", panels)],
        ),
    )


def by_model(book: Book) -> None:
    """The three networks: Table 2 and figures 7 and 8 of Jeong et al."""
    names = book.named("static", "expand", "iteration", "tf1", "unrolling", "folding")
    panels: dict[str, dict] = {}
    for model in networks.WIDTHS:
        cases = {(work, batch): (model, batch, work, WORKS[work]) for work in WORKS for batch in JEONG_2}
        book.race(model, names, list(cases.values()))
        rows = []
        for (work, batch), case in cases.items():
            inference, training = JEONG_2[batch]
            printed = (training if work == "train" else inference) if model == "treelstm" else ()
            rows.append(
                [f"{TITLES[work]}, {batch}", *(shown(book.speed(name, case)) for name in names), *map(shown, printed)]
            )
        for work in WORKS:
            panels[f"{model}, {TITLES[work]}"] = {
                name: [(batch, book.speed(name, cases[work, batch])) for batch in JEONG_2] for name in names
            }
        is_printed = model == "treelstm"
        book.show(
            "model",
            Exhibit(
                f"{model}: trees per second",
                f"{JEONG}, figures 7 and 8{', Table 2' if is_printed else ''}",
                ["batch", *names, *(["paper: iteration", "paper: recursion", "paper: folding"] if is_printed else [])],
                rows,
                [] if is_printed else ["Figures 7 and 8 are plots: the text has no numbers for this network."],
            ),
        )
    ordered = dict(sorted(panels.items(), key=lambda pair: pair[0].endswith("inference")))
    book.exhibits["model"][-1].plots.append(Plot("models", "batch", "trees per second", ordered, is_bar=True))


def by_length(book: Book) -> None:
    """Time against the length of a sentence: figure 11 of Jeong et al."""
    names = book.named("static", "iteration", "tf1")
    cases = {(work, length): ("treelstm", 1, work, f"length{length}") for work in WORKS for length in LENGTHS}
    book.race("treelstm", names, list(cases.values()))
    times = {
        (name, work): [(length, 1 / speed) for length in LENGTHS if (speed := book.speed(name, cases[work, length]))]
        for name in names
        for work in WORKS
    }
    times = {key: line for key, line in times.items() if line}
    rows = [[str(length), *(common.seconds(dict(line).get(length)) for line in times.values())] for length in LENGTHS]
    slopes, exponents = [], []
    for line in times.values():
        x, y = np.array(line).T
        slopes.append(common.seconds(float(np.polyfit(x, y, 1)[0])))
        exponents.append(f"{np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}")
    panels = {
        title: {name: [(length, 1e3 * taken) for length, taken in times.get((name, work), [])] for name in names}
        for work, title in TITLES.items()
    }
    book.show(
        "length",
        Exhibit(
            "TreeLSTM, batch 1: time of a tree by the words of its sentence",
            f"{JEONG}, figure 11",
            ["words", *(f"{name}, {TITLES[work]}" for name, work in times)],
            [*rows, ["per word more", *slopes], ["grows with the power", *exponents]],
            [
                "Power 1: time goes with the number of nodes, one after the other; less: nodes run together.",
                "Figure 11 is a plot. The text: inference takes O(log n), training is closer to linear.",
            ],
            [Plot("length", "words in the sentence", "ms for one tree", panels)],
        ),
    )
