"""The interpreter ends while runs are under way: the process ends at once, with the status that it should have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.scripts import ROOT

import undertow as ut

COMMON = """
import atexit, os, sys, threading
import numpy as np

atexit.register(lambda: early())  # runs after what is registered from here on
early = lambda: None

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


count = ut.Variable(0, name="count")


@ut.function
def add(n: ut.i64) -> ut.i64:
    count.assign_add(1)
    return n if n <= 1 else add(n - 1)


class Listener(list):
    def __init__(self, work):
        self.work = work

    def append(self, event):
        self.work()


def aside(work, number=1):
    for _ in range(number):
        began = threading.Event()
        threading.Thread(target=lambda: (began.set(), work()), daemon=True).start()
        began.wait()


def for_ever(work):
    while True:
        work()


fib(20), add(3)
"""

# What is under way, and the status that the process ends with.
ENDS = {
    "a long run": ("aside(lambda: fib(70)); fib(22)", 0),
    "a long run on two threads": ("aside(lambda: fib.run(70, threads=2)); fib.run(30, threads=2)", 0),
    "a long run that writes": ("aside(lambda: add(10**15)); fib(22)", 0),
    "long runs on other engines": (
        "aside(lambda: fib.run(60, engine='expand')); aside(lambda: fib.run(30, engine='reference')); fib(22)",
        0,
    ),
    "short runs": ("aside(lambda: for_ever(lambda: fib(5)), 4); fib(22)", 0),
    "short runs that write": ("aside(lambda: for_ever(lambda: add(5)), 4); fib(22)", 0),
    "runs with callbacks": (
        "aside(lambda: for_ever(lambda: fib.run(5, trace=[])), 2)\n"
        "aside(lambda: fib.run(70, trace=Listener(int)))\n"
        "fib(22)",
        0,
    ),
    "a callback that waits": (
        "inside = threading.Event()\n"
        "aside(lambda: fib.run(9, trace=Listener(lambda: (inside.set(), threading.Event().wait()))))\n"
        "inside.wait()",
        0,
    ),
    "a run that waits for another": (
        "inside = threading.Event()\n"
        "aside(lambda: add.run(9, trace=Listener(lambda: (inside.set(), threading.Event().wait()))))\n"
        "inside.wait(); aside(lambda: add(1)); fib(22)",
        0,
    ),
    "maps and assignments": (
        "aside(lambda: for_ever(lambda: fib.map([3, 4, 5])))\n"
        "aside(lambda: for_ever(lambda: count.assign_add(1)))\n"
        "fib(22)",
        0,
    ),
    "runs at exit": (
        "def early(): assert fib(10) == 89 and add(3) == 1\n"
        "atexit.register(early)\n"
        "aside(lambda: for_ever(lambda: fib(5)), 2)",
        0,
    ),
    "runs while modules are taken apart": (
        "class Last:\n"
        "    def __del__(self, fib=fib, add=add): assert fib(10) == 89 and add(3) == 1\n"
        "sys.last = Last(); aside(lambda: fib(70)); fib(22)",
        0,
    ),
    "a status": ("aside(lambda: fib(70)); fib(22); sys.exit(3)", 3),
    "an error": ("aside(lambda: fib(70)); fib(22); raise ValueError", 1),
    "no farewell": ("aside(lambda: fib(70)); fib(22); os._exit(4)", 4),
    "threads that are waited for": ("threading.Thread(target=lambda: print(fib(30))).start()", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_the_process_ends(tmp_path: Path, name: str) -> None:
    script, status = ENDS[name]
    file = tmp_path / "script.py"
    file.write_text(COMMON + script + "\n")
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=300,  # the runs would take hours
        check=False,
        env={"PYTHONPATH": f"{Path(ut.__file__).parent.parent}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == status, done.stderr[-2000:]
    said = done.stderr.strip()
    assert said == "" or (status == 1 and said.endswith("ValueError")), said[-2000:]
    assert done.stdout == ("1346269\n" if "waited" in name else "")
