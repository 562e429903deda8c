"""The way from a task on a worker to other workers: how one unbalanced call is spread."""

from __future__ import annotations

from collections.abc import Sequence

from undertow.cluster.dispatch import results_of, taken_from
from undertow.cluster.frames import Buffer
from undertow.cluster.station import Station
from undertow.cluster.worker import SubLink, Worker
from undertow.errors import WorkerLost


class MemberLink:
    """What `Link` of `engines/outside.py` asks for, on a worker. Used by the thread of one task alone."""

    def __init__(self, machine: Worker, station: Station, link: SubLink, plan: int) -> None:
        self._machine = machine
        self._station = station
        self._link = link
        self._plan = plan

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere, as the driver last said."""
        return self._machine.idle

    def publish(self, data: Buffer) -> int:
        """Share a value between tasks; copied."""
        with self._station.lock:
            number = self._machine.publish(self._link, bytes(data))
            self._station.wake()
        return number

    def submit(self, task: int, phase: int, message: Buffer, shared: Sequence[int] = ()) -> None:
        """Run a phase elsewhere."""
        with self._station.lock:
            self._machine.submit(self._link, self._plan, task, phase, (bytes(message),), shared)
            self._station.wake()

    def take(self, seconds: float) -> list[tuple[int, int, bytes]]:
        """What has come back; waits so long at most. While it waits, this worker runs other tasks."""
        machine, station, replies = self._machine, self._station, self._link.replies
        with station.lock:
            if not replies and seconds > 0:
                machine.wait(+1)
                machine.busy(-1, station.now())
                station.wake()
                station.wait(lambda: bool(replies) or machine.is_ended, seconds)
                machine.wait(-1)
                machine.busy(+1, station.now())
                station.wake()
            taken = taken_from(replies)
            if not taken and machine.is_ended:
                raise WorkerLost(f"this worker has ended: {machine.why}")
        return results_of(taken)

    def drop(self, task: int) -> None:
        """It has no more phases."""
        with self._station.lock:
            self._machine.drop(self._link, task)
            self._station.wake()

    def news(self) -> str:
        """Nobody asks a task."""
        return ""

    def close(self) -> None:
        """The task is over."""
        with self._station.lock:
            self._machine.close_link(self._link)
            self._station.wake()
