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
from tests.support.inject import interrupts
from tests.support.scripts import run_script
from tests.support.threads import in_threads

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.errors import RunError
from undertow.ir.trace import Event

Face = tuple[Callable[[], Any], Callable[[], tuple[int, int]]]  # work, and how often two variables say it was done

# Where a commit happens: these are interrupted before every instruction, all else here and there.
COMMITS = (
    "frontend/values/state.py",
    "frontend/values/transaction.py",
    "api/function.py",
    "api/optim.py",
    "compat/v1/session.py",
)


def counters() -> tuple[ut.Variable, ut.Variable, Any]:
    """Two variables, and a function that adds 1 to both of them."""
    x, y = ut.Variable(0, name="x"), ut.Variable(np.zeros(2), name="y")

    @ut.function
    def add(n):
        x.assign_add(n)
        y.assign_add(np.ones(2))
        return x.read()

    return x, y, add


def both(x: ut.Variable, y: ut.Variable) -> Callable[[], tuple[int, int]]:
    return lambda: (int(x.value), int(np.max(y.value)))


def by_run(engine: str) -> Face:
    x, y, add = counters()
    return lambda: add.run(1, engine=engine), both(x, y)


def by_call() -> Face:
    x, y, add = counters()
    return lambda: add(1), both(x, y)


def by_map() -> Face:
    x, y, add = counters()
    return lambda: add.map([1]), both(x, y)


def by_assignment() -> Face:
    x = ut.Variable(0, name="x")
    return lambda: x.assign_add(1), lambda: (int(x.value), int(x.value))


def by_updater() -> Face:
    w = ut.Variable(np.zeros(2), name="w")
    updater = ut.optim.Updater(ut.optim.SGD(1.0, momentum=0.5), [w])
    return lambda: updater.apply([np.ones(2)]), both(updater.step, updater.step)


def by_session() -> Face:
    with tf.Graph().as_default() as graph:
        x, y = tf.Variable(0), tf.Variable(np.zeros(2))
        train = tf.group(tf.assign_add(x, 1), tf.assign_add(y, np.ones(2)))
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())

    def look() -> tuple[int, int]:
        a, b = session.run([x, y])
        return int(a), int(b[0])

    return lambda: session.run(train), look


FACES: dict[str, Callable[[], Face]] = {
    **{f"run on {engine}": lambda engine=engine: by_run(engine) for engine in ENGINES},  # type: ignore[misc]
    "call": by_call,
    "map": by_map,
    "assign": by_assignment,
    "updater": by_updater,
    "session": by_session,
}


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


class Listener(list[Event]):
    """A trace that does something at its first event: inside of a run, on its thread."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.work = work

    def append(self, event: Event) -> None:
        work, self.work = self.work, lambda: None
        work()


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
        from tests.unit.api.test_commit import Listener, counters

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
