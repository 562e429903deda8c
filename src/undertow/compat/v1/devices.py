"""Devices of TensorFlow 1, "/job:local/task:1/device:CPU:0", as those of a cluster's workers: "worker:1".

>>> jobs = Jobs.of({"local": ["localhost:2222", "localhost:2223"]})
>>> worker_of("/job:local/replica:0/task:1/device:CPU:0", jobs, "local"), worker_of("/cpu:0", jobs, "local")
('worker:1', '')
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from undertow.cluster.jobs import Jobs
from undertow.errors import GraphError
from undertow.ir.graph import FunctionGraph, Library, Node

FIELD = re.compile(r"/(job|replica|task|device|cpu|gpu):([^/]*)", re.IGNORECASE)
_CPU = re.compile(r"(?i:cpu):(0|\*)|(?i:cpu)|\*")


def fields_of(name: str) -> dict[str, str]:
    """The parts of a name; none if it is not one of TensorFlow's."""
    fields = {key.lower(): value for key, value in FIELD.findall(name)}
    for short in ("cpu", "gpu"):
        if short in fields:
            fields["device"] = f"{short.upper()}:{fields.pop(short)}"
    return fields


def merged_device(outer: str, inner: str) -> str:
    """A device inside another: parts that the inner name omits come from the outer.

    >>> merged_device("/job:local/task:0", "/task:1/device:CPU:0")
    '/job:local/task:1/device:CPU:0'
    >>> merged_device("/job:local", "worker:1")
    'worker:1'
    """
    parts = fields_of(outer), fields_of(inner)
    if not parts[1]:
        return inner
    both = {**parts[0], **parts[1]}
    return "".join(f"/{key}:{both[key]}" for key in ("job", "replica", "task", "device") if key in both)


def worker_of(name: str, jobs: Jobs, usual: str, is_soft: bool = False) -> str | None:
    """The worker on the task that is named; "" if none is; None if there is no such device.

    `usual` is the job where none is named. If `is_soft`, a device that a task does not have is its processor.
    """
    fields = fields_of(name)
    if not fields:
        return name
    if "job" not in fields and "task" not in fields and (is_soft or _CPU.fullmatch(fields.get("device", "*"))):
        return ""
    tasks = jobs.of_job(fields.get("job", usual))
    if "task" in fields:
        tasks = [task for task in tasks if str(task.index) == fields["task"]]
    is_there = fields.get("replica", "0") == "0" and (is_soft or bool(_CPU.fullmatch(fields.get("device", "*"))))
    return f"worker:{jobs.tasks.index(tasks[0])}" if tasks and is_there else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The tasks on which a session places nodes. Without any, TensorFlow's devices mean nothing."""

    jobs: Jobs = field(default_factory=Jobs)
    usual: str = ""  # the job where a device names none
    is_soft: bool = False

    def place(self, library: Library) -> Library:
        """The same functions, placed on workers."""
        known: dict[str, str] = {}

        def placed(node: Node) -> Node:
            name = node.attrs.text("device")
            if name not in known:
                is_ours = bool(self.jobs.tasks) or not fields_of(name)
                worker = worker_of(name, self.jobs, self.usual, self.is_soft) if is_ours else ""
                if worker is None:
                    raise no_such_device(node, name, self.jobs)
                known[name] = worker
            attrs = node.attrs.without("device")
            return replace(node, attrs=attrs | {"device": known[name]} if known[name] else attrs)

        def placed_graph(graph: FunctionGraph) -> FunctionGraph:
            if not any("device" in node.attrs for node in graph.nodes):
                return graph
            return replace(graph, nodes=tuple(placed(node) if "device" in node.attrs else node for node in graph.nodes))

        return replace(library, functions={name: placed_graph(graph) for name, graph in library.functions.items()})


@dataclass(frozen=True, slots=True)
class Device:
    """A device of this process."""

    name: str = "/job:localhost/replica:0/task:0/device:CPU:0"
    device_type: str = "CPU"
    memory_limit: int = 0
    memory_limit_bytes: int = 0
    physical_device_desc: str = ""


def list_local_devices(session_config: object = None) -> list[Device]:
    """The devices of this process: one."""
    return [Device()]


def no_such_device(node: Node, name: str, jobs: Jobs) -> GraphError:
    """The error for a device that a cluster has not."""
    there = [f"/job:{task.job}/replica:0/task:{task.index}/device:CPU:0" for task in jobs.tasks]
    shown = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
    return GraphError(
        f"Cannot assign a device for operation {node.name}: it was explicitly assigned to {name}, "
        f"but available devices are [ {shown} ]",
        node.span,
        hint="name one of these in tf.device, or leave it out; "
        "tf.ConfigProto(allow_soft_placement=True) takes a task's CPU for its other devices",
    )
