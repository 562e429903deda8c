"""Arguments of classes that extend Python's containers and NumPy's arrays: as in Python, or refused."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import undertow as ut


class Doubled(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        return 2 * dict.__getitem__(self, key)

    def total(self) -> Any:
        return sum(self.values())


class Ordered(OrderedDict):  # type: ignore[type-arg]
    def first(self) -> Any:
        return next(iter(self.values()))


class Attributes(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__


class Long(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 42


class Tagged(list):  # type: ignore[type-arg]
    tag = 1.0


class Units(np.ndarray):  # type: ignore[type-arg]
    def __add__(self, other: Any) -> Any:  # type: ignore[override]
        return np.asarray(self) * 100


class Plain(np.ndarray):  # type: ignore[type-arg]
    pass


@dataclass
class Point:
    x: float
    y: float

    def __lt__(self, other: Any) -> Any:
        return self.x < other.x

    def __gt__(self, other: Any) -> Any:
        return self.x > other.x

    def __iter__(self) -> Any:
        yield self.x
        yield self.y

    @cached_property
    def norm(self) -> Any:
        return self.x * self.x + self.y * self.y


class Module:
    def __call__(self, x: Any) -> Any:
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        raise NotImplementedError


class Linear(Module):
    def __init__(self, w: float) -> None:
        self.w = w

    def forward(self, x: Any) -> Any:
        return self.w * x


class Delegating:
    def __init__(self, **held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        return self.held[name]


def extended(x: float, **more: Any) -> Point:
    point = Point(x, 2.0)
    vars(point).update(more)
    return point


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda d: d["a"] + d.get("a") + len(d), (Doubled(a=1.0),)),
    (lambda d: d.total() + sum(v for _, v in d.items()), (Doubled(a=1.0),)),
    (lambda d: d.first() + d["b"], (Ordered(a=1.0, b=2.0),)),
    (lambda d: 1.0 if isinstance(d, OrderedDict) else 2.0, (OrderedDict(a=1.0),)),
    (lambda d: d.a + d["a"], (Attributes(a=1.0),)),
    (lambda d: d["a"] + d["z"], (Counter(a=1),)),
    (lambda d: d["a"] + d.get("z", 5.0), (defaultdict(float, a=1.0),)),
    (lambda d: len(d) + d[0], (Long([1.0]),)),
    (lambda a: a + 1, (np.ones(2).view(Plain),)),
    (lambda p: getattr(p, "extra", 0.0) + p.x, (extended(1.0, extra=3.0),)),
    (lambda p: p.norm + p.x, (extended(1.0, norm=5.0),)),
    (lambda p, q: max(p, q).y + min([p, q]).x, (Point(1.0, 2.0), Point(3.0, 4.0))),
    (lambda p, q: max(p, q, key=lambda r: r.y).x, (Point(1.0, 2.0), Point(3.0, 1.0))),
    (lambda a, b: max((a, 1.0), (b, 0.0), (a, 5.0))[1], (1.0, 1.0)),
    (lambda m, x: m(x), (Linear(2.0), 3.0)),
    (lambda o: o.w * 2.0, (Delegating(w=2.0),)),
]


@pytest.mark.parametrize(("body", "args"), CASES)
def test_as_in_python(body: Any, args: tuple[Any, ...]) -> None:
    f = ut.function(body)
    for _ in range(2):
        np.testing.assert_array_equal(f(*args), f.run(*args, engine="python"))


def test_extra_attributes_are_seen_by_the_fast_path() -> None:
    f = ut.function(lambda p: getattr(p, "extra", 0.0) + p.x)
    points = [Point(1.0, 2.0), extended(1.0, extra=3.0), Point(1.0, 2.0), extended(1.0, extra=4.0)]
    assert [f(p) for p in points * 2] == [1.0, 4.0, 1.0, 5.0] * 2


def test_inherited_call_of_what_is_outside() -> None:
    layer: Any = Linear(2.0)
    f = ut.function(lambda x: layer(x))
    assert f(3.0) == 6.0
    layer.w = 5.0
    assert f(3.0) == 15.0
    assert ut.function(lambda x: Linear(4.0)(x))(2.0) == 8.0


TABLE = {"a": ut.f64}


def test_dicts_of_python_s_own_fit_annotations_of_dicts() -> None:
    @ut.function
    def f(d: TABLE) -> ut.f64:  # type: ignore[valid-type]
        return d["a"]

    assert f(OrderedDict(a=2.0)) == f(defaultdict(float, a=2.0)) == f({"a": 2.0}) == 2.0
    gradient = ut.grad(ut.function(lambda d: d["a"] ** 2))(OrderedDict(a=3.0))
    assert gradient == OrderedDict(a=6.0) and type(gradient) is OrderedDict


def tagged() -> Tagged:
    made = Tagged([1.0])
    made.tag = 3.0
    return made


@pytest.mark.parametrize(
    ("body", "args", "match"),
    [
        (lambda a: a + 1, (np.ones(2).view(Units),), "computes in its own way"),
        (lambda d: d.tag * d[0], (tagged(),), "the attribute `tag`"),
        (lambda p, q: p is q, (Point(1.0, 2.0),) * 2, "same object"),
        (lambda a, b: a is b, ([1.0],) * 2, "same object"),
    ],
)
def test_refused(body: Any, args: tuple[Any, ...], match: str) -> None:
    with pytest.raises(ut.UndertowError, match=match):
        ut.function(body)(*args)


@pytest.mark.parametrize("made", [Counter(a=2), OrderedDict(b=1, a=2), defaultdict(int, a=2), Doubled(a=2)])
def test_results_keep_their_class(made: Any) -> None:
    f = ut.function(lambda d: d)
    assert f(made) == made and type(f(made)) is type(made)
    assert f(made) is not f(made)
    assert type(ut.function(lambda n: Counter(a=n))(1)) is Counter
