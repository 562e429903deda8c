"""What is on a cluster: its machines, and the workers of ours on them, of whatever program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from undertow.ray.actor import Actor


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of Ray's."""

    address: str
    is_alive: bool
    processors: float
    free: float
    memory: float  # bytes, for tasks
    store: float  # bytes, of the object store


@dataclass(frozen=True, slots=True)
class Placed:
    """A worker of ours."""

    machine: str
    process: int
    state: str
    program: str  # Ray's number of it


@dataclass(frozen=True, slots=True)
class Survey:
    """All of it."""

    address: str
    machines: list[Machine]
    workers: list[Placed]


def survey(ray: Any, address: str) -> Survey:
    """Ask Ray, to which this program is connected. Without the dashboard these have no public name."""
    from ray._private.state import actors, available_resources_per_node

    free = available_resources_per_node()
    machines = []
    for node in ray.nodes():
        has = node["Resources"]
        machines.append(
            Machine(
                node["NodeManagerAddress"],
                node["Alive"],
                has.get("CPU", 0.0),
                free.get(node["NodeID"], {}).get("CPU", 0.0),
                has.get("memory", 0.0),
                has.get("object_store_memory", 0.0),
            )
        )
    workers = [
        Placed(row["Address"]["IPAddress"], row["Pid"], row["State"].lower(), row["JobID"])
        for row in actors().values()
        if row["ActorClassName"] == Actor.__name__ and row["State"] != "DEAD"
    ]
    return Survey(address, machines, workers)
