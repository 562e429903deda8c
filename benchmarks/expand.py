"""The graph that grows, on one thread and two, in each order of its ready queue, beside the static graph on the same.

Claim of Jeong et al. (EuroSys 2018, sections 4.1 and 6.3): a recursive network runs fast where the calls of a tree run
at once, on many threads that take what is ready from one queue; and another order than first in, first out may help
(their future work). Here the three networks of their evaluation run as they describe it (`expand`), and as waves of a
static graph. Before times count, every way must give the same bits as `expand` on one thread, and waves the same to
tolerance. Ways take turns, and the best time of each counts. On a busy machine the clock says little: `--processor`
tells the processor time of the busiest thread instead.
Usage: python benchmarks/expand.py [--quick] [--repeat N] [--json FILE] [--processor]
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np
from rivals import forests, networks, ours

import undertow as ut

MODELS = ("treernn", "rntn", "treelstm")
BATCHES = (1, 25)  # of their Figures 7 and 8
ORDERS = ("lifo", "fifo", "depth", "longest_path")
WAYS = {
    **{f"waves, {threads}": {"engine": "waves", "threads": threads} for threads in (1, 2)},
    **{
        f"{order}, {threads}": {"engine": "expand", "scheduler": order, "threads": threads}
        for order in ORDERS
        for threads in (1, 2)
    },
}


def time_of(run: Callable[[], Any], by_processor: bool) -> float:
    """Of one run, on the clock; or of the processor, in the busier of two threads."""
    clock, own, everything = time.perf_counter(), time.thread_time(), time.process_time()
    run()
    mine = time.thread_time() - own
    return max(mine, time.process_time() - everything - mine) if by_processor else time.perf_counter() - clock


def leaves(result: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(result, dict):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def check(runs: dict[str, Callable[[], Any]], cell: str) -> None:
    """Same bits on every way of the engine that expands; waves agree to what the order of sums leaves."""
    wanted = leaves(runs["lifo, 1"]())
    for name, run in runs.items():
        found = leaves(run())
        if name.startswith("waves"):
            agrees = all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(found, wanted, strict=True))
        else:
            agrees = all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        if not agrees:
            common.fail(f"{cell}: {name} gives another result")


def main() -> None:
    parser = common.parser(__doc__, 15)
    parser.add_argument("--processor", action="store_true", help="processor time in place of the clock")
    options = parser.parse_args()
    rounds = min(options.repeat, 3) if options.quick else options.repeat
    trees = forests.together(forests.generate(max(BATCHES)))
    figures: dict[str, Any] = {}
    rows: list[list[str]] = []
    for model in MODELS:
        vocabulary = 1 + max(max(tree.word) for tree in trees)
        network, params = ours.network(model, networks.init(model, vocabulary))
        programs = {
            "inference": network.root_labels(),
            "training": ut.value_and_grad(network.total_loss(), sparse_rows=True),
        }
        for work, f in programs.items():
            for size in BATCHES[1:] if options.quick else BATCHES:
                cell = f"{model} {work} {size}"
                (forest,) = ours.pack(trees[:size])
                runs = {name: partial(f.run, params, forest, **way) for name, way in WAYS.items()}
                check(runs, cell)
                best = dict.fromkeys(runs, float("inf"))
                for _ in range(rounds):
                    for name, run in runs.items():
                        best[name] = min(best[name], time_of(run, options.processor))
                figures[cell] = best
                common.note({f"{cell}, {name}": seconds for name, seconds in best.items()})
                rows.append([model, work, str(size), *(f"{1e3 * seconds:.2f}" for seconds in best.values())])
    common.table("Milliseconds for a batch", ["model", "work", "trees", *WAYS], rows)
    pairs = [(best["lifo, 1"], best["lifo, 2"], min(best["waves, 1"], best["waves, 2"])) for best in figures.values()]
    gains = [one / two for one, two, _ in pairs]
    behind = [min(one, two) / waves for one, two, waves in pairs]
    print(f"Two threads make `expand` {min(gains):.2f} to {max(gains):.2f} times as fast (lifo).")
    print(
        f"Its better number of threads takes {min(behind):.1f} to {max(behind):.1f} times as long as waves with theirs."
    )
    for order in ORDERS[1:]:
        ratios = [best[f"{order}, 2"] / best["lifo, 2"] for best in figures.values()]
        print(f"On two threads, {order} takes {min(ratios):.2f} to {max(ratios):.2f} times as long as lifo.")
    common.write(options.json, figures)


if __name__ == "__main__":
    main()
