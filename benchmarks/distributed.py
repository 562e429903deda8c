"""Two workers beside one, on Ray actors of this machine, each with one thread; and workers that are killed or frozen.

Claims: f.map of a heavy function, one call of fib(40), one unbalanced search, and a step of data-parallel training of a
TreeLSTM on 256 trees: each at least 1.5 times as fast on two workers as on one. A worker that is killed or frozen is
noticed in under three seconds. Every other benchmark takes at most 1.05 times as long with workers as without, and a
millisecond. Results are compared before times are believed. One and two workers take turns; the best of several rounds
counts. It also measures what `distributed_model.py` needs (ways to workers, the driver's time), and runs `placed.py`.

`make bench-ray` runs it. Usage: python benchmarks/distributed.py [--quick] [--repeat N] [--only calls,training,...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import common
import numpy as np
from placed import measure_placed
from rivals import forests, networks, ours

import undertow as ut

BAR = 1.5
NOTICED = 3.0  # seconds
LOOPBACK = "tcp://127.0.0.1:*"
BATCH = 256
SHARDS = 4
TURN = 3  # steps in a row
MESSAGES = 2000  # of which the driver's time for one is taken
LOST = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}

# --------------------------------------------------------------------------------------------------------------
# Calls that are shared out: a row for each


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    return fib(n - 1) + fib(n - 2)


@ut.function
def search(seed: ut.i64, depth: ut.i64) -> ut.i64:
    """The number of nodes of a tree in which some children have ten times as many below them as others."""
    if depth <= 0:
        return 1
    count = 1
    for k in range(3):
        following = (seed * 6364136223846793005 + 1442695040888963407 * (k + 1)) >> 7
        count += search(following, depth - 1 - following % 3)
    return count


Calls = dict[str, Callable[..., Any]]  # by what they are; called with options


def calls(quick: bool) -> Calls:
    """What is run on one worker, and on two."""
    less = 8 if quick else 0
    return {
        "f.map of a heavy function": partial(fib.map, np.full(48, 34 - less)),
        f"one call of fib({40 - less})": partial(fib.run, 40 - less),
        "one unbalanced search": partial(search.run, 7, 30 - less),
    }


def measure_calls(options: Any, report: "Report") -> None:
    """Each in this process, on one worker, and on two."""
    best: dict[tuple[str, int], float] = {}
    results: dict[str, Any] = {}
    rows = calls(options.quick)
    with ut.options(threads=1):
        for _ in range(1 if options.quick else 2):
            for workers in (0, 1, 2):
                with ut.ray.cluster(workers) if workers else ExitStack() as cluster:
                    for name, call in rows.items():
                        took = []
                        for _ in range(options.repeat + 1):
                            began = time.perf_counter()
                            result = call()
                            took.append(time.perf_counter() - began)
                            if not np.array_equal(results.setdefault(name, result), result):
                                common.fail(f"{name}: another result on {workers} workers")
                        best[name, workers] = min(*took, best.get((name, workers), float("inf")))
                    if workers:
                        time.sleep(1.0)  # counts come with signs of life
                        report.idle(workers, [row.worker for row in cluster.stats() if not row.activations])
    for name in rows:
        here, one, two = (best[name, workers] for workers in (0, 1, 2))
        report.row(name, here, one, two)


# --------------------------------------------------------------------------------------------------------------
# Every benchmark: what workers cost a program that does not need them

EVERY = ("call", "depth", "in_place", "loops", "reference", "table1", "threads", "waves_formed")
MOST = 1.05  # times as long as without workers,
CONSTANT = 1e-3  # and so many seconds more
ROUNDS = 5  # at most: some times of one run vary by half


def measure_every(options: Any, report: "Report") -> None:
    """The scripts as they are, in a process with two workers and in one without, in turns."""
    rows = []
    for script in EVERY:
        best: dict[int, dict[str, float]] = {0: {}, 2: {}}
        ratios: dict[str, float] = {}
        for round_ in range(1 if options.quick else ROUNDS):
            for workers, known in best.items():
                for name, seconds in times_of(script, workers).items():
                    known[name] = min(seconds, known.get(name, float("inf")))
            ratios = {name: (best[2][name] - CONSTANT) / seconds for name, seconds in best[0].items()}
            if round_ > 0 and max(ratios.values()) <= MOST:
                break
        worst = max(ratios, key=ratios.__getitem__)
        less, more = (sum(known.values()) for known in best.values())
        times = map(common.seconds, (less, more))
        rows.append([script, str(len(ratios)), *times, f"{more / less:.2f}", f"{ratios[worst]:.2f}", worst])
        report.figures[f"every {script}"] = {"without": best[0], "with": best[2]}
        report.must(ratios[worst] <= MOST, f"{script}, {worst}: {ratios[worst]:.2f}")
    heads = [
        "script",
        "times",
        "without workers",
        "with two",
        "ratio",
        f"worst, but for {CONSTANT * 1e3:g} ms",
        "which",
    ]
    common.table("Every benchmark, on the cluster beside local", heads, rows)


def times_of(script: str, workers: int) -> dict[str, float]:
    """The best times of a script, by number and name."""
    with tempfile.TemporaryDirectory() as folder:
        noted = os.path.join(folder, "times")
        asked = {common.NOTED: noted, **({common.WORKERS: str(workers)} if workers else {})}
        command = [sys.executable, f"{common.ROOT}/benchmarks/{script}.py", "--quick", "--json", f"{folder}/figures"]
        done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
        if not os.path.exists(noted):
            common.fail(f"{script} measures nothing: {done.stdout}{done.stderr}")
        with open(noted, encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    return {f"{number}: {name}": seconds for number, (name, seconds) in enumerate(rows)}


# --------------------------------------------------------------------------------------------------------------
# Training


def batch_of(trees: int) -> tuple[Any, Any, Any]:
    """The loss of a TreeLSTM, its parameters, and a batch."""
    made = forests.together(forests.generate(trees))
    vocabulary = 1 + max(max(tree.word) for tree in made)
    network, params = ours.network("treelstm", networks.init("treelstm", vocabulary))
    (forest,) = ours.pack(made)
    return network.total_loss(), params, forest


def trainer_on(cluster: Any, loss: Any, params: Any, shards: int = SHARDS) -> Any:
    optimizer = ut.optim.Adagrad(networks.RATE, epsilon=networks.EPSILON)
    return ut.ray.DataParallel(loss, params, optimizer, average=False, shards=shards, cluster=cluster)


@contextmanager
def one_and_two() -> Iterator[dict[int, Any]]:
    """A cluster of two workers, and one of one, on the same Ray."""
    with ut.ray.cluster(2) as two, ut.ray.connect(workers=1, processors=0, listen=LOOPBACK) as one:
        yield {1: one, 2: two}


def measure_training(options: Any, report: "Report") -> None:
    """Steps in this process, on one worker, and on two, in turns."""
    loss, params, forest = batch_of(32 if options.quick else BATCH)
    slopes = ut.value_and_grad(loss, sparse_rows=True)
    optimizer = ut.optim.Adagrad(networks.RATE, epsilon=networks.EPSILON)
    mine = {name: value.copy() for name, value in params.items()}  # updates write over them
    state = optimizer.init(mine)

    def step_here() -> Any:
        nonlocal mine, state
        value, grads = slopes.run(mine, forest, threads=1)
        mine, state = optimizer.update(grads, state, mine, donate=True)
        return value

    with one_and_two() as clusters:
        trainers = {workers: trainer_on(cluster, loss, params) for workers, cluster in clusters.items()}
        steps: dict[int, Callable[[], Any]] = {0: step_here}
        steps |= {workers: partial(trainer.step, forest) for workers, trainer in trainers.items()}
        best = dict.fromkeys(steps, float("inf"))
        for number in range(options.repeat + 1):
            losses = []
            for workers, step in steps.items():
                for _ in range(TURN):
                    began = time.perf_counter()
                    value = step()
                    if number:
                        best[workers] = min(best[workers], time.perf_counter() - began)
                losses.append(value)
            if losses[1] != losses[2] or not np.allclose(losses[0], losses[1], rtol=1e-4):
                common.fail(f"the losses are {losses}")
        time.sleep(1.0)
        report.idle(2, [row.worker for row in clusters[2].stats() if not row.activations])
    report.row(f"a step of training on {len(forest)} trees", *(best[workers] for workers in (0, 1, 2)))
    report.figures["steps"] = {"trees": len(forest), "shards": SHARDS, **{str(key): best[key] for key in best}}


# --------------------------------------------------------------------------------------------------------------
# Workers that are lost


def measure_lost(options: Any, report: "Report") -> None:
    """In the middle of a step: how long until it is noticed, until the step is done, until there are two again."""
    loss, params, forest = batch_of(32 if options.quick else BATCH)
    rows = []
    worst = 0.0
    with ut.ray.cluster(2) as cluster:
        trainer = trainer_on(cluster, loss, params)
        usual = min(timed(partial(trainer.step, forest)) for _ in range(4))
        for name, number in LOST.items():
            found: list[tuple[float, float, float]] = []
            for turn in range(1 if options.quick else 3):
                cluster.pool.wait_for_workers(2)
                trainer.step(forest)
                found.append(lose(cluster, trainer, forest, turn % 2, number, usual))
            noticed, done, back = (max(times) for times in zip(*found, strict=True))
            worst = max(worst, noticed)
            rows.append([name, *map(common.seconds, (usual, noticed, done, back))])
            report.figures[name] = {"step": usual, "noticed": noticed, "done": done, "back": back}
    heads = ["a worker is", "a usual step", "noticed after", "step done after", "two again after"]
    common.table("Workers that are lost in the middle of a step (the worst of three times)", heads, rows)
    report.must(worst < NOTICED, f"a lost worker was noticed after {worst:.1f} s")


def lose(cluster: Any, trainer: Any, forest: Any, worker: int, number: int, usual: float) -> tuple[float, float, float]:
    """Seconds from a signal to a worker in the middle of a step."""
    process = next(row.process for row in cluster.stats() if row.worker == worker)
    noticed: list[float] = []
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(process, number)

    cluster.pool.on_lost(lambda *news: noticed.append(time.perf_counter()))
    again = trainer.again
    timer = threading.Timer(usual / 2, send)
    timer.start()
    trainer.step(forest)
    timer.join()
    while trainer.again == again:  # it came too late for that step
        trainer.step(forest)
    done = time.perf_counter()
    cluster.pool.wait_for_workers(2)
    return noticed[0] - sent[0], done - sent[0], time.perf_counter() - sent[0]


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# --------------------------------------------------------------------------------------------------------------
# What a model of costs needs

WIDTHS = (1, 4, 16, 64, 256)  # trees that are run together


def measure_costs(options: Any, report: "Report") -> None:
    """Ways to workers, the driver's time for a message there and one back; trees and nodes in this process."""
    with ut.ray.cluster(2) as cluster:
        ways = cluster.probe()
        times = []
        for _ in range(options.repeat):
            began = time.process_time()
            calls = [cluster.pool.call(number % 2, "echo") for number in range(MESSAGES)]
            cluster.pool.wait(calls)
            times.append((time.process_time() - began) / MESSAGES)
    costs: dict[str, Any] = {
        "round_trip": min(way.seconds for way in ways),
        "rate": max(way.rate for way in ways),
        "driver": min(times),
        "node": cost_of_a_node(options),
        **costs_of_trees(options),
    }
    report.figures["costs"] = costs
    rows = [
        ["a message to a worker and back", common.seconds(costs["round_trip"])],
        ["bytes in a second to a worker, encrypted", f"{costs['rate'] / 1e6:.0f} MB"],
        ["the driver's processor time for a message and its answer", common.seconds(costs["driver"])],
        ["a node of the search, one thread", common.seconds(costs["node"])],
        *([f"a tree, its gradient, {width} together", common.seconds(costs["training"][width])] for width in WIDTHS),
        *([f"a tree, its labels, {width} together", common.seconds(costs["inference"][width])] for width in WIDTHS),
        [f"an update after {BATCH} trees", common.seconds(costs["update"])],
    ]
    common.table("What things cost", ["", ""], rows)


