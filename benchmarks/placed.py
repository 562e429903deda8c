"""Placed graphs on workers of this machine: tokens between parts, round trips, whole programs, replicas of a TreeLSTM.

Claims: through the whole engine, batched vectors go from part to part at least half as fast as equal bytes through a
raw socket (what numbers give is printed beside it); a token that goes out and comes back in each level of a recursion
takes at most twice as long as the socket's round trip; a program that is on one worker as a whole takes at most 1.1
times as long as here, and some milliseconds; replicas of a TreeLSTM on two workers take 256 trees at least 1.3 times as
fast as on one. Programs take turns, and the best of several rounds counts, by the clock: there are several processes.
For tokens, processor time of the busier process stands beside it: what two free processors would give.

Workers are processes of this machine, without Ray. `distributed.py --only placed` runs it, too.
Usage: python benchmarks/placed.py [--quick] [--repeat N] [--only tokens,trips,programs,trees] [--json FILE]
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import common
import numpy as np
import tokens
from rivals import forests, networks, ours

import undertow as ut
from undertow.api.options import sharing_out
from undertow.cluster.local import open_pool

RATE, TRIP = 0.5, 2.0  # of the raw socket's
WHOLE, CONSTANT = 1.1, 5e-3  # times as long as here, and so many seconds more
REPLICAS = 1.3  # two workers beside one
DEPTH = 1000
BATCH = 256
PATH = 16  # bytes of a tag
TOKEN = 56  # bytes of a message with one number
WORKERS = (1, 2, 4)
SERVICES, GUESTS = "undertow.parallel.service:services", "undertow.engines.waves.guests:Guests"
JEONG = "Jeong et al., figure 10: almost linear in the number of machines, from 1 to 8, each with 36 cores."


class Report(Protocol):
    """What `distributed.py` collects."""

    figures: dict[str, Any]

    def must(self, is_so: bool, otherwise: str) -> None: ...


def children() -> set[int]:
    """Processes that any thread of this one has started."""
    return {int(number) for one in Path("/proc/self/task").glob("*/children") for number in one.read_text().split()}


@contextmanager
def workers(count: int) -> Iterator[list[int]]:
    """So many processes, on which programs inside are placed: their numbers. None: here."""
    if count == 0:
        yield []
        return
    before = children()
    with open_pool(count, services=SERVICES, guests=GUESTS) as pool, sharing_out(pool):
        yield sorted(children() - before)


def clock(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def clock_and_work(run: Callable[[], Any], process: int, work: list[float]) -> float:
    """Seconds by the clock; `work` gets those that a processor worked, here or for that process, whichever are more."""
    its_clock = (~process << 3) | 2  # as clock_getcpuclockid of Linux makes it
    here, there = time.process_time(), time.clock_gettime(its_clock)
    seconds = clock(run)
    work.append(max(time.process_time() - here, time.clock_gettime(its_clock) - there))
    return seconds


# --------------------------------------------------------------------------------------------------------------
# Tokens, all at once


@ut.function
def numbers(lanes: ut.i64) -> ut.i64:
    """A number of each lane goes to worker 0."""

    def lane(k):  # type: ignore[no-untyped-def]
        with ut.device(None):
            x = k * 3
        return x + 1

    with ut.device("worker:0"):
        return ut.sum(ut.map(lane, ut.arange(lanes)))


def vectors(length: int) -> ut.Function:
    """The same with a vector."""

    @ut.function
    def there(base: ut.f32[length], lanes: ut.i64) -> ut.f32:  # type: ignore[valid-type]
        def lane(k):  # type: ignore[no-untyped-def]
            with ut.device(None):
                x = base * ut.astype(k, ut.f32)
            return ut.sum(x)

        with ut.device("worker:0"):
            return ut.sum(ut.map(lane, ut.arange(lanes)))

    return there


def vectors_and_back(length: int) -> ut.Function:
    """And back again."""

    @ut.function
    def there_and_back(base: ut.f32[length], lanes: ut.i64) -> ut.f32:  # type: ignore[valid-type]
        def lane(k):  # type: ignore[no-untyped-def]
            x = base * ut.astype(k, ut.f32)
            with ut.device("worker:0"):
                y = x + base
            return ut.sum(y)

        return ut.sum(ut.map(lane, ut.arange(lanes)))

    return there_and_back


@dataclass(frozen=True)
class Load:
    """Lanes of which each sends a value: bytes of a value, how often it crosses, and the run."""

    name: str
    lanes: int
    size: int
    ways: int
    run: Callable[[], Any]
    must: bool = True

    @property
    def bytes(self) -> int:
        return self.lanes * self.ways * (self.size + PATH)


def loads(quick: bool) -> list[Load]:
    """All that is poured."""
    total = (1 << 24) if quick else (1 << 26)
    made = []
    for length in (256, 64):
        base, lanes = np.ones(length, np.float32), total // (4 * length)
        for name, make, ways in (("", vectors, 1), (", and back", vectors_and_back, 2)):
            run = partial(make(length).run, base, lanes)
            made.append(Load(f"vectors of {length} floats{name}", lanes, 4 * length, ways, run))
    lanes = total // 256
    return [*made, Load("numbers", lanes, 8, 1, partial(numbers.run, lanes), must=False)]


def measure_tokens(options: Any, report: Report) -> None:
    """Through the whole engine, and as many bytes through a socket."""
    rows = []
    with workers(1) as (process,):
        for load in loads(options.quick):
            load.run()  # plans
            of_raw: list[float] = []
            of_ours: list[float] = []
            raw, ours_ = tokens.best_of(
                2 * options.repeat,
                partial(tokens.poured_raw, load.bytes, tokens.BUFFER, of_raw),
                partial(clock_and_work, load.run, process, of_ours),
            )
            work = min(of_raw) / min(of_ours)
            crossed = load.lanes * load.ways
            report.figures[f"tokens {load.name}"] = {
                "tokens": crossed,
                "bytes": load.bytes,
                "raw": raw,
                "engine": ours_,
                "work": work,
            }
            rates = (f"{load.bytes / seconds / 1e9:.2f} GB/s" for seconds in (raw, ours_))
            rows.append(
                [load.name, *rates, f"{crossed / ours_ / 1e6:.2f} million/s", f"{raw / ours_:.2f}", f"{work:.2f}"]
            )
            if load.must:
                report.must(raw / ours_ >= RATE, f"tokens, {load.name}: {raw / ours_:.2f}")
    heads = ["each lane sends", "socket", "placed program", "tokens", "times as fast", "by processor time"]
    common.table("Tokens between two parts, through the whole engine", heads, rows)


# --------------------------------------------------------------------------------------------------------------
# Tokens, one after the other


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    """A number goes to worker 0 in each level, and comes back smaller."""
    if n <= 0:
        return 1
    with ut.device("worker:0"):
        less = n - 1
    return n * factorial(less)


def measure_trips(options: Any, report: Report) -> None:
    """One token there and back, beside the socket; and what a run costs in which next to nothing crosses."""
    depth = 100 if options.quick else DEPTH
    with workers(1):
        factorial.run(1)
        raw, deep, flat = tokens.best_of(
            4 * options.repeat,
            lambda: tokens.swung_raw(depth, TOKEN),
            lambda: clock(partial(factorial.run, depth)),
            lambda: clock(partial(factorial.run, 0)),
        )
    trip = (deep - flat) / depth
    report.figures["trips"] = {"depth": depth, "raw": raw, "engine": trip, "run": flat}
    row = ["a token there and back", common.seconds(raw), common.seconds(trip), f"{trip / raw:.2f}"]
    common.table(
        f"A factorial of depth {depth} whose number goes out and comes back",
        ["", "socket", "placed program", "times as long"],
        [row],
        [f"A placed run in which nothing recurses takes {common.seconds(flat)}."],
    )
    report.must(trip / raw <= TRIP, f"round trips: {trip / raw:.2f}")


# --------------------------------------------------------------------------------------------------------------
# Programs on one, two and four workers


def names(count: int) -> list[str] | str:
    """The devices of so many workers."""
    return "worker:0" if count == 1 else [f"worker:{k}" for k in range(count)]


def placed_factorial(count: int) -> ut.Function:
    """The products of many numbers, a call for each, shared out by tag."""

    @ut.device(names(count))
    @ut.function
    def product(n: ut.i64) -> ut.f64:
        if n <= 0:
            return 1.0
        return ut.astype(n, ut.f64) * product(n - 1)

    @ut.function
    def of_all(lanes: ut.i64, n: ut.i64) -> ut.f64:
        return ut.sum(ut.map(lambda k: product(n - k % 8), ut.arange(lanes)))

    return of_all


def placed_fib(count: int) -> ut.Function:
    """Many calls of fib, shared out by tag."""

    @ut.device(names(count))
    @ut.function
    def fib(n: ut.i64) -> ut.i64:
        return n if n <= 1 else fib(n - 1) + fib(n - 2)

    @ut.function
    def of_all(lanes: ut.i64, n: ut.i64) -> ut.i64:
        return ut.sum(ut.map(lambda k: fib(n - k % 8), ut.arange(lanes)))

    return of_all


PROGRAMS: dict[str, tuple[Callable[[int], ut.Function], tuple[int, int], tuple[int, int]]] = {
    "factorial": (placed_factorial, (4096, 400), (512, 100)),
    "fib": (placed_fib, (64, 27), (64, 20)),
}


def measure_programs(options: Any, report: Report) -> None:
    """Here, and placed."""
    rows = []
    for name, (make, usual, quick) in PROGRAMS.items():
        arguments = quick if options.quick else usual
        best: dict[int, float] = {}
        results = []
        for count in (0, *WORKERS):
            function = make(max(count, 1))
            with workers(count), ut.options(threads=1):
                results.append(function.run(*arguments))
                (best[count],) = tokens.best_of(2 * options.repeat, partial(clock, partial(function.run, *arguments)))
        if len({*map(float, results)}) > 1:
            common.fail(f"{name}: {results}")
        report.figures[f"placed {name}"] = best
        rows.append([f"{name}, {arguments[0]} calls", *map(common.seconds, best.values()), f"{best[1] / best[2]:.2f}"])
        ratio = (best[1] - CONSTANT) / best[0]
        report.must(ratio <= WHOLE, f"{name} on one worker as a whole: {ratio:.2f} times as long as here")
    heads = [
        "program, one thread each",
        "here",
        *(f"{count} workers" for count in WORKERS),
        "two: times as fast as one",
    ]
    common.table("Programs whose function has a replica on each worker", heads, rows)


# --------------------------------------------------------------------------------------------------------------
# Replicas of a TreeLSTM


def tree_lstm(count: int, width: int) -> tuple[ut.Function, ut.Function]:
    """The TreeLSTM of the race, its recursive function on so many workers: (labels of roots, loss and its gradient)."""
    d = width

    def scores(params: Any, h: Any) -> Any:
        return h @ params["out"] + params["out_bias"]

    def loss_at(params: Any, forest: Any, node: Any, h: Any) -> Any:
        logits = scores(params, h)
        top = ut.max(logits)
        return ut.log(ut.sum(ut.exp(logits - top))) + top - logits[forest.label[node]]

    @ut.device(names(count))
    @ut.function
    def encode(params, forest, node: ut.i32) -> (ut.f32[d], ut.f32[d], ut.f32):  # type: ignore[no-untyped-def,valid-type]
        if forest.is_leaf(node):
            z = params["embed"][forest.word[node]] @ params["leaf"] + params["leaf_bias"]
            c = ut.sigmoid(z[:d]) * ut.tanh(z[2 * d :])
            h = ut.sigmoid(z[d : 2 * d]) * ut.tanh(c)
            return h, c, loss_at(params, forest, node, h)
        h_left, c_left, of_left = encode(params, forest, forest.left[node])
        h_right, c_right, of_right = encode(params, forest, forest.right[node])
        z = ut.concat([h_left, h_right]) @ params["weights"] + params["bias"]
        c = (
            ut.sigmoid(z[:d]) * ut.tanh(z[2 * d : 3 * d])
            + ut.sigmoid(z[3 * d : 4 * d]) * c_left
            + ut.sigmoid(z[4 * d :]) * c_right
        )
        h = ut.sigmoid(z[d : 2 * d]) * ut.tanh(c)
        return h, c, loss_at(params, forest, node, h) + of_left + of_right

    @ut.function
    def labels(params, forest) -> ut.i32["trees"]:  # type: ignore[no-untyped-def,name-defined]  # noqa: F821
        def of_tree(root):  # type: ignore[no-untyped-def]
            return ut.astype(ut.argmax(scores(params, encode(params, forest, root)[0])), ut.i32)

        return ut.map(of_tree, forest.roots)

    @ut.function
    def loss(params, forest) -> ut.f32:  # type: ignore[no-untyped-def]
        return ut.sum(ut.map(lambda root: encode(params, forest, root)[2], forest.roots))

    return labels, ut.value_and_grad(loss, sparse_rows=True)


class Trees:
    """The works of one number of workers, with weights and optimizer of its own. A step of training updates them."""

    def __init__(self, count: int, params: Any, width: int, forest: Any) -> None:
        self.labels, self.gradient = tree_lstm(max(count, 1), width)
        self.forest = forest
        self.fixed = params
        self.params = {name: value.copy() for name, value in params.items()}
        self.optimizer = ut.optim.Adagrad(networks.RATE, epsilon=networks.EPSILON)
        self.state = self.optimizer.init(self.params)

    def infer(self) -> Any:
        return self.labels.run(self.fixed, self.forest)

    def slopes(self) -> Any:
        return self.gradient.run(self.fixed, self.forest)[0]

    def train(self) -> Any:
        loss, grads = self.gradient.run(self.params, self.forest)
        self.params, self.state = self.optimizer.update(grads, self.state, self.params, donate=True)
        return loss

    def works(self) -> dict[str, Callable[[], Any]]:
        return {"inference": self.infer, "loss and gradient": self.slopes, "a step of training": self.train}


def measure_trees(options: Any, report: Report) -> None:
    """Inference, gradients and steps of training, here and on one, two and four workers, in turns by pool."""
    made = forests.together(forests.generate(32 if options.quick else BATCH))
    network, params = ours.network("treelstm", networks.init("treelstm", 1 + max(max(tree.word) for tree in made)))
    (forest,) = ours.pack(made)
    best: dict[str, dict[int, float]] = {}
    first: dict[str, Any] = {}
    for _ in range(1 if options.quick else 2):
        for count in (0, *WORKERS):
            with workers(count), ut.options(threads=1):
                for name, work in Trees(count, params, network.width, forest).works().items():
                    found = work()
                    if not np.allclose(first.setdefault(name, found), found, rtol=1e-4):
                        common.fail(f"{name} on {count} workers: {found}, not {first[name]}")
                    (seconds,) = tokens.best_of(2 * options.repeat, partial(clock, work))
                    known = best.setdefault(name, {})
                    known[count] = min(seconds, known.get(count, seconds))
    rows, speeds = [], []
    for name, times in best.items():
        report.figures[f"trees, {name}"] = times
        rows.append([name, *map(common.seconds, times.values()), f"{times[1] / times[2]:.2f}"])
        report.must(times[1] / times[2] >= REPLICAS, f"{name} on two workers: {times[1] / times[2]:.2f}")
    for count, seconds in best["a step of training"].items():
        if count:
            speeds.append([str(count), f"{len(made) / seconds:.0f}", f"{best['a step of training'][1] / seconds:.2f}"])
    heads = ["one thread each", "here", *(f"{count} workers" for count in WORKERS), "two: times as fast as one"]
    common.table(f"Replicas of a TreeLSTM: {len(made)} trees", heads, rows)
    common.table(
        "Training of a TreeLSTM on several workers (figure 10)", ["workers", "trees per second", "beside one"], speeds,
        [JEONG],
    )  # fmt: skip


PARTS: dict[str, Callable[[Any, Report], None]] = {
    "tokens": measure_tokens,
    "trips": measure_trips,
    "programs": measure_programs,
    "trees": measure_trees,
}


def measure_placed(options: Any, report: Report) -> None:
    """All of it."""
    for measure in PARTS.values():
        measure(options, report)


class Alone:
    """The report of this script by itself."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.missed: list[str] = []

    def must(self, is_so: bool, otherwise: str) -> None:
        """A claim."""
        if not is_so:
            self.missed.append(otherwise)


def main() -> None:
    parser = common.parser(__doc__, 5)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts of it (default {','.join(PARTS)})")
    options = parser.parse_args()
    report = Alone()
    for part in options.only.split(","):
        PARTS[part](options, report)
    print("; ".join(["Missed", *report.missed]) if report.missed else "All claims hold.")
    common.write(options.json, report.figures)


if __name__ == "__main__":
    main()
