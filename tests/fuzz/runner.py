"""Runs cases in worker processes until time is up; a crash, a hang or a wrong end names its case.

A worker says on a pipe which case it begins, so whoever reads knows what a worker died of. What it writes to stderr,
the report of a sanitizer for one, is kept with the case.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import IO

from tests.fuzz.case import outcome
from tests.fuzz.kinds import make

LONGEST = 300.0  # seconds of one case: a second or two, but ten times that with a sanitizer, on a busy machine
MOST_CASES = 2000  # of one process: what was captured, compiled and allocated goes with it
MOST_STDERR = 20_000  # characters that are kept of what a worker writes
_PROCESSES = multiprocessing.get_context("fork")  # what was imported and built is there at once


@dataclass(slots=True, eq=False)
class Report:
    """How cases ended, and those that should not have ended so."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind, end)
    failures: dict[str, str] = field(default_factory=dict)  # name of a case -> what happened

    def cases(self, kind: str) -> int:
        return sum(count for (other, _), count in self.ends.items() if other == kind)


@dataclass(slots=True, eq=False)
class _Share:
    """The cases of one worker: of each kind, every so-manieth number."""

    seed: int
    step: int
    numbers: dict[str, int]  # kind -> the next number
    seconds: dict[str, float]  # kind -> what its cases have taken

    def next(self) -> str:
        """The next case of the kind that had the least time: kinds get equal time, not equal numbers of cases."""
        kind = min(self.seconds, key=self.seconds.__getitem__)
        return f"{kind}:{self.seed}:{self.numbers[kind]}"

    def took(self, name: str, seconds: float) -> None:
        kind, _, number = name.split(":")
        self.numbers[kind] = int(number) + self.step
        self.seconds[kind] += seconds


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    share: _Share
    stderr: IO[str]
    case: str = ""
    began: float = 0.0

    def written(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read(MOST_STDERR)


def run_one(name: str) -> tuple[str, str]:
    """How a case ended, and what there is to say about it if it should not have."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return outcome(make(name)), ""
    except Exception as error:
        return type(error).__name__, traceback.format_exc()


def run(
    kinds: Sequence[str],
    seed: int,
    seconds: float,
    workers: int,
    on_failure: Callable[[str, str], None] = lambda name, problem: None,
    on_second: Callable[[Report, float], None] = lambda report, elapsed: None,
) -> Report:
    """Run cases for some time, or until Ctrl-C; say what fails as soon as it does, and how far we are."""
    for kind in kinds:
        make(f"{kind}:{seed}:0")  # what a kind makes once is there in all workers
    report, began = Report(), time.monotonic()
    until = began + seconds
    shares = [
        _Share(seed, workers, dict.fromkeys(kinds, number), dict.fromkeys(kinds, 0.0)) for number in range(workers)
    ]
    crew = [_start(share, until) for share in shares]
    known = 0
    try:
        while crew:
            wait([worker.pipe for worker in crew], 1.0)
            for worker in list(crew):
                if _listen(worker, report):
                    continue
                crew.remove(worker)
                worker.stderr.close()
                if time.monotonic() < until:
                    crew.append(_start(worker.share, until))
            for name in list(report.failures)[known:]:
                on_failure(name, report.failures[name])
            known = len(report.failures)
            on_second(report, time.monotonic() - began)
    except KeyboardInterrupt:
        for worker in crew:
            worker.process.kill()
    return report


def _start(share: _Share, until: float) -> _Worker:
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    stderr = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 -- it lives as long as the worker
    process = _PROCESSES.Process(target=_work, args=(theirs, share, until, stderr.fileno()), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, share, stderr)


def _work(pipe: Connection, share: _Share, until: float, stderr: int) -> None:
    os.setpgid(0, 0)  # Ctrl-C is for the parent
    os.dup2(stderr, 2)
    if "UNDERTOW_CORE" not in os.environ:  # else a sanitizer has the signals of crashes, and says more
        faulthandler.enable(2)
    faulthandler.register(signal.SIGUSR1, 2)
    for _ in range(MOST_CASES):
        if time.monotonic() >= until:
            return
        name, began = share.next(), time.monotonic()
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        pipe.send(("began", name))
        pipe.send(("ended", *run_one(name)))
        share.took(name, time.monotonic() - began)


def _listen(worker: _Worker, report: Report) -> bool:
    """Take what a worker says; False where it has come to its end."""
    try:
        while worker.pipe.poll():
            what, *said = worker.pipe.recv()
            if what == "began":
                worker.case, worker.began = said[0], time.monotonic()
                continue
            end, problem = said
            _note(worker, report, end, problem)
    except (EOFError, ConnectionResetError):
        worker.process.join()
        if worker.case:
            _note(worker, report, "crash", f"the process ended with code {worker.process.exitcode}\n{worker.written()}")
        return False
    if worker.case and time.monotonic() - worker.began > LONGEST:
        os.kill(worker.process.pid or 0, signal.SIGUSR1)  # for the stacks of its threads
        worker.process.join(1.0)
        worker.process.kill()
        worker.process.join()
        _note(worker, report, "hang", f"it ran for more than {LONGEST:g} s\n{worker.written()}")
        return False
    return True


def _note(worker: _Worker, report: Report, end: str, problem: str) -> None:
    report.ends[worker.case.split(":")[0], end] += 1
    if problem:
        report.failures[worker.case] = problem
    worker.share.took(worker.case, time.monotonic() - worker.began)
    worker.case = ""
