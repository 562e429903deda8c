"""Saving and loading: what comes back is what was saved, and no file, whoever wrote it, does worse than be refused.

The last part mutates valid files: their bytes, entries, JSON and graphs. Loading such a file, and running what loads,
must end in a value or an UndertowError. (A long file: every refusal has its row, and the mutations reuse the programs.)
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import inspect
import io
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.recursions import even
from tests.support.saved import packed, unpacked
from tests.support.validity import parse_library

import undertow as ut
from undertow.api import archive
from undertow.api.options import ENGINES
from undertow.frontend.values import tree
from undertow.ir import spec, text
from undertow.ir.graph import EMPTY, Library
from undertow.ops.op import CATALOGUE
from undertow.ops.vet import MOST_NODES, flattened_size, type_rule, vet
from undertow.types import Type

# -- programs ----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Params:
    W: Any
    b: Any


class Pair(collections.namedtuple("Pair", "a b")):
    """A namedtuple with a class of its own."""


@ut.function
def fib(n: ut.i64) -> ut.i64:
    """The n-th number of Fibonacci."""
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def dense(p, x):
    return Pair(ut.tanh(x @ p.W + p.b), {"rows": x.shape[0], 3: ut.sum(x)})


@ut.function
def options(x, y=2, /, *rest, how="add", scale=2, **more):
    result = x + y if how == "add" else x - y
    for value in rest:
        result = result + value
    for value in more.values():
        result = result + value * scale
    return result


@ut.function
def noisy(n: ut.i64) -> ut.i64:
    ut.print("n = {}", n)
    return 0 if n <= 0 else noisy(n - 1) + 1


@ut.function
def drawn(n: ut.i64) -> ut.f64:
    return 0.0 if n <= 0 else ut.random.uniform() + drawn(n - 1)


@ut.function
def tables(i):
    tables = [
        np.arange(100),
        np.arange(100, dtype=np.int32),
        np.linspace(0, 1, 100, dtype=np.float32),
        np.linspace(-np.inf, np.nan, 100),
        np.arange(100) % 3 == 0,
    ]
    return tuple(ut.asarray(table)[i] for table in tables)


@ut.function
def loops(n: ut.i64) -> ut.i64:
    total = 0
    for i in range(n):
        j = 0
        while j < i:
            if j % 2 == 0:
                total += ut.sum(ut.map(lambda k: k * n + j, ut.arange(j)))  # noqa: B023
            elif n > 100:
                total += loops(j)
            else:
                ut.print("j = {}", j)
            j += 1
        if total > 10_000:
            return total
    return total


@ut.function
def sized(x: ut.f64["n"]) -> ut.f64:  # noqa: F821, UP037
    if x.shape[0] <= 1:
        return ut.sum(x)
    return sized(x[1:]) + x[0]


@ut.function
def silent(x):
    ut.print("x is {:.2f}", x)


@ut.function
def constant():
    return 1, "two", None, np.float32(3)


@ut.function
def checked(x: ut.i64) -> ut.i64:
    assert x > 0, f"{x} is not positive"
    return 10 // x


@ut.function
def shapes(x, i: ut.i64) -> ut.f64:
    flat = ut.reshape(x, (-1,))
    columns = ut.sum(x, axis=0) + ut.max(x, axis=0)
    values = (
        ut.concat([flat, flat]), ut.stack([flat, flat], axis=1), x.T, x[1:, ::2], ut.cumulative_sum(flat),
        ut.sort(flat, descending=True), ut.argmax(flat), ut.take(flat, ut.asarray([0, 1, 2])),
        ut.broadcast_to(columns, (3, columns.shape[0])), ut.zeros((2, i)), ut.arange(0, i), ut.where(x > 0, x, -x),
        ut.expand_dims(flat, axis=0), ut.flip(flat), flat[i], ut.astype(x, ut.i32), ut.argsort(flat), flat[i:],
    )  # fmt: skip
    total = ut.sum(flat)
    for value in values:
        total = total + ut.sum(ut.astype(value, ut.f64))
    return total


@dataclasses.dataclass
class Model:
    weights: Any
    scale: float

    @ut.function
    def forward(self, x):
        return x * self.weights * self.scale


PARAMS = Params(np.ones((3, 2)), np.zeros(2))
PROGRAMS: dict[str, tuple[ut.Function, tuple[Any, ...]]] = {
    "fib": (fib, (6,)),
    "mutual": (even, (5,)),
    "containers": (dense, (PARAMS, np.ones((4, 3)))),
    "parameters": (options, (1.5, 2, 3, np.float64(4))),
    "effects": (noisy, (2,)),
    "random": (drawn, (3,)),
    "tables": (tables, (5,)),
    "loops": (loops, (5,)),
    "run-time dimensions": (sized, (np.arange(5.0),)),
    "no result": (silent, (2.5,)),
    "no argument": (constant, ()),
    "faults": (checked, (3,)),
    "shapes": (shapes, (np.arange(6.0).reshape(3, 2), 2)),
    "method": (Model(np.arange(3.0), 2.0).forward, (np.ones(3),)),
}
LIMITS: dict[str, Any] = {"timeout": 0.5, "memory": 10**8, "frames": 2000, "max_depth": 100}


def fresh(function: ut.Function) -> ut.Function:
    """The function without what other tests have captured of it."""
    return ut.Function(function.__undertow_definition__, function.__undertow_bound__)


def saved(function: ut.Function) -> bytes:
    """The bytes of a saved function."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "function.ut"
        ut.save(function, path)
        return path.read_bytes()


def stored(function: ut.Function, *args: Any) -> bytes:
    """The bytes of a function that was saved for arguments like these."""
    only = fresh(function)
    only.graph(*args)
    return saved(only)


def loaded(tmp_path: Path, data: bytes) -> Any:
    path = tmp_path / "file.ut"
    path.write_bytes(data)
    return ut.load(path)


