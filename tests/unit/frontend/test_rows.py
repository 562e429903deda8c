"""Sparse rows: as an array, as a container in captured functions, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES
from undertow.errors import CaptureError, Fault, TypeMismatch
from undertow.frontend.values import tree

WHOLE = np.array([[1, 1], [0, 0], [5, 5], [0, 0], [7, 7]], np.float32)


def some(dtype: Any = np.float32) -> ut.IndexedRows:
    return ut.IndexedRows([0, 2, -1, 2], np.array([[1, 1], [2, 2], [7, 7], [3, 3]], dtype), (5, 2))


def test_what_it_is() -> None:
    g = some()
    assert g.shape == (5, 2) and g.dtype == ut.f32 and g.ndim == 2
    assert repr(g) == "<IndexedRows f32[5,2]: rows [ 0  2 -1  2]>"
    assert g.dense().dtype == np.float32 and np.array_equal(g.dense(), WHOLE)
    assert np.array_equal(np.asarray(g), WHOLE) and np.asarray(g, np.float64).dtype == np.float64
    assert g.astype(ut.f64).dense().dtype == np.float64
    with pytest.raises(AttributeError):
        g.rows = 1  # type: ignore[misc]


def test_any_shape_of_indices() -> None:
    one = ut.IndexedRows(1, [1.0, 2.0], (3, 2))
    assert one.dense().tolist() == [[0, 0], [1, 2], [0, 0]]
    assert one.coalesce().indices.tolist() == [1] and one.coalesce().rows.tolist() == [[1, 2]]
    square = ut.IndexedRows([[0, 1], [1, -1]], np.ones((2, 2)), 3)
    assert square.shape == (3,) and square.dense().tolist() == [1, 2, 1]
    none = ut.IndexedRows([], np.zeros((0, 2)), (3, 2))
    assert not none.dense().any() and none.coalesce().rows.shape == (0, 2)
    empty = ut.IndexedRows([], np.zeros((0, 2)), (0, 2))
    assert empty.dense().shape == empty.coalesce().dense().shape == (0, 2)
    assert ut.IndexedRows([0, 1], np.zeros((2, 0)), (3, 0)).coalesce().dense().shape == (3, 0)
    assert ut.IndexedRows([0, 0], [1, 2], (2,)).dense().tolist() == [3, 0]  # integers too


def test_coalesce() -> None:
    once = some().coalesce()
    assert once.indices.tolist() == [0, 2, 4] and once.rows[:, 0].tolist() == [1, 5, 7] and once.dtype == ut.f32
    again = once.coalesce()
    assert again.indices.tolist() == [0, 2, 4] and np.array_equal(again.dense(), WHOLE)


def test_arithmetic() -> None:
    g, x = some(), np.arange(10, dtype=np.float32).reshape(5, 2)
    for found, wanted in [
        (g + x, WHOLE + x), (x + g, WHOLE + x), (g - x, WHOLE - x), (x - g, x - WHOLE), (np.add(x, g), WHOLE + x),
        (g + 1, WHOLE + 1), (1 - g, 1 - WHOLE), (ut.multiply(g, x), WHOLE * x), (ut.sum(g), WHOLE.sum()),
        (np.subtract(x, g), x - WHOLE), (np.sqrt(g), np.sqrt(WHOLE)), (np.add(g, x, dtype=np.float64), WHOLE + x),
        (g + ut.Variable(x), WHOLE + x), (np.maximum(g, 3), np.maximum(WHOLE, 3)),
    ]:  # fmt: skip
        assert not isinstance(found, ut.IndexedRows) and np.array_equal(found, wanted)
    for rows, wanted in [
        (g + g, 2 * WHOLE), (g - g * 3, -2 * WHOLE), (2 * g, 2 * WHOLE), (g * np.float32(2), 2 * WHOLE),
        (-g, -WHOLE), (g / 2, WHOLE / 2), (np.multiply(2, g), 2 * WHOLE), (np.negative(g), -WHOLE),
        (np.divide(g, 2), WHOLE / 2), (g + ut.IndexedRows(1, [1, 1], (5, 2)), WHOLE + np.eye(5, dtype="f")[1][:, None]),
    ]:  # fmt: skip
        assert isinstance(rows, ut.IndexedRows) and rows.dtype == ut.f32 and np.array_equal(rows.dense(), wanted)
    assert (g + x.astype(np.float64)).dtype == np.float64
    x += g
    assert np.array_equal(x, WHOLE + np.arange(10).reshape(5, 2))


@pytest.mark.parametrize("engine", ENGINES)
def test_in_functions(engine: str) -> None:
    @ut.function
    def f(g, x):
        return {
            "same": g, "twice": g + g, "less": x - g, "more": g + x, "once": g.coalesce(), "dense": g.dense(),
            "half": g / 2, "total": ut.sum(g), "rows": g.rows,
        }  # fmt: skip

    x = np.ones((5, 2), np.float32)
    found = f.run(some(), x, engine=engine)
    for name, wanted in [("same", WHOLE), ("twice", 2 * WHOLE), ("half", WHOLE / 2), ("once", WHOLE)]:
        assert isinstance(found[name], ut.IndexedRows) and found[name].shape == (5, 2)
        assert found[name].dtype == ut.f32 and np.array_equal(found[name].dense(), wanted)
    assert found["once"].indices.tolist() == [0, 2, 4]
    assert np.array_equal(found["less"], x - WHOLE) and np.array_equal(found["more"], x + WHOLE)
    assert np.array_equal(found["dense"], WHOLE) and found["total"] == WHOLE.sum() and len(found["rows"]) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_made_in_functions(engine: str) -> None:
    """Also where the size of the table is known only at run time; through calls, branches and loops."""

    @ut.function
    def look(table, indices):
        return ut.IndexedRows(indices, ut.take(table, indices, axis=0), table.shape)

    @ut.function
    def f(table: ut.f64[None, 2], indices: ut.i64[None], flag: ut.bool):
        g = look(table, indices)
        if flag:
            g = g * 2
        for _ in range(indices[0]):
            g = g * 10
        return g, g.coalesce(), table - g

    table = np.arange(6.0).reshape(3, 2)
    g, once, less = f.run(table, np.array([2, 1, 2]), True, engine=engine)
    assert g.shape == (3, 2) and type(g.shape[0]) is int
    assert g.dense().tolist() == [[0, 0], [400, 600], [1600, 2000]]
    assert once.indices.tolist() == [1, 2] and np.array_equal(less, table - g.dense())
    g, once, _ = f.run(table, np.array([0]), False, engine=engine)
    assert once.dense().tolist() == [[0, 1], [0, 0], [0, 0]]
    with pytest.raises(Fault, match="index -4 is out of range"):
        f.run(table, np.array([-4, 1]), False, engine=engine)


def test_in_structures() -> None:
    leaves, structure = tree.flatten({"g": some()})
    assert len(leaves) == 2 and structure == tree.flatten({"g": some()})[1]
    assert structure != tree.flatten({"g": ut.IndexedRows([0], np.zeros((1, 2), np.float32), (6, 2))})[1]
    assert tree.paths({"g": some()}, "x") == ["x.g.indices", "x.g.rows"]
    assert tree.show(structure, ["i64[4]", "f32[4,2]"]) == "{'g': IndexedRows(indices=i64[4], rows=f32[4,2])}"
    assert np.array_equal(tree.unflatten(structure, leaves)["g"].dense(), WHOLE)


def test_saved_and_loaded(tmp_path: Path) -> None:
    @ut.function
    def double(g):
        return g * 2, g.coalesce()

    double(some())
    ut.save(double, tmp_path / "double.ut")
    found, once = ut.load(tmp_path / "double.ut")(some())
    assert isinstance(found, ut.IndexedRows) and np.array_equal(found.dense(), 2 * WHOLE)
    assert once.indices.tolist() == [0, 2, 4]


def test_what_does_not_fit() -> None:
    with pytest.raises(
        TypeMismatch, match=r"rows f64\[2,3\] at indices i64\[2\] do not fit the shape \[5, 2\]"
    ) as error:
        ut.IndexedRows([0, 1], np.zeros((2, 3)), (5, 2))
    assert "the rows must have the shape [2, 2]" in error.value.hint
    with pytest.raises(TypeMismatch, match="the indices of IndexedRows must be integers"):
        ut.IndexedRows([0.5], np.zeros((1, 2)), (5, 2))
    with pytest.raises(TypeMismatch, match="the rows of IndexedRows must be numbers, not bool"):
        ut.IndexedRows([0], [True], (5,))
    with pytest.raises(TypeMismatch, match="index 5"):
        ut.IndexedRows([0, 5], np.zeros(2), (5,))
    for shape in ((), (-1,), ("n",), (2.0,)):
        with pytest.raises(TypeMismatch, match="shape"):
            ut.IndexedRows([0], np.zeros(1), shape)
    with pytest.raises(TypeMismatch, match=r"IndexedRows of shapes \[5, 2\] and \[6, 2\] do not add"):
        some() + ut.IndexedRows([0], np.zeros((1, 2)), (6, 2))
    with pytest.raises(TypeMismatch, match=r"IndexedRows cannot be multiplied by f64\[5,2\]"):
        some() * np.ones((5, 2))

    @ut.function
    def numpy(g):
        return np.asarray(g)

    with pytest.raises(CaptureError, match="no NumPy value"):
        numpy(some())
