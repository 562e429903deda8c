"""Frames that are none, to the two ends of a pool: refused, and nothing worse."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.case import Case
from tests.support.adders import Adders, services
from tests.support.network import Simulation
from tests.support.spoiled_frames import spoiled
from tests.support.workloads import WORKLOADS

from undertow.cluster.driver import Driver
from undertow.cluster.frames import BadFrame, Buffer, decode, encode
from undertow.cluster.roster import Times
from undertow.cluster.station import DRIVER, Keys, Ticket
from undertow.cluster.worker import Worker

SESSION = bytes(range(16))
KEYS = Keys(b"p" * 40, b"s" * 40)
LONGEST = 60  # frames of a conversation


@cache
def conversation() -> tuple[tuple[int, int, tuple[bytes, ...]], ...]:
    """What a driver and three workers say to each other when they work: from, to, parts."""
    said: list[tuple[int, int, tuple[bytes, ...]]] = []

    class Listening(Simulation):
        def post(self, sender: int, to: int, parts: Sequence[Buffer]) -> None:
            whole = [bytes(part) for part in parts]
            said.append((sender, to, (whole[0][:8] + SESSION + whole[0][24:], *whole[1:])))
            super().post(sender, to, parts)

    with Listening(seed=1) as simulation:
        pool = simulation.pool(3, services, Adders).open()
        calls = [pool.call(worker, "around", b"1") for worker in range(3)]
        assert [bytes(call.result()[0]) for call in calls] == [b"3"] * 3
        assert WORKLOADS["sums"].run(pool, 6) == WORKLOADS["sums"].expected(6)
    return tuple(said)


def spoiled_conversation(chance: Random) -> Case:
    """Frames of a real conversation, some of them spoiled, some twice, some by others, to one end of it.

    No event may fail; whatever is read must be what would be written; and what the end wants done must be there.
    """
    said = conversation()
    to_driver = chance.random() < 0.5
    mine = [row for row in said if (row[1] == DRIVER) == to_driver and (to_driver or row[1] == 1)]
    begin = chance.randrange(len(mine)) if chance.random() < 0.5 else 0
    events: list[tuple[int, list[bytes]]] = []
    for sender, _, parts in mine[begin : begin + chance.randrange(1, LONGEST)]:
        sender_now = chance.randrange(-1, 6) if chance.random() < 0.05 else sender
        if chance.random() < 0.3:
            events.append((sender_now, spoiled(parts, chance)))
        if chance.random() < 0.8:
            events.append((sender_now, list(parts)))
        if chance.random() < 0.1:
            events.append((sender, list(chance.choice(mine)[2])))

    def run() -> object:
        machine: Any
        if to_driver:
            machine = Driver(SESSION, 3, 3, Times(), KEYS, "tcp://127.0.0.1:*", lambda: KEYS)
            machine.open(0.0)
        else:
            ticket = Ticket("here", KEYS.public, SESSION, 0, 1, KEYS, "there", Times())
            machine = Worker(ticket, "place", 1)
            machine.open("there", 0.0)
        log, faults = logging.getLogger("undertow.cluster"), Faults()
        log.addHandler(faults)
        log.propagate = False
        try:
            for number, (sender, parts) in enumerate(events):
                check(parts)
                machine.receive(sender, parts, number / 50)
                machine.tick(number / 50)
                machine.actions()
        finally:
            log.removeHandler(faults)
            log.propagate = True
        return machine

    text = "\n".join(f"{sender}: {[bytes(part[:100]) for part in parts[:5]]}" for sender, parts in events)
    return Case(run, f"to {'the driver' if to_driver else 'a worker'}:\n{text}", is_valid=True)


class Faults(logging.Handler):
    """Does not let faults of ours pass, which machines log, and survive."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[1] is not None:
            raise record.exc_info[1]


def check(parts: Sequence[bytes]) -> None:
    """Read it, and write that again."""
    try:
        frame = decode(parts, SESSION)
    except BadFrame:
        return
    assert [bytes(part) for part in encode(frame)] == list(parts)
