"""Recursion depth: 100 steps of gradient descent on x^n by recursion, then one call at depths up to ten million.

Claims: the exponent test of Vasilakopoulos' thesis (figure 6.1), n = 10 to 10,000, against PyTorch eager and JAX where
they are installed, and against TensorFlow 2 as in the thesis, where a Python that has it is given; x^10,000,000 and its
gradient run to the end; the time per call does not grow with the depth, nor does that of summing an array, one element
per call.
Usage: python benchmarks/depth.py [--quick] [--repeat N] [--limit SECONDS] [--python-of tensorflow=PATH] [--json FILE]
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # one thread for everybody

import common
import numpy as np

import undertow as ut

STEPS = 100
RATE = 1e-3
Descent = Callable[[int], float]  # from n to where the descent arrives


@ut.function
def power(x: ut.f32, n: ut.i32) -> ut.f32:
    return 1.0 if n == 0 else x * power(x, n - 1)


@ut.function
def total(x: ut.f32[None], n: ut.i32) -> ut.f32:
    return 0.0 if n == 0 else x[n - 1] + total(x, n - 1)


slope = ut.grad(power)
slopes = ut.grad(total)


def arrival(n: int) -> float:
    """The end of the descent, by the closed form of the derivative."""
    x = 1.0
    for _ in range(STEPS):
        x -= RATE / n * n * x ** (n - 1)
    return x


def undertow(engine: str) -> Descent:
    def descend(n: int) -> float:
        x = np.float32(1)
        with ut.options(engine=engine, **common.on_threads(1)):
            for _ in range(STEPS):
                x -= np.float32(RATE / n) * slope(x, n)
        return float(x)

    return descend


def torch() -> Descent | str:
    try:
        import torch
    except ImportError:
        return "not installed"
    torch.set_num_threads(1)

    def raised(x: torch.Tensor, n: int) -> torch.Tensor:
        return torch.ones(()) if n == 0 else x * raised(x, n - 1)

    def descend(n: int) -> float:
        x = torch.ones((), requires_grad=True)
        for _ in range(STEPS):
            (found,) = torch.autograd.grad(raised(x, n), x)
            x = (x - RATE / n * found).detach().requires_grad_()
        return x.item()

    return descend


def jax(is_rolled: bool) -> Descent | str:
    """JAX unrolls recursion when it traces; `is_rolled` is the loop that its users write instead."""
    try:
        import jax
    except ImportError:
        return "not installed"

    def raised(x: jax.Array, n: int) -> jax.Array:
        return jax.numpy.float32(1) if n == 0 else x * raised(x, n - 1)

    def rolled(x: jax.Array, n: int) -> jax.Array:
        return jax.lax.fori_loop(0, n, lambda _, y: x * y, jax.numpy.float32(1))

    def descend(n: int) -> float:
        found = jax.jit(jax.grad(rolled if is_rolled else raised), static_argnums=1)
        x = jax.numpy.float32(1)
        for _ in range(STEPS):
            x = x - jax.numpy.float32(RATE / n) * found(x, n)
        return float(x)

    return descend


class TensorFlow:
    """A descent in another process, whose Python has TensorFlow; it tells its seconds of the processor itself."""

    def __init__(self, python: str, mode: str) -> None:
        script = Path(__file__).parent / "rivals" / "tf_descent.py"
        self.taken: dict[int, float] = {}  # the best, by n
        self.version = self.missing = ""
        try:
            self.process = subprocess.Popen(
                [python, str(script), mode], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as fault:
            self.missing = f"{python}: {fault.strerror}"
            return
        found = self.answer()
        self.version, self.missing = found.get("version", ""), found.get("missing", "")

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline() if self.process.stdout else ""
        return json.loads(line) if line else {"failed": "the process has ended", "missing": "it does not start"}

    def __call__(self, n: int) -> float:
        print(json.dumps({"n": n, "steps": STEPS, "rate": RATE / n}), file=self.process.stdin, flush=True)
        found = self.answer()
        if "failed" in found:
            raise RuntimeError(found["failed"])
        self.taken[n] = min(found["processor"], self.taken.get(n, math.inf))
        return found["arrival"]


def tensorflow(python: str | None, mode: str) -> Descent | str:
    if python is None:
        return "no --python-of tensorflow=PATH"
    made = TensorFlow(python, mode)
    return made.missing or made


def descent(options) -> tuple[list[dict], list[str], list[str]]:
    """The exponent test. Rivals stop at the size whose successor would take too long, or where they fail."""
    rivals: dict[str, Descent | str] = {}
    for engine in ("waves", "expand"):
        rivals[engine] = undertow(engine) if common.has_options(engine=engine) else "not there"
    rivals["PyTorch eager"] = torch()
    rivals["TensorFlow 2, tf.function"] = tensorflow(options.python_of.get("tensorflow"), "function")
    rivals["TensorFlow 2, eager"] = tensorflow(options.python_of.get("tensorflow"), "eager")
    rivals["JAX, traced recursion"] = jax(is_rolled=False)
    rivals["JAX, fori_loop"] = jax(is_rolled=True)
    missing = [f"{name}: {why}" for name, why in rivals.items() if isinstance(why, str)]
    able = {name: work for name, work in rivals.items() if not isinstance(work, str)}
    rows: list[dict] = []
    last: dict[str, float] = {}
    sizes = (10, 100, 1000) if options.quick else (10, 30, 100, 300, 1000, 3000, 10_000)
    for size, before in zip(sizes, (1, *sizes), strict=False):
        works, best = {}, dict[str, float]()
        for name, work in list(able.items()):
            if last.get(name, 0.0) * size / before > options.limit:
                continue
            try:
                found = work(size)
            except Exception as fault:
                del able[name]
                missing.append(f"{name}: {type(fault).__name__} at n = {size}")
                continue
            wanted = arrival(size)
            if not math.isclose(found, wanted, rel_tol=1e-4):
                common.fail(f"{name} arrives at {found} for n = {size}, not at {wanted}")
            if isinstance(work, TensorFlow):
                for _ in range(options.repeat - 1 if work.taken[size] < common.LONG else 0):
                    work(size)
                best[name] = work.taken[size]
            else:
                works[name] = partial(work, size)
        best |= {name: taken.best for name, taken in common.measure(works, options.repeat).items()}
        last |= best
        rows.append({"n": size, "seconds": {name: best[name] for name in able if name in best}})
        print(f"n = {size} done", file=sys.stderr)
    return rows, [name for name in rivals if not isinstance(rivals[name], str)], missing


def deep(options, functions, argument: Callable[[int], object], wanted: Callable[[str, int], float]) -> list[dict]:
    """One call, and one gradient, at growing depths."""
    rows = []
    for depth in (1000, 10_000, 100_000) if options.quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        row: dict = {"depth": depth}
        x = argument(depth)
        # The gradient is a function too, and so one activation more.
        for calls, (name, function) in zip((depth + 1, depth + 2), functions.items(), strict=True):
            found, stats = function.run(x, depth, stats=True, max_depth=None)
            if not math.isclose(np.sum(found), wanted(name, depth), rel_tol=1e-5):
                common.fail(f"{name} at depth {depth} is {np.sum(found)}, not {wanted(name, depth)}")
            if stats.activations != calls:
                common.fail(f"{name} at depth {depth}: {stats.activations} activations, not {calls}")
            times = common.measure({name: partial(function.run, x, depth, max_depth=None)}, options.repeat)[name]
            row[name] = {"seconds": times.best, "per_call": times.best / calls, "peak_bytes": stats.peak_bytes}
        rows.append(row)
        print(f"depth {depth} done", file=sys.stderr)
    return rows


def work(options) -> None:
    first, names, missing = descent(options)
    common.table(
        f"{STEPS} steps of gradient descent on x^n, f32, scalar recursion", ["n", *names],
        [[f"{row['n']:,}", *(common.seconds(row["seconds"].get(name)) for name in names)] for row in first],
        [f"- : longer than the limit, or failed. {'; '.join(missing)}", "JAX compiles anew for each n: included."],
    )  # fmt: skip
    with ut.options(engine="waves", memory=None, **common.on_threads(1)):
        second = deep(
            options,
            {"value": power, "gradient": slope},
            lambda _: np.float32(1),
            lambda name, n: 1 if name == "value" else n,
        )
        third = deep(
            options, {"value": total, "gradient": slopes}, lambda n: np.full(n, 0.5, np.float32),
            lambda name, n: n / 2 if name == "value" else n,
        )  # fmt: skip
    show("One call of x^n on waves", second)
    show("The sum of an array, one element in each call", third)
    versions = {name: common.version(name) for name in ("torch", "jax")}
    found = {"versions": versions, "repeat": options.repeat, "descent": first, "deep": second, "elements": third}
    common.write(options.json, found)


def show(title: str, rows: list[dict]) -> None:
    common.table(
        title, ["depth", "value", "ns per call", "MB", "gradient", "ns per call", "MB"],
        [
            [f"{row['depth']:,}"]
            + [
                text
                for name in ("value", "gradient")
                for text in (
                    common.seconds(row[name]["seconds"]),
                    f"{row[name]['per_call'] * 1e9:.1f}",
                    f"{row[name]['peak_bytes'] / 1e6:.1f}",
                )
            ]
            for row in rows
        ],
    )  # fmt: skip


def main() -> None:
    parser = common.parser(__doc__, repeat=3)
    parser.add_argument("--limit", type=float, default=30.0, help="leave out what would take longer (seconds)")
    parser.add_argument("--python-of", action="append", default=[], metavar="NAME=PATH", help="tensorflow")
    options = parser.parse_args()
    options.python_of = dict(pair.split("=", 1) for pair in options.python_of)
    options.limit = min(options.limit, 5.0) if options.quick else options.limit
    common.with_deep_stack(partial(work, options))


if __name__ == "__main__":
    main()
