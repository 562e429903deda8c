"""A pool of worker processes on this machine, without any cluster's help."""

from __future__ import annotations

import os
from collections.abc import Mapping

from undertow.cluster.extra import over_sockets
from undertow.cluster.pool import Pool
from undertow.cluster.process import ProcessLauncher
from undertow.cluster.roster import Times


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
    network = over_sockets("sockets", "a worker").SocketNetwork()
    launcher = ProcessLauncher(services, guests, environment, logs)
    return Pool(launcher, network, workers, retries, times).open(seconds)
