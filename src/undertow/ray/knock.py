"""Does a Ray answer there, and take this program's token? Run as a script: `knock.py ADDRESS`. Says why not, if not.

Ray's own clients try again for ever, or for 40 seconds that Ctrl-C does not end. A process of its own can be ended.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

TOKEN = "token"
CLIENT = "ray://"


def main() -> None:
    """Ask the server that knows the whole cluster; with ray://, the one that takes programs from outside."""
    sys.path.pop(0)  # this folder
    if sys.argv[1].startswith(CLIENT):
        grpc: Any = importlib.import_module("grpc")  # which has no types
        channel = grpc.insecure_channel(sys.argv[1].removeprefix(CLIENT), [("grpc.enable_http_proxy", 0)])
        grpc.channel_ready_future(channel).result()  # or whoever has started this one ends it
        return
    from ray._raylet import GcsClient
    from ray.exceptions import RayError

    try:
        GcsClient(address=sys.argv[1])
    except RayError as error:  # a wrong token has a class of its own in later versions
        is_token = "Unauthenticated" in str(error) or "AuthToken" in str(error)
        lines = str(error).strip().splitlines() or [type(error).__name__]
        os.write(1, (TOKEN if is_token else lines[0]).encode())
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
