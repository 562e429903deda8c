"""The budget of a call before its engine starts: until when, and of how many nodes, a program may be made.

Engines enforce `timeout` and `memory` while they run. Capture, passes and planning are Python code that can take longer
and need more than the run itself (the twelfth derivative of a small function has millions of nodes), so they draw on a
budget: they `check` it between steps, and pay for the nodes that they make.

>>> from contextvars import copy_context
>>> def work() -> None:
...     begin(memory=0)
...     start_step("extend")
...     pay(FEWEST_NODES + 1)
>>> copy_context().run(work)
Traceback (most recent call last):
    ...
undertow.errors.FrameLimit: extend would make more than 100,000 nodes, all that memory=0 allows
<BLANKLINE>
hint: raise `memory`, or make the program smaller: a derivative of lower order, a Python loop that unrolls less often
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from undertow.errors import FrameLimit, Timeout

NODE_BYTES = 1024  # that a node takes while a program is made: a graph before a pass, one after it, an index
FEWEST_NODES = 100_000  # always allowed: `memory` is about frames, and may be tiny where they are
MOST_NODES = 4_000_000  # of one step, whatever the memory
_FOR_EVER = float("inf")
_BATCH = 1024  # items between looks at the clock: it takes longer to read than most of them
_SMALLER = "make the program smaller: a derivative of lower order, a Python loop that unrolls less often"


Item = TypeVar("Item")


@dataclass(slots=True, eq=False)
class Budget:
    """What a call may still spend. It belongs to one thread, which alone changes it."""

    began: float  # by time.perf_counter
    timeout: float | None
    deadline: float
    most: int  # nodes that one step may make
    why: str  # what allows that many
    hint: str
    step: str = "capture"
    made: int = 0  # nodes, by this step so far

    def pay(self, nodes: int) -> None:
        """Pay for some nodes, and check the time."""
        self.made += nodes
        if self.made > self.most:
            raise FrameLimit(
                f"{self.step} would make more than {self.most:,} nodes, all that {self.why}", hint=self.hint
            )
        if time.perf_counter() > self.deadline:
            raise Timeout(
                f"{self.step} was not done within {self.timeout} s",
                hint="raise `timeout`; a program is made once, and later calls with arguments of the same types run it",
            )


_BUDGET: ContextVar[Budget | None] = ContextVar("undertow_budget", default=None)


def begin(timeout: float | None = None, memory: int | None = None) -> None:
    """A call begins, in a context of its own. One inside another call has no more time than that one."""
    now = time.perf_counter()
    outer = _BUDGET.get()
    deadline = _FOR_EVER if timeout is None else now + float(timeout)
    if outer is not None and outer.deadline <= deadline:
        now, timeout, deadline = outer.began, outer.timeout, outer.deadline
    most, why, hint = MOST_NODES, "a program may have", _SMALLER
    if memory is not None and memory // NODE_BYTES < MOST_NODES:
        most = max(FEWEST_NODES, int(memory) // NODE_BYTES)
        why, hint = f"memory={memory:,} allows", f"raise `memory`, or {_SMALLER}"
    _BUDGET.set(Budget(now, timeout, deadline, most, why, hint))


def bound(most: int, why: str, hint: str) -> None:
    """No step of what follows in this context may make more nodes than that."""
    budget = _BUDGET.get()
    if budget is None:
        budget = Budget(0.0, None, _FOR_EVER, most, why, hint)
    elif most < budget.most:
        budget = Budget(budget.began, budget.timeout, budget.deadline, most, why, hint, budget.step)
    _BUDGET.set(budget)


def start_step(name: str) -> None:
    """A step begins, and may make as many nodes as any. Errors name it."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.step, budget.made = name, 0
        budget.pay(0)


def pay(nodes: int) -> None:
    """Pay for nodes that are made, and check the time: every few hundred nodes, and at the end of a graph."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.pay(nodes)


def check() -> None:
    """Check the time: between steps that make no nodes."""
    budget = _BUDGET.get()
    if budget is not None and budget.deadline != _FOR_EVER:
        budget.pay(0)


def paced(items: Iterable[Item]) -> Iterable[Item]:
    """The items, with looks at the clock in between: for loops over all nodes of a program, or of a region."""
    global _unseen
    if isinstance(items, Sized) and len(items) < _BATCH:  # most regions: they pay together
        _unseen += len(items)
        if _unseen > _BATCH:
            _unseen = 0
            check()
        return items
    return chain.from_iterable(_batches(items)) if isinstance(items, Sequence) else _looking(items)


_unseen = 0  # items since the last look; of all threads, and if they disagree, a look comes a little late


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), _BATCH):
        check()
        yield items[at : at + _BATCH]


def _looking(items: Iterable[Item]) -> Iterator[Item]:
    for number, item in enumerate(items):
        if not number % _BATCH:
            check()
        yield item


def has_begun() -> bool:
    """Is there a budget: does a call that was made before wait for this one?"""
    return _BUDGET.get() is not None


def clock() -> tuple[float, float] | None:
    """The timeout that holds, and when it began, by time.perf_counter; None if there is none."""
    budget = _BUDGET.get()
    return None if budget is None or budget.timeout is None else (budget.timeout, budget.began)
