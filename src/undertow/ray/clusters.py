"""Workers on a Ray cluster, for the runs inside a `with` block: `ut.ray.cluster` starts one here, `connect` joins one.

Outside of the block nothing runs on workers. A run inside it gives away what is worth it; results are the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NoReturn

from undertow.api.options import sharing_out
from undertow.cluster.counts import amount_of, count_of
from undertow.cluster.names import GUESTS, SERVICES
from undertow.cluster.pool import Pool, WorkerStats
from undertow.cluster.probe import Way
from undertow.cluster.tracks import DRIVER
from undertow.errors import Timeout, TypeMismatch, UndertowError
from undertow.ray.addresses import STARTS, check_form, locate
from undertow.ray.extra import network, the_ray
from undertow.ray.launcher import RayLauncher
from undertow.ray.local import PATIENCE, Keeper, inside, store_of
from undertow.ray.relay import Tunnel
from undertow.ray.survey import Survey, survey
from undertow.ray.table import Rows, Ways
from undertow.tracebacks import boundary, guarded

STORE = 1 << 29  # bytes for the object store of a Ray of our own, unless told otherwise
LOOPBACK = "tcp://127.0.0.1:*"

NOT_UP_IN_TIME = "Starting Ray client server failed"  # with ray://, now and then: Ray says it after thirty seconds


_blocks = 0  # that have connected this program to Ray; written by the thread that enters or leaves one


@guarded
class Cluster:
    """Workers that take part in the runs of a `with` block. `ut.ray.cluster` and `ut.ray.connect` make it."""

    def __init__(self, enter: Callable[[contextlib.ExitStack], Pool]) -> None:
        self._enter = enter
        self._stack: contextlib.ExitStack | None = None
        self._process = os.getpid()  # that has opened it
        self._pool: Pool | None = None

    @property
    @boundary
    def pool(self) -> Pool:
        """The workers, as training uses them."""
        if self._pool is None:
            raise UndertowError("this cluster is not open", hint="use it in a block: `with ut.ray.cluster() as c:`")
        return self._pool

    @property
    @boundary
    def workers(self) -> int:
        """How many workers are ready now."""
        return len(self.pool.workers())

    def stats(self) -> list[WorkerStats]:
        """What each worker has done, and is doing: a row for each. Printed, a table."""
        return Rows(self.pool.stats())

    def probe(self) -> list[Way]:
        """How long a message to each worker takes, there and back, and how many bytes a second it can be sent.

        Printed, a table.
        """
        return Ways(self.pool.probe())

    @contextlib.contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Write what workers do inside a block to a file: a track for each, and one for this program.

        with cluster.trace("workers.json"):
            trainer.step(batch)

        https://ui.perfetto.dev and Chrome's page chrome://tracing show it: the tasks of runs, the steps of training and
        what took how long in them, who was lost and when, and how many bytes were sent.
        """
        pool = self.pool
        with open(path, "a", encoding="utf-8"):
            pass  # a place that cannot be written is refused now, not when all is done
        with pool.tracked() as tracks:
            try:
                yield
            finally:
                rows = {row.worker: f"worker {row.worker}, {row.place}, process {row.process}" for row in pool.stats()}
                tracks.write(path, {DRIVER: "this program", **rows})

    def open(self) -> Cluster:
        """Start the workers, and wait until they are there. `with` does this."""
        if self._stack is not None:
            raise UndertowError("this cluster is open already", hint="leave the block first, or make another cluster")
        with contextlib.ExitStack() as stack:
            self._pool = self._enter(stack)
            stack.enter_context(sharing_out(self._pool))
            self._stack = stack.pop_all()
            self._process = os.getpid()
        return self

    def close(self) -> None:
        """End the workers, and what was started for them. Leaving `with` does this."""
        stack, self._stack = self._stack, None
        self._pool = None
        if stack is not None and self._process == os.getpid():
            stack.close()
        elif stack is not None:
            stack.pop_all()  # this is a child made by os.fork: it is the parent that closes

    def __enter__(self) -> Cluster:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @boundary
    def __reduce__(self) -> NoReturn:
        raise TypeMismatch(
            "a cluster cannot be pickled or copied: it is processes and connections of this program",
            hint="another program joins with ut.ray.connect(); `undertow cluster up` starts a cluster that stays",
        )


@boundary
def cluster(
    workers: int = 2,
    *,
    retries: int = 3,
    memory: int | str = STORE,
) -> Cluster:
    """Workers on this machine, by a Ray of their own, for the runs of a `with` block.

    with ut.ray.cluster(workers=2) as cluster:
        total = tree_sum.map(trees)
        print(cluster.stats())

    It takes some seconds to start. Nothing of it is left when the block ends, or this program does, however it ends.
    `retries`: how often a task runs again whose worker was lost; `memory`: of Ray's object store, as bytes or as
    "512M". Ray listens at the loopback address only, and asks for a token.
    """
    workers, retries, store = count_of("workers", workers), count_of("retries", retries, least=0), store_of(memory)

    def enter(stack: contextlib.ExitStack) -> Pool:
        net = network()
        ray = ray_that_is_free()
        keeper = Keeper(workers, store)
        stack.callback(keeper.close)
        address = keeper.address()
        stack.enter_context(keeping_signals())
        stack.enter_context(inside(keeper.environment, ray))
        initialize(ray, address)
        stack.callback(ray.shutdown)
        stack.enter_context(counted())
        launcher = RayLauncher(SERVICES, GUESTS, 1.0)
        pool = Pool(launcher, net, workers, retries, listen=LOOPBACK)
        return stack.enter_context(opened(pool, ray, 1.0, PATIENCE))

    return Cluster(enter)


