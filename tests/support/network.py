"""A network and its workers inside one process, from one seed: order, delay, loss and repetition of frames, and when
workers are killed, frozen or cut off. Time is virtual, so nothing sleeps, and the same seed gives the same run.

`Pool` and `Member` run as they are. Their activities are threads of which one at a time has the baton; it is handed on
where an activity waits.

    with Simulation(seed=1, loss=0.1) as simulation:
        pool = simulation.pool(workers=3, services=lambda member: {"echo": list})
        pool.open()
        assert pool.call(0, "echo", b"abc").result() == [b"abc"]
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from types import TracebackType
from typing import Any

from undertow.cluster.frames import Buffer
from undertow.cluster.member import Guests, Member, Service
from undertow.cluster.pool import Pool
from undertow.cluster.station import DRIVER, Action, Admit, Forget, Keys, Machine, Send, Ticket

TICK = 0.1
MOST_LOST = 2  # frames in a row: with four signs of life, a worker would be lost
FOREVER = 3600.0  # virtual seconds; a test that takes so long waits for something that never comes


class Killed(BaseException):
    """Ends the activities of a worker that was killed."""


class Host:
    """A process: the driver, or an incarnation of a worker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_killed = False
        self.is_frozen = False
        self.is_cut_off = False
        self.kept: list[Callable[[], None]] = []  # events that wait until it thaws


