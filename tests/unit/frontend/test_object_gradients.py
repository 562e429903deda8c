"""Gradients with respect to objects: however the function reaches what they hold."""

from __future__ import annotations

import functools
from collections import deque, namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import undertow as ut

Pair = namedtuple("Pair", "p q")
X = np.array([0.5, 0.25])


class Model:
    shift = 2.0

    def __init__(self) -> None:
        self.ws = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
        self.table = {"a": np.array([1.0, 1.0]), "b": 2.0}
        self.pair = Pair(np.array([1.0, 2.0]), 3.0)
        self.queue = deque([np.array([2.0, 2.0])])


def inner(w: Any) -> Any:
    return (w * X).sum()


def times(a: Any, b: Any) -> Any:
    return (a * b * X).sum()


# Each with the place that it reads, and the gradient there.
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Any]] = {
    "loop": (lambda m: sum((w * w * X).sum() for w in m.ws), lambda g: g.ws[1], [3.0, 2.0]),
    "sum": (lambda m: (sum(m.ws) ** 2).sum(), lambda g: g.ws[0], [8.0, 12.0]),
    "reduce": (lambda m: (functools.reduce(np.add, m.ws) ** 2).sum(), lambda g: g.ws[1], [8.0, 12.0]),
    "zip": (lambda m: sum((w * k).sum() for w, k in zip(m.ws, [2.0, 3.0], strict=True)), lambda g: g.ws[1], [3.0, 3.0]),
    "star": (lambda m: times(*m.ws), lambda g: g.ws[0], [1.5, 1.0]),
    "keywords": (lambda m: (lambda a, b: times(a, b))(**m.table), lambda g: g.table["b"], 0.75),
    "values": (lambda m: sum((v * X).sum() for v in m.table.values()), lambda g: g.table["a"], X),
    "stack": (lambda m: (np.stack(m.ws) * X).sum(), lambda g: g.ws[0], X),
    "map": (lambda m: sum(map(inner, m.ws)), lambda g: g.ws[1], X),
    "namedtuple": (lambda m: times(*m.pair), lambda g: g.pair.p, [1.5, 0.75]),
    "deque": (lambda m: sum((w * X).sum() for w in m.queue), lambda g: g.queue[0], X),
    "vars": (lambda m: (vars(m)["ws"][0] * X).sum(), lambda g: g.ws[0], X),
    "class": (lambda m: m.shift * m.table["b"], lambda g: g.shift, 2.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_float_has_its_gradient(way: str) -> None:
    function, place, expected = WAYS[way]
    np.testing.assert_allclose(place(ut.grad(function)(Model())), expected)


def test_a_sum_of_arrays_outside_has_its_gradient() -> None:
    ws = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    np.testing.assert_allclose(ut.grad(lambda: (sum(ws) ** 2).sum(), variables=ws)(), [[8.0, 12.0]] * 2)


class Layer:
    def __init__(self, settings: Any) -> None:
        self.settings, self.w = settings, np.ones(2)

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.settings.scale


class Net:
    def __init__(self) -> None:
        settings = SimpleNamespace(scale=0.5)
        self.first, self.second = Layer(settings), Layer(settings)

    def __call__(self, x: Any) -> Any:
        return self.second(self.first(x)).sum()


def test_attributes_that_can_be_called_and_what_they_share() -> None:
    found = ut.grad(lambda net, x: net(x))(Net(), np.array([1.0, 2.0]))
    np.testing.assert_allclose(found.first.w, [0.25, 0.5])
    np.testing.assert_allclose(found.second.w, [0.25, 0.5])
    assert found.first.settings.scale == found.second.settings.scale == 3.0


def test_an_array_under_two_names() -> None:
    w = np.array([1.0, 2.0])
    tied = SimpleNamespace(a=w, b=w)
    holder = Layer(tied)
    gradient = ut.grad(lambda held: (held.settings.a * held.settings.b).sum())
    found = gradient(holder)
    np.testing.assert_allclose(found.settings.a, [2.0, 4.0])
    np.testing.assert_allclose(found.settings.b, [2.0, 4.0])
    tied.b = np.array([5.0, 5.0])  # no longer tied
    np.testing.assert_allclose(gradient(holder).settings.a, [5.0, 5.0])


class Node:
    def __init__(self, v: float, *kids: Node) -> None:
        self.v, self.kids, self.parent = v, list(kids), None
        for kid in kids:
            kid.parent = self


def test_objects_that_hold_each_other() -> None:
    @ut.function
    def squares(node) -> ut.f64:
        total = node.v * node.v
        for kid in node.kids:
            total = total + squares(kid)
        return total

    found = ut.grad(squares)(Node(1.0, Node(2.0), Node(3.0)))
    assert (found.v, found.kids[1].v, found.kids[1].parent) == (2.0, 6.0, None)


def test_variables_of_an_object() -> None:
    class Held:
        def __init__(self) -> None:
            self.w, self.step, self.b = ut.Variable(np.ones(2)), ut.Variable(0), 0.5

        @ut.function
        def loss(self, x):
            return ((x * self.w).sum() + self.b) ** 2

    held, x = Held(), np.array([1.0, 2.0])
    found = ut.grad(Held.loss)(held, x)
    np.testing.assert_allclose(found.w, 7.0 * x)
    assert found.b == 7.0 and not hasattr(found, "step")
    held.w.assign_sub(found.w)
    np.testing.assert_allclose(ut.grad(Held.loss)(held, x).w, 2 * (x @ (1 - 7 * x) + 0.5) * x)


def test_what_is_differentiated_stays_an_argument_where_others_are_guards() -> None:
    class Grid:
        def __init__(self) -> None:
            self.scale = 2.0

    end = 3.0
    grid = Grid()
    gradient = ut.grad(lambda grid: (np.linspace(0.0, float(str(end)), 4) * grid.scale).sum())
    assert gradient(grid).scale == 6.0
    end = 6.0
    assert gradient(grid).scale == 12.0


def test_second_derivatives() -> None:
    class Held:
        def __init__(self) -> None:
            self.w = np.array([1.0, 2.0])

    def slope(held: Any) -> Any:
        return (ut.grad(lambda held: (held.w**3).sum())(held).w * X).sum()

    np.testing.assert_allclose(ut.grad(slope)(Held()).w, 6.0 * np.array([1.0, 2.0]) * X)


class Power:
    def __init__(self) -> None:
        self.w, self.k = np.array([1.0, 2.0]), 2

    def loss(self, x: Any) -> Any:
        return (self.w**self.k * x).sum()


def test_pullbacks_to_an_object() -> None:
    held, x = Power(), np.array([1.0, 3.0])
    value, back = ut.vjp(Power.loss, held, x)
    found, slope = back(2.0)
    assert value == 13.0
    np.testing.assert_allclose(found.w, [4.0, 24.0])
    np.testing.assert_allclose(slope, [2.0, 8.0])

    @ut.function
    def inside(held, x):
        _, back = ut.vjp(Power.loss, held, x)
        return back(1.0)[0].w, back(2.0)[0].w

    np.testing.assert_allclose(inside(held, x), [[2.0, 12.0], [4.0, 24.0]])


def test_an_object_is_no_direction() -> None:
    held, x = Power(), np.array([1.0, 3.0])
    assert ut.jvp(Power.loss, (held, x), (None, x))[1] == 13.0
    for tangent in (held, SimpleNamespace(w=np.ones(2))):
        with pytest.raises(ut.TypeMismatch, match="an object has no tangent"):
            ut.jvp(Power.loss, (held, x), (tangent, None))
        with pytest.raises(ut.TypeMismatch, match="an object has no tangent"):
            ut.hvp(Power.loss, (held, x), (tangent, None))


def test_optimizers_refuse_objects() -> None:
    for params in (Power(), [Power(), Power()], {"net": Power(), "b": 0.5}):
        with pytest.raises(ut.TypeMismatch, match="an optimizer updates arrays in containers, not objects"):
            ut.optim.Adam(0.1).init(params)


def test_a_long_list_of_floats() -> None:
    held = Power()
    held.w = [float(k) for k in range(100)]  # type: ignore[assignment]
    found = ut.grad(lambda held, x: sum(held.w) * x)(held, 2.0)
    assert found.w == [2.0] * 100
