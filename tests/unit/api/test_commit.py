"""A commit is one step: whatever interrupts a run, and wherever, all its variables are old or all are new."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.commits import FACES, Face, Listener, by_session, counters
from tests.support.inject import interrupts
from tests.support.scripts import run_script
from tests.support.threads import in_threads

import undertow as ut
from undertow.errors import RunError

# Where a commit happens: these are interrupted before every instruction, all else here and there.
COMMITS = (
    "frontend/values/state.py",
    "frontend/values/transaction.py",
    "api/function.py",
    "api/optim.py",
    "compat/v1/session.py",
)


def check_interrupts(face: Face, files: tuple[str, ...], first: int = 1, step: int = 1) -> int:
    work, look = face
    work()  # captured and planned
    done, stopped = look()[0], 0
    kept = []  # the frames of an interrupted run may live on in its traceback, and keep nothing from running
    for raised in interrupts(work, files, first, step):
        a, b = look()
        assert a == b, f"torn: {a} and {b}"
        assert a in ((done + 1,) if raised is None else (done, done + 1))
        kept.append(raised)
        stopped += raised is not None
        work()
        assert look() == (a + 1, b + 1)
        done = a + 1
    return stopped


@pytest.mark.slow
@pytest.mark.parametrize("name", FACES)
def test_before_every_instruction_of_a_commit(name: str) -> None:
    assert check_interrupts(FACES[name](), COMMITS) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", FACES)
def test_before_instructions_of_a_run(name: str) -> None:
    assert check_interrupts(FACES[name](), ("",), first=7, step=97) > 1


def test_an_updater_changes_all_or_nothing() -> None:
    w = ut.Variable(np.zeros(2), name="w")
    updater = ut.optim.Updater(ut.optim.SGD(1.0, momentum=0.5), [w])
    momentum = updater.slots["momentum"][0]
    updater.apply([np.ones(2)])
    for _ in interrupts(lambda: updater.apply([np.ones(2)]), COMMITS, first=3, step=11):
        steps, speed, at = int(updater.step.value), 0.0, 0.0
        for _ in range(steps):
            speed = 0.5 * speed + 1.0
            at -= speed
        assert momentum.value.tolist() == [speed] * 2 and w.value.tolist() == [at] * 2


# --------------------------------------------------------------------------------------------------------------
# Runs inside of runs


@contextmanager
def handled(work: Callable[[], Any]) -> Iterator[Callable[[], None]]:
    """Something that a signal handler does, and how to raise the signal."""
    before = signal.signal(signal.SIGUSR1, lambda *_: work())
    try:
        yield lambda: signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Dying:
    """Does something when it is freed."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work

    def __del__(self) -> None:
        self.work()


def refusals(work: Callable[[], Any]) -> tuple[Callable[[], None], list[str]]:
    """The work, and what it was refused with."""
    said: list[str] = []

    def attempt() -> None:
        try:
            work()
        except RunError as error:
            said.append(str(error))

    return attempt, said


@pytest.mark.parametrize("engine", ["waves", "reference"])
@pytest.mark.parametrize("where", ["callback", "handler", "destructor"])
def test_a_run_inside_of_a_run_does_not_write_what_that_writes(engine: str, where: str) -> None:
    x, y, add = counters()
    attempt, said = refusals(lambda: add(10))
    with handled(attempt) as raise_signal:
        inside = {"callback": attempt, "handler": raise_signal, "destructor": lambda: Dying(attempt)}[where]
        assert add.run(1, engine=engine, trace=Listener(inside)) == 1
    (text,) = said
    assert "a run that writes variable `x` is under way on this thread" in text and "hint:" in text
    assert (x.value, y.value.tolist()) == (1, [1, 1])
    assert add(1) == 2


def test_an_assignment_inside_of_a_run_is_refused_and_reading_is_not() -> None:
    x, _, add = counters()
    seen = []
    attempt, said = refusals(lambda: (seen.append(int(x.value)), x.assign(5)))
    add.run(1, trace=Listener(attempt))
    assert seen == [0] and len(said) == 1 and x.value == 1


def test_a_session_inside_of_its_own_run_is_refused() -> None:
    work, look = by_session()
    attempt, said = refusals(work)
    with handled(attempt) as raise_signal:
        trace = Listener(raise_signal)
        with ut.options(trace=trace):
            work()
    assert look() == (1, 1)
    assert "a run that writes variables is under way on this thread" in said[0]


def test_a_run_inside_of_a_run_may_write_something_else() -> None:
    _, _, outer = counters()
    x, _, inner = counters()
    outer.run(1, trace=Listener(lambda: inner(7)))
    assert x.value == 7


def test_two_threads_that_would_wait_for_each_other() -> None:
    """Each writes what the other one's callback wants: one of these is refused."""
    made = [counters(), counters()]
    both_run = threading.Barrier(2)
    said: list[str] = []

    def work(number: int) -> None:
        def inside() -> None:
            both_run.wait()
            attempt, refused = refusals(lambda: made[1 - number][2](100))
            attempt()
            said.extend(refused)

        made[number][2].run(1, trace=Listener(inside))

    in_threads(work, 2)
    assert len(said) == 1
    assert sorted(int(x.value) for x, _, _ in made) == [1, 101]


def test_writers_wait_in_the_order_in_which_they_came() -> None:
    x, _, add = counters()

    def work(number: int) -> None:
        for _ in range(50):
            add(1)

    in_threads(work, 3)
    assert x.value == 150


@pytest.mark.slow
def test_a_forked_process_waits_for_no_thread_that_it_has_not(tmp_path: Path) -> None:
    script = """
        from tests.support.commits import Listener, counters

        x, y, add = counters()
        add(1)
        began, goes_on = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: add.run(1, trace=Listener(lambda: (began.set(), goes_on.wait()))))
        thread.start()
        began.wait()
        child = os.fork()
        if child == 0:  # a run that writes x is under way in a thread of the parent
            assert add(1) == 2 and y.value.tolist() == [2, 2]
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        goes_on.set()
        thread.join()
        assert x.value == 2
        """
    run_script(tmp_path, "import os, threading, warnings\nwarnings.simplefilter('ignore')\n", script, timeout=30)
