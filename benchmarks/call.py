"""The overhead of one call from Python (plan cache, run, conversion), for an empty function and for others; and of the
first: importing, and starting the command line.

Claims: an empty call takes under 5 µs, one with a dict of ten arrays under 8 µs; a guard adds at most 50 ns to a call;
`import undertow` takes at most twice the time of `import numpy`, and the command line starts in under 0.3 s. Calls are
timed in turns, with Numba and JAX if they are installed; the best of several rounds counts. Processes are timed by the
processor time that they take.
Usage: python benchmarks/call.py [--quick] [--repeat N] [--json FILE]
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np

import undertow as ut

BARS = {"null(3)": 5e-6, "ten({ten of f32[10]})": 8e-6}  # seconds
GUARD_BAR = 50e-9
IMPORT_BAR = 2.0  # times `import numpy`
START_BAR = 0.3
STARTS = {
    "import numpy": ("-c", "import numpy"),
    "import undertow": ("-c", "import undertow"),
    "import undertow, then ut.function": ("-c", "import undertow; undertow.function"),
    "undertow --help": ("-m", "undertow", "--help"),
    "undertow doctor": ("-m", "undertow", "doctor"),
}


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


@ut.function
def ten(arrays):
    return {name: array + 1 for name, array in arrays.items()}


class Model:
    """An object whose ten attributes are read at each call: half of them hidden arguments, half of them guards."""

    def __init__(self) -> None:
        self.a, self.b, self.c, self.d, self.e = 1.0, 2.0, 3.0, 4.0, 5.0
        self.p, self.q, self.r, self.s, self.t = 1, 2, 3, 4, 5

    @ut.function
    def method(self, x):
        return x + self.a * self.p + self.b * self.q + self.c * self.r + self.d * self.s + self.e * self.t


@ut.function
def no_object(x, a, b, c, d, e):
    return x + a * 1 + b * 2 + c * 3 + d * 4 + e * 5


class Settings:
    """An object whose ten attributes are guards."""

    def __init__(self) -> None:
        self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h, self.i, self.j = range(2, 12)


SETTINGS = Settings()


@ut.function
def guarded(x):
    s = SETTINGS
    return x + s.a + s.b + s.c + s.d + s.e + s.f + s.g + s.h + s.i + s.j


@ut.function
def unguarded(x):
    return x + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11


def python(x: int) -> int:
    return x


def of_numba() -> dict[str, Callable[..., Any]]:
    """The same calls, as far as Numba takes the arguments. Empty where it is not installed."""
    try:
        from numba import njit
    except ImportError:
        return {}

    @njit
    def fac(n):
        return 1 if n <= 1 else n * fac(n - 1)

    null, three, vector = njit(lambda x: x), njit(lambda x, y, z: (x, y, z)), njit(lambda x: x + 1)
    by_name = {"null(3)": null, "null(np.int64(3))": null, "three(1, 2.5, True)": three, "fac(10)": fac}
    return by_name | {"vector(f32[100])": vector}


def of_jax() -> dict[str, Callable[..., Any]]:
    """The same calls, each until its result is there; the recursive one is not for JAX."""
    try:
        import jax
    except ImportError:
        return {}
    null, three, vector = jax.jit(lambda x: x), jax.jit(lambda x, y, z: (x, y, z)), jax.jit(lambda x: x + 1)
    layer = jax.jit(lambda params, x: jax.numpy.tanh(x @ params["W"] + params["b"]))
    ten = jax.jit(lambda arrays: {name: array + 1 for name, array in arrays.items()})
    made = {"null(3)": null, "null(np.int64(3))": null, "three(1, 2.5, True)": three, "vector(f32[100])": vector}
    made |= {"layer({W, b}, f32[100])": layer, "ten({ten of f32[10]})": ten}
    return {name: lambda *args, call=call: jax.block_until_ready(call(*args)) for name, call in made.items()}


ONES = np.ones(100, np.float32)
PARAMS = {"W": np.ones((100, 100), np.float32), "b": ONES}
CALLS = {
    "null(3)": (null, (3,)),
    "null(np.int64(3))": (null, (np.int64(3),)),
    "three(1, 2.5, True)": (three, (1, 2.5, True)),
    "fac(10)": (fac, (10,)),
    "model.method(1.0), of ten attributes": (Model().method, (1.0,)),
    "no_object(1.0, five floats)": (no_object, (1.0, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "guarded(1.0), by ten guards": (guarded, (1.0,)),
    "unguarded(1.0)": (unguarded, (1.0,)),
    "vector(f32[100])": (vector, (ONES,)),
    "layer({W, b}, f32[100])": (layer, (PARAMS, ONES)),
    "ten({ten of f32[10]})": (ten, ({f"a{n}": np.ones(10, np.float32) for n in range(10)},)),
}


def starts(repeat: int) -> dict[str, tuple[float, float]]:
    """Seconds that processes take: (processor, wall clock), the best of several, in turns."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(repeat):
        for name, arguments in STARTS.items():
            clock = time.perf_counter()
            process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            took = used.ru_utime + used.ru_stime, time.perf_counter() - clock
            if status:
                common.fail(f"{name} has failed")
            best[name] = tuple(map(min, best.get(name, took), took))  # type: ignore[assignment]
    return best


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
    rivals = {"numba": of_numba(), "jax": of_jax()}
    for rival, made in rivals.items():
        works = {name: partial(function, *CALLS[name][1]) for name, function in made.items()}
        for work in works.values():
            work()  # compiles
        for name, taken in common.measure(works, repeat).items():
            found[name][rival] = taken.best
    columns = [*engines, *(rival for rival, made in rivals.items() if made)]
    host = common.measure({"python": partial(python, 3)}, repeat)["python"].best
    rows = [[name, *(common.seconds(taken.get(column)) for column in columns)] for name, taken in found.items()]
    common.table(
        "One call from Python", ["call", *columns], rows,
        [f"A call of a plain Python function: {common.seconds(host)}. Largest median above its best: {spread:.0%}."],
    )  # fmt: skip
    for name, bar in BARS.items():
        print(f"{name} on waves: {said(found[name]['waves'], bar)}.")
    guard = (found["guarded(1.0), by ten guards"]["waves"] - found["unguarded(1.0)"]["waves"]) / 10
    print(f"A guard: {said(max(guard, 0.0), GUARD_BAR)}.")
    started = starts(repeat)
    columns = ["process", "processor", "wall clock"]
    common.table("Starting", columns, [[name, *map(common.seconds, took)] for name, took in started.items()])
    ratio = started["import undertow"][0] / started["import numpy"][0]
    limit = "under" if ratio < IMPORT_BAR else "OVER"
    print(f"import undertow takes {ratio:.2f} times as long as import numpy, {limit} {IMPORT_BAR:g}.")
    print(f"undertow --help: {said(started['undertow --help'][0], START_BAR)}.")
    common.write(
        options.json,
        {"rows": found, "python": host, "spread": spread, "bars": BARS, "guard": guard, "starts": started,
         "ratio": ratio},
    )  # fmt: skip


def said(seconds: float, bar: float) -> str:
    return f"{common.seconds(seconds)}, {'under' if seconds < bar else 'OVER'} {common.seconds(bar)}"


if __name__ == "__main__":
    main()