def with_manifest(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    entries = unpacked(data)
    manifest = json.loads(entries[archive.MANIFEST])
    change(manifest)
    return packed({**entries, archive.MANIFEST: json.dumps(manifest).encode()})


def with_graph(data: bytes, *changes: tuple[str, str]) -> bytes:
    entries = unpacked(data)
    graph = entries["graphs/0.txt"].decode()
    for old, new in changes:
        assert graph.count(old) == 1, (old, graph)
        graph = graph.replace(old, new)
    return packed({**entries, "graphs/0.txt": graph.encode()})


def graphs_of(function: Any, mapped: bool) -> list[str]:
    found = [p.captured.library for (_, m), p in function.__undertow_programs__.items() if (m is not None) == mapped]
    return sorted(text.dump(library, spans=False) for library in found)


# -- what comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_function_does_what_the_saved_one_did(name: str, tmp_path: Path, capsys: Any) -> None:
    function, args = PROGRAMS[name]
    expected = function.run(*args, seed=3)
    said = capsys.readouterr().out
    again = loaded(tmp_path, stored(function, *args))
    assert repr(again.run(*args, seed=3)) == repr(expected)
    assert capsys.readouterr().out == said
    assert str(again.graph(*args)) == str(function.graph(*args))
    assert text.dump(again.library(*args)) == text.dump(function.library(*args))
    with ut.options(seed=3):
        drawn = repr(again(*args))
    with ut.options(seed=3):
        assert drawn == repr(function(*args))
    capsys.readouterr()


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"no argument", "containers", "parameters"}))
def test_map_works_where_no_mapped_signature_was_saved(name: str, tmp_path: Path, capsys: Any) -> None:
    """`map` writes a main graph around a call of the saved function: the same as for the original."""
    function, args = PROGRAMS[name]
    function = fresh(function)
    again = loaded(tmp_path, stored(function, *args))
    many = [np.stack([np.asarray(arg)] * 3) for arg in args]
    assert repr(again.map(*many, seed=3)) == repr(function.map(*many, seed=3))
    assert graphs_of(again, mapped=True) == graphs_of(function, mapped=True)
    with_map = loaded(tmp_path, saved(function))
    assert graphs_of(with_map, mapped=True) == graphs_of(function, mapped=True)
    assert repr(with_map.map(*many, seed=3)) == repr(function.map(*many, seed=3))
    capsys.readouterr()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_function_can_be_captured(name: str, tmp_path: Path, capsys: Any) -> None:
    function, args = PROGRAMS[name]
    again = loaded(tmp_path, stored(function, *args))

    def twice(function: Any) -> Any:
        @ut.function
        def outer(*values):
            function(*values)
            return function(*values)

        return outer

    ours, theirs = twice(again), twice(function)
    expected = theirs.run(*args, seed=3)
    said = capsys.readouterr().out
    assert repr(ours.run(*args, seed=3)) == repr(expected)
    assert capsys.readouterr().out == said
    graphs = [text.dump(outer.library(*args), spans=False) for outer in (ours, theirs)]
    # Capturing a function again leaves numbers in the names.
    assert len({re.sub(r"~\d+| +(?= )", "", graph) for graph in graphs}) == 1
    # And what was captured can be saved, with all that it needs.
    assert repr(loaded(tmp_path, stored(ours, *args)).run(*args, seed=3)) == repr(expected)
    capsys.readouterr()