def cost_of_a_node(options: Any) -> float:
    """Seconds."""
    times = []
    for _ in range(options.repeat):
        began = time.perf_counter()
        _, stats = search.run(7, 24, threads=1, stats=True)
        times.append((time.perf_counter() - began) / stats.activations)
    return min(times)


def costs_of_trees(options: Any) -> dict[str, Any]:
    """Seconds for a tree, by how many are run together; bytes of gradients and trees."""
    made = forests.together(forests.generate(BATCH))
    vocabulary = 1 + max(max(tree.word) for tree in made)
    network, params = ours.network("treelstm", networks.init("treelstm", vocabulary))
    slopes = ut.value_and_grad(network.total_loss(), sparse_rows=True)
    optimizer = ut.optim.Adagrad(networks.RATE, epsilon=networks.EPSILON)
    works: dict[str, Callable[[], Any]] = {}
    for width in WIDTHS:
        (forest,) = ours.pack(made[:width])
        works[f"training {width}"] = partial(slopes.run, params, forest, threads=1)
        works[f"inference {width}"] = partial(network.root_labels().run, params, forest, threads=1)
    grads = slopes.run(params, forest)[1]
    mine = {name: value.copy() for name, value in params.items()}
    works["update"] = partial(optimizer.update, grads, optimizer.init(mine), mine, donate=True)
    best = {name: times.best for name, times in common.measure(works, options.repeat).items()}
    arrays = [value for name, value in vars(forest).items() if isinstance(value, np.ndarray)]
    return {
        **{kind: {width: best[f"{kind} {width}"] / width for width in WIDTHS} for kind in ("training", "inference")},
        "update": best["update"],
        "dense": sum(np.asarray(value).nbytes for name, value in params.items() if name != "embed"),
        "rows": {width: rows_of(ours.pack(made[:width])[0], params) / width for width in WIDTHS},
        "tree": sum(array.nbytes for array in arrays) / BATCH,
    }


