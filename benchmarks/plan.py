"""The cost of preparing programs (capture, passes, and the plan of the waves engine) by the number of nodes.

Claims: planning a program of a thousand nodes takes milliseconds, and is not repeated for other data, nor for arrays of
other lengths; the first call of a function that unrolls a loop of 5,000 steps takes under half a second. A plan is made
in the first run, so its time is what that run takes longer than the next. Numba, which keeps loops, and JAX, which
unrolls them too and compiles for each length, stand beside ours if they are installed.
Usage: python benchmarks/plan.py [--quick] [--repeat N] [--json FILE]
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from types import FunctionType
from typing import Any

import common
import numpy as np

import undertow as ut

BAR = 50e-3  # seconds, of the plan of a thousand nodes
STEPS = 5_000
UNROLLED_BAR = 0.5  # seconds
LENGTHS = range(1, 51)


def straight(k: int) -> Any:
    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.f64:
        if n <= 0:
            return x
        y = x
        for _ in range(k):
            y = y * 1.5 + ut.sin(x)
        return f(n - 1, y) + f(n - 1, x)

    return f


def calls(k: int) -> Any:
    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.f64:
        if n <= 0:
            return x
        y = x
        for i in range(k):
            y = y + f(n - 1, x * i)
        return y

    return f


def branches(k: int) -> Any:
    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.f64:
        y = x
        for i in range(k):
            y = y * 2 if n > i else y - 1
        return y

    return f


def loops(k: int) -> Any:
    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.f64:
        y = x
        for _ in range(k):
            for _ in range(n):
                y = y * 2
        return y

    return f


def layers(k: int) -> Any:
    @ut.function
    def f(n: ut.i64, x: ut.f64[8], w: ut.f64[8, 8]) -> ut.f64[8]:
        if n <= 0:
            return x
        y = x
        for i in range(k):
            y = ut.tanh(w @ y + i)
        return f(n - 1, y, w) + f(n - 1, x, w)

    return f


def gradient(make: Callable[[int], Any]) -> Callable[[int], Any]:
    def made(k: int) -> Any:
        f = make(k)
        return ut.grad(lambda n, x, *rest: ut.sum(f(n, x, *rest)), argnums=1)

    return made


SCALARS = (0, 1.0)
ARRAYS = (0, np.ones(8), np.ones((8, 8)))
# What a program is made of, how often it is repeated to have about a thousand nodes, and what it is called with.
PROGRAMS: dict[str, tuple[Callable[[int], Any], int, tuple[Any, ...]]] = {
    "operators": (straight, 490, SCALARS),
    "calls": (calls, 165, SCALARS),
    "branches": (branches, 200, SCALARS),
    "loops": (loops, 55, SCALARS),
    "gradient of operators": (gradient(straight), 240, SCALARS),
    "gradient of calls": (gradient(calls), 85, SCALARS),
    "gradient of branches": (gradient(branches), 125, SCALARS),
    "gradient of layers": (gradient(layers), 130, ARRAYS),
}


def unrolled(x):
    y = x
    for _ in range(STEPS):
        y = y * 1.0001 + x
    return y


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def decorators() -> dict[str, Callable[[Any], Any]]:
    """By name: what makes a compiled function of a Python function."""
    found: dict[str, Callable[[Any], Any]] = {"undertow": ut.function}
    try:
        from numba import njit

        found["numba"] = njit
    except ImportError:
        pass
    try:
        import jax

        found["jax"] = lambda python: lambda x: jax.block_until_ready(jax.jit(_with_numpy(python, jax.numpy))(x))
    except ImportError:
        pass
    return found


def _with_numpy(python: Any, numpy: Any) -> Any:
    return FunctionType(python.__code__, {**python.__globals__, "np": numpy}, python.__name__)


def first_calls(repeat: int) -> dict[str, dict[str, float]]:
    """Seconds of the first call that unrolls a loop, and of calls with fifty lengths; the best of several."""
    arrays = [np.arange(n, dtype=float) for n in LENGTHS]
    best: dict[str, dict[str, float]] = {}
    for round_ in range(repeat):
        for name, decorate in decorators().items():
            if name == "jax" and round_:
                continue  # it takes many times as long as ours
            loop, many = decorate(_with_numpy(unrolled, np)), decorate(_with_numpy(softmax, np))
            took = {
                f"a loop of {STEPS:,} steps": taken(partial(loop, 1.0)),
                f"{len(LENGTHS)} lengths": taken(lambda many=many: [many(array) for array in arrays]),
            }
            before = best.setdefault(name, took)
            best[name] = {what: min(seconds, before[what]) for what, seconds in took.items()}
    return best


def taken(work: Callable[[], Any]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def main() -> None:
    options = common.parser(__doc__, repeat=7).parse_args()
    repeat = min(options.repeat, 3) if options.quick else options.repeat
    rows: list[list[str]] = []
    found: dict[str, dict[str, float]] = {}
    for name, (make, size, args) in PROGRAMS.items():
        ready: list[float] = []
        plan: list[float] = []
        count = 0
        for _ in range(repeat):
            function = make(size)
            call = partial(function.run, *args, engine="waves", threads=1)
            ready.append(taken(partial(function.graph, *args)))
            first = taken(call)  # it makes the plan, and then does what the second does
            plan.append(first - taken(call))
            count = len(function.graph(*args))
        best, thousand = min(plan), min(plan) / count * 1000
        found[name] = {"nodes": count, "ready": min(ready), "plan": best, "plan_of_a_thousand": thousand}
        spread = f"{median(plan) / best - 1:.0%}"
        rows.append([name, f"{count:,}", common.seconds(min(ready)), common.seconds(best), spread])
    common.table("Making programs ready", ["made of", "nodes", "capture and passes", "plan", "spread"], rows)
    worst = max(row["plan_of_a_thousand"] for row in found.values())
    said = "under" if worst < BAR else "OVER"
    print(f"At most {common.seconds(worst)} for a thousand nodes, {said} {common.seconds(BAR)}.")
    first = first_calls(repeat)
    kinds = list(first["undertow"])
    rows = [[name, *(common.seconds(took[kind]) for kind in kinds)] for name, took in first.items()]
    common.table("First calls", ["by", *kinds], rows)
    best = first["undertow"][kinds[0]]
    said = "under" if best < UNROLLED_BAR else "OVER"
    print(f"The loop: {common.seconds(best)}, {said} {common.seconds(UNROLLED_BAR)}.")
    common.write(options.json, {"rows": found, "bar": BAR, "first": first, "unrolled_bar": UNROLLED_BAR})


if __name__ == "__main__":
    main()