@pytest.mark.slow
def test_it_runs_without_the_source(tmp_path: Path) -> None:
    path = tmp_path / "tables.ut"
    ut.save(tables, path, examples=[(ut.i64,)])
    ut.save(dense, tmp_path / "dense.ut", examples=[(PARAMS, np.ones((4, 3)))])
    program = f"""
        import sys, undertow as ut, numpy as np
        tables = ut.load({str(path)!r})
        assert tables(7)[0] == 7 and tables.map([1, 2])[1].tolist() == [1, 2]
        dense = ut.load({str(tmp_path / "dense.ut")!r})
        import dataclasses
        Params = dataclasses.make_dataclass("Params", ["W", "b"])
        result = dense(Params(np.ones((3, 2)), np.zeros(2)), np.ones((4, 3)))
        assert type(result).__name__ == "Pair" and result._fields == ("a", "b") and result.b["rows"] == 4
        assert not any("test_save" in name for name in sys.modules)
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": str(Path(ut.__file__).parents[1])}
    subprocess.run(command, check=True, cwd=tmp_path, timeout=60, env=environment)


def test_parameters_keep_names_kinds_and_defaults(tmp_path: Path) -> None:
    function = fresh(options)
    function(1.5, how="subtract")
    function(1.5, how="add", scale=2.0, extra=10)
    path = tmp_path / "options.ut"
    ut.save(function, path, examples=[(1.5,), (1, 2, 3)])
    again = ut.load(path)
    assert str(inspect.signature(again)) == "(x, y=2, /, *rest, how='add', scale=2, **more)"
    assert again(1.5) == 3.5 and again(1, 2, 3) == 6
    assert again(1.5, how="subtract") == -0.5
    assert again(1.5, scale=2.0, extra=10) == 23.5
    with pytest.raises(ut.CaptureError, match="cannot be called like this"):
        again(x=1.5)
    with pytest.raises(ut.TypeMismatch, match="was not saved for"):
        again(1.5, how="other")


def test_name_doc_and_looks(tmp_path: Path) -> None:
    again = loaded(tmp_path, stored(fib, 3))
    assert (again.__name__, again.__doc__) == ("fib", "The n-th number of Fibonacci.")
    assert again.signatures == ("(n: i64)",)
    assert repr(again) == "<undertow function fib, loaded: (n: i64)>"
    assert str(again.graph()) == str(again.graph(3)) and again.library() == again.library(3)


def test_a_bound_object_is_saved_with_its_method(tmp_path: Path) -> None:
    again = loaded(tmp_path, stored(Model(np.arange(3.0), 2.0).forward, np.ones(3)))
    assert again(np.ones(3)).tolist() == [0, 2, 4]
    assert list(inspect.signature(again).parameters) == ["x"]
    assert again.signatures == ("(x: f64[3])",)


def test_a_default_that_is_no_data_must_be_given(tmp_path: Path) -> None:
    half = np.float32(0.5)

    @ut.function
    def applied(x, function=abs, y=(2.5, half)):
        return x + y[0] + y[1] if function is None else function(x)

    path = tmp_path / "applied.ut"
    ut.save(applied, path, examples=[(1.5, None)])
    again = ut.load(path)
    assert again(1.5, None) == 4.5
    with pytest.raises(ut.TypeMismatch, match="function: a LostDefault"):
        again(1.5)


def test_all_signatures_are_saved_and_the_first_that_fits_is_used(tmp_path: Path) -> None:
    @ut.function
    def double(x):
        return x + x

    path = tmp_path / "double.ut"
    ut.save(double, path, examples=[(ut.f32[3],), (ut.f32[None],), (1,), (2.5,)])
    again = ut.load(path)
    assert again.signatures == ("(x: f32[3])", "(x: f32[?])", "(x: f64)", "(x: i64)")
    assert again(np.ones(3, np.float32)).tolist() == [2, 2, 2]
    assert again(np.ones(5, np.float32)).tolist() == [2] * 5
    assert again(2) == 4
    with pytest.raises(ut.TypeMismatch, match=r"double` was not saved for \(x: f32\[2,2\]\)") as error:
        again(np.ones((2, 2), np.float32))
    assert "it was saved for (x: f32[3]); (x: f32[?]); (x: f64); (x: i64)" in error.value.hint


def test_arguments_are_checked_as_those_of_the_original(tmp_path: Path) -> None:
    again = loaded(tmp_path, stored(fib, 3))
    assert again(np.int32(6)) == 13  # converted, as the annotation says
    for wrong in (1.5, "six", [1, 2], np.ones(2, np.int64)):
        with pytest.raises(ut.TypeMismatch) as theirs:
            fib(wrong)
        with pytest.raises(ut.TypeMismatch) as ours:
            again(wrong)
        assert ours.value.what == theirs.value.what
    matrix = loaded(tmp_path, stored(dense, PARAMS, np.ones((4, 3))))
    with pytest.raises(ut.TypeMismatch, match=r"`p\.b` of `dense` must be f64\[2\], not f64\[5\]"):
        matrix(Params(np.ones((3, 2)), np.zeros(5)), np.ones((4, 3)))
    with pytest.raises(ut.TypeMismatch, match="was not saved for"):
        matrix({"W": np.ones((3, 2)), "b": np.zeros(2)}, np.ones((4, 3)))


def test_python_numbers_stay_python_numbers(tmp_path: Path) -> None:
    @ut.function
    def scaled(x, by):
        return x * by

    @ut.function
    def twice(n: int) -> int:
        return n + n

    x = np.ones(3, np.float32)
    path = tmp_path / "scaled.ut"
    ut.save(scaled, path, examples=[(x, 2.0), (x, ut.f64)])
    again = ut.load(path)
    assert again(x, 2.0).dtype == np.float32 and again(x, np.float64(2)).dtype == np.float64
    again = loaded(tmp_path, stored(scaled, x, 2.0))
    with pytest.raises(ut.TypeMismatch, match="was not saved for numbers of NumPy's: beside i32 and f32"):
        again(x, np.float64(2))
    again = loaded(tmp_path, stored(twice, 3))
    assert ut.function(lambda x, n: x * twice(n))(x, 2).dtype == np.float32
    assert ut.function(lambda x, n: x * again(n))(x, 2).dtype == np.float32


def test_which_numbers_are_pythons_does_not_matter_where_nothing_is_narrow(tmp_path: Path) -> None:
    @ut.function
    def doubled(x):
        return x + x

    path = tmp_path / "doubled.ut"
    ut.save(doubled, path, examples=[(ut.i64,), (2.5,)])
    assert ut.load(path)(2) == 4 and ut.load(path)(np.float64(2.5)) == 5


def test_only_mapped(tmp_path: Path) -> None:
    @ut.function
    def triple(x):
        return x * 3

    triple.map([1, 2])
    ut.save(triple, tmp_path / "triple.ut")
    again = ut.load(tmp_path / "triple.ut")
    assert again.map([5, 6, 7]).tolist() == [15, 18, 21]
    with pytest.raises(ut.TypeMismatch) as error:
        again(5)
    assert "saved only for map" in error.value.hint


def test_errors_of_a_run_name_the_original_line(tmp_path: Path) -> None:
    again = loaded(tmp_path, stored(checked, 3))
    with pytest.raises(ut.Fault, match="-1 is not positive") as error:
        again(-1)
    line = inspect.getsourcelines(checked.__wrapped__)[1] + 2  # type: ignore[attr-defined]
    assert f"test_save.py:{line}, in checked" in str(error.value)
    assert "assert x > 0" not in str(error.value)  # the source may be anybody's file: it is not looked up
    entries = unpacked(stored(checked, 3))
    ut.save(checked, tmp_path / "plain.ut", examples=[(3,)], spans=False)
    plain = unpacked((tmp_path / "plain.ut").read_bytes())
    assert b"test_save" in entries["graphs/0.txt"] + entries[archive.MANIFEST]
    assert b"test_save" not in plain["graphs/0.txt"] + plain[archive.MANIFEST]
    with pytest.raises(ut.Fault, match="-1 is not positive"):
        ut.load(tmp_path / "plain.ut")(-1)


# -- classes -----------------------------------------------------------------------------------------------


def test_results_are_of_the_imported_class_or_of_one_made_for_them(tmp_path: Path) -> None:
    data = stored(dense, PARAMS, np.ones((4, 3)))
    args = PARAMS, np.ones((4, 3))
    assert type(loaded(tmp_path, data)(*args)) is Pair

    def elsewhere(manifest: dict[str, Any]) -> None:
        for row in manifest["classes"]:
            row["module"] = "not.imported"

    made = loaded(tmp_path, with_manifest(data, elsewhere))(*args)
    assert type(made) is not Pair and type(made).__name__ == "Pair"
    assert (type(made).__module__, made._fields) == ("not.imported", ("a", "b"))
    assert "not" not in sys.modules

    def other_fields(manifest: dict[str, Any]) -> None:
        manifest["classes"][[row["qualname"] for row in manifest["classes"]].index("Pair")]["fields"] = ["c", "d"]

    assert loaded(tmp_path, with_manifest(data, other_fields))(*args)._fields == ("c", "d")


def test_a_class_that_looks_the_same_is_the_same(tmp_path: Path) -> None:
    again = loaded(tmp_path, stored(dense, PARAMS, np.ones((4, 3))))
    like = dataclasses.make_dataclass("Params", ["W", "b"])
    assert again(like(PARAMS.W, PARAMS.b), np.ones((4, 3))).b["rows"] == 4
    for unlike in (dataclasses.make_dataclass("Other", ["W", "b"]), dataclasses.make_dataclass("Params", ["b", "W"])):
        with pytest.raises(ut.TypeMismatch):
            again(unlike(PARAMS.W, PARAMS.b), np.ones((4, 3)))

    @ut.function
    def outer(x):
        return again(like(PARAMS.W, PARAMS.b), x).a

    assert outer(np.ones((4, 3))).shape == (4, 2)


def test_no_module_is_imported_and_no_code_runs_for_a_class(tmp_path: Path) -> None:
    data = stored(dense, PARAMS, np.ones((4, 3)))
    module = "xml.sax.handler"
    sys.modules.pop(module, None)

    def hostile(manifest: dict[str, Any]) -> None:
        for row in manifest["classes"]:
            row["module"], row["qualname"] = module, "ContentHandler"

    loaded(tmp_path, with_manifest(data, hostile))
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("fields", "qualname"),
    [
        (["__class__", "b"], "Pair"), (["a", "a"], "Pair"), (["a b", "c"], "Pair"), (["a", "class"], "Pair"),
        (["_a", "b"], "Pair"), (["a", "b"], "Pair; import os"), (["a", "b"], "x.import"), (["a", "\ud800"], "Pair"),
        (["a"], "Pair"),
    ],
)  # fmt: skip
def test_impossible_classes_are_refused(fields: list[str], qualname: str, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        row = manifest["classes"][[row["kind"] for row in manifest["classes"]].index("namedtuple")]
        row.update(module="nowhere", qualname=qualname, fields=fields)

    with pytest.raises(ut.LoadError):
        loaded(tmp_path, with_manifest(stored(dense, PARAMS, np.ones((4, 3))), change))


# -- saving ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_functions_give_equal_files(name: str, tmp_path: Path) -> None:
    function, args = PROGRAMS[name]
    data = stored(function, *args)
    assert stored(function, *args) == data
    path = tmp_path / "again.ut"
    ut.save(loaded(tmp_path, data), path)
    assert path.read_bytes() == data


def test_the_order_of_calls_does_not_show(tmp_path: Path) -> None:
    files = []
    for order in (1, -1):

        @ut.function
        def first(x):
            return x

        for arg in (1, 2.5, Pair(1, 2), Params(1, 2), np.ones(3))[::order]:
            first(arg)
        ut.save(first, tmp_path / "first.ut")
        files.append(unpacked((tmp_path / "first.ut").read_bytes()))
    assert files[0] == files[1]


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "fib.ut"
    path.write_text("what was there before")

    def broken(*_: Any) -> bytes:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(safetensors.numpy, "save", broken)
        with pytest.raises(OSError, match="the disk is full"):
            ut.save(fib, path, examples=[(3,)])
    assert path.read_text() == "what was there before"
    assert os.listdir(tmp_path) == ["fib.ut"]
    link = tmp_path / "link.ut"
    link.symlink_to(path)
    ut.save(fib, link)
    assert link.is_symlink() and ut.load(path)(5) == 8
    assert sorted(os.listdir(tmp_path)) == ["fib.ut", "link.ut"]


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    @ut.function
    def fresh(x, mode=None):
        return {"x": x}

    path = tmp_path / "fresh.ut"
    with pytest.raises(ut.SaveError, match="fresh` has not been captured yet"):
        ut.save(fresh, path)
    with pytest.raises(ut.SaveError, match=r"takes an @ut\.function, not plain Python"):
        ut.save(lambda x: x, path)  # type: ignore[arg-type]
    with pytest.raises(ut.SaveError, match="an example must be the arguments of a call, not 5"):
        ut.save(fresh, path, examples=[5])  # type: ignore[list-item]
    with pytest.raises(ut.SaveError, match=r"argument `mode` of `.*fresh` contains a builtin_function_or_method"):
        ut.save(fresh, path, examples=[(1, abs)])

    @ut.function
    def keyed(x):
        return {(1, 2): x}

    with pytest.raises(ut.SaveError, match=r"the result of `.*keyed` is a dict with the key \(1, 2\)"):
        ut.save(keyed, path, examples=[(1,)])
    assert not path.exists()


# -- files that are refused --------------------------------------------------------------------------------


def test_a_newer_format_says_what_to_do(tmp_path: Path) -> None:
    data = with_manifest(stored(fib, 3), lambda manifest: manifest.update(format=7, undertow="9.9.9", parameters=None))
    with pytest.raises(ut.LoadError) as error:
        loaded(tmp_path, data)
    assert f"has format 7, written by Undertow 9.9.9; this is Undertow {ut.__version__}, which reads format 1" in str(
        error.value
    )
    assert "pip install --upgrade undertow" in error.value.hint


def test_missing_files_are_pythons_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ut.load(tmp_path / "nowhere.ut")
    with pytest.raises(ut.LoadError, match="not a regular file"):
        ut.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ut.LoadError, match="not a regular file"):
        ut.load(tmp_path / "pipe")


def _without(name: str) -> Callable[[bytes], bytes]:
    return lambda data: packed({key: value for key, value in unpacked(data).items() if key != name})


def _with(name: str, content: bytes | Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        entries = unpacked(data)
        return packed({**entries, name: content(entries[name]) if callable(content) else content})

    return change


def _duplicated(data: bytes) -> bytes:
    entries = [*unpacked(data).items()]
    # Written by hand: zipfile warns of duplicates.
    double = packed([*entries, ("graphs/1.txt", entries[0][1])])
    return double.replace(b"graphs/1.txt", entries[0][0].encode())


def _bomb(data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in unpacked(data).items():
            file.writestr(name, content)
        file.writestr("graphs/1.txt", b" " * (20 << 20), zipfile.ZIP_DEFLATED, 1)
    return made.getvalue()


def _understated(data: bytes) -> bytes:
    """A packed entry that says that it is small."""
    size = 20 << 20
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in unpacked(data).items():
            if name != "graphs/0.txt":
                file.writestr(name, content)
        file.writestr("graphs/0.txt", b" " * size, zipfile.ZIP_DEFLATED, 1)
    return made.getvalue().replace(struct.pack("<I", size), struct.pack("<I", 100))


def _packed_constants(data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in unpacked(data).items():
            file.writestr(name, content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


BROKEN: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: b"", "broken"),
    (lambda data: b"PK", "broken"),
    (lambda data: data[: len(data) // 2], "broken"),
    (lambda data: data[:-30], "broken"),
    (lambda data: data.replace(b"F32", b"I32"), "broken"),
    (_without(archive.MANIFEST), "no entry named undertow.json"),
    (_without(archive.CONSTANTS), "no entry named constants.safetensors"),
    (_without("graphs/0.txt"), "1 signatures do not match its 0 graphs"),
    (_with("graphs/1.txt", b""), "1 signatures do not match its 2 graphs"),
    (_with("../../etc/passwd", b"x"), "unexpected entry"),
    (_with("/graphs/0.txt", b"x"), "unexpected entry"),
    (_with("graphs/00.txt", b"x"), "unexpected entry"),
    (lambda data: _with("graphs/0~txt", b"x")(data).replace(b"0~txt", b"0\0txt"), "unexpected entry"),
    (_duplicated, "two entries"),
    (_bomb, r"graphs/1.txt is too large: 20,971,520 bytes"),
    (_understated, "broken|bytes"),
    (_packed_constants, "must be stored uncompressed"),
    (lambda data: packed([(f"{n:01000}", b"") for n in range(1100)]), "table of entries is too long"),
    (lambda data: packed([(f"{n}", b"") for n in range(2000)]), "has 2,000 entries, more than"),
    (_with(archive.MANIFEST, b"[1, 2]"), "must be of type dict"),
    (_with(archive.MANIFEST, b"{"), "undertow.json is damaged"),
    (_with(archive.MANIFEST, b"[" * 100_000), "undertow.json is damaged"),
    (_with(archive.MANIFEST, b'{"format": ' + b"9" * 5000 + b"}"), "undertow.json is damaged"),
    (_with(archive.MANIFEST, b'{"format": NaN}'), "NaN is not a number"),
    (_with(archive.MANIFEST, b'{"format": true}'), "`format` of undertow.json must be of type int, not True"),
    (_with(archive.MANIFEST, b"\xff\xfe"), "undertow.json is not UTF-8"),
    (_with("graphs/0.txt", b"\xff\xfe"), "graphs/0.txt is not UTF-8"),
    (_with("graphs/0.txt", b""), "there is no text"),
    (_with("graphs/0.txt", b"static 1 main\n"), "is a static graph, not a library"),
    (_with("graphs/0.txt", b"library 2 main=main\n"), "only format 1 is supported"),
    (_with(archive.CONSTANTS, b""), "constants.safetensors is damaged"),
    (_with(archive.CONSTANTS, lambda data: struct.pack("<Q", 2**60) + data[8:]), "constants.safetensors is damaged"),
    (_with(archive.CONSTANTS, lambda data: data[:-8]), "constants.safetensors is damaged"),
    (_with(archive.CONSTANTS, safetensors.numpy.save({"x": np.ones(3, np.float16)})), "unsupported dtype F16"),
    (_with(archive.CONSTANTS, safetensors.numpy.save({})), "is not among the constants"),
    (_with(archive.CONSTANTS, lambda data: data[:-1] + bytes([data[-1] ^ 1])), "does not match its digest"),
    (_with(archive.CONSTANTS, lambda data: data[:-1] + b"\2"), "neither 0 nor 1"),
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_broken_files_are_refused(number: int, tmp_path: Path) -> None:
    change, what = BROKEN[number]
    with pytest.raises(ut.LoadError, match=what) as error:
        loaded(tmp_path, change(stored(tables, 5)))
    assert str(error.value).startswith(f"{tmp_path / 'file.ut'} cannot be loaded: ")


def _set(*path: Any) -> Callable[[dict[str, Any]], Any]:
    *way, last, value = path

    def change(manifest: Any) -> None:
        for key in way:
            manifest = manifest[key]
        manifest[last] = value

    return change


WRONG: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda m: m.pop("name"), "has no `name`"),
    (_set("name", 3), "must be of type str"),
    (_set("name", "\ud800"), "is not valid text"),
    (_set("span", [1]), "`span`"),
    (_set("parameters", 0, "kind", "ANY"), "or kind 'ANY'"),
    (_set("parameters", 0, "name", ""), "parameter 0 has the invalid name ''"),
    (_set("parameters", 0, "name", "for"), "parameter 0 is invalid"),
    (lambda m: m["parameters"].append(m["parameters"][0]), "the parameters are invalid"),
    (_set("parameters", []), "has 1 arguments, which do not fit the function's parameters"),
    (_set("parameters", 0, "default", {"structure": [["leaf"]], "leaves": []}), "1 leaves in its structure, but 0"),
    (_set("parameters", 0, "default", {"structure": [["leaf"]], "leaves": [{"array": "0" * 16}]}), "not among the"),
    (_set("parameters", 0, "annotation", {"structure": [["leaf"]], "types": [["ctl"]]}), "the type of"),
    (_set("bound", [{"structure": [["static", None]], "leaves": []}] * 2), "2 bound objects"),
    (_set("signatures", []), "0 signatures"),
    (_set("signatures", 0, "types", [["f64"]]), r"declares arguments \[f64\], but its graph takes \[i64\]"),
    (_set("signatures", 0, "types", [["i64", -1]]), "has an invalid dimension: -1"),
    (_set("signatures", 0, "types", [["i64"], ["i64"]]), "1 leaves in its structure, but 2"),
    (_set("signatures", 0, "seed", True), "but its graph takes"),
    (_set("signatures", 0, "result", [["leaf"]]), "declares 1 results, but its graph gives"),
    (_set("signatures", 0, "result", [["tuple", 6], *[["leaf"]] * 6]), "declares 6 results"),
    (_set("signatures", 0, "result", [["tuple", 6], *[["leaf"]] * 5]), "ends too early"),
    (_set("signatures", 0, "result", [["tuple", 4], *[["leaf"]] * 5]), "has extra tokens"),
    (_set("signatures", 0, "result", [["tuple", 2**40]]), "invalid token"),
    (_set("signatures", 0, "result", [["set", 1], ["leaf"]]), "invalid token"),
    (_set("signatures", 0, "result", [["dataclass", 0], ["leaf"]]), "invalid token"),
    (_set("signatures", 0, "result", [["dict", ["a", "a"]], ["leaf"], ["leaf"]]), "the keys of"),
    (_set("signatures", 0, "result", [["dict", [[]]], ["leaf"]]), "the keys of"),
    (_set("signatures", 0, "structures", [[["static", 3]]]), "must be of type str"),
    (_set("signatures", 0, "mapped", [True, False]), "has 1 arguments"),
    (_set("signatures", 0, "weak", [True, False]), "2 flags `weak`, but 1 leaves"),
    (_set("signatures", 0, "weak_results", [1] * 5), "must be of type bool"),
    (_set("classes", [{"kind": "enum", "module": "a", "qualname": "B", "fields": []}]), "neither a dataclass nor"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_manifests_that_do_not_fit_are_refused(number: int, tmp_path: Path) -> None:
    change, what = WRONG[number]
    with pytest.raises(ut.LoadError, match=what):
        loaded(tmp_path, with_manifest(stored(tables, 5), change))


# -- graphs that are refused -------------------------------------------------------------------------------


def test_a_graph_that_was_edited_by_hand_works_if_it_is_valid(tmp_path: Path) -> None:
    """A main graph that does more than call becomes a function itself where the loaded one is captured."""
    data = with_graph(
        stored(noisy, 2),
        ("(n: i64) -> (noisy#0, noisy#1)", "(n: i64) -> (twice, noisy#1)"),
        ("main main", "# by hand\nmain main"),
        ('start callee="noisy"', 'start callee="noisy"\n  twice: i64 = multiply noisy#0, 2:i64'),
    )
    again = loaded(tmp_path, data)
    assert again(3) == 6

    @ut.function
    def outer(n: ut.i64) -> ut.i64:
        ut.print("before")
        value = again(n) if n < 100 else n
        ut.print("after {}", value)
        return value

    assert outer(3) == 6 and outer.map([1, 2]).tolist() == [2, 4]
    spec.check(outer.library(3), type_rule)
    assert loaded(tmp_path, stored(outer, 3))(3) == 6


def test_effects_of_a_grafted_main_graph_are_in_order(tmp_path: Path, capsys: Any) -> None:
    data = with_graph(
        stored(silent, 2.5),
        ("(x: f64) -> (silent)", "(x: f64) -> (done)"),
        ('callee="silent"', 'callee="silent"\n  done: ctl = print template="done" ^silent'),
    )
    again = loaded(tmp_path, data)

    @ut.function
    def outer(x):
        ut.print("before")
        again(x)
        ut.print("between")
        again(x + 1)

    for scheduler in ("fifo", "lifo", "random"):
        outer.run(1.0, scheduler=scheduler)
        said = capsys.readouterr().out.split("\n")
        assert said == ["before", "x is 1.00", "done", "between", "x is 2.00", "done", ""]


GRAPHS: list[tuple[str, str, str]] = [
    ("less_equal n, 1:i64", "less_equal n, 1:i32", "the dtypes differ"),
    ("less_equal n, 1:i64", "less_equal n", "takes 2 operands, not 1"),
    ("less_equal n, 1:i64", "explode n, 1:i64", "unknown operator 'explode'"),
    ("less_equal n, 1:i64", "less_equal n, 1:i64 axis=0", "takes no attribute, not axis"),
    ("less_equal: bool", "less_equal: i64", "is not decided by a bool scalar|predicate of a switch"),
    ('call n callee="fib"', 'call n callee="fob"', "a node enters a graph that is not in the library"),
    ('call n callee="fib"', 'call n callee="main"', "a call, loop or map enters a graph of the wrong kind"),
    ('call n callee="fib"', "call n", "lacks an attribute"),
    ("main=main", "main=fib", "is not a main graph"),
    ("main=main", "main=other", "the library has no main graph"),
    ("(n: i64) -> (fib)", "(n: i64, ) -> (fib)", "expected a parameter"),
    ("(n: i64) -> (fib)", "(n: f64) -> (fib)", "does not accept its argument"),
    ("(n: i64) -> (fib)", "(n: i64) -> (fib#5)", "a result does not exist"),
    ("merge if1.then/value, if1.else/add", "merge if1.else/add, if1.then/value", "does not join the true and the"),
    ("if1.else/fib, if1.else/fib_2", "if1.else/fib, n", "lives in a different region"),
    ("identity 1:i64 ^start.if#0", "identity 1:i64", "no input that could trigger it"),
]


@pytest.mark.parametrize(("old", "new", "what"), GRAPHS)
def test_wrong_graphs_are_refused(old: str, new: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(ut.LoadError, match=f"graphs/0.txt: .*({what})"):
        loaded(tmp_path, with_graph(stored(fib, 3), (old, new)))


def test_an_operator_of_a_newer_version_hints_at_it(tmp_path: Path) -> None:
    data = with_graph(stored(fib, 3), ("less_equal n", "shuffle n"))
    with pytest.raises(ut.LoadError) as error:
        loaded(tmp_path, with_manifest(data, _set("undertow", "0.9")))
    assert error.value.hint == f"it was written by Undertow 0.9, and this is {ut.__version__}"


def _one(line: str, params: str = "x: f64[3]", result: str = "y") -> Library:
    return parse_library(f"library 1 main=main\nmain main({params}) -> ({result})\n  {line}\n")


ABSURD = [
    "y: f64 = sum x axes=[0, 0] keepdims=false",
    "y: f64 = sum x axes=[0] keepdims=1",
    "y: f64 = sum x axes=[0.5] keepdims=false",
    'y: f64 = sum x axes="0" keepdims=false',
    "y: f64 = sum x axes=[true] keepdims=false",
    "y: f64 = sum x axes=[0]",
    "y: f64 = sum x axes=[1] keepdims=false",
    "y: f64[3] = softmax x axes=[0, 0]",
    'y: ctl[3] = cast x dtype="ctl"',
    'y: f64[3] = cast x dtype="f65"',
    "y: f64[3] = slice x starts=[0] stops=[null, null] steps=[1]",
    "y: f64[3] = slice x starts=[0] stops=[null] steps=[0]",
    'y: f64[3] = slice x starts=["a"] stops=[null] steps=[1]',
    "y: f64[9223372036854775807] = broadcast_to x shape=[9223372036854775807]",
    "y: f64[99999999999,3] = broadcast_to x shape=[99999999999, 3]",
    "y: f64[0,99999999999,3] = broadcast_to x shape=[0, 99999999999, 3]",
    f"y: f64[{','.join('1' * 40)},3] = reshape x shape=[{','.join('1' * 40)},3]",
    "y: f64[3] = reshape x shape=[-2]",
    "y: ctl = identity start\n  z: ctl = transpose y axes=[]",
    'y: ctl = print x template="{0.__class__.__mro__}"',
    'y: ctl = print x template="{:>99999999}"',
    'y: ctl = print x template="{!r:{}}"',
    'y: ctl = print x template="{"',
    'y: ctl = print x template="{} {}"',
    "y: ctl = print x template=3",
    'y: f64, ctl = read variable="secret" dtype="f64" shape=[] ^start',
    "y: f64[3] = identity x device=3",
]


@pytest.mark.parametrize("line", ABSURD)
def test_absurd_attributes_are_refused(line: str) -> None:
    with pytest.raises(ut.GraphError):
        vet(_one(line))


def test_every_operator_says_which_attributes_it_has() -> None:
    """The rule of an operator that has no attributes looks at none, whatever the types of its operands."""
    some = [Type(dtype, shape) for dtype in (ut.bool, ut.i64, ut.f64, ut.c128) for shape in ((), (2, 2))]
    for name, row in CATALOGUE.items():
        if row.attrs or row.state is not None:
            continue
        is_used = False
        for types in itertools.product(some, repeat=row.arity or 2):
            with contextlib.suppress(ut.TypeMismatch):
                row.type(types, EMPTY)  # a KeyError here: its row must name its attributes
                is_used = True
        assert is_used, name


def test_loops_cannot_be_copied_without_end() -> None:
    """Each loop holds two of the next: flattening would copy the last one 2^40 times."""
    body = """
