"""Shared by the benchmarks: fair timing, engines that may be absent, tables, and JSON with commit and machine."""

import argparse
import atexit
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

import undertow as ut

ROOT = Path(__file__).resolve().parents[1]
DEEP = 1_000_000  # Python frames: recursion in plain CPython is not stopped before the others are
DEEP_STACK = 1 << 29  # bytes
LONG = 3.0  # seconds
SAMPLE = 0.01  # seconds
NOTED, WORKERS = "UNDERTOW_BENCH_TIMES", "UNDERTOW_BENCH_WORKERS"  # of the environment


class Times:
    """The times of one piece of work: wall-clock and processor seconds."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.processor: list[float] = []

    def add(self, work: Callable[[], Any], count: int = 1) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(count):
            work()
        self.processor.append((time.process_time() - processor) / count)
        self.clock.append((time.perf_counter() - clock) / count)

    @property
    def best(self) -> float:
        """The least processor time, which other work on the machine does not increase."""
        return min(self.processor)

    @property
    def best_clock(self) -> float:
        """The least wall-clock time, for work of several threads."""
        return min(self.clock)

    @property
    def spread(self) -> float:
        """The median above the best, as a fraction."""
        return median(self.processor) / self.best - 1 if self.best > 0 else 0.0


def measure(works: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, Times]:
    """Time each piece of work `repeat` times, in turns, so that noise affects all of them alike.

    After the first round, short work is timed several times in a row, with warm caches; work of seconds only once.
    """
    times = {name: Times() for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            shortest = min(times[name].clock, default=SAMPLE)  # the first may have been interrupted
            if shortest < LONG:
                times[name].add(work, max(1, round(SAMPLE / shortest)))
    note({name: found.best_clock for name, found in times.items()})
    return times


def note(times: Mapping[str, float]) -> None:
    """Where whole scripts are compared (`distributed.py`), the best times go to a file, too."""
    if NOTED in os.environ:
        with open(os.environ[NOTED], "a", encoding="utf-8") as file:
            for name, seconds in times.items():
                print(json.dumps([name, seconds]), file=file)


def with_workers() -> None:
    """Where the environment asks for workers, all that follows may use them."""
    workers = os.environ.pop(WORKERS, "")  # processes that are started from here have none
    if workers:
        cluster = ut.ray.cluster(int(workers)).open()
        atexit.register(cluster.close)


def has_options(**changes: Any) -> bool:
    """Do this engine and these options exist?"""
    try:
        with ut.options(**changes):
            return True
    except ut.UndertowError:
        return False


def on_threads(count: int) -> dict[str, int]:
    """The option for a number of threads; none for engines that have only one."""
    return {"threads": count} if has_options(threads=count) else {}


def version(package: str) -> str:
    """The version of an optional package, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def bind(functions: list[FunctionType], decorate: Callable[[FunctionType], Any]) -> dict[str, Any]:
    """Decorated copies of functions of one module, which call each other instead of the originals."""
    namespace = dict(functions[0].__globals__)
    made = {}
    for function in functions:
        copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
        copy.__annotations__ = dict(function.__annotations__)
        copy.__module__ = function.__module__
        made[function.__name__] = decorate(copy)
    namespace.update(made)
    return made


def fail(what: str) -> NoReturn:
    """Stop: the time of a wrong result means nothing."""
    raise SystemExit(f"error: {what}")


def with_deep_stack(work: Callable[[], None]) -> None:
    """Run a function on a thread with a large stack, for deep recursion in Python, C and others."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:  # a thread would lose it, or its exit code
            raised.append(fault)

    sys.setrecursionlimit(DEEP)
    threading.stack_size(DEEP_STACK)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def load() -> str:
    """The load average, where the system has one."""
    cores = os.cpu_count() or 1
    return f"{os.getloadavg()[0]:.0f} on {cores} cores" if hasattr(os, "getloadavg") else "not known"


def machine() -> dict[str, Any]:
    """The machine that a figure was measured on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # another system than Linux
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }


def commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def parser(about: str, repeat: int | None) -> argparse.ArgumentParser:
    """The arguments that every benchmark takes; those without a number of rounds have no `--repeat`."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="a short run: fewer and smaller cases")
    if repeat is not None:
        rounds = f"rounds, of which the best counts (default {repeat})"
        made.add_argument("--repeat", type=int, default=repeat, help=rounds)
    made.add_argument("--json", default="", help="where to write the figures (default build/bench/<name>.json)")
    with_workers()
    return made


def write(path: str, figures: dict[str, Any]) -> None:
    """The figures as JSON, with commit and machine."""
    name = Path(sys.argv[0]).stem
    file = Path(path) if path else ROOT / "build" / "bench" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as out:
        json.dump({"benchmark": name, "commit": commit(), "machine": machine(), **figures}, out, indent=1)


def table(title: str, columns: list[str], rows: list[list[str]], notes: list[str] | None = None) -> None:
    """Print a table, first column to the left."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    # Where the output is a file, tables are not cut to the width of a terminal that is not there.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(made)
    for note in notes or ():
        console.print(note, style="dim", highlight=False)
    console.print()


def seconds(value: float | None) -> str:
    """A time in a suitable unit."""
    if value is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}" if value * factor < 1000 else f"{value * factor:.0f} {unit}"
    return f"{value * 1e9:.3g} ns"