class Activity:
    """A thread, and what it waits for."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.until: Callable[[], bool] = lambda: True
        self.deadline: float | None = None
        self.baton = threading.Semaphore(0)


class Simulation:
    """Everything that happens, in an order that the seed decides."""

    def __init__(
        self, seed: int = 0, delay: float = 0.01, loss: float = 0.0, repetition: float = 0.0, start: float = 0.2
    ) -> None:
        self.random = Random(seed)
        self.delay, self.loss, self.repetition, self.start = delay, loss, repetition, start
        self.time = 0.0
        self.frames = 0
        self.tamper: Callable[[list[bytes]], list[bytes]] | None = None  # with frames on their way
        self.stations: dict[int, SimulatedStation] = {}
        self.members: dict[int, Member] = {}
        self.driver_host = Host("driver")
        self._main = Activity(self.driver_host)
        self._now = self._main  # who has the baton
        self._activities = [self._main]
        self._events: list[tuple[float, int, Host, Callable[[], None]]] = []
        self._count = itertools.count()
        self._pools: list[Pool] = []
        self._lost: dict[tuple[int, int], int] = {}  # frames in a row, by from where and to whom
        self._failure: BaseException | None = None

    def __enter__(self) -> Simulation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for pool in self._pools:
            if error is None:
                pool.close()
        for station in self.stations.values():
            station.host.is_killed = True
        main = self._main
        main.until = lambda: True
        while len(self._activities) > 1:  # each ends, and gives the baton back
            other = next(activity for activity in self._activities if activity is not main)
            other.host.is_killed = True
            self._now = other
            other.baton.release()
            main.baton.acquire()
        if error is None and self._failure is not None:
            raise self._failure

    # ----------------------------------------------------------------------------------------------------------
    # What tests do

    def pool(
        self,
        workers: int,
        services: Callable[[Member], Mapping[str, Service]] | None = None,
        guests: Callable[[Member], Guests] | None = None,
        **options: Any,
    ) -> Pool:
        """A pool whose workers are in this simulation."""
        pool = Pool(SimulatedLauncher(self, services, guests), SimulatedNetwork(self), workers, **options)
        self._pools.append(pool)
        return pool

    def host(self, worker: int) -> Host:
        """The newest incarnation of a worker."""
        return self.stations[max(number for number, member in self.members.items() if member.worker == worker)].host

    def kill(self, worker: int) -> None:
        """It is no more, from now on."""
        self.host(worker).is_killed = True

    def freeze(self, worker: int) -> Host:
        """It stands still; what is sent to it waits."""
        host = self.host(worker)
        host.is_frozen = True
        return host

    def thaw(self, host: Host) -> None:
        """It goes on."""
        host.is_frozen = False
        kept, host.kept = host.kept, []
        for event in kept:
            self.at(0.0, host, event)

    def cut_off(self, worker: int) -> Host:
        """Nothing reaches it or comes from it."""
        host = self.host(worker)
        host.is_cut_off = True
        return host

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        self.wait(lambda: False, seconds)

    def at(self, after: float, host: Host, event: Callable[[], None]) -> None:
        """Do something to a host after so long."""
        heapq.heappush(self._events, (self.time + after, next(self._count), host, event))

    def later(self, after: float, event: Callable[[], None]) -> None:
        """Do something to the world after so long: kill somebody, say."""
        self.at(after, self.driver_host, event)

    # ----------------------------------------------------------------------------------------------------------
    # The baton

    def wait(self, until: Callable[[], bool], seconds: float | None) -> bool:
        """The activity that has the baton waits."""
        me = self._now
        me.until = until
        me.deadline = None if seconds is None else self.time + seconds
        self._switch(me)
        if me.host.is_killed and me is not self._main:
            raise Killed
        if me is self._main and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return until()

    def spawn(self, host: Host, work: Callable[[], None]) -> None:
        """A new activity; it begins when somebody waits."""
        activity = Activity(host)
        self._activities.append(activity)

        def run() -> None:
            activity.baton.acquire()
            try:
                if not host.is_killed:
                    work()
            except Killed:
                pass
            except BaseException as error:
                self._failure = self._failure or error
            finally:
                self._activities.remove(activity)
                self._switch(activity, ends=True)

        threading.Thread(target=run, daemon=True).start()

    def _switch(self, me: Activity, ends: bool = False) -> None:
        following = self._choose(me)
        self._now = following
        if following is not me:
            following.baton.release()
            if not ends:
                me.baton.acquire()

    def _choose(self, me: Activity) -> Activity:
        """The activity that goes on; events happen until there is one."""
        begin = self.time
        while self._failure is None:
            able = [activity for activity in self._activities if self._can_go_on(activity)]
            if able and (not self._events or self.random.random() < 0.8):
                return self.random.choice(able)
            if not self._events or self.time > begin + FOREVER:
                self._failure = AssertionError("nothing happens any more")
                break
            self.time = max(self.time, self._next_time())
            _, _, host, event = heapq.heappop(self._events)
            if host.is_killed:
                continue
            if host.is_frozen:
                host.kept.append(event)
                continue
            event()
        return self._main

    def _next_time(self) -> float:
        """When the next thing happens: an event, or the end of somebody's patience."""
        deadlines = [activity.deadline for activity in self._activities if activity.deadline is not None]
        return min([self._events[0][0], *(deadline for deadline in deadlines if deadline > self.time)])

    def _can_go_on(self, activity: Activity) -> bool:
        if activity.host.is_killed and activity is not self._main:
            return True
        if activity.host.is_frozen:
            return False
        return (activity.deadline is not None and activity.deadline <= self.time) or activity.until()

    # ----------------------------------------------------------------------------------------------------------
    # Frames

    def post(self, sender: int, to: int, parts: Sequence[Buffer]) -> None:
        """A frame is on its way; perhaps."""
        self.frames += 1
        for _ in range(2 if self.random.random() < self.repetition else 1):
            lost = self._lost.get((sender, to), 0)
            if self.random.random() < self.loss and lost < MOST_LOST:
                self._lost[sender, to] = lost + 1
            else:
                self._lost[sender, to] = 0
                station = self.stations.get(to)
                if station is not None:
                    delay = self.random.random() ** 3 * self.delay
                    self.at(delay, station.host, lambda: self._deliver(sender, to, parts))

    def _deliver(self, sender: int, to: int, parts: Sequence[Buffer]) -> None:
        source, station = self.stations.get(sender), self.stations.get(to)
        if source is None or station is None or source.host.is_cut_off or station.host.is_cut_off or station.is_closed:
            return
        if sender in station.admitted or sender == DRIVER:
            sent = [bytes(part) for part in parts]  # as they are now: who has changed them meanwhile made a mistake
            station.machine.receive(sender, sent if self.tamper is None else self.tamper(sent), self.time)
            station.wake()