@boundary
def connect(
    address: str = "auto",
    workers: int | None = None,
    *,
    retries: int = 3,
    processors: float = 1.0,
    scheduling: Any = "SPREAD",
    listen: str | None = None,
    seconds: float = PATIENCE,
) -> Cluster:
    """Workers on a Ray cluster that is there, for the runs of a `with` block. Other programs on it are left alone.

    `address`: what `ray.init` takes, of a node of the cluster; "auto" is RAY_ADDRESS if that is set, or the cluster of
    `undertow cluster up`, or another one of this machine, but none that `ut.ray.cluster` has started. If this
    program is connected to Ray already, that is used. `workers`: one for each processor of the cluster that is free,
    unless told otherwise; each asks Ray for so many `processors`, and `scheduling` is Ray's strategy to place them.
    `seconds`: how long to wait until all are there. `listen`: where this program listens to its workers,
    "tcp://ADDRESS:*"; as Ray knows this machine, if not given. With `ray://` workers need not reach this machine:
    unless `listen` is given, they talk to an actor in the cluster, which passes on what they say, encrypted as it is.
    """
    check_form(address)
    workers = None if workers is None else count_of("workers", workers)
    retries, processors = count_of("retries", retries, least=0), amount_of("processors", processors)
    seconds = amount_of("seconds", seconds)

    def enter(stack: contextlib.ExitStack) -> Pool:
        end = time.monotonic() + seconds
        net = network()
        ray = the_ray()
        if not ray.is_initialized():
            join(stack, ray, address, seconds)
        count = workers
        if count is None:
            count = max(1, int(ray.available_resources().get("CPU", 0) / processors if processors else 1))
        made = SERVICES, GUESTS, processors, scheduling
        if listen is None and ray.util.client.ray.is_connected():
            tunnel = Tunnel(ray)
            stack.callback(tunnel.close)
            pool = Pool(RayLauncher(*made, tunnel.address), net, count, retries, listen=LOOPBACK)
            tunnel.open(pool.address)
        else:
            where = listen or f"tcp://{ray.util.get_node_ip_address()}:*"
            pool = Pool(RayLauncher(*made), net, count, retries, listen=where)
        return stack.enter_context(opened(pool, ray, processors, max(0.0, end - time.monotonic())))

    return Cluster(enter)


def join(stack: contextlib.ExitStack, ray: Any, address: str, seconds: float) -> None:
    """Connect this program to a cluster that is there, until the stack is closed."""
    stack.enter_context(keeping_signals())
    place = locate(address, seconds)
    if place.environment:
        stack.enter_context(inside(place.environment, ray))
    try:
        try:
            initialize(ray, place.address)
        except ConnectionError as error:
            if NOT_UP_IN_TIME not in str(error):
                raise
            initialize(ray, place.address)
    except ConnectionError as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        said = " ".join(dict.fromkeys((lines[0], lines[-1])))
        raise UndertowError(f"there is no Ray cluster at {place.address}: {said}", hint=STARTS) from None
    stack.callback(ray.shutdown)
    stack.enter_context(counted())


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """In a block of ours that has connected this program."""
    global _blocks
    _blocks += 1
    try:
        yield
    finally:
        _blocks -= 1


def opened(pool: Pool, ray: Any, processors: float, seconds: float) -> Pool:
    """The pool, when all of its workers are there."""
    began = time.monotonic()
    try:
        return pool.open(seconds)
    except TimeoutError as error:
        has, free = (found.get("CPU", 0.0) for found in (ray.cluster_resources(), ray.available_resources()))
        what = str(error).rpartition(" after ")[0]
        raise Timeout(
            f"{what} after {time.monotonic() - began:.1f} s: each takes {processors:g} of the cluster's processors, "
            f"which are {has:g}, and {free:g} of them free",
            hint="ask for fewer workers, or wait for longer (seconds=); `undertow cluster status` shows who is there",
        ) from None


def seen(address: str = "auto", seconds: float = PATIENCE) -> Survey:
    """What is on a cluster that is there."""
    ray = the_ray()
    check_form(address)
    with contextlib.ExitStack() as stack:
        if not ray.is_initialized():
            join(stack, ray, address, seconds)
        return survey(ray, ray.get_runtime_context().gcs_address)


def ray_that_is_free() -> Any:
    """Ray, if this program is connected to no cluster: it can be connected to one only."""
    ray = the_ray()
    if ray.is_initialized():
        how = "leave the other block of ut.ray first" if _blocks else "ut.ray.cluster() needs ray.shutdown() before"
        raise UndertowError(
            "this program is connected to a Ray cluster already", hint=f"{how}; ut.ray.connect() uses that one"
        )
    return ray


def initialize(ray: Any, address: str) -> None:
    """Connect this program. What Ray would say of that is no concern of the user's."""
    ray.init(
        address=address,
        namespace=f"undertow-{os.getpid()}",
        log_to_driver=False,
        configure_logging=False,
        logging_level=logging.ERROR,
    )


@contextlib.contextmanager
def keeping_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself: give it back at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
