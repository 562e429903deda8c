"""The parent's side of a race: rivals in processes of their own, that must agree first and then take turns.

Each does one epoch while the others wait, so what disturbs a round disturbs all alike; the best time of every batch
counts. What they do is in `worker.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import numpy as np

import undertow as ut

FOLDER = Path(__file__).resolve().parents[1]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TOLERANCE = 1e-4  # of losses
CHECKED = 25  # trees whose loss is compared
STEPS, STEP = 5, 10  # of training before losses are compared again, and trees in each
Case = tuple[str, int, str, str]  # model, batch, work ("train" or "infer"), trees


@dataclass
class Rival:
    """A way to run the networks: its module in benchmarks/rivals, and the framework that this needs."""

    key: str  # for the command line
    name: str
    module: str
    framework: str
    variant: str = ""
    has_loss: bool = True
    process: Any = None
    missing: str = ""  # why it does not run
    failed: str = ""  # why it stopped in this model
    version: str = ""
    times: dict[Case, np.ndarray] = field(default_factory=dict)  # the best of each batch, in seconds
    trees: dict[Case, int] = field(default_factory=dict)  # in all batches together
    losses: dict[str, list[float]] = field(default_factory=dict)  # by model, before and after some training

    def begin(self, python: str, folder: str) -> None:
        command = [python, "-m", "rivals.worker", self.module, folder, *filter(None, [self.variant])]
        environment = dict(os.environ, **dict.fromkeys(THREADS, "1"), PYTHONWARNINGS="ignore")
        if self.framework == "undertow":  # the one that the parent has
            environment["PYTHONPATH"] = str(Path(ut.__file__).parents[1])
        is_loud = bool(os.environ.get("RACE_DEBUG"))
        try:
            self.process = subprocess.Popen(
                command, cwd=FOLDER, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=None if is_loud else subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as fault:
            self.missing = f"{python}: {fault.strerror}"
            return
        self.version = self.answer().get("version", "")

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        found = json.loads(line) if line else {"failed": "the process has ended; RACE_DEBUG=1 shows what it says"}
        self.missing = self.missing or found.get("missing", "")
        self.failed = self.failed or found.get("failed", "")
        return found

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        if self.failed:
            return {}
        with contextlib.suppress(BrokenPipeError):  # the answer says so
            print(json.dumps({"do": do, **more}), file=self.process.stdin, flush=True)
        return self.answer()

    def end(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()

    def speed(self, case: Case) -> float | None:
        """Trees per second, of an epoch made of the best time of every batch."""
        return None if case not in self.times else self.trees[case] / float(self.times[case].sum())


@contextlib.contextmanager
def started(rivals: Sequence[Rival], pythons: Mapping[str, str], folder: str) -> Iterator[list[Rival]]:
    """Those that could start. Their processes end with the block."""
    try:
        for rival in rivals:
            rival.begin(pythons.get(rival.framework, sys.executable), folder)
        yield [rival for rival in rivals if not rival.missing]
    finally:
        for rival in rivals:
            rival.end()


def agree(model: str, rivals: Sequence[Rival], wanted: float) -> list[Rival]:
    """Those who compute the same loss: at first, as NumPy does; and after some training, as most do."""
    fit = []
    for rival in rivals:
        rival.failed = ""
        rival.ask("start", model=model)
        if rival.has_loss:
            before = rival.ask("loss", count=CHECKED).get("loss")
            rival.ask("steps", count=STEPS, batch=STEP)
            rival.losses[model] = [before, rival.ask("loss", count=CHECKED).get("loss")]
        if rival.failed:
            print(f"{rival.name}, {model}: {rival.failed}", file=sys.stderr)
        else:
            fit.append(rival)
    trained = float(np.median([rival.losses[model][1] for rival in fit if rival.has_loss]))
    for rival in list(fit):
        pairs = zip(rival.losses.get(model, []), [wanted, trained], strict=False)
        if all(abs(found - right) <= TOLERANCE * right for found, right in pairs):
            continue
        what = f"{rival.name}, {model}: losses {rival.losses[model]}, not {wanted:.4f} and {trained:.4f}"
        if rival.framework == "undertow":
            common.fail(what)
        print(f"{what}: it gets no time", file=sys.stderr)
        fit.remove(rival)
    return fit


def race(rivals: Sequence[Rival], cases: Sequence[Case], repeat: int, budget: float, on_clock: bool) -> None:
    """Rounds in which everybody does the same in turn. Who has used up the budget (seconds) drops out after two."""
    used = dict.fromkeys(map(id, rivals), 0.0)
    for turn in range(repeat):
        for rival in rivals:
            if rival.failed or (turn > 1 and used[id(rival)] > budget):
                continue
            for case in cases:
                _, batch, work, trees = case
                found = rival.ask("epoch", work=work, batch=batch, trees=trees)
                if rival.failed:
                    break
                used[id(rival)] += sum(found["clock"])
                times = np.array(found["clock" if on_clock else "processor"])
                rival.trees[case] = found["trees"]
                rival.times[case] = np.minimum(times, rival.times.get(case, times))
        print(f"{', '.join(map(str, cases[0]))}: round {turn + 1} of {repeat}", file=sys.stderr)
    for rival in rivals:
        if rival.failed:
            print(f"{rival.name}, {cases[0]}: {rival.failed}", file=sys.stderr)


def python_of(pairs: Sequence[str]) -> dict[str, str]:
    """From NAME=PATH: which Python has a framework."""
    return dict(pair.split("=", 1) for pair in pairs)
