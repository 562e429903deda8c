"""The race on trees: TreeRNN, RNTN and TreeLSTM, training and inference, beside the strongest ways to write them.

Claims: at every batch size Undertow is as fast as the fastest rival; from batches of ten trees on it reaches 75 % of
the floor, the matrix products alone; throughput rises with the batch; memory of a training step grows with the nodes
of the batch. Rivals: benchmarks/rivals. Each runs in a process of its own on one thread, with the same trees and the
same initial numbers; they take turns, one epoch each, and the best time of every batch counts. A rival whose losses
differ from the others' by more than 1e-4, before or after some steps of training, gets no time.
Usage: python benchmarks/trees.py [--quick] [--sst FOLDER] [--models A,B] [--batch 1,25] [--rivals A,B]
                                  [--python-of dynet=PATH] [--clock] [--repeat N] [--budget SECONDS] [--json FILE]
"""

import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np
from rivals import forests, networks, turns
from rivals.turns import Rival

TRAINING, TESTING = 700, 200  # trees
SIZES = [1, 10, 25, 64, 256]
FLOOR_BAR, FLOOR_FROM = 0.75, 10
OURS, FLOOR = "Undertow", "floor: matrix products"
WORKS = {"train": "train", "infer": "test"}  # and the trees for it


def rivals() -> list[Rival]:
    return [
        Rival("ours", OURS, "ours", "undertow"),
        Rival("levels", "PyTorch by levels, backward by hand", "torch_levels", "torch"),
        Rival("autograd", "PyTorch by levels, autograd", "torch_levels", "torch", "autograd"),
        Rival("eager", "PyTorch eager recursion", "torch_eager", "torch"),
        Rival("dynet", "DyNet, autobatching", "dynet_autobatch", "dynet"),
        Rival("dynet-single", "DyNet, no batching", "dynet_autobatch", "dynet", "single"),
        Rival("jax", "JAX scan", "jax_scan", "jax"),
        Rival("tensorflow", "TensorFlow while_loop", "tf_loop", "tensorflow"),
        Rival("tensorflow-1", "TensorFlow while_loop, as in version 1", "tf_loop", "tensorflow", "v1"),
        Rival("floor", FLOOR, "floor", "torch", has_loss=False),
    ]


def case(model: str, batch: int, work: str) -> turns.Case:
    return model, batch, work, WORKS[work]


def verdicts(model: str, sizes: list[int], runners: list[Rival]) -> tuple[list[dict], list[str]]:
    """Ours against the best and against the floor, by batch and work."""
    by_name = {rival.name: rival for rival in runners}
    rows, faults = [], []
    for work in WORKS:
        previous = 0.0
        for batch in sizes:
            speeds = {name: rival.speed(case(model, batch, work)) for name, rival in by_name.items()}
            ours, floor = speeds.pop(OURS, None), speeds.pop(FLOOR, None)
            others = {name: value for name, value in speeds.items() if value}
            if not ours:
                continue
            best = max(others, key=others.__getitem__, default=None)
            row = {"model": model, "work": work, "batch": batch, "ours": ours, "best": best,
                   "to_best": ours / others[best] if best else None,
                   "to_floor": ours / floor if floor else None}  # fmt: skip
            rows.append(row)
            where = f"{model}, {work}, batch {batch}"
            if best and ours < others[best]:
                faults.append(f"{where}: {ours / others[best]:.2f} of {best}")
            if floor and batch >= FLOOR_FROM and ours < FLOOR_BAR * floor:
                faults.append(f"{where}: {ours / floor:.0%} of the floor")
            if ours < previous:
                faults.append(f"{where}: slower than a smaller batch, {ours / previous:.2f}")
            previous = ours
    return rows, faults


def show(model: str, sizes: list[int], runners: list[Rival], found: list[dict]) -> None:
    def pair(values: list[float | None], form: str) -> str:
        return " / ".join(form.format(value) if value else "-" for value in values)

    lines = []
    for rival in runners:
        cells = [pair([rival.speed(case(model, batch, work)) for work in WORKS], "{:,.0f}") for batch in sizes]
        lines.append([rival.name, *cells])
    at = {(row["work"], row["batch"]): row for row in found}
    for title, key, form in (("ours / best rival", "to_best", "{:.2f}"), ("ours / floor", "to_floor", "{:.0%}")):
        values = [[at.get((work, batch), {}).get(key) for work in WORKS] for batch in sizes]
        lines.append([title, *(pair(value, form) for value in values)])
    common.table(
        f"{model}: trees per second, training / inference, one thread",
        ["", *(f"batch {batch}" for batch in sizes)],
        lines,
        [f"{rival.name}: {rival.missing}" for rival in runners if rival.missing],
    )  # fmt: skip


