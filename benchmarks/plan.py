"""The cost of preparing programs (capture, passes, and the plan of the waves engine) by the number of nodes.

Claim: planning a program of a thousand nodes takes milliseconds, and is not repeated for other data. A plan
is made in the first run, so its time is what that run takes longer than the next.
Usage: python benchmarks/plan.py [--quick] [--repeat N] [--json FILE]
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import common
import numpy as np

import undertow as ut

BAR = 50e-3  # seconds, of the plan of a thousand nodes


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
    common.write(options.json, {"rows": found, "bar": BAR})


if __name__ == "__main__":
    main()
