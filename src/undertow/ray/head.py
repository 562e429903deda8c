"""A process that is the head of a Ray of its own. Run as a script: `head.py FOLDER SETTINGS`.

It says on standard output where Ray listens, as a line of JSON, and waits until it is killed (`keeper.py`). Ray is at
the loopback address, unless the settings have `start`: options of `ray start`, for a head that other machines may join.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BETWEEN = 0.1  # seconds


def main() -> None:
    """Start Ray, and wait."""
    sys.path.pop(0)  # this folder
    folder, settings = sys.argv[1], json.loads(sys.argv[2])
    if "start" in settings:
        start(folder, settings)
    else:
        initialize(folder, settings)


def initialize(folder: str, settings: dict[str, Any]) -> None:
    """For this machine alone."""
    import ray

    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=folder,
        _node_ip_address="127.0.0.1",
        **settings,
    )
    say(ray.get_runtime_context().gcs_address)
    while True:
        signal.pause()


def start(folder: str, settings: dict[str, Any]) -> None:
    """For other machines, too. Ray writes down where it is when it is there."""
    options = {
        "num-cpus": settings["num_cpus"],
        "object-store-memory": settings["object_store_memory"],
        "temp-dir": folder,
        "include-dashboard": "false",
        **settings["start"],
    }
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
    command += [f"--{name}={value}" for name, value in options.items()]
    started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    note = Path(folder) / "ray_current_cluster"
    while started.poll() is None and not note.exists():
        time.sleep(BETWEEN)
    if note.exists():
        say(note.read_text().strip())
    raise SystemExit(started.wait() or 1)


def say(address: str) -> None:
    """Where it is."""
    os.write(1, json.dumps({"address": address}).encode() + b"\n")


if __name__ == "__main__":
    main()