def memory(ours: Rival, models: list[str], sizes: list[int]) -> list[dict]:
    """What a training step of ours holds at most, beside the nodes of its batch."""
    rows = []
    for model in models:
        ours.ask("start", model=model)
        rows += [{"model": model, "batch": batch, **ours.ask("peak", batch=batch)} for batch in sizes]
    return rows


def arguments() -> Any:
    parser = common.parser(__doc__, repeat=5)
    parser.add_argument("--sst", type=Path, help="a folder with train.txt and test.txt of the treebank")
    parser.add_argument("--models", default=",".join(networks.WIDTHS))
    parser.add_argument("--batch", default="", help=f"sizes (default {','.join(map(str, SIZES))})")
    parser.add_argument("--rivals", default="", help=f"of {', '.join(rival.key for rival in rivals())}")
    parser.add_argument(
        "--python-of", action="append", default=[], metavar="NAME=PATH", help="torch, jax, dynet, tensorflow"
    )
    parser.add_argument("--trees", type=int, default=TRAINING, help="to train on")
    parser.add_argument("--clock", action="store_true", help="times on the clock, not of the processor")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of a rival in a cell, after two rounds")
    options = parser.parse_args()
    if options.quick:
        options.repeat, options.budget, options.trees = min(options.repeat, 3), 3.0, min(options.trees, 256)
        options.batch = options.batch or "1,25,256"
        options.rivals = options.rivals or "ours,levels,dynet,floor"
    options.models = options.models.split(",")
    options.batch = [int(size) for size in options.batch.split(",")] if options.batch else SIZES
    chosen = options.rivals.split(",") if options.rivals else [rival.key for rival in rivals()]
    options.runners = [rival for rival in rivals() if rival.key in chosen]
    return options


def main() -> None:
    options = arguments()
    runners: list[Rival] = options.runners
    if options.sst:
        train, test, vocabulary = forests.treebank(options.sst, options.trees, TESTING)
    else:
        train, vocabulary = forests.generate(options.trees), forests.VOCABULARY
        test = forests.generate(TESTING, forests.SEED + 1)
    rows, faults, peaks = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        forests.save(Path(folder, "trees.npz"), {"train": train, "test": test})
        with turns.started(runners, turns.python_of(options.python_of), folder) as present:
            for model in options.models:
                params = networks.init(model, vocabulary)
                np.savez(Path(folder, f"{model}.npz"), **params)
                fit = turns.agree(model, present, networks.loss(model, params, train[: turns.CHECKED]))
                for batch in options.batch:
                    cases = [case(model, batch, work) for work in WORKS]
                    turns.race(fit, cases, options.repeat, options.budget, options.clock)
                found, wrong = verdicts(model, options.batch, fit)
                show(model, options.batch, runners, found)
                rows += found
                faults += wrong
            ours = next((rival for rival in present if rival.name == OURS), None)
            if ours is not None:
                peaks = memory(ours, options.models, options.batch)
    common.table(
        "Memory of a training step of ours", ["network      ", "batch", "nodes", "MB", "KB per node"],
        [[row["model"], str(row["batch"]), f"{row['nodes']:,}", f"{row['bytes'] / 1e6:.1f}",
          f"{row['bytes'] / row['nodes'] / 1e3:.2f}"] for row in peaks],
    )  # fmt: skip
    data = str(options.sst) if options.sst else "made-up trees"
    print(f"Trees: {data}: {forests.describe(train)}. Times {'on the clock' if options.clock else 'of the processor'}.")
    print(f"Losses agree to {turns.TOLERANCE:g}, at first and after {turns.STEPS} steps. Load: {common.load()}.")
    if rows:
        print("\n".join(["Below the bar:", *faults]) if faults else "Every cell is at the bar.")
    common.write(options.json, {
        "trees": {"train": forests.describe(train), "test": forests.describe(test)}, "is_clock": options.clock,
        "rivals": [{"name": r.name, "version": r.version, "missing": r.missing, "losses": r.losses,
                    "speeds": [{"model": m, "batch": b, "work": w, "trees_per_second": r.speed((m, b, w, t))}
                               for m, b, w, t in r.times]} for r in runners],
        "rows": rows, "memory": peaks, "below": faults,
    })  # fmt: skip


if __name__ == "__main__":
    main()
