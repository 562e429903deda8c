"""NumPy's functions in captured functions give what NumPy gives, for lengths known at capture and at run time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.types import Type, type_of

V = np.array([3.0, -1.0, 2.5, 2.5, 0.0, 7.0])
W = np.array([1.0, 2.0, 4.0])
K = np.array([2, 0, 1, 2, 5, 0])
A = np.arange(12.0).reshape(3, 4) * 0.5 - 2.0
G = np.arange(6).reshape(2, 3)
B = V > 1
F = V.astype(np.float32)

# A function, and its arguments.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mask": (lambda x: x[x > 1], (V,)),
    "mask of rows": (lambda a: a[a[:, 0] < 0], (A,)),
    "mask of columns": (lambda a: a[:, a[0] > -1.5], (A,)),
    "mask of elements": (lambda a: a[a > 0], (A,)),
    "mask of the last axes": (lambda a: a[None][..., a > 0], (A,)),
    "mask beside a number": (lambda a: a[1, a[0] > -1.5], (A,)),
    "static mask": (lambda x: x[np.array([True, False, False, True, True, False])], (V,)),
    "mask of nothing": (lambda x: x[x > 99], (V,)),
    "nonzero": (np.nonzero, (G,)),
    "where": (lambda x: np.where(x > 1), (V,)),
    "flatnonzero": (np.flatnonzero, (G,)),
    "argwhere": (np.argwhere, (G,)),
    "compress": (lambda a: np.compress([True, False, True], a, axis=0), (A,)),
    "compress less": (lambda x: np.compress(x[:3] > 0, x), (V,)),
    "extract": (lambda a: np.extract(a > 0, a), (A,)),
    "count_nonzero": (lambda a: np.count_nonzero(a, axis=1), (A,)),
    "unique": (np.unique, (V,)),
    "unique of booleans": (np.unique, (B,)),
    "unique with all": (lambda k: np.unique(k, True, True, True), (G % 3,)),
    "repeat": (lambda x: np.repeat(x, 3), (A,)),
    "repeat rows": (lambda a: np.repeat(a, [2, 0, 1], axis=0), (A,)),
    "repeat by counts": (np.repeat, (V, K)),
    "repeat as often": (lambda a, n: a.repeat(n, axis=1), (A, np.int64(2))),
    "hstack": (lambda x, y: np.hstack([x, y]), (V, W)),
    "vstack": (lambda x: np.vstack([x, x]), (V,)),
    "dstack": (lambda a: np.dstack([a, a]), (A,)),
    "column_stack": (lambda x: np.column_stack([x, x * 2]), (V,)),
    "block": (lambda a: np.block([[a, a], [a, np.zeros_like(a)]]), (A,)),
    "array_split": (lambda x: np.array_split(x, 4), (V,)),
    "hsplit": (lambda a: np.hsplit(a, [1, 3]), (A,)),
    "pad": (lambda a: np.pad(a, ((1, 0), (2, 1)), constant_values=9), (A,)),
    "pad edges": (lambda a: np.pad(a, 2, mode="edge"), (A,)),
    "pad reflected": (lambda a: np.pad(a, 5, mode="reflect"), (A,)),
    "pad mirrored": (lambda a: np.pad(a, (4, 7), mode="symmetric"), (A,)),
    "pad wrapped": (lambda a: np.pad(a, (4, 7), mode="wrap"), (A,)),
    "tile": (lambda a: np.tile(a, (2, 1, 3)), (A,)),
    "tile as often": (np.tile, (V, np.int64(3))),
    "resize": (lambda a: np.resize(a, (5, 3)), (A,)),
    "rot90": (lambda a: [np.rot90(a, k) for k in range(-1, 3)], (A,)),
    "delete": (lambda x: np.delete(x, 1), (V,)),
    "delete rows": (lambda a: np.delete(a, [0, 2], axis=0), (A,)),
    "delete at": (np.delete, (V, np.int64(-2))),
    "delete at several": (np.delete, (V, np.array([0, -1, 0]))),
    "delete a slice": (lambda x: np.delete(x, slice(1, 4)), (V,)),
    "insert": (lambda x: np.insert(x, 1, 5.0), (V,)),
    "insert row": (lambda a: np.insert(a, -1, [1, 2, 3, 4], axis=0), (A,)),
    "insert column": (lambda a: np.insert(a, 2, [1, 2, 3], axis=1), (A,)),
    "insert at": (lambda x, n: np.insert(x, n, [8.0, 9.0]), (V, np.int64(6))),
    "append": (lambda x: np.append(x, 1.0), (V,)),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), (V, W)),
    "meshgrid ij": (lambda x, y: np.meshgrid(x, y, indexing="ij", sparse=True), (V, W)),
    "broadcast_arrays": (lambda a: np.broadcast_arrays(a, a[0]), (A,)),
    "tri": (lambda n: (np.tri(n, k=1), np.triu_indices(n), np.tril_indices(n, -1)), (np.int64(4),)),
    "diagonal": (lambda a: (np.diagonal(a), a.diagonal(1), np.diag(a, -1), np.trace(a)), (A,)),
    "diagonals": (lambda a: np.diagonal(np.stack([a, a, a]), 1, 0, 2), (A,)),
    "diag": (lambda x: (np.diag(x), np.diag(x, 2), np.diagflat(x, -1)), (W,)),
    "kron": (np.kron, (A, W)),
    "cross": (lambda a: np.cross(a[:, :3], [1.0, 2.0, 3.0]), (A,)),
    "convolve": (lambda x: [np.convolve(x, W, mode) for mode in ("full", "same", "valid")], (V,)),
    "convolve with a longer one": (lambda x: np.convolve(x[:2], W, "same"), (V,)),
    "searchsorted": (lambda x, w: np.searchsorted(np.sort(x), w), (V, np.array([2.5, -9, 9, np.nan, 0]))),
    "searchsorted right": (lambda x, w: np.searchsorted(np.sort(x), w, side="right"), (V, np.array([2.5, -9, 9.0]))),
    "searchsorted one": (lambda x: np.searchsorted(np.sort(x), 2.5, "right"), (V,)),
    "digitize": (lambda x: (np.digitize(x, [0.0, 2.5, 5.0]), np.digitize(x, [5.0, 2.5, 0.0], right=True)), (V,)),
    "bincount": (lambda k: (np.bincount(k), np.bincount(k, minlength=9)), (K,)),
    "bincount by weights": (lambda k, w: np.bincount(k, weights=w), (K, V)),
    "histogram": (lambda x: np.histogram(x, bins=4, range=(-1, 7)), (V,)),
    "histogram by edges": (lambda x: np.histogram(x, bins=[-1.0, 0.0, 2.5, 7.0], density=True), (V,)),
    "median": (lambda a: (np.median(a), np.median(a, axis=0), np.median(a, axis=1, keepdims=True)), (A,)),
    "median of nan": (lambda x: np.median(np.append(x, np.nan)), (V,)),
    "median of integers": (np.median, (K,)),
    "percentile": (lambda a: (np.percentile(a, 30), np.percentile(a, [0, 50, 99], axis=1)), (A,)),
    "quantile": (lambda a: np.quantile(a, 0.75, axis=0, keepdims=True), (A,)),
    "quantile of f32": (lambda x: np.quantile(x, 0.3), (F,)),
    "interp": (lambda x: np.interp(x, [0.0, 2.0, 3.0], [1.0, 5.0, -1.0]), (V,)),
    "interp with ends": (lambda x: np.interp(x, [0.0, 2.0, 3.0], [1.0, 5.0, -1.0], left=-9.0, right=9.0), (V,)),
    "isin": (lambda k: (np.isin(k, [0, 5]), np.isin(k, [0, 5], invert=True)), (K,)),
    "sets": (lambda k: (np.union1d(k, [9, 1]), np.intersect1d(k, [1, 2, 9]), np.setdiff1d(k, [2, 5])), (K,)),
    "unravel_index": (lambda a: np.unravel_index(np.argmax(a), a.shape), (A,)),
    "select": (lambda x: np.select([x < 0, x > 2], [x, x * 2], -1.0), (V,)),
    "polyval": (lambda x: np.polyval([2.0, 0.0, 1.0], x), (V,)),
    "trapezoid": (lambda x, k: (np.trapezoid(x), np.trapezoid(x, np.cumsum(k)), np.trapezoid(x, dx=0.5)), (V, K)),
    "nan": (
        lambda x: [f(np.append(x, np.nan)) for f in (np.nansum, np.nanmean, np.nanmax, np.nanmin, np.nan_to_num)], (V,)
    ),
    "average": (lambda a: (np.average(a, axis=0, weights=[1.0, 2.0, 3.0]), np.average(a)), (A,)),
    "hypot": (lambda x, k: (np.hypot(x, k), np.hypot(x * 1e300, 0.0), np.heaviside(x, 0.5)), (V, K)),
    "linalg": (
        lambda a: (np.linalg.matrix_power(np.outer(a[0], a[1]), 5), np.linalg.trace(a), np.linalg.multi_dot([a, a])),
        (A[:, :3].copy(),),
    ),
    "logspace": (lambda n: np.logspace(0, n, 5), (2.0,)),
    "atleast": (lambda x: (np.atleast_2d(x), *np.atleast_1d(x, x[0]), np.atleast_3d(x)), (V,)),
    "methods": (lambda a: (a.nonzero(), a.compress([True, False], axis=1), a.trace(), a[0].searchsorted(-1.0)), (A,)),
}  # fmt: skip


def test_math() -> None:
    @ut.function
    def f(n: ut.i64, k: ut.i64, x: ut.f64, y: ut.f64):
        whole = math.factorial(n), math.perm(n, k), math.perm(n), math.comb(n, k), math.isqrt(n * 12345)
        logs = math.log(x, y), math.log(x), math.asinh(x), math.degrees(x), math.radians(x)
        far = math.hypot(x, y), math.hypot(x, y, 3.0), math.dist((x, y), (1.0, n))
        return whole, logs, far, math.modf(x), math.isclose(x, y, rel_tol=0.5)

    for values in ((5, 2, 2.5, 3.0), (20, 20, 0.5, 1e200), (3, 7, 1e200, 1e200), (0, 0, 1.0, 2.0)):
        expected = f.run(*values, engine="python")
        for got, wanted in zip(f(*values), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_numbers_that_do_not_fit() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return math.factorial(n)

    assert f(20) == math.factorial(20)
    for wrong, error in ((21, OverflowError), (-1, ValueError)):
        with pytest.raises(error):
            f(wrong)


def opened(value: Any) -> Any:
    """The type of an argument, with all lengths left to the run."""
    known = type_of(np.asarray(value))
    return Type(known.dtype, (None,) * known.rank)


def run(function: Callable[..., Any], values: tuple[Any, ...], is_open: bool) -> Any:
    if len(values) == 1:

        def f(a: Any) -> Any:
            return function(a)
    else:

        def f(a: Any, b: Any) -> Any:  # type: ignore[misc]
            return function(a, b)

    f.__annotations__ = {name: opened(v) for name, v in zip("ab", values, strict=False)} if is_open else {}
    return ut.function(f)(*values)


def same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
        return
    assert np.shape(got) == np.shape(wanted)
    assert np.asarray(got).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6 if np.asarray(wanted).dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("name", CASES)
def test_as_in_numpy(name: str, is_open: bool) -> None:
    function, values = CASES[name]
    same(run(function, values, is_open), function(*values))


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "mask": lambda x: x[x > 1] * 2,
    "assigned by a mask": lambda x: x.at[x > 1].set(x[x < 2.6][:4] ** 2),
    "repeat": lambda x: np.repeat(x, [1, 2, 0, 1, 1, 3]) * np.arange(8.0),
    "pad": lambda x: np.pad(x, 2, mode="reflect") * np.arange(10.0),
    "insert": lambda x: np.insert(x, 2, x[0] * 3) ** 2,
    "delete": lambda x: np.delete(x, 2) ** 2,
    "kron": lambda x: np.kron(x, W) * np.arange(18.0),
    "cross": lambda x: np.cross(x[:3], x[3:]) * W,
    "median": lambda x: np.median(x),
    "quantile": lambda x: np.quantile(x, 0.3),
    "interp": lambda x: np.interp(x, [-3.0, 2.1, 9.0], [1.0, 5.0, -1.0]),
    "convolve": lambda x: np.convolve(x, W) ** 2,
    "diag": lambda x: np.diag(x) @ np.arange(6.0),
    "tile": lambda x: np.tile(x, 2) * np.arange(12.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    function = SMOOTH[name]

    @ut.function
    def loss(x: ut.f64[None]) -> ut.f64:
        return ut.sum(function(x))

    ut.check_grads(loss, (np.array([3.0, -1.0, 2.5, 2.3, 0.1, 7.0]),))
