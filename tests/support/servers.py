"""Servers of compat.v1, each a process of this machine, and the workers that they start."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 30.0


class Servers:
    """Two tasks of a job, each a process."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:  # ports that are free, and different
            ways = [stack.enter_context(socket.socket()) for _ in range(2)]
            for way in ways:
                way.bind(("127.0.0.1", 0))
            self.spec = {"local": [f"localhost:{way.getsockname()[1]}" for way in ways]}
        self.target = f"grpc://{self.spec['local'][0]}"
        self.processes: dict[int, subprocess.Popen[str]] = {}

    def start(self, task: int) -> None:
        """Start it, and wait until it serves."""
        command = [sys.executable, "-m", "undertow", "server", "--cluster", json.dumps(self.spec), "--task", str(task)]
        process = self.processes[task] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and select.select([process.stdout], [], [], PATIENCE)[0]
        assert f"/job:local/task:{task} serves at grpc://{self.spec['local'][task]}" in process.stdout.readline()

    def end(self, task: int, how: int) -> int:
        """Send it a signal, and wait; its exit code."""
        process = self.processes.pop(task)
        process.send_signal(how)
        code = process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()
        return code

    def kill(self, worker: int) -> None:
        """One of the processes that servers have started."""
        os.kill(worker, signal.SIGKILL)

    def workers(self, task: int) -> list[int]:
        """The processes that it has started."""
        return children(self.processes[task].pid)


@contextlib.contextmanager
def serving() -> Iterator[Servers]:
    """Servers of both tasks."""
    there = Servers()
    try:
        for task in range(2):
            there.start(task)
        yield there
    finally:
        for task in list(there.processes):
            there.end(task, signal.SIGKILL)


def children(parent: int) -> list[int]:
    """The processes that it has started, from any thread."""
    found = []
    for thread in Path(f"/proc/{parent}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (thread / "children").read_text().split())
    return found


def becomes(true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        select.select([], [], [], 0.02)
    return found