class SimulatedNetwork:
    """A `Network`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def keys(self) -> Keys:
        """As good as none."""
        return Keys(b"p" * 40, b"s" * 40)

    def driver(self, machine: Machine, keys: Keys, listen: str, perform: Callable[[Action], None]) -> SimulatedStation:
        """The driver's end."""
        return SimulatedStation(self._simulation, DRIVER, self._simulation.driver_host, machine, perform)

    def worker(self, machine: Machine, ticket: Ticket) -> SimulatedStation:
        """A worker's end."""
        host = Host(f"worker {ticket.worker}, incarnation {ticket.incarnation}")
        return SimulatedStation(self._simulation, ticket.incarnation, host, machine, lambda action: None)


class SimulatedStation:
    """A `Station`."""

    def __init__(
        self, simulation: Simulation, number: int, host: Host, machine: Machine, perform: Callable[[Action], None]
    ) -> None:
        self.simulation, self.number, self.host, self.machine, self.perform = simulation, number, host, machine, perform
        self.address = f"sim://{number}"
        self.admitted = {DRIVER}
        self.is_closed = False
        simulation.stations[number] = self

    @property
    def lock(self) -> AbstractContextManager[object]:
        """One activity at a time runs anyway."""
        return nullcontext()

    def now(self) -> float:
        """Virtual time."""
        return self.simulation.time

    def run(self) -> None:
        """Begin to tick."""
        self.simulation.at(self.simulation.random.random() * TICK, self.host, self._tick)

    def _tick(self) -> None:
        if not self.is_closed:
            self.machine.tick(self.now())
            self.wake()
            self.run()

    def wake(self) -> None:
        """Do what the machine wants."""
        for action in self.machine.actions():
            if isinstance(action, Send):
                self.simulation.post(self.number, action.to, action.parts)
            elif isinstance(action, Admit):
                self.admitted.add(action.incarnation)
            elif isinstance(action, Forget):
                self.admitted.discard(action.incarnation)
            else:
                self.perform(action)

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Hand on the baton."""
        return self.simulation.wait(until, seconds)

    def spawn(self, work: Callable[[], None]) -> None:
        """An activity of this host."""
        self.simulation.spawn(self.host, work)

    def close(self) -> None:
        """No more."""
        self.is_closed = True


class SimulatedLauncher:
    """A `Launcher`. Ends are kills, unless `may_end` is false: then a lost worker has to end itself."""

    may_end = True

    def __init__(
        self,
        simulation: Simulation,
        services: Callable[[Member], Mapping[str, Service]] | None,
        guests: Callable[[Member], Guests] | None,
    ) -> None:
        self._simulation = simulation
        self._services = services
        self._guests = guests
        self._ended = set[int]()

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """After a while it is there."""
        simulation = self._simulation

        def begin() -> None:
            if ticket.incarnation not in self._ended:
                ticket_read = Ticket.from_bytes(ticket.to_bytes())
                member = Member(ticket_read, SimulatedNetwork(simulation), self._services, self._guests, "simulated")
                simulation.members[ticket.incarnation] = member
                member.start()

        simulation.later(simulation.random.random() * simulation.start, begin)

    def end(self, worker: int, incarnation: int) -> None:
        """It is no more."""
        self._ended.add(incarnation)
        station = self._simulation.stations.get(incarnation)
        if station is not None and self.may_end:
            station.host.is_killed = True

    def close(self) -> None:
        """Nothing of it is left."""
