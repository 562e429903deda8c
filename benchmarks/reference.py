"""How long the reference engine takes per call and per firing, beside plain CPython, in one run.

The reference engine is the definition, not the fast engine: this shows what a token costs in pure Python.
Usage: python benchmarks/reference.py [--repeat N] [--json FILE]
"""

import argparse
import json
import platform
import subprocess
import sys
import time

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def tak(x: ut.i64, y: ut.i64, z: ut.i64) -> ut.i64:
    if y < x:
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
    return z


@ut.function
def collatz(n: ut.i64) -> ut.i64:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


PROGRAMS = [("fib", fib, (16,)), ("tak", tak, (8, 5, 2)), ("collatz", collatz, (871,))]


def plain(function: ut.Function) -> object:
    """The Python function under the decorator, calling itself and not the graph."""
    python = function.__wrapped__
    namespace = dict(python.__globals__)
    made = type(python)(python.__code__, namespace, python.__name__)
    namespace[python.__name__] = made
    return made


def best(work, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    rows = []
    heads = ("activations", "firings", "µs/firing", "engine ms", "CPython ms", "ratio")
    print(f"{'program':<16}" + "".join(f"{head:>12}" for head in heads))
    for name, function, args in PROGRAMS:
        value, stats = function.run(*args, stats=True)
        python = plain(function)
        assert python(*args) == value, name
        engine = best(lambda f=function, a=args: f.run(*a), options.repeat)
        host = best(lambda f=python, a=args: f(*a), options.repeat)
        fired = stats.firings + stats.dead_firings
        row = {"program": f"{name}{args}", "activations": stats.activations, "firings": fired,
               "engine_seconds": engine, "cpython_seconds": host}  # fmt: skip
        rows.append(row)
        print(
            f"{name + str(args):<16}{stats.activations:>12}{fired:>12}{engine / fired * 1e6:>12.2f}"
            f"{engine * 1e3:>12.1f}{host * 1e3:>12.3f}{engine / host:>12.0f}"
        )
    if options.json:
        machine = {"python": sys.version.split()[0], "machine": platform.machine(), "system": platform.system()}
        with open(options.json, "w") as file:
            json.dump({"commit": commit(), "machine": machine, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
