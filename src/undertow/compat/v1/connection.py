"""`Session("grpc://host:port")`: the cluster that a session runs on, and its workers, which are there once it runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from undertow.api.options import sharing_out
from undertow.cluster.pool import Pool
from undertow.cluster.servers import PATIENCE, ServerLauncher, cluster_of, open_tasks
from undertow.compat.v1.devices import Cluster
from undertow.compat.v1.place import here
from undertow.errors import GraphError, TypeMismatch, UndertowError, WorkerLost, brief

_TARGET = re.compile(r"grpc://(\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):(\d{1,5})")
AGAIN = 1.0  # seconds for a server that was lost to be there again, each time that it is tried
_OPEN: weakref.WeakSet[ServerLauncher] = weakref.WeakSet()  # of sessions that nobody has closed


def address_of(target: Any) -> str:
    """The "host:port" in a target."""
    if not isinstance(target, (str, bytes)):
        raise TypeMismatch(
            f"target must be a string, not {brief(target)}", here(), hint='as in "grpc://localhost:2222"'
        )
    text = target.decode(errors="replace") if isinstance(target, bytes) else target
    if not _TARGET.fullmatch(text):
        raise GraphError(
            f"a session cannot run on {brief(text)}",
            here(),
            hint='name a server of the cluster, "grpc://localhost:2222", or leave the target out',
        )
    return text.removeprefix("grpc://")


class Connection:
    """A session's way to a cluster. `lock` is held while the cluster is asked for, or its workers are started."""

    def __init__(self, target: Any, is_soft: bool = False) -> None:
        self._address = address_of(target)
        self._is_soft = is_soft
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._cluster: Cluster | None = None
        self._pool: Pool | None = None
        self._launcher: ServerLauncher | None = None

    def _found(self) -> Cluster:
        if self._cluster is None:
            jobs, task = cluster_of(self._address)
            self._cluster = Cluster(jobs, task.job, self._is_soft)
        return self._cluster

    @contextlib.contextmanager
    def running(self) -> Iterator[Cluster]:
        """Runs inside the block use the cluster. All of its tasks are there when it begins."""
        try:
            with self._lock:
                cluster, pool = self._found(), self._there()
        except UndertowError as fault:
            fault.span = fault.span or here()
            raise
        with sharing_out(pool):
            yield cluster

    def _there(self) -> Pool:
        if self._process != os.getpid():  # in a child made by os.fork: the connections are its parent's
            self._process, self._pool, self._launcher = os.getpid(), None, None
        seconds = PATIENCE
        if self._pool is not None:
            try:
                self._pool.wait_for_workers(seconds=PATIENCE)
            except WorkerLost:  # its server was no more; perhaps it is there again
                self.end()
                seconds = AGAIN
            else:
                return self._pool
        self._pool, self._launcher = open_tasks(self._found().jobs, seconds=seconds)
        _OPEN.add(self._launcher)
        return self._pool

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            self.end()

    def end(self) -> None:
        """The same, for those who hold the lock."""
        pool, self._pool, self._launcher = self._pool, None, None
        if pool is not None and self._process == os.getpid():
            pool.close()


@atexit.register
def _take_leave() -> None:
    """A program ends: its workers, too, of sessions that are not closed."""
    for launcher in list(_OPEN):
        launcher.close()


os.register_at_fork(after_in_child=_OPEN.clear)
