"""Memory that stays: how much more the process holds after millions of runs than before them.

Claim: a soak of ten million runs ends within 20 MB of where it began. Every kind of run is warmed up first, with a
hundredth of its share; then the kinds take turns, and what the process holds is printed after each round.
Usage: python benchmarks/soak.py [--quick] [--runs N] [--kind KIND ...] [--json FILE]
"""

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np

import undertow as ut

BAR = 20.0  # MB
ROUNDS = 10


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def layer(w, x):
    return ut.tanh(x @ w)


@ut.function
def norm(x: ut.f64["n"]):  # noqa: F821  # the name of a length
    return ut.sum(x * x)


@ut.function
def any_length(x):
    return ut.sum(x * x)


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@ut.function
def divide(a: ut.i64, b: ut.i64) -> ut.i64:
    return a // b


total = ut.Variable(0, name="total")
series = ut.Variable(np.zeros(8), name="series")


@ut.function
def note(n: ut.i64) -> ut.i64:
    total.assign_add(n)
    series.assign_add(np.ones(8))
    return total.read()


@ut.function
def tree_sum(left, right, value, node: ut.i64) -> ut.f64:
    if left[node] < 0:
        return value[node]
    return tree_sum(left, right, value, left[node]) + tree_sum(left, right, value, right[node])


slope = ut.grad(power)
W, X = np.ones((16, 16)), np.ones((4, 16))
LEFT, RIGHT, VALUE = np.array([-1, -1, 0]), np.array([-1, -1, 1]), np.array([1.0, 2.0, 0.0])
NUMBERS = np.arange(8)
LENGTHS = np.zeros(4096)


def failing(work: Callable[[], Any]) -> None:
    try:
        work()
    except ut.RunError:
        return
    common.fail("a run that should fail has not")


def short_lived(k: int) -> None:
    """A function that is made, called and dropped; it closes over an array."""
    held = np.full(4, k)

    @ut.function
    def add(x):
        return x + held

    add(NUMBERS[:4])


def in_thread(k: int) -> None:
    thread = threading.Thread(target=lambda: fib(8 + k % 4))
    thread.start()
    thread.join()


# A kind of run, and how many of the others it takes as long as. What gives large arrays keeps none of them.
KINDS: dict[str, tuple[Callable[[int], Any], int]] = {
    "numbers": (lambda k: fib(8), 1),
    "arrays": (lambda k: layer(W, X), 2),
    "maps": (lambda k: fib.map(NUMBERS), 3),
    "gradients": (lambda k: slope(1.5, 5), 3),
    "trees": (lambda k: tree_sum(LEFT, RIGHT, VALUE, 2), 3),
    "variables": (lambda k: note(1), 10),
    "named lengths": (lambda k: norm(LENGTHS[: 1 + k * 37 % 4096]), 2),
    "faults": (lambda k: failing(lambda: divide(k, 0)), 10),
    "limits": (lambda k: failing(lambda: fib.run(8, frames=3)), 10),
    "other engines": (lambda k: fib.run(6, engine=("expand", "reference")[k % 2]), 300),
    "lengths": (lambda k: any_length(LENGTHS[: 1 + k * 37 % 4096]), 500),
    "functions": (short_lived, 1000),
    "threads": (in_thread, 20),
}


def held() -> float:
    """What the process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = common.parser(__doc__, repeat=None)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only runs of this kind")
    options = parser.parse_args()
    runs = min(options.runs, 20_000) if options.quick else options.runs
    kinds = {name: KINDS[name] for name in options.kind or KINDS}
    share = {name: max(ROUNDS, round(runs / len(kinds) / cost)) for name, (_, cost) in kinds.items()}
    if len(kinds) == 1:
        share = dict.fromkeys(kinds, runs)
    done = dict.fromkeys(kinds, 0)

    def some(name: str, count: int) -> None:
        work = kinds[name][0]
        for k in range(done[name], done[name] + count):
            work(k)
        done[name] += count

    for name in kinds:
        some(name, max(1, min(share[name] // 100, 10_000)))
    gc.collect()
    began = held()
    grown = dict.fromkeys(kinds, 0.0)
    most = 0.0
    for number in range(ROUNDS):
        for name in kinds:
            before = held()
            some(name, share[name] // ROUNDS)
            grown[name] += held() - before
        gc.collect()
        most = max(most, held() - began)
        print(f"{number + 1:3}/{ROUNDS}: {held():8.1f} MB, {held() - began:+.1f} MB", flush=True)
    after = held() - began
    rows = [[name, f"{done[name]:,}", f"{grown[name]:+.1f}"] for name in kinds]
    common.table("Memory that stays", ["runs of", "runs", "MB"], rows, [f"From {began:.0f} MB on: {after:+.1f} MB."])
    figures = {"runs": done, "grown": grown, "began": began, "after": after, "most": most}
    common.write(options.json, figures)
    if after > BAR:
        common.fail(f"the process holds {after:.1f} MB more than before, over {BAR:g}")


if __name__ == "__main__":
    main()
