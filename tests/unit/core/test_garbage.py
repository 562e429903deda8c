"""What the core is handed from Python may be anything: garbage is a ValueError or TypeError, never a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.support.op_examples import EXAMPLES

from undertow import _core

X = np.ones((2, 3))
KEY = np.ones(2, np.int64)
DEEP = np.ones((1,) * 50)

# An operator, attributes, operands (not shared, two lanes each), dtype and rank of the result.
Row = tuple[str, Mapping[str, Any], Sequence[np.ndarray], tuple[str, int]]
KERNELS: list[Row] = [
    ("identity", {}, [], ("f64", 1)),
    ("identity", {}, [X], ("f32", 1)),
    ("identity", {}, [X], ("f64", 2)),
    ("identity", {}, [X], ("f64", -1)),
    ("identity", {}, [X], ("f64", 1000)),
    ("dim", {"axis": 1}, [X], ("i64", 0)),
    ("dim", {"axis": -1}, [X], ("i64", 0)),
    ("reshape", {"shape": (None,)}, [X], ("f64", 1)),
    ("reshape", {"shape": (-1, -1)}, [X], ("f64", 2)),
    ("reshape", {"shape": (1,) * 60}, [X], ("f64", 35)),
    ("reshape", {"shape": 3}, [X], ("f64", 1)),
    ("broadcast_to", {"shape": ()}, [X], ("f64", 0)),
    ("broadcast_to", {"shape": (-3,)}, [X], ("f64", 1)),
    ("broadcast_to", {"shape": (2**62,)}, [X], ("f64", 1)),
    ("transpose", {"axes": (1,)}, [X], ("f64", 1)),
    ("transpose", {"axes": (0, 0)}, [np.ones((2, 3, 3))], ("f64", 2)),
    ("transpose", {"axes": (2**32,)}, [X], ("f64", 1)),
    ("transpose", {"axes": (None,)}, [X], ("f64", 1)),
    ("expand_dims", {"axes": (7,)}, [X], ("f64", 2)),
    ("squeeze", {"axes": (1,)}, [X], ("f64", 0)),
    ("flip", {"axes": (-1,)}, [X], ("f64", 1)),
    ("concat", {"axis": 3}, [X, X], ("f64", 1)),
    ("concat", {"axis": 0}, [X, np.ones((2, 3, 3))], ("f64", 1)),
    ("concat", {"axis": 0}, [X, X.astype(np.float32)], ("f64", 1)),
    ("stack", {"axis": 2}, [X, X], ("f64", 2)),
    ("slice", {"starts": (), "stops": (), "steps": ()}, [X], ("f64", 1)),
    ("slice", {"starts": (0,), "stops": (3,), "steps": (0,)}, [X], ("f64", 1)),
    ("slice_at", {"axis": 0, "size": -1}, [X, KEY], ("f64", 1)),
    ("slice_at", {"axis": 0, "size": 2}, [X, X], ("f64", 1)),
    ("slice_between", {"axis": 0, "step": 0}, [X, KEY, KEY], ("f64", 1)),
    ("index", {"axes": (0,)}, [X], ("f64", 0)),
    ("index", {"axes": (0, 0)}, [X, KEY, KEY], ("f64", 0)),
    ("take", {"axis": 1}, [X, KEY], ("f64", 0)),
    ("take", {"axis": 0}, [X, np.ones(2)], ("f64", 0)),
    ("take_along_axis", {"axis": 0}, [X, KEY], ("f64", 1)),
    ("scatter_add", {"axis": 0}, [X, KEY], ("f64", 1)),
    ("scatter_add", {"axis": 0}, [X, KEY, KEY], ("f64", 1)),
    ("add_along_axis", {"axis": 0}, [X, KEY, X], ("f64", 1)),
    ("unslice", {"shape": (3,), "starts": (), "stops": (), "steps": ()}, [X], ("f64", 1)),
    ("sum", {"axes": (1,), "keepdims": False}, [X], ("f64", 0)),
    ("sum", {"axes": (0,), "keepdims": True}, [X], ("f64", 0)),
    ("sum", {"axes": (0,), "keepdims": False}, [X], ("f32", 0)),
    ("sum_to", {"shape": (3, 3)}, [X], ("f64", 2)),
    ("softmax", {"axes": (1,)}, [X], ("f64", 1)),
    ("cumsum", {"axis": 1}, [X], ("f64", 1)),
    ("argsort", {"axis": 0, "descending": False}, [X], ("i32", 1)),
    ("argmax", {"axis": 0, "keepdims": False}, [X], ("i64", 1)),
    ("fill", {"shape": (3,)}, [X], ("f64", 1)),
    ("arange", {}, [KEY], ("i64", 1)),
    ("arange", {}, [KEY, KEY, KEY.astype(np.int32)], ("i64", 1)),
    ("random_bits", {"shape": (3,)}, [KEY.astype(np.int32)], ("i64", 1)),
    ("random_uniform", {"shape": (3,)}, [KEY], ("i64", 1)),
    ("matmul", {}, [X, KEY], ("f64", 1)),
    ("matmul", {}, [X], ("f64", 1)),
    ("matmul", {}, [np.ones(2), np.ones(2)], ("f64", 0)),
    ("add", {}, [X, X], ("f64", 2)),
    ("add", {}, [X], ("f64", 1)),
    ("assert", {"template": ""}, [X], ("bool", 0)),
    ("identity", {}, [DEEP], ("f64", 35)),
]  # fmt: skip


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: f"{row[0]} {row[1]}")
def test_operators_are_given_what_they_take(row: Row) -> None:
    op, attrs, inputs, result = row
    with pytest.raises((ValueError, TypeError)):
        _core.run_kernel(op, attrs, inputs, [False] * len(inputs), [result])


@pytest.mark.parametrize("op", sorted(set(EXAMPLES) & set(_core.kernel_names())))
def test_no_operator_takes_nothing(op: str) -> None:
    for results in ([], [("f64", 0)], [("f64", 0)] * 2):
        with pytest.raises((ValueError, TypeError)):
            _core.run_kernel(op, {}, [], [], results)


W = np.ones((3, 3))
OTHERS: dict[str, Callable[[], object]] = {
    "other lanes": lambda: _core.run_kernel("add", {}, [X, np.ones((3, 3))], [False, False], [("f64", 1)]),
    "no lanes": lambda: _core.run_kernel("identity", {}, [np.float64(1.0)], [False], [("f64", 0)]),
    "shared": lambda: _core.run_kernel("identity", {}, [X], [], [("f64", 1)]),
    "byte order": lambda: _core.run_kernel("identity", {}, [X.astype(">f8")], [False], [("f64", 1)]),
    "negative shape": lambda: _core.run_fused([("exp", [0], "f64")], [X], [False], [-1], [1]),
    "huge shape": lambda: _core.run_fused([("exp", [0], "f64")], [np.ones(2)], [False], [2**40, 2**40], [1]),
    "many axes": lambda: _core.run_fused([("exp", [0], "f64")], [np.ones(2)], [False], [1] * 60, [1]),
    "no such register": lambda: _core.run_fused([("exp", [3], "f64")], [X], [False], [3], [1]),
    "no such output": lambda: _core.run_fused([("exp", [0], "f64")], [X], [False], [3], [-5]),
    "unequal matrices": lambda: _core.packed_product(np.ones((2, 300)), W),
    "integer matrices": lambda: _core.packed_product(np.ones((2, 3), np.int64), np.ones((3, 3), np.int64)),
    "two dtypes": lambda: _core.packed_product(np.ones((2, 3), np.float32), W),
    "a small sum": lambda: _core.outer_sum(np.ones((2, 30)), np.ones((2, 30)), W),
    "a sum of integers": lambda: _core.outer_sum(KEY[:, None], KEY[:, None], np.ones((1, 1), np.int64)),
    "a time of nothing": lambda: _core.time_outer(KEY[:, None], KEY[:, None], False, 0.0),
    "lanes of none": lambda: _core.part_and_meet(np.array(True), np.array(1.0), False, False, ""),
    "lanes of numbers": lambda: _core.part_and_meet(np.ones(3), np.ones(3), False, False, ""),
    "a plan of axes": lambda: _core.decode(np.zeros(4, np.int64), [], [DEEP]),
    "templates of axes": lambda: _core.decode_templates(np.zeros(4, np.int64), [], [DEEP]),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_other_garbage(what: str) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)):
        OTHERS[what]()
