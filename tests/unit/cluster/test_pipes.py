"""Pipes between any two processes of a pool, over a network that loses, delays and repeats frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from tests.support.network import Simulation

import undertow as ut
from undertow.cluster.frames import Buffer
from undertow.cluster.member import Member
from undertow.cluster.pipe import Pipe
from undertow.cluster.station import DRIVER

NUMBER = 1 << 63 | 5


def services(member: Member) -> dict[str, object]:
    def back(parts: Sequence[Buffer]) -> bytes:
        """Sends all that comes back where it comes from, until its end."""
        pipe = member.pipe(NUMBER, int(bytes(parts[0])))
        while data := pipe.receive(60.0):
            pipe.send(data)
        pipe.close()
        return b"at its end"

    def there(parts: Sequence[Buffer]) -> bytes:
        """Sends something to a peer, and takes what comes."""
        pipe = member.pipe(NUMBER, int(bytes(parts[0])))
        return b"".join(swap(pipe, Random(1)))

    return {"back": back, "there": there}


def swap(pipe: Pipe, chance: Random, turns: int = 30) -> list[bytes]:
    """What comes back, after the end was said; checks that it is what was sent."""
    sent = [chance.randbytes(chance.randrange(1, 100)) for _ in range(turns)]
    for data in sent:
        pipe.send(data)
    came = [pipe.receive(60.0) for _ in sent]
    pipe.close()
    assert came == sent
    assert pipe.receive(60.0) == b""
    return came


@pytest.mark.parametrize("seed", range(20))
def test_between_the_driver_and_a_worker(seed: int) -> None:
    with Simulation(seed, loss=0.1 * (seed % 3), repetition=0.1) as simulation:
        pool = simulation.pool(2, services).open()
        calls = []
        for worker, incarnation in pool.workers():
            calls.append(pool.call(worker, "back", str(DRIVER).encode()))
            swap(pool.pipe(NUMBER, incarnation), Random(seed))
        assert [call.result() for call in calls] == [[b"at its end"]] * 2


@pytest.mark.parametrize("seed", range(20))
def test_between_workers(seed: int) -> None:
    """Also if one begins to send before the other knows of the pipe."""
    with Simulation(seed, loss=0.1 * (seed % 3), repetition=0.1) as simulation:
        pool = simulation.pool(2, services).open()
        (_, one), (_, other) = pool.workers()
        begin: list[Callable[[], object]] = [
            lambda: pool.call(0, "there", str(other).encode()),
            lambda: pool.call(1, "back", str(one).encode()),
        ]
        calls = []
        for beginning in begin[:: 1 if seed % 2 else -1]:
            calls.append(beginning())
            simulation.sleep(1.0)
        results = sorted((call.result() for call in calls), key=lambda parts: len(parts[0]))  # type: ignore[attr-defined]
        assert results[0] == [b"at its end"] and len(results[1][0]) > 100


@pytest.mark.parametrize("peer", ["the driver", "a worker"])
def test_a_process_that_is_lost(peer: str) -> None:
    with Simulation(seed=7) as simulation:
        pool = simulation.pool(2, services).open()
        incarnation = dict(pool.workers())[1]
        if peer == "the driver":
            call = pool.call(0, "there", str(incarnation).encode())
            simulation.later(0.5, lambda: simulation.kill(1))
            with pytest.raises(ut.WorkerLost, match=f"incarnation {incarnation} is gone"):
                call.result()
        else:
            pipe = pool.pipe(NUMBER, incarnation)
            simulation.later(0.5, lambda: simulation.kill(1))
            with pytest.raises(ut.WorkerLost, match=f"incarnation {incarnation} is gone"):
                pipe.receive()
            with pytest.raises(ut.WorkerLost):
                pipe.send(b"too late")
            pipe.close()


def test_patience_and_ends() -> None:
    with Simulation(seed=8) as simulation:
        pool = simulation.pool(1, services).open()
        ((_, incarnation),) = pool.workers()
        pipe = pool.pipe(NUMBER, incarnation)
        with pytest.raises(TimeoutError, match=r"nothing came in 1\.5 s"):
            pipe.receive(1.5)
        call = pool.call(0, "back", b"0")
        pipe.send(b"abc")
        pipe.close()
        pipe.close()
        assert pipe.receive() == b""  # it is closed here: what comes is dropped
        assert call.result() == [b"at its end"]
        simulation.sleep(1.0)
        assert all(not member._machine.pipes.arrived for member in simulation.members.values())