loop l{k}(i: i64) -> (p, if1.then/j) carried=1
  p: bool = less i, 3:i64
  branch if1 p ^s
  s: ctl, ctl = switch p, start
  v: i64, i64 = switch p, i
  if1.then/a: i64 = {op} v#0{to}
  if1.then/j: i64 = {op} if1.then/a{to}
"""

    def library(depth: int, end: str) -> Library:
        bodies = [body.format(k=k, op="loop", to=f' body="l{k + 1}"') for k in range(depth)]
        head = 'library 1 main=main\nmain main(n: i64) -> (r)\n  r: i64 = loop n body="l0"\n'
        return parse_library(head + "".join(bodies) + end)

    last = body.format(k=40, op="add", to=", 1:i64")
    spec.check(library(40, last), type_rule)
    assert flattened_size(library(3, body.format(k=3, op="add", to=", 1:i64"))) < 1000
    assert flattened_size(library(40, last)) == MOST_NODES + 1
    with pytest.raises(ut.GraphError, match="the static graph would have more than"):
        vet(library(40, last))
    with pytest.raises(ut.GraphError, match="contains itself"):
        vet(library(3, body.format(k=3, op="loop", to=' body="l1"')))


def test_the_source_of_a_loaded_function_is_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("password\n" * 100)
    for file in (str(secret), "/dev/zero"):
        entries = unpacked(stored(checked, 3))
        graph = re.sub(r'(?m)^file (\d) "[^"]*"', rf'file \1 "{file}"', entries["graphs/0.txt"].decode())
        again = loaded(tmp_path, packed({**entries, "graphs/0.txt": graph.encode()}))
        with pytest.raises(ut.Fault) as error:
            again(-1)
        assert file in str(error.value) and "password" not in str(error.value)


# -- mutations ---------------------------------------------------------------------------------------------

_WORD = re.compile(r""""(?:[^"\\]|\\.)*"|[A-Za-z_~][\w./~'-]*|-?\d+(?:\.\d+)?|->|\S""")
_EXTRA = """
    switch merge call resume loop map start param input fan gather outer exit next enter call_start return ctl bool i32
    i64 f32 f64 f64[?] f32[2,3] i64[?] ctl[3] [] [0] [0,0] [null] null true false -1 0 1 2 3 7 99 1099511627776
    9223372036854775807 99999999999999999999 1e999 nan inf "x" "{}" "{0.__class__}" #0 #1 #7 ^start carried=1 phase=1
    body="main" callee="main" axis=0 axes=[0] keepdims=true device="x"
""".split()  # noqa: SIM905
_JSON: list[Any] = [
    None, True, False, 0, 1, -1, 2, 10**20, 0.5, "", "x", "leaf", ["leaf"], ["tuple", 1], ["tuple", 0],
    ["dict", ["a"]], ["static", None], ["static", 3], ["dataclass", 0], ["namedtuple", 0], [], {}, ["f64"],
    ["i64", None], ["f32", 3], "fib", "POSITIONAL_ONLY", "VAR_POSITIONAL", "KEYWORD_ONLY", "\ud800", "builtins",
    "dict", "__main__", "Params", "__class__",
]  # fmt: skip


