"""How long the reference engine takes per call and per firing, beside plain CPython, in one run.

The reference engine is the definition, not the fast engine: this shows what a token costs in pure Python.
Usage: python benchmarks/reference.py [--quick] [--repeat N] [--json FILE]
"""

from functools import partial

import common

import undertow as ut


def fib(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else fib(n - 1) + fib(n - 2)


def tak(x: ut.i64, y: ut.i64, z: ut.i64) -> ut.i64:
    if y < x:
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
    return z


def collatz(n: ut.i64) -> ut.i64:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


FUNCTIONS = [fib, tak, collatz]
ARGUMENTS = {"fib": (16,), "tak": (8, 5, 2), "collatz": (871,)}


def main() -> None:
    options = common.parser(__doc__, repeat=5).parse_args()
    ours, plain = common.bind(FUNCTIONS, ut.function), common.bind(FUNCTIONS, lambda copy: copy)
    figures, rows = [], []
    for name, args in ARGUMENTS.items():
        value, stats = ours[name].run(*args, engine="reference", stats=True)
        if plain[name](*args) != value:
            common.fail(f"{name}{args} gives {value}")
        works = {
            "engine": partial(ours[name].run, *args, engine="reference"),
            "CPython": partial(plain[name], *args),
        }
        times = common.measure(works, 2 if options.quick else options.repeat)
        engine, host = times["engine"].best, times["CPython"].best
        fired = stats.firings + stats.dead_firings
        figures.append({"program": f"{name}{args}", "activations": stats.activations, "firings": fired,
                        "engine_seconds": engine, "cpython_seconds": host})  # fmt: skip
        counts = [f"{name}{args}", str(stats.activations), str(fired)]
        rows.append([*counts, *map(common.seconds, (engine / fired, engine, host)), f"{engine / host:.0f}"])
    heads = ["program", "activations", "firings", "a firing", "engine", "CPython", "ratio"]
    common.table("The reference engine", heads, rows)
    common.write(options.json, {"rows": figures})


if __name__ == "__main__":
    main()
