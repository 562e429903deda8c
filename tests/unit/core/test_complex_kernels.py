"""Kernels on complex numbers, against the reference kernels: lane by lane, on every instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.kernels import ISAS, attrs_of, is_naming, lane_of, run, spread
from tests.support.op_examples import COMPLEX, OF_COMPLEX

from undertow import _core
from undertow.ops.op import evaluate

# Operators of which the core has no kernel for complex numbers: the host runs the reference kernel.
HOST = {
    "power", "exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh",
}  # fmt: skip
NUMBERS = [0, -0.0, 1, -1, 1j, -1j, 0.5 + 0.25j, -3 + 1e-3j, 1e10 - 2j, 1e-15 + 1e-15j, 30 + 100j]
NUMPY = {"c64": np.complex64, "c128": np.complex128}


def check(name: str, got: Any, wanted: Any, note: Any = None) -> None:
    """As near as some units in the last place of the absolute value."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (name, note)
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted, err_msg=str((name, note)))
        return
    small = 30 * np.finfo(got.dtype).eps
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(got), finite, err_msg=str((name, note)))
    sizes = np.abs(wanted[finite])
    sizes = sizes.max(initial=0) if name in ("fft", "matmul") else sizes  # each is a sum of all
    off = np.abs(got[finite] - wanted[finite]) > small * sizes
    assert not off.any(), (name, got, wanted, note)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", sorted(OF_COMPLEX.keys() - HOST))
def test_examples(name: str, isa: str) -> None:
    for values, given in OF_COMPLEX[name]:
        shared = tuple(is_naming(name, k) for k in range(len(values)))
        if all(shared):
            continue
        for held in {shared, (*shared[:-1], len(values) > 1)}:
            lanes = spread(name, values, held, 40)
            (got,) = run(name, lanes, held, given, isa)
            for lane in (0, 1, 39):
                with np.errstate(all="ignore"):
                    (wanted,) = evaluate(name, lane_of(lanes, held, lane), attrs_of(given))
                check(name, got[lane], wanted, (given, lane))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["negative", "abs", "square", "exp", "sqrt", "sin", "cos", "tanh", "conj", "isnan"])
def test_edges(name: str, dtype: str) -> None:
    x = np.array([z for z in NUMBERS if name not in ("sin", "cos", "exp", "tanh") or abs(z) < 50], NUMPY[dtype])
    with np.errstate(all="ignore"):
        (wanted,) = evaluate(name, [x], attrs_of({}))
    check(name, run(name, [x], [False], {})[0], wanted)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "equal", "not_equal"])
def test_edges_of_two_operands(name: str, dtype: str) -> None:
    numbers = np.array(NUMBERS, NUMPY[dtype])
    x, y = (v.ravel() for v in np.meshgrid(numbers, numbers))
    keep = (y != 0) if name == "divide" else np.full(x.shape, True)
    with np.errstate(all="ignore"):
        (wanted,) = evaluate(name, [x[keep], y[keep]], attrs_of({}))
    check(name, run(name, [x[keep], y[keep]], [False, False], {})[0], wanted)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("length", [1, 31, 5000, 300_000])
def test_sums_of_any_length(dtype: str, length: int) -> None:
    random = np.random.default_rng(length)
    x = (random.normal(size=(2, length)) + 1j * random.normal(size=(2, length))).astype(NUMPY[dtype])
    (got,) = run("sum", [x], [False], {"axes": (0,), "keepdims": False})
    np.testing.assert_allclose(got, x.sum(axis=1), atol=(1e-4 if dtype == "c64" else 1e-12) * length**0.5)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products_of_every_size(dtype: str) -> None:
    random = np.random.default_rng(0)
    for m, k, n in ((1, 1, 1), (2, 3, 4), (17, 33, 5), (64, 64, 64), (130, 70, 90)):
        x, y = (random.integers(-3, 4, s) + 1j * random.integers(-3, 4, s) for s in ((3, m, k), (k, n)))
        x, y = (v.astype(NUMPY[dtype]) for v in (x, y))
        np.testing.assert_array_equal(run("matmul", [x, y], [False, True], {})[0], x @ y)  # small integers: exact
        turned = np.ascontiguousarray(y.T)
        np.testing.assert_array_equal(run("matmul", [turned, x[:, 0]], [True, False], {})[0], x[:, 0] @ y)


def test_what_the_host_runs() -> None:
    for name in HOST:
        types = [("c128", 0)] * (2 if name == "power" else 1)
        assert not _core.kernel_traits(name, {}, types, [("c128", 0)])[0]
