"""Parts of a wire for tests: services of workers, and what every part says to every other."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from undertow._core import Wire
from undertow.cluster.frames import Buffer
from undertow.cluster.member import Member
from undertow.cluster.wires import Place

PATIENCE = 20.0  # seconds


def rows(seed: int, speaker: int, listener: int, size: int) -> list[bytes]:
    """What one part says to another."""
    chance = random.Random(f"{seed} {speaker} {listener}")
    return [chance.randbytes(int(size ** chance.random())) for _ in range(50)] + [chance.randbytes(size)]


def converse(wire: Wire, own: int, parts: int, seed: int, size: int) -> None:
    """Say all that is to be said, and hear all; then wait until others have heard it, too."""
    others = [part for part in range(parts) if part != own]
    to_say = {part: rows(seed, own, part, size) for part in others}
    heard = {part: bytearray() for part in others}
    missing = {part: sum(map(len, rows(seed, part, own, size))) for part in others}
    end = time.monotonic() + PATIENCE
    while any(to_say.values()) or any(missing.values()) or not wire.is_sent:
        assert time.monotonic() < end
        for part in others:
            if to_say[part] and not wire.is_full:
                wire.send(part, to_say[part].pop(0))
        wire.flush()
        for part, batch in wire.take(0.0 if any(to_say.values()) and not wire.is_full else 0.5):
            heard[part] += batch
            missing[part] -= len(batch)
    for part in others:
        assert bytes(heard[part]) == b"".join(rows(seed, part, own, size))


def services(member: Member) -> dict[str, object]:
    """`address`, `wire` (among, own, secret, options), `converse`, `drop`."""
    doors = member.doors()
    wires: list[Wire] = []

    def wire(parts: Sequence[Buffer]) -> bytes:
        row: dict[str, Any] = json.loads(bytes(parts[0]))
        among = [Place(*place) for place in row["among"]]
        wires.append(doors.wire(among, row["own"], bytes.fromhex(row["secret"]), **row["options"]))
        return b""

    def talk(parts: Sequence[Buffer]) -> bytes:
        converse(wires[-1], *json.loads(bytes(parts[0])))
        return json.dumps(wires[-1].counts()).encode()

    def drop(parts: Sequence[Buffer]) -> bytes:
        while wires:
            wires.pop().close()
        return b""

    found: dict[str, Callable[[Sequence[Buffer]], bytes]] = {
        "address": lambda parts: doors.address.encode(),
        "wire": wire,
        "converse": talk,
        "drop": drop,
    }
    return dict(found)