def rows_of(forest: Any, params: Any) -> int:
    """Bytes of the rows that trees look up, each once, with their numbers."""
    return int(np.unique(forest.word[forest.word >= 0]).size) * (params["embed"][0].nbytes + 8)


class Report:
    """Rows, figures, and what was missed."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.figures: dict[str, Any] = {}
        self.missed: list[str] = []

    def must(self, is_so: bool, otherwise: str) -> None:
        """A claim."""
        if not is_so:
            self.missed.append(otherwise)

    def idle(self, workers: int, idle: list[int]) -> None:
        """Every worker must have done something."""
        self.must(not idle, f"of {workers} workers, {idle} did nothing")

    def row(self, name: str, here: float, one: float, two: float) -> None:
        """Times of the same work, and the claim about them."""
        self.figures[name] = {"here": here, "one": one, "two": two}
        self.rows.append([name, *map(common.seconds, (here, one, two)), f"{here / one:.2f}", f"{one / two:.2f}"])
        self.must(one / two >= BAR, f"{name}: {one / two:.2f}")


PARTS: dict[str, Callable[[Any, Report], None]] = {
    "costs": measure_costs,
    "calls": measure_calls,
    "training": measure_training,
    "lost": measure_lost,
    "placed": measure_placed,
    "every": measure_every,
}


def main() -> None:
    parser = common.parser(__doc__, 5)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts of it (default {','.join(PARTS)})")
    options = parser.parse_args()
    report = Report()
    for part in options.only.split(","):
        PARTS[part](options, report)
    heads = ["work", "here", "one worker", "two workers", "one: times as fast as here", "two: as one"]
    if report.rows:
        common.table("One worker and two", heads, report.rows)
    print("; ".join(["Missed", *report.missed]) if report.missed else "All claims hold.")
    common.write(options.json, report.figures)


if __name__ == "__main__":
    main()
