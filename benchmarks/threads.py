"""Two threads beside one: batches of trees, training and inference, on the three models of the race.

Claims: from batches of 64 trees on, two threads on two cores take at most two thirds of the time of one; the results
have the same bits. One thread and two take turns, three runs each, and the best time of each counts. On a busy
machine the clock says little: `--processor` compares the processor time of one thread with that of the busier of two.
Usage: python benchmarks/threads.py [--quick] [--repeat N] [--json FILE] [--processor]
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np
from rivals import forests, networks, ours

import undertow as ut

BAR = 1.5
MODELS = ("treernn", "rntn", "treelstm")
BATCHES = (64, 256)
TURN = 3  # runs in a row, as in training: threads that have just worked are still awake


def time_of(run: Callable[[], Any], by_processor: bool) -> float:
    """Of one run, on the clock; or of the processor, in the busier thread."""
    clock, own, everything = time.perf_counter(), time.thread_time(), time.process_time()
    run()
    mine = time.thread_time() - own
    return max(mine, time.process_time() - everything - mine) if by_processor else time.perf_counter() - clock


def equal(a: Any, b: Any) -> bool:
    """Have two results the same bits?"""
    if isinstance(a, dict):
        return all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return all(map(equal, a, b))
    if isinstance(a, ut.IndexedRows):
        return equal(a.indices, b.indices) and equal(a.rows, b.rows)
    return bool(np.array_equal(a, b))


def main() -> None:
    parser = common.parser(__doc__, 15)
    parser.add_argument("--processor", action="store_true", help="processor time in place of the clock")
    options = parser.parse_args()
    rounds = min(options.repeat, 5) if options.quick else options.repeat
    batches = BATCHES[:1] if options.quick else BATCHES
    trees = forests.together(forests.generate(max(batches)))
    rows: list[list[str]] = []
    figures: dict[str, Any] = {}
    slow: list[str] = []
    for model in MODELS:
        vocabulary = 1 + max(max(tree.word) for tree in trees)
        network, params = ours.network(model, networks.init(model, vocabulary))
        programs = {
            "training": ut.value_and_grad(network.total_loss(), sparse_rows=True),
            "inference": network.root_labels(),
        }
        for work, f in programs.items():
            for size in batches:
                (forest,) = ours.pack(trees[:size])
                runs = {threads: partial(f.run, params, forest, threads=threads) for threads in (1, 2)}
                if not equal(runs[1](), runs[2]()):
                    common.fail(f"{model}, {work}, {size} trees: the bits differ")
                best = {threads: float("inf") for threads in runs}
                for _ in range(rounds):
                    for threads, run in runs.items():
                        for _ in range(TURN):
                            best[threads] = min(best[threads], time_of(run, options.processor))
                ratio = best[1] / best[2]
                cell = f"{model} {work} {size}"
                figures[cell] = {"one": best[1], "two": best[2]}
                common.note({f"{cell}, {threads} threads": seconds for threads, seconds in best.items()})
                rows.append([model, work, str(size), common.seconds(best[1]), common.seconds(best[2]), f"{ratio:.2f}"])
                if ratio < BAR:
                    slow.append(f"{cell}: {ratio:.2f}")
    common.table("One thread and two", ["model", "work", "trees", "one", "two", "times as fast"], rows)
    print(
        f"Below {BAR}: {', '.join(slow)}." if slow else f"Two threads are at least {BAR} times as fast in every cell."
    )
    common.write(options.json, figures)


if __name__ == "__main__":
    main()
