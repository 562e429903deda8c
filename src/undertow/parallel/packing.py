"""Values as parts of a message: structure and numbers as JSON, arrays as they are in memory. Nothing is unpickled.

>>> header, parts = pack({"x": np.arange(3.0), "rate": 0.5})
>>> unpack(json.loads(json.dumps(header)), parts)
{'x': array([0., 1., 2.]), 'rate': 0.5}
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.api.classes import build_quietly
from undertow.api.manifest import Decoder, Encoder, check_leaves
from undertow.cluster.frames import Buffer
from undertow.errors import LoadError
from undertow.frontend.values import tree
from undertow.types import DTYPES

Array = npt.NDArray[Any]
Json = Any

_DTYPES = {name: np.dtype(dtype.numpy) for name, dtype in DTYPES.items() if dtype.kind != "ctl"}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_WHAT = "what workers are sent"
_MOST_PARTS = 1000  # of a message; a frame takes some thousand


def pack(value: Any) -> tuple[Json, list[Buffer]]:
    """A value as JSON, and parts for its arrays; these are not copied if they are contiguous."""
    leaves, structure = tree.flatten(value)
    rows: list[Json] = []
    parts: list[Buffer] = []
    for leaf in leaves:
        if type(leaf) in (bool, int, float):
            rows.append(leaf)
        elif type(leaf) is complex:
            rows.append({"complex": [leaf.real, leaf.imag]})
        elif isinstance(leaf, (np.floating, np.integer, np.bool_)):
            rows.append({_NAMES[leaf.dtype]: leaf.item()})
        else:
            array = np.asarray(leaf)
            rows.append([_NAMES[array.dtype], *array.shape])
            parts.append(bytes_of(array))
    return {"layout": _layout(structure), "leaves": rows}, parts


def unpack(header: Json, parts: Iterable[Buffer]) -> Any:
    """The value. Its arrays are views of the parts, where these are aligned."""
    structure, rest = _structure(header["layout"]), iter(parts)
    leaves: list[Any] = []
    for row in header["leaves"]:
        if isinstance(row, list):
            leaves.append(array_of(next(rest), row[0], row[1:])[()])
        else:
            leaves.append(_number(row) if isinstance(row, dict) else row)
    check_leaves(structure, len(leaves), _WHAT)
    return tree.unflatten(structure, leaves, build_quietly)


def _number(row: Json) -> Any:
    """A number that JSON has no type for."""
    ((kind, value),) = row.items()
    return complex(*value) if kind == "complex" else _DTYPES[kind].type(value)


@functools.lru_cache(256)
def _layout(structure: tree.Structure) -> str:
    """A structure as text. Of classes there are names and fields only."""
    encoder = Encoder()
    return json.dumps([encoder.structure(structure, _WHAT), encoder.class_table()])


@functools.lru_cache(256)
def _structure(layout: str) -> tree.Structure:
    tokens, classes = json.loads(layout)
    return Decoder(classes, {}).structure(tokens, _WHAT)


def bytes_of(array: Array) -> Buffer:
    """The bytes of an array, row by row; not copied if they are in that order."""
    if array.size == 0:
        return b""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def array_of(part: Buffer, dtype: str | np.dtype[Any], shape: Sequence[int]) -> Array:
    """The array of these bytes, a view of them if they are aligned."""
    kind = _DTYPES[dtype] if isinstance(dtype, str) else dtype
    if len(part) != kind.itemsize * math.prod(shape) or min(shape, default=0) < 0:
        raise LoadError(f"an array of {len(part)} bytes where {kind} {list(shape)} should be")
    array = np.frombuffer(part, kind)
    if kind == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise LoadError("bools that are neither 0 nor 1")
    return (array if array.flags.aligned else array.copy()).reshape(shape)


def message(header: dict[str, Json], parts: Sequence[Buffer] = ()) -> list[Buffer]:
    """The parts of a message: the first says what the others are. Very many are put together."""
    if len(parts) > _MOST_PARTS:
        header = {**header, "joined": [len(part) for part in parts]}
        parts = [b"".join(parts)]
    return [json.dumps(header).encode(), *parts]


def read(parts: Sequence[Buffer]) -> tuple[dict[str, Json], list[Buffer]]:
    """What `message` wrote."""
    header: dict[str, Json] = json.loads(bytes(parts[0]))
    rest = list(parts[1:])
    if "joined" in header:
        whole, ends = memoryview(rest[0]), np.cumsum([0, *header["joined"]]).tolist()
        rest = [whole[a:b] for a, b in itertools.pairwise(ends)]
    return header, rest
