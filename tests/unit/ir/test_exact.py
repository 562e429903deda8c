"""Constants are the same when type and bits are: attributes, texts, keys of dicts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from undertow.ir.exact import exact, keys_of
from undertow.ir.graph import Attrs, Const
from undertow.ir.literal import _element, read_scalar, show_attr, show_const
from undertow.types import DTYPES

NAN = float("nan")
OTHER_NAN = np.frombuffer(bytes.fromhex("010000000000f87f"), np.float64)[0]
DISTINCT: list[Any] = [
    0, False, 0.0, -0.0, 1, True, 1.0, NAN, float("inf"), None, "", "0", b"", (0,), (0.0,), (-0.0,), (False,), (),
    np.float64(0.0), np.float64(-0.0), np.float32(0.0), np.int32(0), np.int64(0), np.bool_(False), np.float64(NAN),
    OTHER_NAN, 5e-324, 1e308,
]  # fmt: skip


def again(value: Any) -> Any:
    """An equal value that is another object, where there can be one."""
    if isinstance(value, tuple):
        return tuple(map(again, value))
    return value.copy() if isinstance(value, np.generic) else float(str(value)) if type(value) is float else value


def test_constants_of_other_types_and_bits_differ() -> None:
    for a, b in itertools.combinations(DISTINCT, 2):
        assert exact(a) != exact(b), (a, b)
        assert keys_of([a]) != keys_of([b]), (a, b)
    assert len(set(map(exact, DISTINCT))) == len(DISTINCT)


def test_the_same_constant_is_equal_to_itself() -> None:
    for value in DISTINCT:
        assert exact(value) == exact(again(value)), value
        assert hash(exact(value)) == hash(exact(again(value)))
        assert keys_of([value]) == keys_of([again(value)])
        assert hash(keys_of([value])) == hash(keys_of([again(value)]))


def test_attributes() -> None:
    plain = [value for value in DISTINCT if not isinstance(value, (np.generic, bytes))]
    attrs = [Attrs(x=value) for value in plain]
    for (k, a), (n, b) in itertools.product(enumerate(attrs), repeat=2):
        assert (a == b) == (k == n), (a, b)
    assert all(hash(a) == hash(Attrs(x=again(a["x"]))) for a in attrs)
    for value in plain:
        if not isinstance(value, tuple):
            assert exact(read_scalar(show_attr(value))) == exact(value)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_floats_print_and_parse_to_the_same_bits(name: str) -> None:
    dtype = DTYPES[name]
    whole = np.int32 if name == "f32" else np.int64
    random = np.random.default_rng(0)
    info = np.iinfo(whole)
    bits = [0, 1, 2, -1, -2, info.min, info.min + 1, info.max, *random.integers(info.min, info.max, 3000)]
    edges = [
        0.0,
        -0.0,
        1.0,
        0.1,
        np.inf,
        -np.inf,
        np.nan,
        -np.nan,
        np.finfo(dtype.numpy).max,
        2.0**24,
        1e16,
        9007199254740993,
    ]
    values = [*np.array(bits, whole).view(dtype.numpy), *np.array(edges, dtype.numpy)]
    for value in values:
        text = show_const(Const(value)).partition(":")[0]
        read = _element(text, dtype)
        assert read is not None and read.tobytes() == value.tobytes(), text
