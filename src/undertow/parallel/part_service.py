"""What workers do for placed graphs: a service that runs parts (`cluster/parts.py` has its other end).

A worker has *circles*: processes with which it is connected by a wire. Calls of `part` run one after the other; `stop
part` runs beside them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from undertow.cluster.frames import Buffer
from undertow.cluster.kept import Told
from undertow.cluster.member import Member
from undertow.cluster.wires import Doors, Place, Wire
from undertow.engines.waves.part import LoadedPlan, loaded, run_order
from undertow.errors import RunError, WorkerLost


@dataclass(eq=False)
class Connection:
    """This worker's place in a circle."""

    stop: int  # an eventfd
    wire: Wire | None = None
    told: Told = field(default_factory=Told)

    def close(self) -> None:
        """Disconnect. Nobody waits in the wire any more."""
        if self.wire is not None:
            self.wire.close()
        os.close(self.stop)


class PartService:
    """The parts of a worker."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._doors: Doors | None = None
        self._plans: dict[bytes, LoadedPlan] = {}
        self._circles: dict[int, Connection] = {}
        self._stopped: set[int] = set()
        self._lock = threading.Lock()  # so that nobody writes to a descriptor that has been closed

    def serve(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """One call."""
        said, *rest = parts
        asked = json.loads(bytes(said))
        with self._lock:
            for number in [number for number in self._circles if number in self._stopped]:
                self._circles.pop(number).close()
        if asked["do"] == "door":
            self._doors = self._doors or self._member.doors()
            return [self._doors.address.encode()]
        if asked["do"] == "open":
            self._open(asked["circle"], asked["own"], asked["among"], bytes(rest[0]))
            return []
        if asked["do"] == "plan":
            self._plans[bytes(rest[0])] = loaded(bytes(rest[1]))
            return []
        if asked["do"] == "run":
            return [self._run(asked, bytes(rest[0]), bytes(rest[1]), rest[2:])]
        raise RunError(f"parts cannot do {asked['do']!r}")

    def stop(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """Whoever waits in a circle waits no more."""
        number = json.loads(bytes(parts[0]))["circle"]
        with self._lock:
            self._stopped.add(number)
            circle = self._circles.get(number)
            if circle is not None:
                os.eventfd_write(circle.stop, 1)
        return []

    def _open(self, number: int, own: int, among: Sequence[tuple[str, int, str]], secret: bytes) -> None:
        assert self._doors is not None, "whoever opens a circle has asked for the door"
        circle = Connection(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        self._circles[number] = circle
        circle.wire = self._doors.wire([Place(*place) for place in among], own, secret, circle.stop)

    def _run(self, asked: dict[str, Any], key: bytes, message: bytes, buffers: Sequence[Buffer]) -> bytes:
        circle = self._circles.get(asked["circle"])
        if circle is None or circle.wire is None:
            raise WorkerLost(f"worker {self._member.worker} is not connected to the others")
        if key not in self._plans:
            raise RunError(f"worker {self._member.worker} lacks the plan of its part")
        values = circle.told.take(asked["kept"], asked["dropped"], asked["whole"], buffers)
        reply, activations, waves = run_order(self._plans[key], [message, *values], circle.wire)
        self._member.count(activations, waves)
        return reply
