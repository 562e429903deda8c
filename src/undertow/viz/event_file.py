"""TensorBoard's event files: records of bytes with their checksums, and a writer of scalars, histograms and more.

    with EventWriter("logs/first") as log:
        for step, loss in enumerate(losses):
            log.scalar("loss", loss, step)

Then `tensorboard --logdir logs`. A file is written as events come, and each `flush` lets TensorBoard see them.

>>> masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
True
"""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from undertow.errors import TypeMismatch, UndertowError, brief
from undertow.viz.histogram import histogram
from undertow.viz.messages import (
    DT_STRING,
    Dim,
    Event,
    GraphDef,
    Image,
    PluginData,
    RunMetadata,
    SessionLog,
    Summary,
    SummaryMetadata,
    SummaryValue,
    TaggedRunMetadata,
    TensorProto,
    TensorShapeProto,
)
from undertow.viz.png import png
from undertow.viz.protobuf import Message

# --------------------------------------------------------------------------------------------------------------
# Records


def _crc_table() -> list[int]:
    """CRC-32C: Castagnoli's polynomial, the lowest bit first."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """The checksum of a record: masked, since checksums of data that has checksums in it are weak."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A TFRecord: the length, its checksum, the data, its checksum."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


# --------------------------------------------------------------------------------------------------------------
# Values of summaries


