"""Workers that are Ray actors, one for each incarnation, and values in Ray's object store.

Ray is not asked to start any of them again (`max_restarts=0`): the pool does, which knows what a worker was at.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from undertow.cluster.frames import Buffer
from undertow.cluster.station import Ticket
from undertow.ray.actor import Actor, birth_of
from undertow.ray.extra import the_ray

log = logging.getLogger("undertow.cluster")

LARGE = 1 << 18  # bytes; what is smaller is sooner sent than put into the store
METHODS = 4  # of an actor side by side: `run` takes one for as long as it lives
PATIENCE = 10.0  # seconds to wait for actors that end


class RayLauncher:
    """A `Launcher`, and a `Carrier`."""

    def __init__(
        self,
        services: str = "",
        guests: str = "",
        processors: float = 1.0,
        scheduling: Any = "SPREAD",
        door: str = "",
    ) -> None:
        self._ray = the_ray()
        self._made = services, guests
        self._door = door  # where workers find this program, if not where it listens
        self._options = {
            "num_cpus": processors,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": METHODS,
            "scheduling_strategy": scheduling,
        }
        self._class = self._ray.remote(Actor)
        self._kill = self._ray.remote(num_cpus=0, max_retries=0)(kill)
        self._actors: dict[int, Any] = {}  # by incarnation
        self._runs: dict[int, Any] = {}
        self._ended: deque[int] = deque()  # of these
        self._places: dict[int, Any] = {}
        self._values: dict[int, Any] = {}
        self._gone: dict[int, Callable[[str], None]] = {}

    # ----------------------------------------------------------------------------------------------------------
    # Actors

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """Start an actor. Ray says at once when its process has ended."""
        incarnation = ticket.incarnation
        if self._door:
            ticket = replace(ticket, address=self._door)
        actor = self._class.options(**self._options).remote(*self._made)
        self._actors[incarnation] = actor
        self._places[incarnation] = actor.where.remote()
        self._runs[incarnation] = actor.run.remote(ticket.to_bytes())

        self._gone[incarnation] = gone

        def ended(future: Any) -> None:
            self._ended.append(incarnation)
            error = future.exception()
            gone(f"Ray says: {first_words(error)}" if error is not None else f"it has ended: {future.result()}")

        self._runs[incarnation].future().add_done_callback(ended)

    def end(self, worker: int, incarnation: int) -> None:
        """Kill an actor: by Ray, and by its node, since one that is frozen does not hear Ray."""
        self._take_note()
        actor, place = self._actors.pop(incarnation, None), self._places.pop(incarnation, None)
        self._gone.pop(incarnation, None)
        if actor is None:
            return
        self._ray.kill(actor, no_restart=True)
        if place is not None and self._ray.wait([place], timeout=0)[0]:
            try:
                node, process, born = self._ray.get(place)
            except self._ray.exceptions.RayError:
                return  # it had ended before
            on_node = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            self._kill.options(scheduling_strategy=on_node).remote(process, born)

    def close(self) -> None:
        """End all actors."""
        for incarnation in list(self._actors):
            self.end(-1, incarnation)
        self._values.clear()
        runs = list(self._runs.values())
        self._ray.wait(runs, num_returns=len(runs), timeout=PATIENCE, fetch_local=False) if runs else None
        self._take_note()
        self._runs.clear()

    def _take_note(self) -> None:
        """Fetch what actors have returned, or how they ended: Ray prints errors that nobody has seen."""
        while self._ended:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.get(self._runs.pop(self._ended.popleft(), []), timeout=0)

    # ----------------------------------------------------------------------------------------------------------
    # Values

    def publish(self, number: int, data: Buffer) -> bool:
        """Put a large value into the object store, from which workers of the same node map it."""
        if len(data) < LARGE:
            return False
        try:
            self._values[number] = self._ray.put(np.frombuffer(data, np.uint8))
        except self._ray.exceptions.RayError as error:  # the store is full: it is sent, then
            log.warning("a value of %d bytes does not go into the object store: %s", len(data), first_words(error))
            return False
        return True

    def carry(self, worker: int, incarnation: int, number: int) -> None:
        """Hand it to an actor. Its node fetches it first, if it does not have it."""
        actor, value = self._actors.get(incarnation), self._values.get(number)
        gone = self._gone.get(incarnation)
        if actor is None or value is None or gone is None:
            return

        def carried(future: Any) -> None:  # its tasks would wait for it for ever
            error = future.exception()
            if error is not None:
                gone(f"a shared value did not get there: {first_words(error)}")

        actor.place.remote(number, value).future().add_done_callback(carried)

    def forget(self, number: int) -> None:
        """Ray frees it when no worker uses it any more."""
        self._values.pop(number, None)


def kill(process: int, born: str) -> None:
    """Run on the node of an actor that may be frozen. If it has ended, its number may be another process's."""
    with contextlib.suppress(OSError):
        if birth_of(process) == born:
            os.kill(process, signal.SIGKILL)


def first_words(error: BaseException) -> str:
    """The first line of what Ray says, which may be a page."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