class Mutator:
    """Makes a file that is almost valid. All chance comes from one seed."""

    def __init__(self, files: list[bytes], seed: int) -> None:
        self.chance = random.Random(seed)
        self.file = self.chance.choice(files)
        self.other = self.chance.choice(files)
        self.words = sorted({*_EXTRA, *CATALOGUE})

    def mutated(self) -> bytes:
        kinds = (
            self.bytes,
            self.entry,
            self.json,
            self.json,
            self.graph,
            self.graph,
            self.graph,
            self.header,
            self.swap,
        )
        return self.chance.choice(kinds)()

    def bytes(self) -> bytes:
        return self.scramble(self.file)

    def scramble(self, data: bytes) -> bytes:
        chance, out = self.chance, bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
            at, kind = chance.randrange(len(out) or 1), chance.randrange(6)
            if kind == 0 and out:
                out[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and out:
                out[at] = chance.choice((0, 255, chance.randrange(256)))
            elif kind == 2:
                del out[at:]
            elif kind == 3:
                del out[at : at + chance.randrange(1, 20)]
            elif kind == 4:
                out[at:at] = chance.randbytes(chance.randrange(1, 9))
            else:
                other = chance.randrange(len(out) or 1)
                out[at : at + 8] = out[other : other + 8]
        return bytes(out)

    def entry(self) -> bytes:
        entries = unpacked(self.file)
        name = self.chance.choice(sorted(entries))
        return packed({**entries, name: self.scramble(entries[name])})

    def swap(self) -> bytes:
        entries, other = unpacked(self.file), unpacked(self.other)
        entries.update({name: other[name] for name in other if self.chance.random() < 0.4})
        return packed(entries)

    def json(self) -> bytes:
        entries = unpacked(self.file)
        changed = self.change(json.loads(entries[archive.MANIFEST]))
        return packed({**entries, archive.MANIFEST: json.dumps(changed).encode()})

    def header(self) -> bytes:
        entries = unpacked(self.file)
        data = entries[archive.CONSTANTS]
        size = struct.unpack("<Q", data[:8])[0]
        head = json.dumps(self.change(json.loads(data[8 : 8 + size]))).encode()
        return packed({**entries, archive.CONSTANTS: struct.pack("<Q", len(head)) + head + data[8 + size :]})

    def change(self, value: Any) -> Any:
        chance = self.chance
        for _ in range(chance.choice((1, 1, 2, 3))):
            spots: list[tuple[Any, Any]] = []
            stack = [value]
            while stack:
                item = stack.pop()
                pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
                for key, held in pairs:
                    spots.append((item, key))
                    stack.append(held)
            if not spots:
                return value
            (item, key), (elsewhere, other) = chance.choice(spots), chance.choice(spots)
            new = copy.deepcopy(chance.choice((chance.choice(_JSON), elsewhere[other])))
            if chance.random() < 0.2:
                del item[key]
            elif chance.random() < 0.2 and isinstance(item, list):
                item.insert(key, new)
            else:
                item[key] = new
        return value

    def graph(self) -> bytes:
        chance, entries = self.chance, unpacked(self.file)
        name = chance.choice([name for name in sorted(entries) if name.startswith("graphs/")])
        lines = entries[name].decode().split("\n")
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            at, kind = chance.randrange(len(lines)), chance.randrange(9)
            words = list(_WORD.finditer(lines[at]))
            if kind < 5 and words:
                start, end = chance.choice(words).span()
                near = [word for line in lines[max(0, at - 3) : at + 3] for word in _WORD.findall(line)]
                new = chance.choice((chance.choice(self.words), chance.choice(near), chance.choice(near)))
                lines[at] = lines[at][:start] + new + lines[at][end:]
            elif kind == 5:
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            elif kind == 6 and len(lines) > 1:
                del lines[at]
            elif kind == 7:
                lines.insert(chance.randrange(len(lines)), lines[at])
            else:
                lines[at] += " " + chance.choice(self.words)
        return packed({**entries, name: "\n".join(lines).encode()})


def try_file(path: Path, data: bytes, seed: int) -> bool:
    """Load a file and use what it holds. Was there anything to use?"""
    path.write_bytes(data)
    try:
        function = ut.load(path)
    except ut.InternalError:
        raise
    except ut.UndertowError as error:
        str(error)
        return False
    for _, program in function.__undertow_programs__.items():
        for library in (*(program.library(engine, flag) for engine in ENGINES.values() for flag in (False, True)),):
            spec.check(program.static(library), type_rule)
    chance = random.Random(seed)
    for signature in function.__undertow_definition__.signatures:
        leaves = []
        for type in signature.types:
            shape = [dim if isinstance(dim, int) else chance.choice((0, 1, 3)) for dim in type.shape]
            if np.prod(shape, dtype=float) > 10**5:
                return True
            leaves.append(np.full(shape, chance.choice((0, 1, 2, 3, 7)), type.dtype.numpy)[()])
        rest, args = iter(leaves), []
        for structure in signature.structures:
            args.append(tree.unflatten(structure, [next(rest) for token in structure if token == tree.LEAF]))
        args = args[len(function.__undertow_bound__) :]

        @ut.function
        def outer(*values, function=function):
            return function(*values)

        for work in (function.run, outer.run):
            try:
                work(*args, **LIMITS)
            except ut.UndertowError as error:
                str(error)
    ut.save(function, path)
    ut.load(path)
    return True


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    return [stored(function, *args) for function, args in PROGRAMS.values()]


@pytest.mark.slow
@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(seed=st.integers(0, 2**32))
def test_mutated_files_are_refused_or_work(seed: int, files: list[bytes], tmp_path: Path, capsys: Any) -> None:
    try_file(tmp_path / "mutated.ut", Mutator(files, seed).mutated(), seed)
    capsys.readouterr()


def test_a_file_cannot_claim_another_length(tmp_path: Path) -> None:
    """What a map gives is as long as what it is given, whatever its type says."""

    @ut.function
    def doubled(v: ut.f64[None]) -> ut.f64:
        return ut.sum(ut.map(lambda x: x * 2.0, v))

    data = stored(doubled, np.ones(3))
    assert loaded(tmp_path, data)(np.ones(3)) == 6.0
    graph = unpacked(data)["graphs/0.txt"].decode()
    (line,) = [line for line in graph.splitlines() if " = map " in line]
    with pytest.raises(ut.LoadError, match="an output of a map states another length than its arguments do"):
        loaded(tmp_path, with_graph(data, (line, line.replace("f64[?]", "f64[4096]"))))


@pytest.mark.slow
def test_truncated_files_are_refused(files: list[bytes], tmp_path: Path) -> None:
    data = files[0]
    for end in range(0, len(data), 7):
        assert not try_file(tmp_path / "cut.ut", data[:end], end)


@pytest.mark.slow
def test_mutations_reach_the_inside(files: list[bytes], tmp_path: Path, capsys: Any) -> None:
    """Some mutations must load: if all were refused at the door, the test above would test only the door."""
    assert sum(try_file(tmp_path / "some.ut", Mutator(files, seed).graph(), seed) for seed in range(150)) > 5
    capsys.readouterr()


def test_texts_are_refused(tmp_path: Any) -> None:
    told = ut.function(lambda x: f"{x:.2f}")
    assert told(0.5) == "0.50"
    with pytest.raises(ut.SaveError, match="a text of traced values"):
        ut.save(told, tmp_path / "told.ut")


def test_a_missing_folder_is_told_by_the_path_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "f.ut"
    function = ut.function(lambda x: x)
    function(1.0)
    with pytest.raises(FileNotFoundError) as stop:
        ut.save(function, path)
    assert stop.value.filename == str(path)
    with pytest.raises(ut.SaveError, match="not plain Python"):
        ut.save(lambda x: x, path)  # type: ignore[arg-type]
