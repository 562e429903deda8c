"""A process that is the head of a Ray of its own, at the loopback address. Run as a script: `head.py FOLDER SETTINGS`.

It says on standard output where Ray listens, as a line of JSON, and waits until it is killed (`keeper.py`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Start Ray, and wait."""
    sys.path.pop(0)  # this folder
    import ray

    settings: dict[str, Any] = json.loads(sys.argv[2])
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=sys.argv[1],
        _node_ip_address="127.0.0.1",
        **settings,
    )
    line = {"address": ray.get_runtime_context().gcs_address}
    os.write(1, json.dumps(line).encode() + b"\n")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
