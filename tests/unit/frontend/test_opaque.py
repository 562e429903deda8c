"""Containers and buffers of the standard library outside: read at each call, compared, or refused."""

from __future__ import annotations

import configparser
import os
import sys
import types
import warnings
from array import array
from collections import ChainMap, UserDict, UserList, deque
from typing import Any

import numpy as np
import pytest

import undertow as ut

BASE: dict[str, Any] = {"a": 2.0}
PLAIN: dict[str, Any] = {"a": 2, "b": ["x"]}
HELD: Any = None


class Settings(UserDict):  # type: ignore[type-arg]
    def double(self) -> Any:
        return 2.0 * self["a"]


class Weight:
    def __init__(self, w: float) -> None:
        self.w = w


def ini(text: str) -> configparser.ConfigParser:
    made = configparser.ConfigParser()
    made["s"] = {"a": text}
    return made


WRAPPED = [
    (lambda v: UserDict(a=v), lambda d: d["a"] ** 2),
    (lambda v: Settings(a=v), lambda d: d.double() * d["a"]),
    (lambda v: UserList([1.0, v]), lambda d: d[1] ** 2 + 0.0 * d[0]),
    (lambda v: ChainMap({"b": 1.0}, {"a": v}), lambda d: d["a"] ** 2),
    (lambda v: UserDict(a=Weight(v)), lambda d: d["a"].w ** 2),
    (lambda v: UserDict(a=v), lambda d: sum(d.values()) * d.get("a") * len(d) if "a" in d else 0.0),
    (lambda v: UserDict(a=v), lambda d: sum(d[k] * d.data[k] for k in d)),
    (lambda v: UserList([v, v]), lambda d: sum(d) * max(d) / len(d)),
]


@pytest.mark.parametrize(("make", "body"), WRAPPED)
def test_wrappers_as_arguments(make: Any, body: Any) -> None:
    f = ut.function(body)
    assert [f(make(v)) for v in (2.0, 3.0)] == [f.run(make(v), engine="python") for v in (2.0, 3.0)]


def test_gradients_of_wrappers() -> None:
    f = ut.function(lambda d: d["a"] ** 2)
    for kind in (UserDict, Settings):
        assert [ut.grad(f)(kind(a=v)).data["a"] for v in (2.0, 3.0)] == [4.0, 6.0]
    assert ut.grad(f)(ChainMap({}, {"a": 2.0})).maps[1]["a"] == 4.0
    assert ut.grad(ut.function(lambda d: d[0] ** 2))(UserList([2.0])).data == [4.0]


def test_wrappers_in_recursion() -> None:
    @ut.function
    def power(n: ut.i64, d) -> ut.f64:
        return 1.0 if n == 0 else power(n - 1, d) * d["a"]

    assert [power(3, UserDict(a=v)) for v in (2.0, 3.0)] == [8.0, 27.0]


CHANGES: list[tuple[Any, Any, Any]] = [
    (lambda: UserDict(a=2.0), lambda d: d["a"], lambda d: d.update(a=5.0)),
    (lambda: UserDict(a=2.0), lambda d: 1.0 * ("b" in d), lambda d: d.update(b=5.0)),
    (lambda: UserDict(a=2.0), len, lambda d: d.update(b=5.0)),
    (lambda: UserList([2.0]), lambda d: d[0], lambda d: d.append(1.0) or d.reverse()),
    (lambda: ChainMap({}, {"a": 2.0}), lambda d: d["a"], lambda d: d.update(a=5.0)),
    (lambda: types.MappingProxyType(PLAIN), lambda d: d["a"] + len(d["b"]), lambda d: PLAIN["b"].append("y")),
    (lambda: array("d", [1.0]), lambda d: d[0], lambda d: d.append(1.0) or d.reverse() or d.__setitem__(0, 7.0)),
    (lambda: bytearray(b"ab"), lambda d: d[0], lambda d: d.reverse()),
    (lambda: np.array([1.0, None]), lambda d: d[0], lambda d: d.__setitem__(0, 7.0)),
    (lambda: ini("1"), lambda d: float(d["s"]["a"]), lambda d: d["s"].__setitem__("a", "2")),
    (lambda: UserDict(a=[Weight(1.0)]), lambda d: d["a"][0].w, lambda d: d.update(a=[Weight(2.0)])),
    (lambda: os.environ, lambda d: float(d["UNDERTOW_OF_A_TEST"]), lambda d: d.update(UNDERTOW_OF_A_TEST="7")),
    (lambda: os.environ, lambda d: 1.0 * ("UNDERTOW_OF_A_TEST" in d), lambda d: d.pop("UNDERTOW_OF_A_TEST")),
    (lambda: os.environ, lambda d: float(d.get("UNDERTOW_OF_A_TEST", 1)), lambda d: d.pop("UNDERTOW_OF_A_TEST")),
]


@pytest.mark.parametrize(("make", "body", "change"), CHANGES)
def test_changes_are_seen(make: Any, body: Any, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERTOW_OF_A_TEST", "3")
    monkeypatch.setitem(globals(), "HELD", make())
    f = ut.function(lambda x: x * body(HELD))
    assert f(2.0) == f(2.0) == f.run(2.0, engine="python")
    change(HELD)
    assert f(2.0) == f.run(2.0, engine="python")


def test_what_libraries_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["a"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("UNDERTOW_OF_A_TEST", "3")
    f = ut.function(lambda x: x * len(sys.argv) + len(sys.path) + len(warnings.filters))
    g = ut.function(lambda x: x * float(os.environ["UNDERTOW_OF_A_TEST"]) + len(os.environ))
    for _ in range(2):
        assert f(2.0) == f.run(2.0, engine="python")
        assert g(2.0) == g.run(2.0, engine="python")
        sys.argv.append("b")
        sys.path.append("nowhere")
        monkeypatch.setenv("UNDERTOW_OF_A_TEST", "5")
        monkeypatch.setenv("UNDERTOW_OF_ANOTHER_TEST", "5")
        warnings.simplefilter("ignore", EncodingWarning if sys.version_info >= (3, 10) else UserWarning)


def test_an_object_that_is_returned_is_itself() -> None:
    f = ut.function(lambda d: d)
    one, other = Weight(1.0), Weight(2.0)
    assert [f(one), f(other), f(one)] == [one, other, one]


@pytest.mark.parametrize("made", [deque([1.0]), UserDict(a=1.0), UserList([1.0])])
def test_what_is_a_copy_is_not_returned(made: Any) -> None:
    with pytest.raises(ut.CaptureError, match="cannot be returned"):
        ut.function(lambda d: d)(made)
