"""Tokens between two parts of a placed graph, beside the raw socket: bytes per second, and round trips.

Claims: between two processes of one machine, batched tokens go at least half as fast as equal bytes through a plain
blocking socket with buffers of 256 KiB, and a round trip takes at most twice as long as that socket's.
Each way is measured several times, in turns, and the best time counts. Beside it stands how both compare in processor
time of the busier process: what two free processors would give, where other work runs on these.
Usage: python benchmarks/tokens.py [--quick] [--repeat N] [--json FILE]
"""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import common

import undertow._core as core

BUFFER = 1 << 18  # bytes of the raw socket
ROWS = {"40-byte tokens": 40, "1 KiB columns": 1 << 10, "64 KiB columns": 1 << 16, "8 MiB columns": 8 << 20}
SMALL = (40, 1 << 10)  # bytes there and back
RATE, TRIP = 0.5, 2.0  # of the raw socket's


def beside(
    child: Callable[[socket.socket], None], parent: Callable[[socket.socket], float], work: list[float] | None = None
) -> float:
    """Run both, in two processes with a socket between them: what the parent says.

    `work` gets the seconds that a processor worked for the one that it worked for longer.
    """
    mine, theirs = socket.socketpair()
    context = multiprocessing.get_context("fork")
    of_child = context.Value("d", 0.0)

    def timed() -> None:
        began = time.process_time()
        child(theirs)
        of_child.value = time.process_time() - began

    process = context.Process(target=timed)
    process.start()
    theirs.close()
    began = time.process_time()
    try:
        return parent(mine)
    finally:
        own = time.process_time() - began
        mine.close()
        process.join()
        if process.exitcode != 0:
            common.fail("the other process has failed")
        if work is not None:
            work.append(max(own, of_child.value))


def widened(end: socket.socket) -> socket.socket:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        end.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    return end


def read(end: socket.socket, buffer: memoryview, count: int) -> None:
    """So many bytes, at least."""
    while count > 0:
        got = end.recv_into(buffer)
        if got == 0:
            raise EOFError
        count -= got


def wire_of(end: socket.socket) -> core.Wire:
    return core.Wire([end.detach()])


def poured_raw(total: int, size: int, work: list[float] | None = None) -> float:
    """Seconds for so many bytes, until the other process has them."""
    buffer = memoryview(bytearray(BUFFER))
    column = memoryview(os.urandom(max(size, BUFFER)))

    def take(end: socket.socket) -> None:
        read(widened(end), buffer, total)
        end.sendall(b"!")

    def give(end: socket.socket) -> float:
        widened(end)
        began = time.perf_counter()
        for at in range(0, total, BUFFER):
            at %= len(column)
            end.sendall(column[at : at + BUFFER])
        read(end, buffer, 1)
        return time.perf_counter() - began

    return beside(take, give, work)


def poured_wire(total: int, size: int, work: list[float] | None = None) -> float:
    row = os.urandom(size)

    def take(end: socket.socket) -> None:
        wire = wire_of(end)
        wire.swallow(0, total // size * size)
        wire.pour(0, b"!", 1)

    def give(end: socket.socket) -> float:
        wire = wire_of(end)
        began = time.perf_counter()
        wire.pour(0, row, total // size)
        wire.swallow(0, 1)
        taken = time.perf_counter() - began
        if wire.counts()[0][1] != total // size * size:
            common.fail("not all was sent")
        return taken

    return beside(take, give, work)


def swung_raw(turns: int, size: int) -> float:
    """Seconds for one round trip."""
    row, buffer = os.urandom(size), memoryview(bytearray(BUFFER))

    def answer(end: socket.socket) -> None:
        for _ in range(turns):
            read(end, buffer, size)
            end.sendall(row)

    def ask(end: socket.socket) -> float:
        began = time.perf_counter()
        for _ in range(turns):
            end.sendall(row)
            read(end, buffer, size)
        return (time.perf_counter() - began) / turns

    return beside(answer, ask)


def swung_wire(turns: int, size: int) -> float:
    row = os.urandom(size)

    def answer(end: socket.socket) -> None:
        wire_of(end).swing(0, row, turns, False)

    def ask(end: socket.socket) -> float:
        wire = wire_of(end)
        began = time.perf_counter()
        wire.swing(0, row, turns, True)
        return (time.perf_counter() - began) / turns

    return beside(answer, ask)


def best_of(repeat: int, *works: Callable[[], float]) -> list[float]:
    """The best time of each, taken in turns."""
    best = [float("inf")] * len(works)
    for _ in range(repeat):
        best = [min(time_so_far, work()) for time_so_far, work in zip(best, works, strict=True)]
    return best


def main() -> None:
    options = common.parser(__doc__, 7).parse_args()
    total, turns = (1 << 27, 2_000) if options.quick else (1 << 29, 20_000)
    rows: list[list[str]] = []
    figures: dict[str, Any] = {"rates": {}, "trips": {}}
    missed: list[str] = []
    for name, size in ROWS.items():
        of_raw: list[float] = []
        of_ours: list[float] = []
        raw, ours = best_of(
            options.repeat,
            partial(poured_raw, total, size, of_raw),
            partial(poured_wire, total, size, of_ours),
        )
        work = min(of_raw) / min(of_ours)
        figures["rates"][name] = {"raw": total / raw, "wire": total / ours, "work": work}
        rates = (f"{total / seconds / 1e9:.2f} GB/s" for seconds in (raw, ours))
        rows.append([name, *rates, f"{raw / ours:.2f}", f"{work:.2f}"])
        missed += [name] if raw / ours < RATE else []
    for size in SMALL:
        raw, ours = best_of(
            options.repeat, lambda size=size: swung_raw(turns, size), lambda size=size: swung_wire(turns, size)
        )
        name = f"{size} bytes there and back"
        figures["trips"][name] = {"raw": raw, "wire": ours}
        rows.append([name, common.seconds(raw), common.seconds(ours), f"{raw / ours:.2f}", ""])
        missed += [name] if ours / raw > TRIP else []
    common.table("A wire and the raw socket", ["", "socket", "wire", "times as fast", "by processor time"], rows)
    print(f"Missed: {', '.join(missed)}." if missed else "At least half as fast in every row.")
    common.write(options.json, figures)


if __name__ == "__main__":
    main()
