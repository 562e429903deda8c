"""Special methods of users' classes: inherited, decorated, replaced later."""

from __future__ import annotations

from typing import Any

import numpy as np

import undertow as ut


class Module:
    def __call__(self, *args: Any) -> Any:
        return self.forward(*args)  # type: ignore[attr-defined]


class Scale(Module):
    def __init__(self, w: float) -> None:
        self.w = w

    def forward(self, x: Any) -> Any:
        return x * self.w


class Chain(Module):
    def __init__(self, *parts: Module) -> None:
        self.parts = parts

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x


def test_an_inherited_call() -> None:
    net = Chain(Scale(2.0), Chain(Scale(3.0)))
    f = ut.function(lambda net, x: net(x).sum())
    x = np.ones(3)
    assert f(net, x) == 18.0
    net.parts[0].w = 5.0  # type: ignore[attr-defined]
    assert f(net, x) == 45.0
    assert ut.grad(lambda x: net(x).sum())(x).tolist() == [15.0] * 3
    assert ut.grad(Scale(4.0))(1.0) == 4.0


class Cell:
    def __init__(self) -> None:
        self.w = np.full((2, 2), 0.5)

    @ut.function
    def __call__(self, h, x):
        return np.tanh(h @ self.w + x)


class Reader(Cell):
    def read(self, xs: Any) -> Any:
        h = np.zeros(2)
        for x in xs:
            h = self(h, x)
        return h


def test_a_decorated_call() -> None:
    reader, xs = Reader(), np.ones((3, 2))
    f = ut.function(lambda reader, xs: reader.read(xs))
    np.testing.assert_allclose(f(reader, xs), f.run(reader, xs, engine="python"))
    reader.w *= 3
    np.testing.assert_allclose(f(reader, xs), f.run(reader, xs, engine="python"))


def test_methods_that_are_replaced() -> None:
    class V:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return V(self.x + other.x)

        def __call__(self, t):
            return self.x * t

        def __getitem__(self, k):
            return self.x * k

        def __len__(self):
            return 2

    @ut.function
    def f(x):
        v = V(x) + V(x)
        return v(3.0) + v[2] + len(v)

    assert f(1.0) == 12.0
    V.__call__ = lambda self, t: self.x * t * 100
    assert f(1.0) == 606.0
    V.__add__ = lambda self, other: V(self.x * 7)
    assert f(1.0) == 2116.0
    V.__len__ = lambda self: 5
    assert f(1.0) == 2119.0
    V.__getitem__ = lambda self, k: 1000.0
    assert f(1.0) == 3105.0


class Key:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.n == other.n

    def __hash__(self) -> int:
        return hash(self.n)


class Plain:
    pass


def test_objects_as_keys() -> None:
    one, two = Plain(), Plain()
    by_value, by_object = {Key(1): 2.0, Key(2): 3.0}, {one: 5.0, two: 7.0, (one, 1): 9.0}

    @ut.function
    def f(key, x):
        return x * by_value[key] + by_value.get(key, 0.0)

    @ut.function
    def g(key, x):
        return x * by_object[key] + by_object.get((key, 1), 0.0)

    @ut.function
    def own(key, x):
        made = {key: x}
        return made[key] + made.get(Key(1), 0.0)

    key = Key(1)
    assert [f(Key(1), 1.0), f(Key(2), 1.0), f(key, 1.0)] == [4.0, 6.0, 4.0]
    key.n = 2
    assert f(key, 1.0) == 6.0
    assert [g(one, 1.0), g(two, 1.0), g(one, 1.0)] == [14.0, 7.0, 14.0]
    assert [own(Key(1), 1.0), own(Key(2), 1.0)] == [2.0, 1.0]
