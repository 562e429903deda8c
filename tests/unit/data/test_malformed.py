"""Malformed input of every kind: each reader ends in a value or in an error of ours, never in one of Python's."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.ir.trace import Tags, read_trace

VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, -(10**30), float("nan"), float("inf"), "", "bc", "\ud800", [], [[]], [1, [2]], {},
    {"a": 1},
]  # fmt: skip
LINES = [
    "null", "NaN", "1e400", "9" * 5000, "[" * 100_000, "[" * 20_000 + "]" * 20_000, '{"children":', "\x00", "\ufeff[",
    '{"word": "a", "word": "b"}', '"\\ud800"', "}", '{"children": [null]}',
]  # fmt: skip


def refused(work: Callable[[], Any]) -> None:
    """Check that something ends in a value or one of our errors."""
    with contextlib.suppress(ut.UndertowError):
        try:
            work()
        except ut.InternalError as fault:
            raise AssertionError from fault


@pytest.mark.parametrize("key", ["word", "label", "children", "left", "right", "weight"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:10])
def test_nodes_of_trees(key: str, value: Any) -> None:
    refused(lambda: ut.data.from_nested([{"children": ["a", {"word": "b", key: value}]}]))
    refused(lambda: ut.data.from_nested([{key: value}]))


@pytest.mark.parametrize("children", ["bc", "", b"bc", 5, 0, False, 1.5, {"a": 1}])
def test_children_are_a_list(children: Any) -> None:
    with pytest.raises(ut.DataError, match="the children of a node of tree 0 are"):
        ut.data.from_nested([{"children": children}])


def test_a_label_without_children() -> None:
    class Node:
        def label(self) -> str:
            return "NN"

    with pytest.raises(ut.DataError, match="children"):
        ut.data.from_nested([Node()])


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:8])
def test_lines(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line.encode("utf-8", "surrogatepass"))
    refused(lambda: ut.data.read(path))
    refused(lambda: list(read_trace(path)))


def test_a_key_that_occurs_twice_is_told() -> None:
    with pytest.raises(ut.DataError, match="'word' occurs twice"):
        ut.data.parse_jsonl('{"word": "a", "word": "b"}')


@pytest.mark.parametrize("suffix", ["txt", "sexp", "tsv", "jsonl", "npz"])
def test_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    for data in (
        b"",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"(" * 100_000,
        b")",
        b"\x00" * 9,
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"\xed\xa0\x80",
    ):
        path.write_bytes(data)
        refused(lambda: ut.data.read(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(ut.DataError, match="folder"):
        ut.data.read(path)


# --------------------------------------------------------------------------------------------------------------
# Arrays

FOREST = ut.data.from_nested([("a", ("b", "c"))])
ARRAYS: list[Any] = [
    1, [], [1.5], ["a"], [[0, 1]], [True], [1j], [b"x"], [2**40] * 5, [float("nan")] * 5, np.zeros((5, 0)), "a",
    ["a", "a"], np.array(["2020-01-01"], "M8[D]"), [0, 9, 1, 2, 2],
]  # fmt: skip
HEADS = [
    "",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (10000000000000,), }",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (5,), }",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (5,)",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '<U99999999', 'fortran_order': False, 'shape': (99999999,), }",
    "-" * 9000 + "1",
    "[" * 500 + "]" * 500,
]


def arrays_of(forest: Any, tmp_path: Path) -> dict[str, Any]:
    ut.data.save(forest, tmp_path / "forest.npz")
    with np.load(tmp_path / "forest.npz") as held:
        return dict(held)


@pytest.mark.slow
def test_arrays(tmp_path: Path) -> None:
    base, path = arrays_of(FOREST, tmp_path), tmp_path / "x.npz"
    for name in (*base, "labels", "labels.unknown", "field.x", "field.", "more"):
        for value in ARRAYS:
            np.savez(path, **{**base, name: np.asarray(value)})
            refused(lambda: ut.data.read(path))
        np.savez(path, **{key: value for key, value in base.items() if key != name})
        refused(lambda: ut.data.read(path))


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head[-25:])
def test_heads_of_arrays(head: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    packed = head.encode() + b" " * (63 - len(head) % 64) + b"\n"
    with zipfile.ZipFile(path, "w") as file:
        for name, value in arrays_of(FOREST, tmp_path).items():
            plain = io.BytesIO()
            np.save(plain, value)
            magic = b"\x93NUMPY" if head else b"\x93NUMPI"
            lied = magic + b"\x01\x00" + struct.pack("<H", len(packed)) + packed + b"\0" * 40
            file.writestr(f"{name}.npy", lied if name == "depths" else plain.getvalue())
    with pytest.raises(ut.DataError, match="does not hold a forest"):
        ut.data.read(path)


def test_characters_that_are_none(tmp_path: Path) -> None:
    path, words = tmp_path / "x.npz", np.array([2**31], np.uint32).view("<U1")
    np.savez(path, **{**arrays_of(FOREST, tmp_path), "vocabulary": words})
    with pytest.raises(ut.DataError, match="does not hold a forest"):
        ut.data.read(path)


def test_what_a_file_unpacks_to_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, **arrays_of(FOREST, tmp_path), more=np.zeros(10**6))
    assert path.stat().st_size < 20_000
    assert len(ut.data.read(path)) == 1
    monkeypatch.setattr("undertow.data.files._MOST_BYTES", 10**6)
    with pytest.raises(ut.DataError, match="its arrays would take 8,0"):
        ut.data.read(path)


# --------------------------------------------------------------------------------------------------------------
# Traces


@ut.function
def count(n: ut.i64) -> ut.i64:
    return 0 if n <= 0 else count(n - 1) + 1


@pytest.mark.slow
def test_events_of_traces(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    count.run(1, engine="reference", trace=path)
    lines = path.read_text().splitlines()
    kinds = {json.loads(line)["event"]: number for number, line in enumerate(lines)}

    def read(changed: dict[str, Any], number: int) -> None:
        path.write_text("\n".join([*lines[:number], json.dumps(changed), *lines[number + 1 :]]))
        events = list(read_trace(path))
        tags = Tags(events)
        for event in events:
            if hasattr(event, "frame"):
                tags[event.frame]

    for number in kinds.values():
        event = json.loads(lines[number])
        read(event, number)
        for key in event:
            for value in (None, True, -1, 1.5, 10**30, "bc", [1, 2, 3], {}, 1):
                refused(lambda: read({**event, key: value}, number))  # noqa: B023
            refused(lambda: read({k: v for k, v in event.items() if k != key}, number))  # noqa: B023
        with pytest.raises(ut.GraphError, match="not an event of a trace"):
            read({**event, "more": 1}, number)
