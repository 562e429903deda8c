"""The rules of Chrome's trace event format, as far as viewers insist on them."""

from __future__ import annotations

import json
from typing import Any

# By phase: the fields that an event must have, beside `ph` and `pid`.
REQUIRED = {
    "X": {"name", "tid", "ts", "dur"},
    "C": {"name", "ts", "args"},
    "M": {"name", "args"},
    "s": {"name", "id", "tid", "ts", "cat"},
    "f": {"name", "id", "tid", "ts", "cat", "bp"},
}


def checked(text: str) -> list[dict[str, Any]]:
    """The events of a file, after each has been checked, and slices and arrows against each other."""
    whole = json.loads(text)
    events = whole["traceEvents"]
    assert isinstance(events, list)
    for event in events:
        assert REQUIRED[event["ph"]] <= event.keys(), event
        assert isinstance(event["pid"], int) and isinstance(event.get("tid", 0), int)
        for time in ("ts", "dur"):
            assert isinstance(event.get(time, 0), (int, float)) and event.get(time, 0) >= 0, event
        if event["ph"] == "C":
            assert event["args"] and all(type(value) in (int, float) for value in event["args"].values()), event
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
    slices = [event for event in events if event["ph"] == "X"]
    check_nesting(slices)
    check_arrows([event for event in events if event["ph"] in "sf"], slices)
    return events


def check_nesting(slices: list[dict[str, Any]]) -> None:
    """Slices of one track follow one another."""
    last: dict[tuple[int, int], float] = {}
    for event in sorted(slices, key=lambda event: (event["ts"], event["dur"])):
        track = event["pid"], event["tid"]
        assert event["ts"] >= last.get(track, 0) - 0.002, event  # times are rounded
        last[track] = event["ts"] + event["dur"]


def check_arrows(arrows: list[dict[str, Any]], slices: list[dict[str, Any]]) -> None:
    """Each has one beginning and one end, not before it, and both are on slices."""
    begun = {event["id"]: event for event in arrows if event["ph"] == "s"}
    ended = {event["id"]: event for event in arrows if event["ph"] == "f"}
    assert len(begun) + len(ended) == len(arrows) and begun.keys() >= ended.keys()
    starts = {(event["pid"], event["tid"], event["ts"]) for event in slices}
    assert all((event["pid"], event["tid"], event["ts"]) in starts for event in arrows)
    assert all(begun[number]["ts"] <= event["ts"] for number, event in ended.items())


def named(events: list[dict[str, Any]], phase: str) -> dict[str, list[dict[str, Any]]]:
    """The events of a phase by name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == phase:
            found.setdefault(event["name"], []).append(event)
    return found
