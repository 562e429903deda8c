"""Runs cases in worker processes until time is up; a crash, a hang or a wrong end names its case.

A worker says on a pipe which case it begins, so whoever reads knows what a worker died of.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.fuzz.case import outcome
from tests.fuzz.kinds import make

LONGEST = 60.0  # seconds of one case: all of them have limits of their own
_PROCESSES = multiprocessing.get_context("fork")  # what was imported and built is there at once


@dataclass(slots=True, eq=False)
class Report:
    """How cases ended, and those that should not have ended so."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind, end)
    failures: dict[str, str] = field(default_factory=dict)  # name of a case -> what happened


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    case: str = ""
    began: float = 0.0


def names(kinds: Sequence[str], seed: int, first: int = 0, step: int = 1) -> Iterator[str]:
    """The names of cases, each kind in turn."""
    for number in itertools.count(first, step):
        yield f"{kinds[number % len(kinds)]}:{seed}:{number // len(kinds)}"


def _work(pipe: Connection, cases: Iterator[str], until: float) -> None:
    while time.monotonic() < until:
        name = next(cases)
        pipe.send(("began", name))
        pipe.send(("ended", *run_one(name)))


def run_one(name: str) -> tuple[str, str]:
    """How a case ended, and what there is to say about it if it should not have."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return outcome(make(name)), ""
    except Exception as error:
        return type(error).__name__, traceback.format_exc()


def run(kinds: Sequence[str], seed: int, seconds: float, workers: int) -> Report:
    """Run cases for some time."""
    for name in itertools.islice(names(kinds, seed), len(kinds)):
        make(name)  # what a kind makes once is there in all workers
    report, until = Report(), time.monotonic() + seconds
    shares = [names(kinds, seed, number, workers) for number in range(workers)]
    crew = {share: _start(share, until) for share in shares}
    while crew:
        wait([worker.pipe for worker in crew.values()], 1.0)
        for share, worker in list(crew.items()):
            if _listen(worker, report):
                continue
            del crew[share]
            if worker.case:  # it died of it, or was stopped
                while next(share) != worker.case:
                    pass  # the process took these from its own copy of the share
                crew[share] = _start(share, until)
    return report


def _start(cases: Iterator[str], until: float) -> _Worker:
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_work, args=(theirs, cases, until), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _listen(worker: _Worker, report: Report) -> bool:
    """Take what a worker says; False where it has come to its end."""
    kind = worker.case.split(":")[0]
    try:
        while worker.pipe.poll():
            what, *said = worker.pipe.recv()
            if what == "began":
                worker.case, worker.began = said[0], time.monotonic()
                kind = worker.case.split(":")[0]
                continue
            end, problem = said
            report.ends[kind, end] += 1
            if problem:
                report.failures[worker.case] = problem
            worker.case = ""
    except EOFError:
        worker.process.join()
        if worker.case:
            report.ends[kind, "crash"] += 1
            report.failures[worker.case] = f"the process ended with code {worker.process.exitcode}"
        return False
    if worker.case and time.monotonic() - worker.began > LONGEST:
        report.ends[kind, "hang"] += 1
        report.failures[worker.case] = f"it ran for more than {LONGEST:g} s"
        worker.process.kill()
        worker.process.join()
        return False
    return True
