"""A pool of worker processes on this machine, without any cluster's help."""

from __future__ import annotations

import os
from collections.abc import Mapping

from undertow.cluster.pool import Pool
from undertow.cluster.process import ProcessLauncher
from undertow.cluster.roster import Times
from undertow.errors import UndertowError


def open_pool(
    workers: int,
    services: str = "",
    guests: str = "",
    retries: int = 3,
    times: Times | None = None,
    environment: Mapping[str, str] | None = None,
    logs: str | os.PathLike[str] | None = None,
    seconds: float | None = 60.0,
) -> Pool:
    """So many workers, when all are there. `services` and `guests` name functions that take a `Member`: "module:name".

    with open_pool(2, services="mine:services") as pool:
        pool.call(0, "step", b"...").result()
    """
    try:
        from undertow.cluster.sockets import SocketNetwork
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise UndertowError("workers need pyzmq", hint="pip install 'undertow[ray]'") from None
    launcher = ProcessLauncher(services, guests, environment, logs)
    return Pool(launcher, SocketNetwork(), workers, retries, times).open(seconds)
