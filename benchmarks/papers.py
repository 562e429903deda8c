"""The papers' tables and figures of networks on trees, with our engines, beside what the papers printed.

Claims: one static graph (the waves engine) is faster than a graph that grows (expand), than iteration (ut.while_loop)
and than unrolling (PyTorch eager); its throughput rises with the batch; time grows slowly with the length of a
sentence, as siblings run together; it reaches the same accuracy sooner. One thread; rivals take turns, and their losses
agree. The papers had other machines and more threads: their columns show relations, not ours against theirs.
Usage: python benchmarks/papers.py [--quick] [--only NAME,NAME] [--sst FOLDER] [--python-of tensorflow=PATH]
                                   [--trees N] [--epochs N] [--repeat N] [--budget SECONDS] [--page] [--json FILE]
With --page, docs/experiments.md and its pictures are written anew, from all sections measured so far.
"""

import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import common
from experiments import page
from experiments.accuracy import by_accuracy, reviews
from experiments.batches import by_batch, by_length, by_model, by_shape
from experiments.book import LENGTHS, SHAPES, Book, rivals
from experiments.growth import by_decision, by_growth
from experiments.machines import by_machines
from experiments.printed import INFERRED, TRAINED
from experiments.recorded import calls, depth
from rivals import forests, top_down, turns

SECTIONS: dict[str, tuple[str, Callable[[Book], None]]] = {
    "calls": ("Recursive calls", calls),
    "batch": ("One tree at a time, and in batches", by_batch),
    "model": ("Three networks: training and inference", by_model),
    "accuracy": ("Accuracy against time", by_accuracy),
    "machines": ("Several workers", by_machines),
    "length": ("Length of a sentence", by_length),
    "shape": ("Balanced and unbalanced trees", by_shape),
    "growth": ("A tree that grows from computed values", by_growth),
    "decision": ("Networks that decide what they compute", by_decision),
    "depth": ("Recursion depth", depth),
}
RECORDS = common.ROOT / "build" / "bench" / "papers"
PAGE, PICTURES = common.ROOT / "docs" / "experiments.md", common.ROOT / "docs" / "pictures"
LEARNED, APART = 2000, 500  # made-up reviews


def main() -> None:
    parser = common.parser(__doc__, repeat=3)
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--sst", type=Path, help="a folder with train.txt and test.txt of the treebank")
    parser.add_argument("--python-of", action="append", default=[], metavar="NAME=PATH", help="torch, tensorflow")
    parser.add_argument("--trees", type=int, default=TRAINED, help=f"to measure throughput on (default {TRAINED})")
    parser.add_argument("--epochs", type=int, default=0, help="of learning (default: as each network needs)")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of a rival in a case, after two rounds")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(common.ROOT)} anew")
    options = parser.parse_args()
    if options.quick:
        options.repeat, options.budget, options.trees = 2, 0.0, 60
    chosen = [name for name in options.only.split(",") if name]
    known = rivals()
    with tempfile.TemporaryDirectory() as folder:
        sets, vocabulary = trees_of(options)
        forests.save(Path(folder, "trees.npz"), sets)
        with turns.started(known, turns.python_of(options.python_of), folder) as here:
            for rival in known:
                if rival.missing:
                    print(f"{rival.name}: {rival.missing}")
            book = Book(options, Path(folder), {rival.key: rival for rival in here}, vocabulary, sets)
            for name in chosen:
                SECTIONS[name][1](book)
    data = f"{'the treebank' if options.sst else 'made up'}: {forests.describe(sets['train'])}"
    print(f"Trees: {data}. One thread; load: {common.load()}.")
    words = [word for word in sys.argv[1:] if word not in ("--page", "--python-of") and "=" not in word]
    if options.sst:
        words = ["FOLDER" if word == str(options.sst) else word for word in words]
    page.record(
        RECORDS, book.figures(), {"command": shlex.join(["benchmarks/papers.py", *words]), "trees": f"Trees {data}"}
    )
    if options.page:
        page.write(RECORDS, {name: title for name, (title, _) in SECTIONS.items()}, PAGE, PICTURES)
        print(f"Page: {PAGE.relative_to(common.ROOT)}")
    common.write(options.json, {"trees": data, "repeat": options.repeat, **book.figures()})


def trees_of(options) -> tuple[dict[str, list[forests.Tree]], int]:
    """All sets of trees by name, and the size of their vocabulary."""
    count, words = options.trees, range(3 if options.quick else 10)
    less = 10 if options.quick else 1
    if options.sst:
        train, test, vocabulary = forests.treebank(options.sst, count, min(count, INFERRED))
        learn, apart, _ = forests.treebank(options.sst, LEARNED // less, APART // less)
    else:
        train, vocabulary = forests.generate(count), forests.VOCABULARY
        test = forests.generate(min(count, INFERRED), forests.SEED + 1)
        learn, apart = reviews(LEARNED // less, 0), reviews(APART // less, 1)
    sets = {"train": train, "test": test, "learn": learn, "apart": apart, "roots": top_down.numbered()}
    sets |= {shape: forests.generate(min(count, INFERRED), shape=shape) for shape in SHAPES}
    sets |= {f"length{n}": forests.generate(len(words), words=n) for n in LENGTHS}
    return sets, vocabulary


if __name__ == "__main__":
    main()
