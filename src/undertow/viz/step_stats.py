"""The times of a run as TensorFlow's StepStats, by device: nodes that fire, or waves where the engine forms these.

`timeline` is TensorFlow's tool of the same name: StepStats in Chrome's format.
"""

from __future__ import annotations

import json
import re
import time

from undertow.ir.graph import Port, StaticGraph
from undertow.ir.trace import Event, Fired, RunEnded, RunStarted, WaveStarted
from undertow.viz.chrome import TraceEvent, arrow, region_names, slice_of, title
from undertow.viz.messages import DeviceStepStats, NodeExecStats, StepStats

HERE = "/job:localhost/replica:0/task:0/device:CPU:0"  # TensorFlow's name of this process


class StepRecorder:
    """Collects the events of a run of a graph, with their times."""

    def __init__(self, graph: StaticGraph) -> None:
        self._graph = graph
        self._regions = region_names(graph)
        self._devices: dict[str, list[NodeExecStats]] = {}
        self._before = 0.0
        self._wave: tuple[float, WaveStarted] | None = None
        self._since_1970 = time.time() - time.perf_counter()

    def add(self, event: Event, at: float | None = None) -> None:
        """The next event, which happened at that time by `time.perf_counter`; or now."""
        now = time.perf_counter() if at is None else at
        if isinstance(event, Fired) and event.live:
            node = self._graph.nodes[event.node]
            inputs = [_plain(self._graph.nodes[x.node].name) for x in node.inputs if isinstance(x, Port)]
            label = f"{_plain(event.name)} = {node.op}({', '.join(inputs)})"
            device = str(node.attrs.get("device") or HERE)
            self._note(device, _plain(event.name), label, event.frame, self._before, now)
        elif isinstance(event, (WaveStarted, RunEnded)) and self._wave is not None:
            began, wave = self._wave
            name = self._regions[wave.region]
            label = f"{name} = wave(lanes {wave.lanes}, depth {wave.depth}, phase {wave.phase}, stage {wave.stage})"
            self._note(HERE, name, label, wave.region, began, now)
        if isinstance(event, WaveStarted):
            self._wave = now, event
        elif isinstance(event, RunStarted):
            self._wave = None
        self._before = now

    def _note(self, device: str, name: str, label: str, thread: int, start: float, end: float) -> None:
        begin = round((start + self._since_1970) * 1e6)
        took = max(round((end + self._since_1970) * 1e6) - begin, 0)
        stats = NodeExecStats(name, begin, 0, took, took, label, begin, thread)
        self._devices.setdefault(device, []).append(stats)

    def step_stats(self) -> StepStats:
        """What there is so far."""
        return StepStats([DeviceStepStats(device, stats) for device, stats in sorted(self._devices.items())])


def _plain(name: str) -> str:
    """The name of a node; that of main's is the name in the user's graph."""
    return name.removeprefix("main/")


_LABEL = re.compile(r"(?P<name>.*?) = (?P<op>.*?)\((?P<inputs>.*)\)", re.DOTALL)


def timeline(stats: StepStats, show_dataflow: bool = True) -> str:
    """The text of a file in Chrome's format: a process for each device, arrows from nodes to those that use them."""
    starts = [node.all_start_micros for device in stats.dev_stats for node in device.node_stats]
    first = min(starts, default=0)
    events: list[TraceEvent] = []
    arrows = 0
    for process, device in enumerate(stats.dev_stats, 1):
        events.append(title("process", f"{device.device} Compute", process))
        made: dict[tuple[int, str], tuple[float, int]] = {}  # frame, node -> when and on which track it was made
        ends: list[int] = []  # of the last slice of each track
        for node in sorted(device.node_stats, key=lambda node: node.all_start_micros):
            end = node.all_start_micros + node.all_end_rel_micros
            free = (number for number, last in enumerate(ends) if last <= node.all_start_micros)
            track = next(free, len(ends))
            ends[track : track + 1] = [end]
            start = float(node.all_start_micros - first)
            found = _LABEL.fullmatch(node.timeline_label)
            name, op = (found["name"], found["op"]) if found else (node.node_name, node.node_name)
            given = found["inputs"].split(", ") if found and found["inputs"] else []
            args = {"name": name, "op": op, **{f"input{k}": text for k, text in enumerate(given)}}
            events.append(slice_of(op, start, node.all_end_rel_micros, track, args, process))
            for source in given if show_dataflow else ():
                if (node.thread_id, source) in made:
                    at, there = made[node.thread_id, source]
                    arrows += 1
                    events.append(arrow("s", arrows, at, there, process))
                    events.append(arrow("f", arrows, start, track, process))
            made[node.thread_id, name] = start, track
    return json.dumps({"traceEvents": events}, indent=1)
