"""The container of a saved function: one zip file with text entries, and the constants as safetensors.

Writing is deterministic and replaces a file atomically. Reading trusts nothing: names,
number and sizes of the entries are checked before anything is decompressed, and nothing is extracted to disk.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
import safetensors
import safetensors.numpy

from undertow.errors import LoadError, SaveError, UndertowError
from undertow.ir.graph import Array

MANIFEST = "undertow.json"
CONSTANTS = "constants.safetensors"
MOST_GRAPHS = 1000
MOST_BYTES = {MANIFEST: 4 << 20}  # of an entry when unpacked
MOST_TEXT = 16 << 20  # of any other text entry
MOST_UNPACKED = 64 << 20  # of all text entries together
_MOST_DIRECTORY = 1 << 20  # of the list of entries
_MOST_AXES = 32
_GRAPH = re.compile(r"graphs/(0|[1-9][0-9]{0,3})\.txt")
_COMPLEX = "+i"  # ends the names of complex constants: safetensors has no c128
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of zip files: the bytes must not depend on the clock
_deserialize: Any = safetensors.deserialize  # some versions come without types
_DTYPES = {"BOOL": np.bool_, "I32": np.int32, "I64": np.int64, "F32": np.float32, "F64": np.float64}


def graph_entry(number: int) -> str:
    """The name of the entry that holds the graph of a signature."""
    return f"graphs/{number}.txt"


# --------------------------------------------------------------------------------------------------------------
# Writing


def write(path: str | os.PathLike[str], texts: Mapping[str, str], constants: Mapping[str, Array]) -> None:
    """Write a file for `read`, atomically: the old file stays until the new one is complete."""
    entries = {name: text.encode() for name, text in sorted(texts.items())}
    for name, data in entries.items():
        if len(data) > MOST_BYTES.get(name, MOST_TEXT):
            raise SaveError(f"{name} would have {len(data):,} bytes, more than {MOST_BYTES.get(name, MOST_TEXT):,}")
    if len(entries) > MOST_GRAPHS + 1 or sum(map(len, entries.values())) > MOST_UNPACKED:
        raise SaveError(
            f"one file cannot hold {len(entries) - 1} signatures",
            hint="save a function that was called with fewer types",
        )
    packed = dict(_packed(name, constants[name]) for name in sorted(constants))
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for entry, data in entries.items():
            archive.writestr(_info(entry), data, zipfile.ZIP_DEFLATED, 9)
        # Constants are not compressed: weights hardly shrink, and so reading never unpacks a large entry.
        archive.writestr(_info(CONSTANTS), safetensors.numpy.save(packed), zipfile.ZIP_STORED)


def _packed(name: str, array: Array) -> tuple[str, Array]:
    """The name and array in the file: of complex numbers, their parts, along a last axis."""
    if array.dtype.kind == "c":
        return name + _COMPLEX, np.stack([array.real, array.imag], axis=-1)
    return name, np.asarray(array, order="C")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces another one when it is complete."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    # os.open, not tempfile: the file gets the usual permissions of the user's new files.
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as fault:
        raise type(fault)(fault.errno, fault.strerror, os.fspath(path)) from None  # not the name of the draft
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3  # Unix, on every system
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


# --------------------------------------------------------------------------------------------------------------
# Reading


class _Bounded(io.BufferedReader):
    """A file of which no single read gives more than `most` bytes.

    `zipfile` reads the whole table of entries and builds an object for each before their number can be checked.
    """

    most: int | None = _MOST_DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        if self.most is None:
            return super().read(size)
        data = super().read(self.most + 1 if size is None or size < 0 else min(size, self.most + 1))
        if len(data) > self.most:
            raise LoadError("its table of entries is too long")
        return data


def read(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, Array]]:
    """The text entries and the constants of a saved function; a LoadError if the file is not one."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
        raise LoadError("it is not a regular file")
    with _Bounded(io.FileIO(path)) as file:
        try:
            return _read(file, status.st_size)
        except UndertowError:
            raise
        except MemoryError as fault:
            raise LoadError("it does not fit in memory") from fault
        except Exception as fault:  # zipfile has a dozen ways to say that a file is broken
            raise LoadError(f"it is damaged: {type(fault).__name__}: {fault}") from fault


