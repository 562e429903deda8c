"""What the extra `ray` brings: loaded when it is first needed, and an error that says how to get it."""

from __future__ import annotations

from typing import Any

from undertow.errors import UndertowError

HINT = "pip install 'undertow[ray]'"


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
    try:
        from undertow.cluster.sockets import SocketNetwork
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise UndertowError("work on several machines needs ZeroMQ", hint=HINT) from None
    return SocketNetwork()