def scalar_value(tag: str, value: Any) -> SummaryValue:
    """A number."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise TypeMismatch(f"the scalar {tag!r} is {brief(value)}", hint="give one number; histograms take arrays")
    return SummaryValue(tag, simple_value=_single(float(array.reshape(())[()])))


def _single(value: float) -> float:
    """What 32 bits hold of a number: those beyond their range are infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def histogram_value(tag: str, values: Any) -> SummaryValue:
    """The distribution of the numbers of an array."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeMismatch(f"the histogram {tag!r} is of {brief(values)}", hint="give an array of numbers")
    return SummaryValue(tag, histo=histogram(array))


def text_value(tag: str, value: Any) -> SummaryValue:
    """A text, or an array of texts; TensorBoard reads Markdown."""
    array = np.asarray(value)
    if array.dtype.kind not in "US" and not all(isinstance(item, (str, bytes)) for item in array.ravel()):
        raise TypeMismatch(f"the text {tag!r} is {brief(value)}", hint="give a text, or a list of them")
    items = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]
    tensor = TensorProto(DT_STRING, TensorShapeProto([Dim(size) for size in array.shape]), string_val=items)
    return SummaryValue(tag, tensor=tensor, metadata=SummaryMetadata(PluginData("text")))


def image_values(tag: str, values: Any, most: int = 3) -> list[SummaryValue]:
    """The first pictures of a batch [number, height, width, channels]; floats are scaled as TensorFlow does."""
    batch = np.asarray(values)
    if batch.ndim != 4 or batch.shape[3] not in (1, 3, 4) or batch.dtype.kind not in "biuf":
        raise TypeMismatch(
            f"the image {tag!r} is {brief(values)}", hint="give an array [number, height, width, 1, 3 or 4 channels]"
        )
    found = []
    for number, picture in enumerate(batch[:most]):
        height, width, channels = picture.shape
        image = Image(height, width, channels, png(_as_bytes(picture)))
        found.append(SummaryValue(f"{tag}/image" + (f"/{number}" if most > 1 else ""), image=image))
    return found


def _as_bytes(picture: Any) -> Any:
    """Numbers from 0 to 255. Floats: the largest becomes 255; with negative ones among them, 0 becomes 127."""
    if picture.dtype.kind != "f":
        return np.clip(picture, 0, 255).astype(np.uint8)
    finite = np.where(np.isfinite(picture), picture, 0.0).astype(np.float64)
    largest = np.abs(finite).max(initial=0.0) or 1.0
    if finite.min(initial=0.0) < 0:
        return np.clip(127.0 + finite * (127.0 / largest), 0, 255).astype(np.uint8)
    return (finite * (255.0 / largest)).astype(np.uint8)


# --------------------------------------------------------------------------------------------------------------
# The writer

_NUMBERS = count()  # files that one process makes in one second have different names


class EventWriter:
    """Writes an event file for TensorBoard into a folder: numbers, histograms, texts, pictures and graphs by step."""

    def __init__(self, logdir: str | os.PathLike[str], filename_suffix: str = "") -> None:
        if not isinstance(logdir, (str, os.PathLike)) or not os.fspath(logdir):
            raise TypeMismatch(
                f"the folder of an event file is {brief(logdir)}", hint='write EventWriter("logs/first")'
            )
        folder = Path(logdir)
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^\w.-]", "_", socket.gethostname()) or "localhost"
        name = f"events.out.tfevents.{int(time.time()):010}.{host}.{os.getpid()}.{next(_NUMBERS)}{filename_suffix}"
        self.path = folder / name
        self._lock = threading.Lock()  # around each record; the file is its only state
        self._file: BinaryIO | None = open(self.path, "xb")  # noqa: SIM115  # `close` closes it
        self.write(Event(file_version="brain.Event:2"))
        self.flush()

    def write(self, event: Event) -> None:
        """Append an event; one without a time happens now."""
        event.wall_time = event.wall_time or time.time()
        data = record(event.SerializeToString())
        with self._lock:
            if self._file is None:
                raise UndertowError(f"the event file {str(self.path)!r} is closed", hint="make another EventWriter")
            self._file.write(data)

    # -- what can be seen ------------------------------------------------------------------------------------

    def scalar(self, tag: str, value: Any, step: int = 0) -> None:
        """A number of this step."""
        self.summary(Summary([scalar_value(tag, value)]), step)

    def histogram(self, tag: str, values: Any, step: int = 0) -> None:
        """The distribution of an array's numbers at this step."""
        self.summary(Summary([histogram_value(tag, values)]), step)

    def text(self, tag: str, value: Any, step: int = 0) -> None:
        """A text, or several, in Markdown."""
        self.summary(Summary([text_value(tag, value)]), step)

    def image(self, tag: str, values: Any, step: int = 0, most: int = 3) -> None:
        """The first pictures of an array [number, height, width, channels]."""
        self.summary(Summary(image_values(tag, values, most)), step)

    def summary(self, summary: Summary | bytes, step: int = 0) -> None:
        """A summary, or one that is serialized."""
        self.write(Event(step=_step(step), summary=_bytes(summary, Summary, "a summary")))

    def graph(self, graph: GraphDef | bytes, step: int = 0) -> None:
        """A graph, for the page Graphs."""
        self.write(Event(step=_step(step), graph_def=_bytes(graph, GraphDef, "a GraphDef")))

    def run_metadata(self, metadata: RunMetadata | bytes, tag: str, step: int = 0) -> None:
        """The times of a run, which the page Graphs shows on the nodes."""
        tagged = TaggedRunMetadata(str(tag), _bytes(metadata, RunMetadata, "a RunMetadata"))
        self.write(Event(step=_step(step), tagged_run_metadata=tagged))

    def session_log(self, log: SessionLog, step: int = 0) -> None:
        """That a session has started or stopped."""
        self.write(Event(step=_step(step), session_log=log))

    # -- the file --------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write out what is in memory."""
        with self._lock:
            if self._file is not None:
                self._file.flush()

    def close(self) -> None:
        """End the file. It may be closed again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    @property
    def is_closed(self) -> bool:
        """Has it been closed?"""
        return self._file is None

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _step(step: Any) -> int:
    array = np.asarray(0 if step is None else step)
    if array.size != 1 or array.dtype.kind not in "biu":
        raise TypeMismatch(f"a step is {brief(step)}", hint="steps are integers")
    return int(array.reshape(())[()])


def _bytes(message: Any, kind: type[Message], what: str) -> bytes:
    if isinstance(message, (bytes, np.bytes_)):
        return bytes(message)
    if isinstance(message, kind):
        return message.SerializeToString()
    raise TypeMismatch(f"{brief(message)} is not {what}", hint="give the message, or its bytes")
