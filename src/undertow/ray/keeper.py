"""A process that starts Ray, and ends it when whoever wanted it is no more, however that ended.

Run as a script, with nothing but the standard library: `keeper.py KIND FOLDER COMMAND...`. What it starts, and whatever
is started by that, becomes its child at last (on Linux), so that nothing of it gets lost: some agents of a Ray that is
killed live on for a minute. When standard input comes to its end (unless KIND is "alone"), on SIGTERM, or when the
command has ended, all of these are killed, and the folder is removed. The command says on standard output what its
caller wants to know.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

BETWEEN = 0.1  # seconds
TAIL = 20  # lines of the log that an error shows
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # of prctl


def prctl(option: int, value: int) -> None:
    """Where there is such a thing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants() -> list[int]:
    """All processes that this one has started, and those that they have started, by their numbers."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [os.getpid()]
    while todo:
        fresh = children.get(todo.pop(), [])
        found += fresh
        todo += fresh
    return found


def kill_all() -> None:
    """Until there is none left: one that is killed may have been about to start another."""
    while there := descendants():
        for process in there:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def main() -> None:
    """Start, wait, and clean up."""
    kind, folder, command = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    prctl(_SUBREAPER, 1)
    signals, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # it is the pipe that wakes us
    log = folder / "log"
    with log.open("wb") as out:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stderr=out,
            preexec_fn=lambda: prctl(_DEATH_SIGNAL, signal.SIGKILL),  # if this process is killed
        )
    try:
        ended = None
        heard = [signals] if kind == "alone" else [signals, 0]
        while ended is None and not select.select(heard, [], [], BETWEEN)[0]:
            ended = started.poll()
        if ended is not None:
            tail = log.read_text(errors="replace").splitlines()[-TAIL:]
            with contextlib.suppress(OSError):
                os.write(1, json.dumps({"error": f"exit code {ended}", "log": tail}).encode() + b"\n")
    finally:
        kill_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
