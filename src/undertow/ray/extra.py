"""What the extra `ray` brings: loaded when it is first needed, and an error that says how to get it."""

from __future__ import annotations

from typing import Any

from undertow.cluster.extra import HINT, over_sockets
from undertow.errors import UndertowError


def the_ray() -> Any:
    """The package `ray`."""
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UndertowError("work on several machines needs Ray", hint=HINT) from None
    return ray


def network() -> Any:
    """A network of ZeroMQ sockets."""
    return over_sockets("sockets", "work on several machines").SocketNetwork()
