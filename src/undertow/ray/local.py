"""A Ray of our own on this machine: with token authentication, without a dashboard, at the loopback address.

`keeper.py` starts it, and ends it when this process is no more. All that it writes is in a folder that nobody else may
read, and that goes with it: the token, too, so that nothing is written to the user's home.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from undertow.cluster.counts import count_of
from undertow.engines.contract import bytes_of
from undertow.errors import UndertowError

HERE = Path(__file__).parent
PATIENCE = 90.0  # seconds for Ray to start: it takes five, and more where processors are busy
LEAST_STORE = 75 << 20  # bytes, says Ray
WORKER_DIED = "A worker died or was killed while executing a task"
PREFIX = "undertow-"  # of the names of these folders, by which others are not taken in (`addresses.py`)
AT_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # or Ray takes the machine's address for it
LONGEST = 30  # letters of the name of a temporary folder: paths of sockets in it must not exceed 107


def store_of(memory: Any) -> int:
    """The size of an object store, as a number of bytes or as text, "512M"."""
    found = bytes_of(memory) if isinstance(memory, str) else count_of("memory", memory)
    if found < LEAST_STORE:
        raise UndertowError(f"memory is {memory!r}, which is too little for Ray's object store", hint='give it "75M"')
    return found


def folder_for_ray() -> Path:
    """A new folder that nobody else may read, with a new token in it."""
    home = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home if len(home) <= LONGEST else "/tmp"))
    token = os.open(folder / "token", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    os.write(token, secrets.token_hex(32).encode())
    os.close(token)
    return folder


def environment(folder: Path, is_alone: bool = True) -> dict[str, str]:
    """What Ray reads of it. `is_alone`: listen at the loopback address only, which Ray calls a cluster that is off."""
    found = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(folder / "token"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # as it will be; otherwise Ray warns
    }
    return {**found, **AT_LOOPBACK} if is_alone else found


@contextlib.contextmanager
def inside(changes: Mapping[str, str], ray: Any = None) -> Iterator[None]:
    """With these variables in the environment, as Ray sees it, too."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        with contextlib.nullcontext() if ray is None else aware(ray):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if ray is not None:
            read_again()


@contextlib.contextmanager
def aware(ray: Any) -> Iterator[None]:
    """Ray has read the environment when it was imported, perhaps by somebody else: have it read it again.

    Meanwhile it does not print a paragraph to standard output for every worker that is lost: the pool tells of these.
    """
    from ray._private import ray_constants
    from ray._private.ray_logging import stdout_deduplicator as printed

    before, skipped = ray_constants.ENABLE_RAY_CLUSTER, printed.skip_re
    read_again()
    ray_constants.ENABLE_RAY_CLUSTER = os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1") != "0"
    printed.skip_re = re.compile(WORKER_DIED if skipped is None else f"{skipped.pattern}|{WORKER_DIED}")
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER, printed.skip_re = before, skipped


def read_again() -> None:
    """Whether there is a token, and which."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


class Keeper:
    """The process that keeps a Ray, and where that listens."""

    def __init__(self, processors: int, store: int) -> None:
        self.folder = folder_for_ray()
        self.environment = environment(self.folder)
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)  # workers import what this program can
        settings: dict[str, Any] = {"num_cpus": processors, "object_store_memory": store}
        command = [sys.executable, str(HERE / "head.py"), str(self.folder), json.dumps(settings)]
        self._process = keep("attached", self.folder, command, {**self.environment, "PYTHONPATH": path})

    def address(self, patience: float = PATIENCE) -> str:
        """Wait until Ray is there."""
        line = first_line(self._process, patience)
        if "address" not in line:
            self.close()
            said = "\n".join(line.get("log", ()))
            raise UndertowError(f"Ray has not started: {line.get('error', 'it takes too long')}\n{said}".rstrip())
        return str(line["address"])

    def close(self) -> None:
        """End it, and wait until all of it is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def keep(kind: str, folder: Path, command: list[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a keeper, out of reach of Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-I", str(HERE / "keeper.py"), kind, str(folder), *command],
        stdin=subprocess.DEVNULL if kind == "alone" else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if kind == "alone" else None,  # whoever reads the end of ours would wait for it
        start_new_session=True,
        env={**os.environ, **variables},
    )


def first_line(process: subprocess.Popen[bytes], patience: float) -> dict[str, Any]:
    """The first line of JSON that a process writes; {} if none comes in time."""
    assert process.stdout is not None
    end, text = time.monotonic() + patience, b""
    while b"\n" not in text:
        if not select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            return {}
        read = os.read(process.stdout.fileno(), 1 << 16)
        if not read:
            return {}
        text += read
    line: dict[str, Any] = json.loads(text.splitlines()[0])
    return line
