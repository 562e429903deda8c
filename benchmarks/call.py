"""The overhead of one call from Python (plan cache, run, conversion), for an empty function and for others.

Claim: an empty call takes under 20 µs. Calls are timed in turns; the best of several rounds counts.
Usage: python benchmarks/call.py [--quick] [--repeat N] [--json FILE]
"""

from functools import partial

import common
import numpy as np

import undertow as ut

BAR = 20e-6  # seconds, of the null call


@ut.function
def null(x: ut.i64):
    return x


@ut.function
def three(x, y, z):
    return x, y, z


@ut.function
def fac(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else n * fac(n - 1)


@ut.function
def vector(x):
    return x + 1


@ut.function
def layer(params, x):
    return ut.tanh(x @ params["W"] + params["b"])


def python(x: int) -> int:
    return x


ONES = np.ones(100, np.float32)
PARAMS = {"W": np.ones((100, 100), np.float32), "b": ONES}
CALLS = {
    "null(3)": (null, (3,)),
    "null(np.int64(3))": (null, (np.int64(3),)),
    "three(1, 2.5, True)": (three, (1, 2.5, True)),
    "fac(10)": (fac, (10,)),
    "vector(f32[100])": (vector, (ONES,)),
    "layer({W, b}, f32[100])": (layer, (PARAMS, ONES)),
}


def main() -> None:
    parser = common.parser(__doc__, repeat=20)
    options = parser.parse_args()
    repeat = min(options.repeat, 5) if options.quick else options.repeat
    engines = [engine for engine in ("waves", "expand", "jit") if common.has_options(engine=engine)]
    found: dict[str, dict[str, float]] = {}
    spread = 0.0
    for engine in engines:
        with ut.options(engine=engine, **common.on_threads(1)):
            works = {name: partial(function, *args) for name, (function, args) in CALLS.items()}
            for work in works.values():
                work()
            times = common.measure(works, repeat)
        spread = max(spread, *(t.spread for t in times.values()))
        for name, taken in times.items():
            found.setdefault(name, {})[engine] = taken.best
    host = common.measure({"python": partial(python, 3)}, repeat)["python"].best
    rows = [[name, *(common.seconds(taken.get(engine)) for engine in engines)] for name, taken in found.items()]
    common.table(
        "One call from Python", ["call", *engines], rows,
        [f"A call of a plain Python function: {common.seconds(host)}. Largest median above its best: {spread:.0%}."],
    )  # fmt: skip
    best = found["null(3)"]["waves"]
    print(f"The null call on waves: {common.seconds(best)}, {'under' if best < BAR else 'OVER'} {common.seconds(BAR)}.")
    common.write(options.json, {"rows": found, "python": host, "spread": spread, "bar": BAR})


if __name__ == "__main__":
    main()
