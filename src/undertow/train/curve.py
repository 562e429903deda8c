"""A learning curve as a PNG picture, drawn here: a default install has no plotting library, and this needs little."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.train.growth import perplexity
from undertow.train.loop import Record

_WIDE, _HIGH, _EDGE = 720, 300, 46
_MARKED = 40  # as many epochs have a mark each; of more, the marks would be a thick line
_INK, _GRID, _TRAIN, _DEV = (31, 35, 40), (225, 228, 232), (154, 161, 171), (47, 111, 196)

# Letters of three columns and five rows, each row as three bits: all that the captions need.
_FONT = {
    "0": 0o75557, "1": 0o26227, "2": 0o71747, "3": 0o71717, "4": 0o55711, "5": 0o74717, "6": 0o74757, "7": 0o71122,
    "8": 0o75757, "9": 0o75717, ".": 0o00002, "%": 0o51245, "-": 0o00700, " ": 0o00000,
    "a": 0o25755, "c": 0o34443, "d": 0o65556, "e": 0o74647, "h": 0o55755, "i": 0o72227, "l": 0o44447, "n": 0o65555,
    "o": 0o25552, "p": 0o65644, "r": 0o65655, "s": 0o34216, "t": 0o72222, "u": 0o55557, "v": 0o55552, "x": 0o55255,
    "y": 0o55222, "+": 0o02720,
}  # fmt: skip


def curve_png(history: Sequence[Record], nodes: tuple[float, float] | None = None) -> bytes:
    """Loss and accuracy by epoch, of the training and the dev set, as the bytes of a PNG file.

    Of a model that grows trees nobody knows an accuracy. Then perplexity is shown, if it is known how many `nodes` a
    tree of the training and of the dev set has on average; else loss alone.
    """
    picture = np.full((_HIGH, _WIDE, 3), 255, np.uint8)
    half = _WIDE // 2
    losses = [[r.train_loss for r in history], [r.dev_loss for r in history]]
    hits = [[r.train_accuracy for r in history], [r.dev_accuracy for r in history]]
    if not np.isnan(hits).all():
        _panel(picture, half, _WIDE, "accuracy", hits, 1.0, "{:.0%}")
    elif nodes is not None:
        found = [[perplexity(loss, count) for loss in row] for row, count in zip(losses, nodes, strict=True)]
        _panel(picture, half, _WIDE, "perplexity", found, *_scale(found))
    else:
        half = _WIDE
    _panel(picture, 0, half, "loss", losses, *_scale(losses))
    for k, (name, colour) in enumerate((("train", _TRAIN), ("dev", _DEV))):
        _write(picture, _WIDE - 110 + 60 * k, 8, name, colour)
    return _encoded(picture)


def _scale(rows: Sequence[Sequence[float]]) -> tuple[float, str]:
    """The highest number that there is, and how captions are written."""
    top = max([1e-9, *(x for row in rows for x in row if np.isfinite(x))])
    return top, "{:.2f}" if top < 100 else "{:.0f}" if top < 1e5 else "{:.0e}"


def _panel(
    picture: Any, left: int, right: int, title: str, rows: Sequence[Sequence[float]], top: float, form: str
) -> None:
    x0, x1, y0, y1 = left + _EDGE, right - 16, _HIGH - 34, 30
    _write(picture, x0, 8, title, _INK)
    for part in range(5):
        y = round(y0 + (y1 - y0) * part / 4)
        picture[y, x0 : x1 + 1] = _GRID
        caption = form.format(top * part / 4)
        _write(picture, max(x0 - 8 * len(caption) - 4, left), y - 5, caption, _INK)
    epochs = len(rows[0])
    middle = (x0 + x1) // 2
    if epochs > 1:
        _write(picture, x0, y0 + 10, "1", _INK)
        _write(picture, middle - 20, y0 + 10, "epoch", _INK)
        _write(picture, x1 - 8 * len(str(epochs)), y0 + 10, str(epochs), _INK)
    else:
        _write(picture, middle - 28, y0 + 10, f"epoch {epochs}", _INK)
    xs = np.linspace(x0, x1, epochs) if epochs > 1 else np.full(epochs, middle)
    for row, colour in zip(rows, (_TRAIN, _DEV), strict=True):
        ys = y0 + (y1 - y0) * np.clip(np.nan_to_num(np.array(row), nan=0.0, posinf=top, neginf=0.0) / top, 0, 1)
        _line(picture, xs, ys, colour)
        if epochs <= _MARKED:
            for x, y in zip(xs.round().astype(int), ys.round().astype(int), strict=True):
                picture[y - 3 : y + 3, x - 3 : x + 4] = colour


def _line(picture: Any, xs: Any, ys: Any, colour: tuple[int, int, int]) -> None:
    """Dots of two by two along the way, close enough to touch."""
    if not len(xs):
        return
    steps = [max(abs(a), abs(b), 1.0) for a, b in zip(np.diff(xs), np.diff(ys), strict=True)]
    at = np.concatenate([[0.0], np.cumsum(steps)])
    places = np.arange(0, at[-1] + 1, 0.5)
    columns = np.interp(places, at, xs).round().astype(int)
    lines = np.interp(places, at, ys).round().astype(int)
    for down in (0, 1):
        for right in (0, 1):
            picture[lines + down - 1, columns + right] = colour


def _write(picture: Any, x: int, y: int, text: str, colour: tuple[int, int, int]) -> None:
    for letter in text:
        bits = _FONT[letter]
        shape = [[bits >> (3 * (4 - row) + 2 - column) & 1 for column in range(3)] for row in range(5)]
        big = np.kron(np.array(shape), np.ones((2, 2), int)) == 1
        picture[y : y + 10, x : x + 6][big] = colour
        x += 8


def _encoded(picture: Any) -> bytes:
    high, wide, _ = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)  # 0: rows are stored as they are

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)  # 8 bits, colours, no interlacing
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
