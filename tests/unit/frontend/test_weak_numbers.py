"""Python numbers stay weak: results have the dtypes that NumPy 2 gives them, as far as it gives them any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program, weak

import undertow as ut
from undertow.frontend.values import tree

F32, I32 = np.float32, np.int32
NAMES = {row.name for row in weak.PROGRAMS}
CASES = [(row, case) for row in PROGRAMS if row.name in NAMES and not row.stated for case in range(len(row.cases))]


def has_dtypes_of(found: Any, expected: Any) -> bool:
    """Python numbers have no dtype: those may have taken another one's."""
    pairs = zip(tree.flatten(found)[0], tree.flatten(expected)[0], strict=True)
    return all(a.dtype == b.dtype for a, b in pairs if isinstance(b, (np.generic, np.ndarray)))


@pytest.mark.parametrize(("row", "case"), CASES, ids=lambda x: str(x))
def test_dtypes_are_those_of_numpy(row: Program, case: int) -> None:
    expected = row.function.run(*row.cases[case], engine="python")
    assert has_dtypes_of(row.run(case)[0], expected)


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (lambda x, n: n / 2 * x, (F32(3), 3)),
        (lambda x, n: (n // 2 * x, n**2 * x, -n * x, x**n, n / x, n % 2 + x, abs(n) * x), (F32(3), 3)),
        (lambda x, n: (x / n, x // n, x % n, n - x, x**n, divmod(x, n), x & n, n << x, x == n), (I32(7), 3)),
        (lambda n: (1 << n, n | 1, n * 2.0, n + True), (I32(3),)),
        (lambda x, h: (x + h, x < h), (I32(3), 0.5)),
        (lambda x, h: (x == h, x * 3 == h * 3), (F32(0.1), 0.1)),
        (lambda x: (min(max(0.0, x), 6.0), max(1, 2) * x, round(x) * x, int(x) * x, float(x) * x), (F32(3),)),
        (lambda x, n: (max(n, 2) * x, min(n, 0.5) * x), (F32(3), 4)),
        (lambda x, p: ((1 if p else 5) * x, (0.5 if p else 2) * (1 if p else 2) * x), (F32(3), True)),
        (lambda x, p: (1 if p else 5) * x, (I32(3), True)),
        (lambda x: x * (1.0 / len(x)), (np.ones(3, F32),)),
        (lambda x: sum(w * v for w, v in zip([0.5, 0.25], x, strict=False)), (np.ones(3, F32),)),
        (lambda x: x * np.float64(2), (F32(3),)),
        (lambda a, x: np.multiply(a, x) + np.sqrt(2.0), (2.0, F32(3))),
        (lambda a, x: np.where(x > 0, a, x), (2.0, np.ones(3, F32))),
        (lambda a, b: (a * b, a / b, a // b), (3, 4)),
    ],
)
def test_operators(operation: Any, args: tuple[Any, ...]) -> None:
    found, expected = ut.function(operation)(*args), operation(*args)
    pairs = zip(tree.flatten(found)[0], tree.flatten(expected)[0], strict=True)
    assert all(a.dtype == np.asarray(b).dtype and np.array_equal(a, b) for a, b in pairs)


def test_numbers_are_another_signature_than_numpy_scalars() -> None:
    @ut.function
    def scaled(x, a):
        return x * a

    for _ in range(3):  # the second and later calls take the fast path
        for a, kind in [(2.0, F32), (np.float64(2), np.float64), (2, F32), (F32(2), F32)]:
            assert type(scaled(F32(3), a)) is kind
    assert len(scaled.__undertow_programs__) == 4


def test_shared_numbers_of_a_map() -> None:
    scaled = ut.function(lambda x, a: x * a)
    x = np.ones(3, F32)
    for engine in ("python", "waves"):
        assert scaled.map(x, ut.shared(2.0), engine=engine).dtype == F32
        assert scaled.map(x, [1.0, 2.0, 3.0], engine=engine).dtype == np.float64  # a list is an array


def test_a_recursion_has_one_graph() -> None:
    """A Python number beside an f32 at a recursive call is an f32 from the start."""
    library = weak.summed.library(weak.X, 0, 0.0)
    assert list(library.functions) == ["main", "summed"]
    assert [str(library.functions["summed"].type_of(p)) for p in library.functions["summed"].results] == ["f32"]


def test_annotations_win() -> None:
    @ut.function
    def strong(a: ut.f64, n: ut.i64, x):
        return a * x, n * I32(2)

    assert [v.dtype for v in strong(2.0, 3, F32(3))] == [np.float64, np.int64]


@pytest.mark.parametrize("w", [2.0, F32(2)])
def test_derivatives(w: Any) -> None:
    @ut.function
    def loss(w, x):
        t = 0.0
        for i in range(x.shape[0]):
            t = t + w * x[i]
        return t

    own = np.asarray(w).dtype  # of a Python number alone: f64
    total = weak.X.sum()
    value, slope = ut.value_and_grad(loss)(w, weak.X)
    assert value.dtype == F32 and slope.dtype == own and slope == total
    value, back = ut.vjp(loss, w, weak.X)
    assert value.dtype == F32 and [g.dtype for g in back(1.0)] == [own, F32]
    value, tangent = ut.jvp(loss, (w, weak.X), (1.0, weak.X))
    assert value.dtype == tangent.dtype == F32 and tangent == total + 2 * total


def test_derivatives_of_numbers_that_met_others() -> None:
    assert ut.grad(weak.summed, argnums=2)(weak.X, 0, 0.5) == 1
    value, tangent = ut.jvp(weak.summed, (weak.X, 0, 0.5), (weak.X, None, 1.0))
    assert value.dtype == tangent.dtype == F32 and tangent == weak.X.sum() + 1


def test_variables_take_numbers() -> None:
    held = ut.Variable(F32(1))

    @ut.function
    def assigned(a):
        held.assign(a * 2)
        return held.read() * a

    assert assigned(0.5) == 0.5 and assigned(0.5).dtype == F32


@pytest.mark.parametrize(("start", "after"), [(0.5, "i32"), (0, "bool")])
def test_a_number_of_a_wider_kind_is_refused(start: Any, after: str) -> None:
    @ut.function
    def changed(n: ut.i32, m):
        t = start
        while n > 0:
            t = m
            n = n - 1
        return t

    with pytest.raises(ut.TypeMismatch, match=f"before the loop and an? {after} after one iteration"):
        changed(3, {"i32": I32(1), "bool": np.True_}[after])
