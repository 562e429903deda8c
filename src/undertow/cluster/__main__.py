"""A worker's process: `python -m undertow.cluster SERVICES GUESTS`. `process.py` starts it; its ticket is on a pipe."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import signal
import sys
import threading

from undertow.cluster.member import Member
from undertow.cluster.names import load
from undertow.cluster.process import LENGTH
from undertow.cluster.sockets import SocketNetwork
from undertow.cluster.station import Ticket

PIPE = 0  # the descriptor of the pipe on which the ticket comes
PR_SET_PDEATHSIG = 1


def read(size: int) -> bytes:
    """So many bytes of the pipe."""
    data = b""
    while len(data) < size:
        more = os.read(PIPE, size - len(data))
        if not more:
            raise SystemExit("the pipe has ended")
        data += more
    return data


def follow() -> None:
    """End when the pipe does: whoever has started this process is no more. With all that was started here."""
    while os.read(PIPE, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve until it is over."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ticket = Ticket.from_bytes(read(*LENGTH.unpack(read(LENGTH.size))))
    threading.Thread(target=follow, name="undertow pipe", daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    services, guests = map(load, sys.argv[1:3])
    member = Member(ticket, SocketNetwork(), services, guests, place=platform.node())
    why = member.run()
    logging.getLogger("undertow.cluster").info("worker %d ends: %s", ticket.worker, why)


if __name__ == "__main__":
    main()
