"""Files that are none: saved functions, forests, checkpoints, trees and traces, spoiled byte by byte or part by part.

A saved function that still loads is run, on every engine and within limits, which must hold.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.case import Case
from tests.support.saved import packed, unpacked

import undertow as ut
from undertow.api.options import ENGINES
from undertow.ir.trace import Tags, read_trace

SECONDS = 1.0
LATE = 10.0  # seconds after its timeout: a slow machine is no fault
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**63, 10**30, float("nan"), float("inf"), "", "bc", "\ud800", [], [[]], {},
)  # fmt: skip
WORDS = (
    "0:i64", "-1:i64", "nan:f64", "f64", "i64[9223372036854775807]", "f64[?]", '""', "call", "gradient", "loop", "x",
)  # fmt: skip
Spoil = Callable[[bytes, Random], bytes]
ALLOWED = (OSError,)  # what the system says of a file


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n == 0 else x * power(x, n - 1)


@ut.function
def slope(x: ut.f64, n: ut.i64):
    return ut.grad(lambda y: ut.sum(ut.map(lambda k: power(y, k), ut.arange(n))))(x)


@ut.function
def pairs(p, x=2.0):
    return {"sum": p["a"] + x, "pair": (p["b"][0], ut.stack([x, x]))}


@cache
def functions() -> tuple[tuple[bytes, tuple[Any, ...]], ...]:
    """Saved functions, and arguments for each."""
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (power, (2.0, 3)), (slope, (2.0, 3)), (pairs, ({"a": 1.0, "b": [np.ones(2)]},)),
    ]  # fmt: skip
    return tuple((written(lambda path, f=f, a=a: ut.save(f, path, examples=[a])), a) for f, a in calls)


def written(write: Callable[[Path], object]) -> bytes:
    """The bytes of a file that something writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


@cache
def others() -> dict[str, bytes]:
    """Other files by their suffix."""
    forest = ut.data.sentiment(5, seed=1)
    model = ut.models.TreeRNN(5, 2, width=2)
    recipe = ut.train.Recipe(epochs=1)
    state = ut.train.start(model, recipe)
    made = {suffix: written(lambda path, s=suffix: ut.data.write(forest, path, FORMATS[s])) for suffix in FORMATS}
    made["safetensors"] = written(lambda path: ut.train.save(path, ut.train.Checkpoint(model, recipe, state)))
    made["trace"] = written(lambda path: power.run(2.0, 3, engine="reference", trace=path))
    return made


FORMATS = {"txt": "brackets", "sexp": "sexpressions", "jsonl": "jsonl", "npz": "npz"}

# --------------------------------------------------------------------------------------------------------------
# Ways to spoil


def flip(data: bytes, chance: Random) -> bytes:
    """Some bytes, to any others."""
    spoiled = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 2, 8))):
        spoiled[chance.randrange(len(spoiled))] = chance.choice((0, 255, chance.randrange(256)))
    return bytes(spoiled)


def cut(data: bytes, chance: Random) -> bytes:
    """A part left out, or there twice."""
    a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + data[b:] if chance.random() < 0.7 else data[:b] + data[a:]


def change_json(data: bytes, chance: Random) -> bytes:
    """One value of a JSON text, to any other."""
    try:
        root = json.loads(data)
    except ValueError:
        return flip(data, chance)
    places: list[tuple[Any, Any]] = []
    stack = [root]
    while stack:
        at = stack.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        places += [(at, key) for key in keys]
        stack += [at[key] for key in keys]
    if not places:
        return json.dumps(chance.choice(VALUES)).encode()
    holder, key = chance.choice(places)
    other, place = chance.choice(places)
    if chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice(VALUES) if chance.random() < 0.7 else json.loads(json.dumps(other[place]))
    return json.dumps(root).encode()


def change_lines(data: bytes, chance: Random) -> bytes:
    """A line of JSON, changed; or lines left out or swapped."""
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    if chance.random() < 0.6 and lines[number].strip():
        lines[number] = change_json(lines[number], chance)
    else:
        other = chance.randrange(len(lines))
        lines[number], lines[other] = lines[other], lines[number] * chance.randrange(3)
    return b"\n".join(lines)


def change_text(data: bytes, chance: Random) -> bytes:
    """Words of a text, exchanged for others of it or for awkward ones; or lines, as above."""
    if chance.random() < 0.3:
        return change_lines(data, chance)
    words = data.decode(errors="replace").split(" ")
    for _ in range(chance.choice((1, 1, 2, 5))):
        words[chance.randrange(len(words))] = chance.choice(words if chance.random() < 0.6 else WORDS)
    return " ".join(words).encode()


def change_entries(data: bytes, chance: Random) -> bytes:
    """An entry of a zip: spoiled, renamed, there twice, gone, or packed another way."""
    entries = list(unpacked(data).items())
    number = chance.randrange(len(entries))
    name, held = entries[number]
    way = chance.randrange(8)
    if way < 4:
        entries[number] = name, chance.choice(SPOILS.get(name.rpartition(".")[2], (flip, cut)))(held, chance)
    elif way == 4:
        entries[number] = chance.choice(("../x", "/x", name.upper(), "graphs/1.txt", "a" * 300)), held
    elif way == 5:
        del entries[number]
    elif way == 6:
        entries.append(("graphs/1.txt", held))
    else:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            for key, value in entries:
                file.writestr(key, value)
        return made.getvalue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        return packed(entries)


SPOILS: dict[str, tuple[Spoil, ...]] = {
    "ut": (change_entries, change_entries, change_entries, flip, cut),
    "npz": (change_entries, flip, cut),
    "npy": (flip, cut),
    "json": (change_json,),
    "jsonl": (change_lines, flip, cut),
    "trace": (change_lines, flip, cut),
    "txt": (change_text, flip, cut),
    "sexp": (change_text, flip, cut),
    "safetensors": (flip, cut),
}

# --------------------------------------------------------------------------------------------------------------
# The kind


def read_back(suffix: str, path: Path) -> object:
    """What a file is read by."""
    if suffix == "safetensors":
        return ut.train.load(path)
    if suffix == "trace":
        events = list(read_trace(path))
        tags = Tags(events)
        return [tags[event.frame] for event in events if hasattr(event, "frame")]
    return ut.data.read(path, FORMATS[suffix])


def run_loaded(path: Path, args: tuple[Any, ...], engine: str) -> None:
    """Load a function and call it, within limits that hold."""
    loaded = ut.load(path)
    began = time.perf_counter()
    try:
        loaded.run(*args, engine=engine, timeout=SECONDS, memory=10**8, frames=100_000, max_depth=10_000)
    finally:
        spent = time.perf_counter() - began
        assert spent < SECONDS + LATE, f"{spent:.1f} s, with timeout={SECONDS}"


def spoiled_file(chance: Random) -> Case:
    """A file of any sort."""
    suffix = chance.choice(("ut", "ut", "ut", *others()))
    data, args = chance.choice(functions()) if suffix == "ut" else (others()[suffix], ())
    for _ in range(chance.choice((1, 1, 1, 3))):
        try:
            data = chance.choice(SPOILS[suffix])(data, chance)
        except Exception:  # what was spoiled before is no zip any more
            data = flip(data, chance)
    engine = chance.choice(list(ENGINES))

    def run() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file.{suffix}"
            path.write_bytes(data)
            return run_loaded(path, args, engine) if suffix == "ut" else read_back(suffix, path)

    return Case(run, f"{suffix} on {engine}, {len(data)} bytes: {data[:200]!r}...", ALLOWED)
