"""Event files: records with their checksums, what each kind of summary holds, wrong values."""

from __future__ import annotations

import struct
import sys
import zlib

import numpy as np
import pytest
from tests.support.wire import decoded, events, masked, one, texts

import undertow as ut
from undertow.viz.event_file import EventWriter, masked_crc, record
from undertow.viz.histogram import histogram
from undertow.viz.messages import Summary


def test_checksums():
    # The checks of RFC 3720 (iSCSI), which uses the same CRC.
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        assert masked_crc(data) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF == masked(data)
    assert record(b"") == bytes(8) + struct.pack("<I", masked(bytes(8))) + struct.pack("<I", masked(b""))


def values_of(event) -> list:
    return [decoded(value) for value in decoded(one(event, 5))[1]]


def test_a_file_of_everything(tmp_path):
    with EventWriter(tmp_path / "logs", filename_suffix=".test") as log:
        log.scalar("loss", np.float32(0.5), 3)
        log.histogram("weights", [[1.0, 2.0]], np.int64(4))
        log.text("note", "**größer**")
        log.image("picture", np.ones((2, 3, 5, 1)), 5, most=1)
    assert log.path.parent == tmp_path / "logs"
    assert log.path.name.startswith("events.out.tfevents.") and log.path.name.endswith(".test")
    version, scalar, histo, note, picture = events(log.path)
    assert texts(version, 3) == ["brain.Event:2"] and all(1 in event for event in events(log.path))
    assert scalar[2] == [3] and values_of(scalar) == [{1: [b"loss"], 2: [struct.pack("<f", 0.5)]}]
    assert histo[2] == [4] and one(decoded(one(values_of(histo)[0], 5)), 3) == struct.pack("<d", 2.0)
    (text,) = values_of(note)
    assert texts(decoded(one(decoded(one(text, 9)), 1)), 1) == ["text"]
    assert decoded(one(text, 8)) == {1: [7], 8: ["**größer**".encode()]}
    (image,) = values_of(picture)
    assert texts(image, 1) == ["picture/image"] and decoded(one(image, 4)).items() >= {1: [3], 2: [5], 3: [1]}.items()


def test_several_writers_have_several_files(tmp_path):
    with EventWriter(tmp_path) as one_, EventWriter(tmp_path) as other:
        one_.scalar("x", 1.0)
        other.scalar("x", 2.0)
    assert one_.path != other.path and len(list(tmp_path.iterdir())) == 2


def test_what_is_flushed_can_be_read(tmp_path):
    log = EventWriter(tmp_path)
    log.scalar("x", 1.0, 7)
    log.flush()
    assert [event.get(2) for event in events(log.path)] == [None, [7]]
    log.close()
    log.close()
    with pytest.raises(ut.UndertowError, match="is closed"):
        log.scalar("x", 1.0)


def test_histograms_have_the_buckets_of_tensorflow():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=1000), [0.0] * 5, [1e30, -1e-20]])
    made = histogram(values)
    assert (made.num, made.min, made.max) == (1007, values.min(), 1e30)
    assert made.sum == pytest.approx(values.sum()) and made.sum_squares == pytest.approx((values**2).sum())
    assert sum(made.bucket) == 1007 and made.bucket_limit == sorted(made.bucket_limit)
    assert made.bucket_limit[-1] == sys.float_info.max
    below = [float((values < limit).sum()) for limit in made.bucket_limit]
    assert np.cumsum(made.bucket).tolist() == below
    assert not any(a == b == 0 for a, b in zip(made.bucket, made.bucket[1:], strict=False))
    assert np.isclose(made.bucket_limit[3] / made.bucket_limit[2], 1 / 1.1)


def test_an_empty_histogram():
    assert histogram([]).num == 0 and histogram([]).bucket == [0.0]


def test_a_png_is_what_was_given(tmp_path):
    from undertow.viz.png import png

    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    data = png(picture)
    assert struct.unpack(">II", data[16:24]) == (4, 2) and data[24:29] == bytes([8, 2, 0, 0, 0])
    at, packed = 8, b""
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(2, 13)
    assert (rows[:, 0] == 0).all() and np.array_equal(rows[:, 1:].reshape(2, 4, 3), picture)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda log: log.scalar("x", [1.0, 2.0]), "the scalar 'x' is"),
        (lambda log: log.scalar("x", "one"), "the scalar 'x' is"),
        (lambda log: log.histogram("x", ["a"]), "the histogram 'x' is of"),
        (lambda log: log.histogram("x", [1.0, np.nan]), "with nan"),
        (lambda log: log.text("x", 3), "the text 'x' is 3"),
        (lambda log: log.image("x", np.zeros((3, 3))), "the image 'x' is"),
        (lambda log: log.scalar("x", 1.0, 0.5), "a step is 0.5"),
        (lambda log: log.summary("text"), "is not a summary"),
        (lambda log: EventWriter(3), "folder"),
    ],
)
def test_what_is_refused(tmp_path, call, says):
    with EventWriter(tmp_path) as log, pytest.raises(ut.UndertowError, match=says) as caught:
        call(log)
    assert caught.value.hint
    assert len(events(log.path)) == 1  # nothing half written


def test_tensorboard_reads_it(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader", exc_type=ImportError)
    with EventWriter(tmp_path) as log:
        log.scalar("loss", 0.25, 3)
        log.summary(Summary(), 4)
    found = list(loader.RawEventFileLoader(str(log.path)).Load())
    assert len(found) == 3
    from tensorboard.compat.proto.event_pb2 import Event

    event = Event.FromString(found[1])
    assert (event.step, event.summary.value[0].tag, event.summary.value[0].simple_value) == (3, "loss", 0.25)
