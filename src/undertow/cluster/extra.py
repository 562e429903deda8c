"""What workers need beside Undertow: loaded when it is first used, and an error that says how to get it."""

from __future__ import annotations

import importlib
from typing import Any

from undertow.errors import UndertowError

HINT = "pip install 'undertow[ray]'"


def over_sockets(module: str, what: str) -> Any:
    """A module of this folder that needs ZeroMQ. `what` cannot be done without."""
    try:
        return importlib.import_module(f"undertow.cluster.{module}")
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise UndertowError(f"{what} needs pyzmq", hint=HINT) from None
