"""Ctrl-C at any moment leaves everything usable: captures, runs, settings, and Python's own limits.

Each test runs a script in a process of its own, which interrupts itself again and again after random delays.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.recursions import count
from tests.support.scripts import run_script

import undertow as ut

# What every script shares: functions, the state that must stay, and a loop that interrupts `work` at random moments.
COMMON = '''
import os, random, signal, sys, threading, time

import numpy as np

import undertow as ut
from undertow.api.options import settings
from undertow.frontend.values.traced import context


def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    a = fib_(n - 1)
    b = fib_(n - 2)
    return a + b


def mixed(x, n: ut.i64) -> ut.f64:
    total = 0.0
    for i in range(n):
        if x[i] < 0:
            break
        total = total + x[i] * 2
    y = ut.map(lambda v: ut.where(v > 1, v, -v), x)
    if total > 1e9:
        return ut.sum(y)
    return total + mixed_(x, n - 1) if n > 0 else ut.sum(y)


def renew():
    """Functions that have not been captured yet."""
    global fib_, mixed_
    fib_, mixed_ = ut.function(fib), ut.function(mixed)


def state():
    return (
        context(), settings(), sys.getrecursionlimit(), threading.stack_size(), tuple(np.geterr().items()),
    )


X = np.array([1.0, 2.0, 3.0])
ENGINE = "reference"


def work():
    with ut.options(max_depth=500, engine=ENGINE):
        return fib_(9), mixed_(X, 3), fib_.map([1, 2, 3]).tolist()


os.environ["UNDERTOW_TRACEBACK"] = "full"  # tells where it was interrupted


def rounds(count, interrupt, work=work, renew=renew, seed=0):
    """Interrupt the work `count` times; how often it was really stopped, and in which files."""
    renew()
    expected = work()
    renew()
    began = time.perf_counter()
    work()
    longest = (time.perf_counter() - began) * 1.1
    chance = random.Random(seed)
    before, stopped, places = state(), 0, set()
    for _ in range(count):
        renew()
        cancel = list  # nothing to do
        try:
            try:
                cancel = interrupt(chance.random() * longest)
                work()
            finally:
                cancel()
        except KeyboardInterrupt as error:
            stopped += 1
            at = error.__traceback__
            while at is not None:
                places.add(os.path.relpath(at.tb_frame.f_code.co_filename, os.path.dirname(ut.__file__)))
                at = at.tb_next
            del at
        assert state() == before, state()
        # What was interrupted can be called again, captured or not.
        assert work() == expected
        assert state() == before, state()
    return stopped, places


def by_alarm(delay):
    """The handler of Ctrl-C, called at a chosen moment."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
    return lambda: signal.setitimer(signal.ITIMER_REAL, 0)


def by_kill(delay):
    """A real Ctrl-C, sent by another thread."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may be told to ignore it
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    def cancel():
        timer.cancel()
        while True:  # one that is already on its way arrives here
            try:
                timer.join()
                time.sleep(0)
                return
            except KeyboardInterrupt:
                continue

    return cancel
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "how", "count", "least"),
    [
        ("reference", "by_alarm, seed=1", 120, 20),
        ("reference", "by_alarm, seed=2", 120, 20),
        ("waves", "by_alarm", 120, 20),
        *((engine, "by_kill", 60, 3) for engine in ("reference", "waves", "expand")),
    ],
)
def test_at_random_moments(tmp_path: Path, engine: str, how: str, count: int, least: int) -> None:
    script = f"""
        ENGINE = "{engine}"
        stopped, places = rounds({count}, {how})
        assert stopped > {least}, stopped
        if "{engine} {how}".startswith("reference by_alarm"):
            # On a busy machine the moments may all fall into the capture: then other ones are tried.
            both = {{"frontend/interpret/expressions.py", "engines/reference/run.py"}}
            for seed in range(10, 20):
                if not both <= places:
                    places |= rounds({count}, by_alarm, seed=seed)[1]
            assert both <= places, places
    """
    run_script(tmp_path, COMMON, script)


@pytest.mark.slow
def test_while_a_deep_source_is_parsed(tmp_path: Path) -> None:
    """The parser needs a larger stack and recursion limit for a while: they are put back."""
    script = """
        import linecache
        from undertow.frontend.syntax import match, parse

        depth = 2500
        lines = ["def deep(n: ut.i64) -> ut.i64:\\n", f"    return {'-' * depth}n\\n"]
        linecache.cache["deep.py"] = (1, None, lines, "deep.py")
        space = {"ut": ut}
        threading.stack_size(512 << 20)
        sys.setrecursionlimit(100_000)
        made = threading.Thread(target=lambda: exec(compile("".join(lines), "deep.py", "exec"), space))
        made.start()
        made.join()
        threading.stack_size(0)
        sys.setrecursionlimit(1000)

        def renew():
            global deep_
            for module in (match, parse):
                for cached in vars(module).values():
                    if hasattr(cached, "cache_clear"):
                        cached.cache_clear()
            deep_ = ut.function(space["deep"])

        stopped, places = rounds(12, by_alarm, work=lambda: deep_(7), renew=renew)
        assert stopped > 1, stopped
    """
    run_script(tmp_path, COMMON, script)


@pytest.mark.slow
def test_an_endless_run_can_be_stopped(tmp_path: Path) -> None:
    script = """
        from tests.support.recursions import count, spin

        before = state()
        for endless in (spin, count):
            for delay in (0.01, 0.05, 0.1):
                cancel = by_alarm(delay)
                try:
                    endless.run(-1, max_depth=None)
                    raise SystemExit("it ended")
                except KeyboardInterrupt:
                    cancel()
                assert state() == before
                assert endless(3) == (3 if endless is count else 0)
    """
    run_script(tmp_path, COMMON, script)


def test_an_interrupt_is_not_an_error_of_ours() -> None:
    def stop(n: int) -> int:
        raise KeyboardInterrupt

    stop.__module__ = "json"  # not the user's own code: it runs as it is, during capture

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n + stop(1)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            f(1)


def test_an_interrupt_inside_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from undertow.ops import op

    assert count(3) == 3
    fired = []

    def interrupted(values: object, attrs: object) -> object:
        fired.append(1)
        raise KeyboardInterrupt

    row = op.find("subtract")
    with monkeypatch.context() as patch:
        patch.setitem(op.CATALOGUE, "subtract", replace(row, eval=interrupted))
        again = ut.function(count.__wrapped__)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            again.run(3, engine="reference")
    assert fired
    assert count(3) == 3
