"""What runs leave behind: after many of them the process holds what it held after a few.

`benchmarks/soak.py` does the same millions of times.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.recursions import fib

import undertow as ut


class _Counts(ctypes.Structure):
    """What glibc says of its heap: `man mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    ]


def heap() -> int:
    """Bytes in use that C and C++ have asked for."""
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs glibc 2.33")
    libc.mallinfo2.restype = _Counts
    counts = libc.mallinfo2()
    return int(counts.uordblks + counts.hblkhd)


def grown(work: Callable[[int], Any], count: int, warm: int) -> tuple[int, int]:
    """Bytes of the heap and blocks of Python that so many runs leave behind, after some to get warm."""
    for k in range(warm):
        work(k)
    gc.collect()
    before = heap(), sys.getallocatedblocks()
    for k in range(warm, warm + count):
        work(k)
    gc.collect()
    return heap() - before[0], sys.getallocatedblocks() - before[1]


def refused(work: Callable[[], Any]) -> None:
    with pytest.raises(ut.RunError):
        work()


@ut.function
def product(w, x):
    return ut.tanh(x @ w)


@ut.function
def squares(x: ut.f64["n"]):  # type: ignore[valid-type]  # noqa: F821, UP037
    return x * x


@ut.function
def square(x):
    return x * x


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@ut.function
def divide(a: ut.i64, b: ut.i64) -> ut.i64:
    return a // b


total, series = ut.Variable(0, name="total"), ut.Variable(np.zeros(8), name="series")


@ut.function
def note(n: ut.i64) -> ut.i64:
    total.assign_add(n)
    series.assign_add(np.ones(8))
    return total.read()


def short_lived(k: int) -> None:
    held = np.full(4, k)

    @ut.function
    def add(x):
        return x + held

    add(np.arange(4))


def in_a_thread(k: int) -> None:
    thread = threading.Thread(target=lambda: fib(6))
    thread.start()
    thread.join()


slope = ut.grad(power)
W, X, NUMBERS, ZEROS = np.ones((16, 16)), np.ones((4, 16)), np.arange(8), np.zeros(1000)

KINDS: dict[str, tuple[Callable[[int], Any], int, int]] = {
    "numbers": (lambda k: fib(5), 2000, 100),
    "arrays": (lambda k: product(W, X), 1000, 100),
    "maps": (lambda k: fib.map(NUMBERS), 1000, 100),
    "gradients": (lambda k: slope(1.5, 5), 1000, 100),
    "variables": (lambda k: note(1), 500, 50),
    "named lengths": (lambda k: squares(ZEROS[: 1 + k * 37 % 1000]), 2000, 1000),
    "faults": (lambda k: refused(lambda: divide(k, 0)), 300, 50),
    "limits": (lambda k: refused(lambda: fib.run(8, frames=3)), 300, 50),
    "the expand engine": (lambda k: fib.run(5, engine="expand"), 500, 50),
    "functions": (short_lived, 30, 10),
    "threads": (in_a_thread, 200, 50),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_leave_nothing_behind(kind: str) -> None:
    heap_bytes, blocks = grown(*KINDS[kind])
    assert heap_bytes < 64 << 10 and blocks < 400, (heap_bytes, blocks)


def test_signatures_of_a_function_are_forgotten_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undertow.api.program.MOST_CAPTURED", 8)
    for k in range(1, 31):
        assert square(np.full(k, 2.0)).tolist() == [4.0] * k
    assert len(square.__undertow_programs__) <= 8
    assert square(np.full(1, 3.0)).tolist() == [9.0]  # captured again
    plan = square.plan(np.full(2, 3.0))
    for k in range(3, 31):
        square(np.full(k, 2.0))
    assert plan.run(np.full(2, 3.0)).tolist() == [9.0, 9.0]  # who has a plan keeps it


def test_threads_that_are_gone_leave_their_memory_to_others() -> None:
    """Each run has blocks of its own while it lasts; those of threads that ended are given back."""
    many = ut.function(lambda n: ut.sum(ut.arange(n) * 1.0))
    threads = [threading.Thread(target=lambda: many(40_000)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(2100):  # memory that was not used for a while is looked for every 1024 runs
        fib(1)
    before = heap()
    many(40_000)
    assert heap() - before < 4 << 20