def _read(file: _Bounded, size: int) -> tuple[dict[str, str], dict[str, Array]]:
    with zipfile.ZipFile(file) as archive:
        file.most = None
        entries = _check_entries(archive.infolist(), size)
        found = {name: _unpack(archive, info) for name, info in entries.items()}
    constants = found.pop(CONSTANTS)
    texts: dict[str, str] = {}
    for name, data in found.items():
        try:
            texts[name] = data.decode()
        except UnicodeDecodeError as fault:
            raise LoadError(f"{name} is not UTF-8: {fault}") from None
    return texts, read_constants(constants)


def _check_entries(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, after checking that they are those of a saved function and within their size limits."""
    if len(infos) > MOST_GRAPHS + 2:
        raise LoadError(f"it has {len(infos):,} entries, more than {MOST_GRAPHS + 2:,}")
    entries: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in infos:
        name = info.filename
        if name != info.orig_filename or not (name in (MANIFEST, CONSTANTS) or _GRAPH.fullmatch(name)):
            raise LoadError(f"it has an unexpected entry {info.orig_filename!r:.80}")
        if name in entries:
            raise LoadError(f"it has two entries named {name}")
        if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise LoadError(f"{name} is encrypted, or compressed by an unsupported method")
        if name == CONSTANTS:
            if info.compress_type != zipfile.ZIP_STORED or not info.file_size == info.compress_size <= size:
                raise LoadError(f"{name} must be stored uncompressed, and cannot be larger than the file")
        else:
            total += info.file_size
            if info.file_size > MOST_BYTES.get(name, MOST_TEXT) or info.compress_size > size or total > MOST_UNPACKED:
                raise LoadError(f"{name} is too large: {info.file_size:,} bytes")
        entries[name] = info
    for name in (MANIFEST, CONSTANTS):
        if name not in entries:
            raise LoadError(f"it has no entry named {name}")
    return entries


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as entry:
        data = entry.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise LoadError(f"{info.filename} has {len(data):,} bytes, not {info.file_size:,}")
    return data


def read_constants(data: bytes) -> dict[str, Array]:
    """The arrays of a safetensors file, by name."""
    try:
        found = _deserialize(data)
    except Exception as fault:
        raise LoadError(f"{CONSTANTS} is damaged: {fault}") from fault
    arrays: dict[str, Array] = {}
    for name, tensor in found:
        shape, dtype = [int(size) for size in tensor["shape"]], _DTYPES.get(tensor["dtype"])
        if dtype is None:
            raise LoadError(f"the constant {name!r:.40} has the unsupported dtype {tensor['dtype']}")
        little = np.dtype(dtype).newbyteorder("<")
        if len(shape) > _MOST_AXES or math.prod(shape) * little.itemsize != len(tensor["data"]):
            raise LoadError(f"the constant {name!r:.40} of shape {shape!r:.80} has {len(tensor['data']):,} bytes")
        if dtype is np.bool_ and np.frombuffer(tensor["data"], np.uint8).max(initial=0) > 1:
            raise LoadError(f"the constant {name!r:.40} has bools that are neither 0 nor 1")
        array: Array = np.frombuffer(tensor["data"], little).astype(dtype, copy=False).reshape(shape)
        if name.endswith(_COMPLEX):
            if dtype not in (np.float32, np.float64) or shape[-1:] != [2]:
                raise LoadError(f"the constant {name!r:.40} does not hold pairs of floats")
            name = name.removesuffix(_COMPLEX)
            array = array.view(np.result_type(dtype, np.complex64)).reshape(shape[:-1])
        arrays[name] = array
    return arrays
