"""Table 1 of the paper (fib, ack, tak, primes) on every engine, in CPython, Numba and C, beside the printed figures.

Measures what the static graph costs per call. All run in turns in one process and on one thread, the best of several
counts. Values are compared, and the activations of every engine with the calls that Python makes: nothing was skipped.
Usage: python benchmarks/table1.py [--quick] [--repeat N] [--limit SECONDS] [--json FILE]
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import common

import undertow as ut


def fib(n: ut.i32) -> ut.i32:
    return 1 if n <= 1 else fib(n - 1) + fib(n - 2)


def ack(m: ut.i32, n: ut.i32) -> ut.i32:
    if m == 0:
        return n + 1
    if n == 0:
        return ack(m - 1, 1)
    return ack(m - 1, ack(m, n - 1))


def tak(x: ut.i32, y: ut.i32, z: ut.i32) -> ut.i32:
    if y < x:
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
    return z


# The program that the papers time: four functions, two of them mutually recursive. Both walkers look at 6i - 1, as
# printed, so it does not give primes; its results are those of the thesis.
def primes(n: ut.i32) -> ut.i32:
    if n <= 0:
        return 2
    return 3 if n == 1 else walk_minus(n - 2, 1)


def walk_minus(n: ut.i32, i: ut.i32) -> ut.i32:
    if has_no_divisor(6 * i - 1, 1):
        return 6 * i - 1 if n == 0 else walk_plus(n - 1, i)
    return walk_plus(n, i)


def walk_plus(n: ut.i32, i: ut.i32) -> ut.i32:
    if has_no_divisor(6 * i - 1, 1):
        return 6 * i - 1 if n == 0 else walk_minus(n - 1, i + 1)
    return walk_minus(n, i + 1)


def has_no_divisor(n: ut.i32, i: ut.i32) -> ut.bool:
    if (6 * i - 1) * (6 * i - 1) > n:
        return True
    return False if n % (6 * i - 1) == 0 else has_no_divisor(n, i + 1)


FUNCTIONS = [fib, ack, tak, primes, walk_minus, walk_plus, has_no_divisor]

C = """
#include <stdint.h>
#include <stdbool.h>
typedef int32_t i32;
i32 fib(i32 n) { return n <= 1 ? 1 : fib(n - 1) + fib(n - 2); }
i32 ack(i32 m, i32 n) { return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
i32 tak(i32 x, i32 y, i32 z) {
  return y < x ? tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) : z;
}
static bool has_no_divisor(i32 n, i32 i) {
  const i32 d = 6 * i - 1;
  return d * d > n ? true : n % d == 0 ? false : has_no_divisor(n, i + 1);
}
static i32 walk_plus(i32 n, i32 i);
static i32 walk_minus(i32 n, i32 i) {
  if (has_no_divisor(6 * i - 1, 1)) return n == 0 ? 6 * i - 1 : walk_plus(n - 1, i);
  return walk_plus(n, i);
}
static i32 walk_plus(i32 n, i32 i) {
  if (has_no_divisor(6 * i - 1, 1)) return n == 0 ? 6 * i - 1 : walk_minus(n - 1, i + 1);
  return walk_minus(n, i + 1);
}
i32 primes(i32 n) { return n <= 0 ? 2 : n == 1 ? 3 : walk_minus(n - 2, 1); }
"""

# Seconds of the static and of the dynamic approach: Kostopoulou, Charalambidis and Rondogiannis, "Recursive Function
# Definitions in Static Dataflow Graphs and their Implementation in TensorFlow", Table 1. The paper names no machine.
PRINTED = {
    "fib": {
        (24,): (0.812, 0.990), (25,): (1.259, 1.629), (26,): (2.127, 2.572), (27,): (3.295, 4.178),
        (28,): (5.338, 6.739), (29,): (8.614, 10.937), (30,): (13.968, 17.801), (31,): (22.717, 28.610),
        (32,): (37.446, 46.855), (33,): (61.287, 75.646),
    },
    "ack": {
        (3, 3): (0.089, 0.118), (3, 4): (0.348, 0.503), (3, 5): (1.511, 2.095), (3, 6): (6.165, 8.323),
        (3, 7): (25.489, 33.147), (3, 8): (100.882, 128.955),
    },
    "tak": {
        (24, 16, 8): (18.881, 16.075), (25, 16, 8): (29.545, 25.394), (26, 16, 8): (45.218, 38.722),
        (27, 16, 8): (67.757, 57.876), (27, 17, 8): (188.506, 159.778),
    },
    "primes": {
        (7500,): (13.502, 13.458), (8000,): (14.836, 14.784), (8500,): (16.268, 16.076), (9000,): (17.556, 17.348),
        (9500,): (18.868, 18.912), (10000,): (20.636, 20.378),
    },
}  # fmt: skip
SOURCE = "Kostopoulou, Charalambidis, Rondogiannis: Table 1, TensorFlow with tags and as it was; machine not stated"
MORE = {"tak": [(18, 12, 6), (22, 16, 8)]}
QUICK = {"fib": [(24,), (27,)], "ack": [(3, 3), (3, 5)], "tak": [(18, 12, 6), (22, 16, 8)], "primes": [(1000,)]}
PROBES = {"fib": (12,), "ack": (2, 4), "tak": (8, 5, 2), "primes": (20,)}  # small: they tell what a call costs
ENGINES = ("reference", "expand", "waves")
TWO = "waves, 2 threads"
COUNTED = ("activations", "waves", "peak_frames", "peak_bytes", "max_depth")  # of what engines count
FRAMES_BAR = 20e6  # bytes, of fib(33)


class Counted:
    """A memoized function that counts calls, including those inside a memoized result."""

    calls = 0  # of all functions together

    def __init__(self, function: Callable[..., Any]) -> None:
        known: dict[tuple[int, ...], tuple[Any, int]] = {}

        def call(*args: int) -> Any:
            if args in known:
                value, inner = known[args]
                Counted.calls += inner
                return value
            before = Counted.calls
            Counted.calls += 1
            value = function(*args)
            known[args] = value, Counted.calls - before
            return value

        self.call = call


def counts() -> Callable[[str, tuple[int, ...]], tuple[Any, int]]:
    """The result of a program, and the number of calls it takes."""
    functions = common.bind(FUNCTIONS, lambda function: Counted(function).call)

    def count(name: str, args: tuple[int, ...]) -> tuple[Any, int]:
        Counted.calls = 0
        return functions[name](*args), Counted.calls

    return count


def compiled() -> dict[str, Callable[..., int]] | str:
    """The compiled C functions, or why there are none."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return "no compiler"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "table1.c"), Path(folder, "table1.so")
        source.write_text(C)
        command = [*compiler.split(), "-O2", "-fPIC", "-shared", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return "does not compile"
        loaded = ctypes.CDLL(str(library))
    made = {}
    for name in PRINTED:
        made[name] = getattr(loaded, name)
        made[name].restype = ctypes.c_int32
    return made


def jitted() -> dict[str, Callable[..., int]] | str:
    try:
        import numba
    except ImportError:
        return "not installed"
    return common.bind(FUNCTIONS, numba.njit)


class Rival:
    """One way to run the programs, and what a call has cost it so far."""

    def __init__(self, name: str, functions: dict[str, Callable[..., Any]] | str) -> None:
        self.name = name
        self.missing = functions if isinstance(functions, str) else ""
        self.functions = {} if isinstance(functions, str) else functions
        self.cost: dict[str, float] = {}  # seconds per call, by program


def rivals(graphs: dict[str, ut.Function]) -> list[Rival]:
    def run(**options: Any) -> dict[str, Callable[..., Any]]:
        return {name: partial(graphs[name].run, **options) for name in PRINTED}

    made = []
    for engine in ENGINES:
        there = common.has_options(engine=engine)
        made.append(Rival(engine, run(engine=engine, **common.on_threads(1)) if there else "not there"))
    if common.on_threads(2):
        made.append(Rival(TWO, run(engine="waves", threads=2)))
    made.append(Rival("CPython", common.bind(FUNCTIONS, lambda function: function)))
    made.append(Rival("Numba", jitted()))
    made.append(Rival("C -O2", compiled()))
    return made


def row(name: str, args: tuple[int, ...], runners: list[Rival], graphs: dict, expected: tuple, options: Any) -> dict:
    """The figures of one line of the table."""
    value, calls = expected
    works, counted = {}, {}
    for rival in runners:
        if rival.missing or rival.cost[name] * calls > options.limit:
            continue
        if rival.name in ENGINES:
            found, stats = graphs[name].run(*args, engine=rival.name, stats=True, **common.on_threads(1))
            if stats.activations != calls:
                common.fail(f"{name}{args} on {rival.name}: {stats.activations} activations, not {calls}")
            counted[rival.name] = {key: getattr(stats, key) for key in COUNTED}
        else:
            found = rival.functions[name](*args)
        if found != value:
            common.fail(f"{name}{args} on {rival.name} gives {found}, not {value}")
        works[rival.name] = partial(rival.functions[name], *args)
    times = common.measure(works, options.repeat)
    for rival in runners:
        if rival.name in times:
            rival.cost[name] = times[rival.name].best / calls
    return {
        "program": name,
        "args": args,
        "value": int(value),
        "calls": calls,
        "seconds": {key: found.best for key, found in times.items()},  # of the processor
        "clock": {key: found.best_clock for key, found in times.items()},
        "spread": {key: found.spread for key, found in times.items()},
        "stats": counted,
        "printed": PRINTED[name].get(args),
    }


def show(rows: list[dict], runners: list[Rival]) -> None:
    names = [rival.name for rival in runners if rival.name != TWO]
    missing = [f"{rival.name}: {rival.missing}" for rival in runners if rival.missing]
    label = {id(row): f"{row['program']}({', '.join(map(str, row['args']))})" for row in rows}
    lines = []
    for row in rows:
        static, dynamic = row["printed"] or (None, None)
        times = [common.seconds(row["seconds"].get(name)) for name in names]
        lines.append([label[id(row)], *times, common.seconds(static), common.seconds(dynamic)])
    common.table(
        "Table 1: time of one run, on one thread", ["program", *names, "paper, static", "paper, dynamic"], lines,
        [f"- : not there, or longer than the limit. {'; '.join(missing)}", f"Papers: {SOURCE}."],
    )  # fmt: skip
    lines = []
    for row in rows:
        calls, taken, clock = row["calls"], row["seconds"], row["clock"]
        each = [f"{taken[name] / calls * 1e9:,.3g}" if name in taken else "-" for name in names]
        host = f"{taken['CPython'] / taken['waves']:.2f}" if {"CPython", "waves"} <= taken.keys() else "-"
        printed = f"{row['printed'][0] / taken['waves']:,.0f}" if row["printed"] and "waves" in taken else "-"
        speedup = f"{clock['waves'] / clock[TWO]:.2f}" if {"waves", TWO} <= clock.keys() else "-"
        worst = max(row["spread"].values())
        lines.append([label[id(row)], f"{calls:,}", *each, host, printed, speedup, f"{worst:.0%}"])
    common.table(
        "Nanoseconds per call, on one thread",
        ["program", "calls", *names, "CPython/waves", "paper/waves", "waves 1/2 threads", "spread"], lines,
        ["Every engine made exactly these calls. The papers' machine is another: orders of magnitude only.",
         "Times are of the processor. The ratio of 1 to 2 threads is one of clock times: it says something only where",
         f"nothing else runs (load now: {common.load()}). Spread: the largest median above its best."],
    )  # fmt: skip


def work(options: Any) -> None:
    graphs = common.bind(FUNCTIONS, ut.function)
    runners = rivals(graphs)
    count = counts()
    rows = []
    for name in PRINTED:
        _, calls = count(name, PROBES[name])
        for rival in runners:
            if not rival.missing:
                rival.functions[name](*PROBES[name])  # captured, planned or compiled
                times = common.measure({"probe": partial(rival.functions[name], *PROBES[name])}, 3)
                rival.cost[name] = times["probe"].best / calls
        for args in QUICK[name] if options.quick else [*MORE.get(name, []), *PRINTED[name]]:
            rows.append(row(name, args, runners, graphs, count(name, args), options))
            print(f"{name}{args} done", file=sys.stderr)
    show(rows, runners)
    peak = next((r["stats"]["waves"]["peak_bytes"] for r in rows if r["args"] == (33,) and "waves" in r["stats"]), None)
    if peak is not None:
        verdict = "under" if peak < FRAMES_BAR else "OVER"
        print(f"Frames of fib(33) on waves, at most: {peak / 1e6:.1f} MB, {verdict} {FRAMES_BAR / 1e6:.0f} MB.")
    versions = {"numba": common.version("numba")}
    common.write(options.json, {"source": SOURCE, "versions": versions, "repeat": options.repeat, "rows": rows})


def main() -> None:
    parser = common.parser(__doc__, repeat=5)
    parser.add_argument("--limit", type=float, default=10.0, help="leave out what would take longer (seconds)")
    options = parser.parse_args()
    options.repeat = min(options.repeat, 3) if options.quick else options.repeat
    options.limit = min(options.limit, 2.0) if options.quick else options.limit
    # ack and primes nest thousands of calls.
    common.with_deep_stack(partial(work, options))


if __name__ == "__main__":
    main()
