"""The fast path of calls meets user objects that change, raise or vanish while it looks at them."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.threads import in_threads

import undertow as ut

SCALE = 1.0
TABLE: dict[Any, Any] = {"a": 1.0}


@dataclasses.dataclass
class Watched:
    """Runs code of the test's when its field is read: while arguments are taken apart."""

    value: float
    act = staticmethod(lambda: None)

    def __getattribute__(self, name: str) -> Any:
        if name == "value":
            Watched.act()
        return object.__getattribute__(self, name)


@ut.function
def scaled(x: ut.f64[None], watched: Watched):
    return x * watched.value


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], Watched]:
    def acting(act: Callable[[], None]) -> Watched:
        monkeypatch.setattr(Watched, "act", staticmethod(act))
        return Watched(2.0)

    for _ in range(2):
        np.testing.assert_array_equal(scaled(np.arange(6.0), Watched(2.0)), 2 * np.arange(6.0))
    return acting


@pytest.mark.parametrize("shape", [(2, 3), (1, 1, 1, 2, 3)])
def test_an_array_that_is_reshaped_while_it_is_read(watched: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(6.0)
    value = watched(lambda: setattr(x, "shape", shape))
    with pytest.raises(ut.TypeMismatch, match="annotated as"):
        scaled(x, value)


@pytest.mark.filterwarnings("ignore:Setting the dtype")
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_an_array_whose_dtype_changes_while_it_is_read(watched: Any, dtype: Any) -> None:
    """Its lengths change, too: with the old dtype they would reach beyond its memory."""
    x = np.arange(6.0)
    value = watched(lambda: setattr(x, "dtype", dtype))
    np.testing.assert_array_equal(scaled(x, value), 2.0 * x.astype(np.float64))


def test_a_list_that_shrinks_while_it_is_read(watched: Any) -> None:
    @ut.function
    def total(watched, numbers):
        return watched.value + sum(numbers)

    numbers = [1.0, 2.0, 3.0]
    for _ in range(2):
        assert total(Watched(2.0), numbers) == 8
    assert total(watched(numbers.clear), numbers) == 2


def test_classes_that_cannot_be_hashed_or_compared() -> None:
    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]

    class Incomparable(type):
        def __hash__(cls) -> int:
            return 7

        def __eq__(cls, other: object) -> bool:
            raise RuntimeError("not to be compared")

    @ut.function
    def weight(owner, x):
        return owner.w * x

    classes = [
        kind(name, (), {"w": 2.0}) for kind, name in [(Incomparable, "A"), (Incomparable, "B"), (Unhashable, "C")]
    ]
    for kind in classes * 2:
        with contextlib.suppress(RuntimeError, TypeError):  # theirs; the core must not add a SystemError
            assert weight(kind(), 3.0) == 6
    assert weight(classes[0](), 4.0) == 8


def test_attributes_that_raise() -> None:
    class Box:
        def __init__(self) -> None:
            self.w = 2.0

        def __getattr__(self, name: str) -> Any:
            raise (KeyboardInterrupt if name == "w" else AttributeError)(name)

    box = Box()

    @ut.function
    def weight(x):
        return box.w * x

    assert weight(3.0) == weight(3.0) == 6
    del box.w
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            weight(3.0)
    box.w = 3.0
    assert weight(3.0) == 9 and len(weight.__undertow_programs__) == 1


def test_keys_that_change_their_dict_while_they_are_compared() -> None:
    class Key:
        def __init__(self, name: str) -> None:
            self.name = name
            self.then: Callable[[], None] = lambda: None

        def __hash__(self) -> int:
            return hash(self.name)

        def __eq__(self, other: object) -> bool:
            self.then()
            return isinstance(other, Key) and self.name == other.name

    table: dict[Any, float] = {(Key("a"), 1): 1.0, (Key("b"), 2): 2.0, "c": 3.0}

    @ut.function
    def third(x):
        return table["c"] * x

    assert third(2.0) == third(2.0) == 6

    def grow() -> None:
        for k in range(50):
            table[k] = float(k)

    for (key, _), act in zip(list(table)[:2], (grow, table.clear), strict=True):
        del table[key, 1 if key.name == "a" else 2]
        again = Key(key.name)
        again.then = act
        table[again, 1] = 1.0
        if "c" in table:
            assert third(2.0) == 6


def test_calls_keep_no_references() -> None:
    class Box:
        def __init__(self) -> None:
            self.w, self.a = 2.0, np.ones(3)

    box, config, outside = Box(), {"rate": 0.5, "name": "x", (1, 2): 1.0}, np.ones(3)

    @ut.function
    def mixed(x, n, nested, owner):
        return {"a": x * outside * config["rate"], "b": [n, box.w], "c": nested["k"] + nested["z"][0], "d": owner.a}

    x, n, nested = np.ones((3, 3))[:, 1], 12345678901, {"k": 1.5, "z": (np.ones(2),)}
    held = [box, box.w, box.a, vars(box), config, outside, x, n, nested, nested["k"], nested["z"], nested["z"][0]]
    held += [Box, mixed, np.dtype(np.float64), np.dtype(np.int64)]

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(each) for each in held]

    def call() -> None:
        mixed(x, n, nested, box)
        config["name"] = "y"  # a guard fails
        assert mixed.__undertow_programs__.quick.find((x, n, nested, box)) is None
        config["name"] = "x"
        with pytest.raises(ut.UndertowError):
            mixed(x, 10**30, nested, box)  # the fast path gives up in the middle

    for _ in range(5):
        call()
    before = counts()
    for _ in range(50):
        call()
    assert counts() == before


def test_threads_that_rebind_what_is_read_outside() -> None:
    @ut.function
    def shifted(x):
        return x * SCALE + TABLE["a"]

    done = threading.Event()

    def rebind() -> None:
        number = 0
        while not done.is_set():
            number += 1
            globals()["SCALE"] = float(number % 5)
            TABLE["a"] = float(number % 3)
            if number % 20 == 0:
                TABLE["more"] = 1.0
            elif number % 20 == 10:
                TABLE.pop("more", None)

    def call(number: int) -> None:
        if number == 0:
            return rebind()
        try:
            for _ in range(300):
                assert 0 <= shifted(np.ones(4))[0] <= 6
        finally:
            running.remove(number)
            if not running:
                done.set()

    running = {1, 2, 3}
    in_threads(call, 4)
