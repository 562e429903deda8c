"""Ways to write two variables in one run, and what tells whether both were written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.ir.trace import Event

Face = tuple[Callable[[], Any], Callable[[], tuple[int, int]]]  # work, and how often two variables say it was done


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


class Listener(list[Event]):
    """A trace that does something at its first event: inside of a run, on its thread."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.work = work

    def append(self, event: Event) -> None:
        work, self.work = self.work, lambda: None
        work()
