"""Values outside of a function: hidden arguments that each call reads again, and guards whose change captures again."""

from __future__ import annotations

import functools
import math
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import undertow as ut

RATE = 0.5
COUNT = 2
NAME = "double"
FLAG = True
WEIGHTS = np.array([1.0, 2.0, 3.0])
LAYERS = [np.ones((2, 2)), np.eye(2)]
PARAMS: Any = {"w": np.array([1.0, 2.0]), "b": 0.5, "name": "tanh"}
OBJECT: Any = None
CONFIG: Any = None


def helper(x: Any) -> Any:
    return x * 2.0


def captures(function: Any) -> int:
    return len(function.__undertow_programs__)


def agree(function: Any, *args: Any) -> None:
    """A captured function gives what the undecorated one does."""
    plain = function.__undertow_definition__.function
    bound = function.__undertow_bound__
    np.testing.assert_allclose(np.asarray(function(*args)), np.asarray(plain(*bound, *args)), rtol=1e-12)


def through(function: Any, changes: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch, *args: Any) -> int:
    """Change globals one after the other, compare after each, and count the captures."""
    agree(function, *args)
    for name, values in changes.items():
        for value in values:
            monkeypatch.setitem(globals(), name, value)
            agree(function, *args)
    return captures(function)


# -- globals and cells -------------------------------------------------------------------------------------


def test_floats_and_arrays_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return ut.sum(x * RATE + WEIGHTS)

    new = {"RATE": [2.0, -1.0, 1e300], "WEIGHTS": [np.zeros(3), np.array([5.0, 6.0, 7.0])]}
    assert through(f, new, monkeypatch, np.arange(3.0)) == 1


def test_arrays_are_passed_by_reference() -> None:
    w = np.ones(3)

    @ut.function
    def f(x):
        return w @ x

    x = np.arange(3.0)
    for _ in range(3):
        agree(f, x)
        w += 1.5
    assert captures(f) == 1


def test_integers_flags_and_strings_are_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        for _ in range(COUNT):
            x = x + 1.0 if FLAG else x - 1.0
        return x * 2.0 if NAME == "double" else x

    assert through(f, {"COUNT": [3, 2], "FLAG": [False], "NAME": ["none", "double"]}, monkeypatch, 3.0) == 4


def test_an_integer_that_keeps_changing_is_captured_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x / (1.0 - 0.9**COUNT)

    assert through(f, {"COUNT": list(range(3, 30))}, monkeypatch, 3.0) <= 4


def test_an_integer_that_must_be_known_stays_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x * len("ab" * COUNT)

    assert through(f, {"COUNT": [3, 4, 5, 6, 3, 4]}, monkeypatch, 3.0) == 5


def test_types_are_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x * RATE

    new = {"RATE": [2, True, np.float32(0.5), np.float64(0.25), np.array(3.0), np.arange(4.0), np.int32(2)]}
    assert through(f, new, monkeypatch, np.arange(4.0)) == 8
    assert f(np.arange(4, dtype=np.int64)).dtype == np.int64


def test_a_python_float_takes_the_dtype_of_what_it_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x * RATE

    for rate in (0.1, 0.2):
        monkeypatch.setitem(globals(), "RATE", rate)
        x = np.arange(3, dtype=np.float32)
        assert f(x).dtype == np.float32
        np.testing.assert_array_equal(f(x), x * np.float32(rate))


def test_a_float_in_place_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        if CONFIG is None:
            return x
        return x * CONFIG

    assert through(f, {"CONFIG": [2.0, 3.0, None, 4.0]}, monkeypatch, 3.0) == 2


def test_helpers_are_redefined(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return helper(x) + 1.0

    assert through(f, {"helper": [lambda x: x * 3.0, np.sqrt, math.sin]}, monkeypatch, 4.0) == 4


def test_the_code_of_a_helper_is_replaced() -> None:
    """As `%autoreload` does."""

    def scale(x):
        return x * 2.0

    def other(x):
        return x * 5.0

    @ut.function
    def f(x):
        return scale(x)

    agree(f, 3.0)
    scale.__code__ = other.__code__
    agree(f, 3.0)


def test_a_decorated_helper_is_redefined(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def first(n: ut.i64) -> ut.i64:
        return 0 if n == 0 else first(n - 1) + 1

    @ut.function
    def second(n: ut.i64) -> ut.i64:
        return 0 if n == 0 else second(n - 1) + 2

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return helper(n)

    for callee, expected in ((first, 4), (second, 8), (first, 4)):
        monkeypatch.setitem(globals(), "helper", callee)
        assert f(4) == expected


def test_a_global_hides_a_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return abs(x)

    agree(f, -2.0)
    monkeypatch.setitem(globals(), "abs", lambda x: x * 10.0)
    agree(f, -2.0)
    monkeypatch.delitem(globals(), "abs")
    agree(f, -2.0)


def test_cells() -> None:
    def make() -> tuple[Any, Callable[[Any], None]]:
        scale: Any = 1.0

        @ut.function
        def f(x):
            return x * scale

        def put(value: Any) -> None:
            nonlocal scale
            scale = value

        return f, put

    f, put = make()
    for value in (2.0, 3.0, 4, 5.5):
        put(value)
        agree(f, 3.0)
    assert captures(f) == 2


def test_hidden_arguments_in_recursion_loops_and_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def tree(n: ut.i64) -> ut.f64:
        if n <= 1:
            return RATE
        total = 0.0
        for k in range(n):
            total += k * RATE
        return tree(n - 1) * RATE + tree(n - 2) + total

    agree(tree, 8)
    monkeypatch.setitem(globals(), "RATE", 0.75)
    agree(tree, 8)
    assert captures(tree) == 1

    @ut.function
    def many(n):
        return ut.sum(ut.map(lambda k: WEIGHTS[k % 3] * RATE, ut.arange(n)))

    for rate in (0.5, 2.0):
        monkeypatch.setitem(globals(), "RATE", rate)
        assert many(6) == 2 * WEIGHTS.sum() * rate
    np.testing.assert_array_equal(tree.map(np.arange(5)), [tree(n) for n in range(5)])


def test_every_engine_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(n: ut.i64) -> ut.f64:
        return RATE if n == 0 else f(n - 1) * RATE + WEIGHTS[n % 3]

    for rate in (0.5, 0.25):
        monkeypatch.setitem(globals(), "RATE", rate)
        expected = f.__undertow_definition__.function(5)
        for engine in ("waves", "reference", "demand", "expand"):
            assert f.run(5, engine=engine) == pytest.approx(expected)


def test_seeds_and_hidden_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return ut.random.uniform() * 0.0 + x * RATE + ut.sum(WEIGHTS)

    for rate in (0.5, 2.0):
        monkeypatch.setitem(globals(), "RATE", rate)
        assert f.run(3.0, seed=1) == 3.0 * rate + 6.0


# -- where a value must be known ---------------------------------------------------------------------------


def _unroll(x):
    made = [x * k for k in range(int(RATE))]
    return sum(made, x)


def _shape(x):
    return ut.sum(ut.ones((int(RATE), 2))) + x


def _key(x):
    return {0.5: x, 2.0: x * 3.0, 4.0: x * 9.0}[RATE]


def _text(x):
    return x if f"{RATE}" == "2.0" else -x


def _structure(x):
    value = (x, x) if RATE > 1.0 else x
    return value[0] if isinstance(value, tuple) else value


def _index(x):
    return [helper, math.sin, math.cos, lambda x: x * 7.0, lambda x: x * 9.0][int(RATE)](x)


def _in(x):
    return x if RATE in (0.5, 4.0) else -x


def _hash(x):
    return x * len({RATE, 2.0, 3.0})


def _native(x):
    return x * math.gamma(RATE)


def _method(x):
    return x if RATE.is_integer() else -x


def _array(x):
    return x * np.linalg.norm(np.array([RATE, 1.0]))


@pytest.mark.parametrize(
    "body", [_unroll, _shape, _key, _text, _structure, _index, _in, _hash, _native, _method, _array]
)
def test_a_value_that_must_be_known_becomes_a_guard(body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = ut.function(body)
    for rate in (2.0, 4.0, 0.5, 4.0):
        monkeypatch.setitem(globals(), "RATE", rate)
        agree(f, 3.0)
    assert captures(f) <= 3


def test_an_array_whose_contents_must_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x * np.linalg.norm(WEIGHTS) * len(WEIGHTS[WEIGHTS > 1.5])

    new = [np.array([1.0, 2.0, 4.0]), np.array([0.0, 0.0, 9.0])]
    assert through(f, {"WEIGHTS": new}, monkeypatch, 3.0) <= 3
    new[-1][0] = 2.0
    agree(f, 3.0)


def test_errors_are_those_of_the_last_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        return x * RATE + unknown_name  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(ut.CaptureError, match="`unknown_name` is not defined"):
        f(2.0)


# -- containers --------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "a b")


@dataclass
class Settings:
    rate: float
    steps: int
    weights: Any = field(default_factory=lambda: np.ones(2))

    def scaled(self, x: Any) -> Any:
        return x * self.rate * self.factor

    factor = 3.0


def test_containers_are_read_at_each_call() -> None:
    params: Any = {"w": np.array([1.0, 2.0]), "b": 0.5, "name": "tanh", "nested": [1.0, (2.0, 3)]}

    @ut.function
    def f(x):
        y = x * params["w"] + params["b"]
        if params["name"] == "tanh":
            y = ut.tanh(y)
        for item in params["nested"][1]:
            y = y * item
        return ut.sum(y) + params["nested"][0]

    def change(step: Callable[[], Any], expected: int) -> None:
        step()
        agree(f, 2.0)
        assert captures(f) == expected

    change(lambda: None, 1)
    change(lambda: params.update(b=1.5), 1)
    change(lambda: params["w"].__iadd__(1.0), 1)
    change(lambda: params.update(w=np.array([7.0, 8.0])), 1)
    change(lambda: params["nested"].__setitem__(0, 9.0), 1)
    change(lambda: params.update(name="none"), 2)
    change(lambda: params.update(name="tanh"), 2)
    change(lambda: params.update(nested=[1.0, (2.0, 4)]), 3)
    change(lambda: params.update(nested=[1.0, (2.0, 4, 5.0)]), 4)
    change(lambda: params.update(more=1), 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda v: [v, 2.0], lambda v: (v, 2.0), lambda v: Pair(v, 2.0), lambda v: deque([v, 2.0]),
        lambda v: [[v], [2.0]][0] + [2.0], lambda v: [v] * 2 + [2.0] * 200,
    ],
)  # fmt: skip
def test_sequences(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def f(x):
        total = x
        for item in PARAMS:
            total = total * item
        return total + PARAMS[0] + len(PARAMS)

    for value in (3.0, 4.0, np.arange(3.0), np.arange(1.0, 4.0)):
        monkeypatch.setitem(globals(), "PARAMS", make(value))
        agree(f, 2.0)


def test_a_list_that_grows() -> None:
    layers = [np.ones((2, 2))]

    @ut.function
    def f(x):
        for w in layers:
            x = x @ w
        return x

    for _ in range(3):
        agree(f, np.arange(2.0))
        layers.append(np.eye(2) * 2.0)
    assert captures(f) == 3


def test_containers_that_contain_themselves() -> None:
    loop: Any = [1.0]
    loop.append(loop)
    table: Any = {"a": 2.0}
    table["self"] = table

    @ut.function
    def f(x):
        return x * loop[1][1][0] + table["self"]["self"]["a"]

    agree(f, 2.0)
    loop[0], table["a"] = 5.0, 6.0
    agree(f, 2.0)
    assert captures(f) == 1


def test_long_lists_are_compared_as_a_whole() -> None:
    numbers = [0.5] * 1000

    @ut.function
    def f(x):
        return x * ut.sum(ut.asarray(numbers))

    agree(f, 2.0)
    numbers[7] = 8.0
    agree(f, 2.0)
    assert captures(f) == 2
    assert "numbers" not in str(f.graph(2.0))


def test_sets_and_other_arrays() -> None:
    names = {"a", "b"}
    small = np.array([1, 2, 3], np.uint8)

    @ut.function
    def f(x):
        return x * len(names) + (1.0 if "a" in names else 0.0) + ut.sum(ut.asarray(small))

    assert f(2.0) == 11.0
    names.add("c")
    assert f(2.0) == 13.0
    small[0] = 5
    assert f(2.0) == 17.0


def test_dataclasses() -> None:
    settings = Settings(0.5, 2)

    @ut.function
    def f(x):
        for _ in range(settings.steps):
            x = settings.scaled(x)
        return ut.sum(x * settings.weights)

    agree(f, 2.0)
    settings.rate = 0.25
    agree(f, 2.0)
    settings.weights = np.array([3.0, 4.0])
    agree(f, 2.0)
    assert captures(f) == 1
    settings.steps = 3
    agree(f, 2.0)
    assert captures(f) == 2
    Settings.factor = 2.0
    try:
        agree(f, 2.0)
    finally:
        Settings.factor = 3.0


# -- objects -----------------------------------------------------------------------------------------------


class Activation(Enum):
    NONE = 0
    TANH = 1


class Base:
    bonus = 1.0

    def __init__(self, size: int) -> None:
        self.w = np.arange(1.0, size + 1.0)
        self.b = 0.5
        self.steps = 1
        self.activation: Any = Activation.NONE
        self.inner: Any = None
        self.layers: Any = []

    def apply(self, x: Any) -> Any:
        return x * self.w + self.b

    @property
    def scale(self) -> Any:
        return self.b * 2.0

    @staticmethod
    def shift(x: Any) -> Any:
        return x + 1.0

    @classmethod
    def extra(cls, x: Any) -> Any:
        return x + cls.bonus

    def __call__(self, x: Any) -> Any:
        return self.apply(x)


class Model(Base):
    bonus = 2.0

    def apply(self, x: Any) -> Any:
        return super().apply(x) * 2.0 + super().bonus

    @ut.function
    def loss(self, x):
        for _ in range(self.steps):
            x = self.apply(x) * self.scale
        if self.activation is Activation.TANH:
            x = ut.tanh(x)
        if self.inner is not None:
            x = self.inner(x)
        for layer in self.layers:
            x = layer.apply(x)
        return ut.sum(self.extra(self.shift(x)))


def test_attributes_of_self() -> None:
    model = Model(3)
    x = np.ones(3)

    def change(expected: int, **values: Any) -> None:
        for name, value in values.items():
            setattr(model, name, value)
        agree(model.loss, x)
        assert captures(Model.loss) == expected

    before = captures(Model.loss)
    change(before + 1)
    change(before + 1, w=np.array([3.0, 2.0, 1.0]), b=0.75)
    model.w -= 0.5
    change(before + 1)
    change(before + 2, steps=2)
    change(before + 2, steps=1)
    change(before + 3, activation=Activation.TANH)
    change(before + 4, inner=Base(3))
    model.inner.b = 7.0
    change(before + 4)
    change(before + 4, inner=Base(3))
    change(before + 5, layers=[Base(3), Model(3)])
    model.layers[1].w *= 2.0
    change(before + 5)
    change(before + 5, layers=[Base(3), Model(3)])


def test_other_objects_of_the_class_share_the_capture() -> None:
    before = captures(Model.loss)
    models = [Model(4) for _ in range(4)]
    for number, model in enumerate(models):
        model.b = float(number)
        agree(model.loss, np.ones(4))
    assert captures(Model.loss) == before + 1


def test_objects_as_arguments() -> None:
    @ut.function
    def f(model, other, x):
        return ut.sum(model.apply(x) - other.apply(x)) * model.b

    a, b = Base(2), Base(2)
    b.b = 3.0
    x = np.ones(2)
    agree(f, a, b, x)
    agree(f, b, a, x)
    assert captures(f) == 1
    agree(f, a, a, x)  # one object twice: another program
    agree(f, Model(2), a, x)
    a.b = 9.0
    agree(f, a, b, x)
    assert captures(f) == 3


def test_objects_learn() -> None:
    class Line:
        def __init__(self) -> None:
            self.w, self.b = 0.0, 0.0

        @ut.function
        def loss(self, x, y):
            return ut.mean((self.w * x + self.b - y) ** 2)

    line = Line()
    x = np.linspace(-1, 1, 20)
    y = 3.0 * x + 2.0
    losses = []
    for _ in range(60):
        error = line.w * x + line.b - y
        line.w -= 0.5 * np.mean(2 * error * x)
        line.b -= 0.5 * np.mean(2 * error)
        losses.append(line.loss(x, y))
    assert losses[-1] < 1e-4 < losses[0]
    assert captures(Line.loss) == 1


def test_containers_of_objects() -> None:
    @ut.function
    def f(layers, named, x):
        kept = []
        for k, (first, second) in enumerate(zip(layers, reversed(layers), strict=True)):
            x = first.apply(x) * (k + 1) + second.b
            kept.append(first)
        for name, layer in named.items():
            x = x + (layer.b if name == "a" else 0.0)
        return ut.sum(x) + kept[-1].b + named.get("a").b

    layers, named = [Base(2), Base(2)], {"a": Base(2), "b": Base(2)}
    for k in range(3):
        agree(f, layers, named, np.ones(2))
        layers[0].b += 1.0
        layers[1].w *= 2.0
        named["a"].b -= k
    assert captures(f) == 1


def test_missing_attributes() -> None:
    @ut.function
    def f(model, x):
        return x * model.gain if hasattr(model, "gain") else x * getattr(model, "loss_scale", 2.0)

    model = Base(2)
    agree(f, model, 3.0)
    model.gain = 5.0
    agree(f, model, 3.0)
    model.gain = 6.0
    agree(f, model, 3.0)
    del model.gain
    model.loss_scale = 7.0
    agree(f, model, 3.0)


def test_methods_are_replaced() -> None:
    class Net:
        def apply(self, x):
            return x * 2.0

    @ut.function
    def f(net, x):
        return net.apply(x)

    net = Net()
    agree(f, net, 3.0)
    Net.apply = lambda self, x: x * 3.0  # type: ignore[method-assign]
    agree(f, net, 3.0)
    net.apply = lambda x: x * 4.0  # type: ignore[method-assign]
    agree(f, net, 3.0)


def test_slots_and_cached_properties() -> None:
    class Slotted:
        __slots__ = ("w",)

        def __init__(self) -> None:
            self.w = 2.0

    class Cached:
        def __init__(self) -> None:
            self.w = 2.0

        @functools.cached_property
        def square(self):
            return self.w * self.w

    @ut.function
    def f(a, x):
        return x * a.w

    @ut.function
    def g(a, x):
        return x * a.square

    slotted, cached = Slotted(), Cached()
    agree(f, slotted, 3.0)
    slotted.w = 5.0
    agree(f, slotted, 3.0)
    assert g(cached, 3.0) == 12.0
    cached.w = 3.0
    assert g(cached, 3.0) == 12.0  # the object keeps it
    assert cached.square == 4.0
    del cached.square
    assert g(cached, 3.0) == 27.0
    assert g(Cached(), 3.0) == 12.0


def test_namespaces_and_parsed_options() -> None:
    import argparse

    for options in (argparse.Namespace(lr=0.5, steps=2), SimpleNamespace(lr=0.5, steps=2)):

        @ut.function
        def f(x):
            for _ in range(options.steps):  # noqa: B023
                x = x * options.lr  # noqa: B023
            return x

        agree(f, 3.0)
        options.lr = 0.25
        agree(f, 3.0)
        options.steps = 3
        agree(f, 3.0)
        assert captures(f) == 2


def test_partials_and_bound_methods() -> None:
    model = Base(2)

    def scale(x, by):
        return x * by

    scaled = functools.partial(scale, by=2.0)
    method = model.apply

    @ut.function
    def f(x):
        return ut.sum(method(scaled(x)))

    agree(f, np.ones(2))
    model.b = 7.0
    agree(f, np.ones(2))
    scaled = functools.partial(scale, by=3.0)
    agree(f, np.ones(2))
    assert captures(f) == 1

    @ut.function
    def g(function, x):
        return ut.sum(function(x))

    for b in (1.0, 2.0):
        model.b = b
        agree(g, model.apply, np.ones(2))
        agree(g, functools.partial(scale, by=b), np.ones(2))
    assert captures(g) == 2


def test_recursion_over_a_tree_of_objects() -> None:
    class Node:
        def __init__(self, value: float, *children: Any) -> None:
            self.value = value
            self.children = children

    @ut.function
    def total(node, x) -> ut.f64:
        result = node.value * x
        for child in node.children:
            result = result + total(child, x)
        return result

    def make(k: float) -> Any:
        return Node(k, Node(2 * k, Node(3 * k)), Node(4 * k))

    assert total(make(1.0), 2.0) == 20.0
    assert total(make(3.0), 2.0) == 60.0
    assert captures(total) == 1
    assert total(Node(1.0, Node(2.0)), 2.0) == 6.0
    assert captures(total) == 2


class Vector:
    """A class with operators, which read the object as methods do."""

    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)

    def __add__(self, other: Any) -> Any:
        return Vector(*[a + b for a, b in zip(self.parts, other.parts, strict=True)])

    def __mul__(self, factor: Any) -> Any:
        return Vector(*[part * factor for part in self.parts])

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1.0

    def __getitem__(self, k: int) -> Any:
        return self.parts[k]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Any:
        return iter(self.parts)

    def __contains__(self, value: Any) -> bool:
        return value in self.parts

    def __lt__(self, other: Any) -> Any:
        return self.parts[0] < other.parts[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.parts == other.parts

    __hash__ = object.__hash__


def test_operators_of_a_class() -> None:
    @ut.function
    def f(v, w, x):
        total = (2.0 * v + w * x + -v)[1] * len(v)
        for part in v:
            total = total + part
        return total + 1.0 if v < w else total

    a, b = Vector(1.0, 2.0), Vector(3.0, 4.0)
    agree(f, a, b, 2.0)
    agree(f, b, a, 3.0)
    a.parts[1] = 7.0
    agree(f, a, b, 2.0)
    assert captures(f) == 1

    @ut.function
    def g(v, w, x):
        return x if v == w or (v != w and 7.0 in w) else -x

    for v, w in ((a, b), (b, b), (b, a), (Vector(1.0), Vector(1.0))):
        agree(g, v, w, 2.0)


def test_code_that_runs_as_it_is_sees_the_values_of_the_call() -> None:
    class Items:
        def __init__(self) -> None:
            self.scale = 2.0

        def __iter__(self):
            yield self.scale
            yield self.scale * RATE

    items = Items()

    @ut.function
    def f(x):
        for item in items:
            x = x + item
        return x + sum(list(items))

    agree(f, 1.0)
    items.scale = 5.0
    agree(f, 1.0)


def test_callbacks_read_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x):
        return x * RATE

    @ut.function
    def f(x):
        total = functools.reduce(lambda a, b: scaled(a) + b, [x, 2.0 * x])
        for part in map(scaled, [x, x]):
            total = total + part
        return total

    assert through(f, {"RATE": [0.25, 4.0]}, monkeypatch, 3.0) == 1


def test_objects_made_in_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scaled:
        offset = 1.0

        def __init__(self, x) -> None:
            self.x = x * RATE + self.offset

    @ut.function
    def f(x):
        return Scaled(x).x

    assert through(f, {"RATE": [0.25, 4.0]}, monkeypatch, 3.0) == 1
    Scaled.offset = 5.0
    agree(f, 3.0)


def test_defaults_of_helpers() -> None:
    table = np.array([1.0, 2.0])

    def scale(x, by=table, *, bias=1.0):
        return x * by + bias

    @ut.function
    def f(x):
        return ut.sum(scale(x))

    agree(f, 3.0)
    table += 1.0
    agree(f, 3.0)
    assert captures(f) == 1
    scale.__defaults__ = (np.array([5.0, 6.0]),)
    agree(f, 3.0)


# -- gradients ---------------------------------------------------------------------------------------------


class Line:
    def __init__(self) -> None:
        self.w, self.b = 0.0, np.float32(0.0)
        self.steps = 0
        self.name = "line"
        self.layers = [np.ones(2), {"scale": 2.0, "count": 3}]
        self.unused = np.zeros(3)
        self.inner: Any = None

    @ut.function
    def loss(self, x, y):
        extra = 0.0 if self.inner is None else self.inner.w * 5.0
        return ut.mean((self.w * x + self.b - y) ** 2) + ut.sum(self.layers[0] ** 2) * self.layers[1]["scale"] + extra


def test_gradients_of_an_object() -> None:
    line = Line()
    line.inner = Line()
    x = np.linspace(-1, 1, 20)
    found = ut.grad(Line.loss)(line, x, 3.0 * x + 2.0)
    assert list(vars(found)) == ["w", "b", "layers", "unused", "inner"]
    assert found.w == pytest.approx(-6.0 * np.mean(x * x))
    assert found.b.dtype == np.float32
    np.testing.assert_allclose(found.layers[0], [4.0, 4.0])
    assert found.layers[1] == {"scale": 2.0, "count": None}
    np.testing.assert_array_equal(found.unused, np.zeros(3))
    assert found.inner.w == 5.0


def test_an_object_learns_by_its_gradient() -> None:
    line = Line()
    x = np.linspace(-1, 1, 20)
    step = ut.value_and_grad(Line.loss)
    for _ in range(60):
        value, gradient = step(line, x, 3.0 * x + 2.0)
        line.w -= 0.5 * gradient.w
        line.b -= np.float32(0.5) * gradient.b
        line.layers[0] -= 0.1 * gradient.layers[0]
        line.steps += 1
    assert value < 1e-4
    assert abs(line.w - 3.0) < 1e-3
    assert captures(step) == 2  # w was a Python float before the first step


def test_a_python_float_keeps_taking_dtypes_under_a_gradient() -> None:
    line = Line()
    line.w = 2.0
    x = np.ones(3, np.float32)
    found = ut.grad(lambda line, x: ut.sum(x * line.w))
    assert found(line, x).w == 3.0
    assert ut.grad(lambda line, x: ut.sum(x * line.w), argnums=1)(line, x).dtype == np.float32


def test_gradients_of_a_list_of_objects() -> None:
    a, b = Line(), Line()
    a.w, b.w = 2.0, 3.0
    found = ut.grad(lambda pair, x: pair[0].w * pair[1].w * pair[2] * x)([a, b, 5.0], 7.0)
    assert (found[0].w, found[1].w, found[2]) == (105.0, 70.0, 42.0)


def test_gradients_of_arrays_outside_see_their_contents() -> None:
    w = np.ones(2)

    @ut.function
    def f(x):
        return ut.sum(w * w * x)

    gradient = ut.grad(f, variables=[w])
    for value in (1.0, 5.0):
        w[:] = value
        np.testing.assert_array_equal(gradient(2.0)[0], 4.0 * w)


# -- clear, save -------------------------------------------------------------------------------------------


def test_what_is_new_each_time_is_captured_each_time() -> None:
    class Dynamic:
        def __getattr__(self, name: str) -> Any:
            if name != "drawn":
                raise AttributeError(name)
            return object()

    @ut.function
    def f(a, x):
        return x * 2.0 if a.drawn is not None else x

    assert [f(Dynamic(), 3.0) for _ in range(3)] == [6.0] * 3


def test_clear_forgets_captures() -> None:
    @ut.function
    def f(x):
        return x + 1.0

    assert f(1.0) == 2.0
    assert captures(f) == 1
    assert ut.grad(f)(1.0) == 1.0
    f.clear()
    assert captures(f) == captures(ut.grad(f)) == 0
    assert f(1.0) == 2.0


def test_a_saved_function_keeps_the_values_that_it_had(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(3)
    x = np.ones(3)
    model.b = 0.25
    expected = model.loss(x)
    model.loss(np.ones(3, np.float32))
    model.b = 0.75
    expected = model.loss(x)
    ut.save(model.loss, tmp_path / "loss.ut")
    model.b = 9.0
    again = ut.load(tmp_path / "loss.ut")
    assert again(x) == expected
    with pytest.raises(ut.SaveError, match="takes an object"):
        ut.save(Model.loss, tmp_path / "loss.ut")


def test_special_methods_are_read_at_each_call() -> None:
    class Sized:
        def __init__(self) -> None:
            self.w = 2.0

        def __len__(self) -> int:
            return 3

        def __getattr__(self, name: str) -> float:
            return self.w + len(name)

    sized: Any = Sized()

    def plain(x):
        return x * len(sized) + sized.extra

    f = ut.function(plain)
    agree(f, 2.0)
    sized.w = 5.0
    agree(f, 2.0)
    Sized.__len__ = lambda self: 10  # type: ignore[method-assign]
    agree(f, 2.0)
    sized.extra = 7.0
    agree(f, 2.0)
    del sized.extra
    agree(f, 2.0)
    Sized.extra = 9.0  # type: ignore[attr-defined]
    agree(f, 2.0)


def test_attributes_of_functions() -> None:
    def scale(x):
        return x * scale.by

    f = ut.function(scale)
    for by in (2.0, 5.0, 3):
        scale.by = by
        agree(f, 2.0)


def test_subclasses_of_containers_are_read_by_their_methods() -> None:
    """What guards read is what they store; the methods of the class are captured."""

    class Table(dict):
        def __getitem__(self, key):
            return 10.0 * dict.__getitem__(self, key)

    class Row(list):
        def __getitem__(self, key):
            return 10.0 * list.__getitem__(self, key)

        def __len__(self):
            return 7

    class Pair(tuple):
        def __add__(self, other):
            return Pair(a + b for a, b in zip(self, other, strict=True))

    table, row, pair = Table(a=2.0), Row([3.0, 4.0]), Pair((1.0, 2.0))

    @ut.function
    def f(x):
        return table["a"] * x + row[1] + len(row) + (pair + pair)[1]

    for _ in range(3):
        agree(f, 3.0)
        table["a"] += 1.0
        row[1] = 0.5
    assert captures(f) == 1


def test_objects_that_have_every_attribute() -> None:
    """Nobody asks them for ours."""

    class Anything:
        def __init__(self):
            self.w = 2.0

        def __getattr__(self, name):
            if name.startswith("__undertow"):
                raise RuntimeError(name)
            return None

    anything = Anything()

    @ut.function
    def f(x):
        return x * anything.w

    for _ in range(2):
        agree(f, 3.0)
        anything.w += 1.0
    assert captures(f) == 1


def test_an_attribute_that_is_missing_is_caught_as_in_python() -> None:
    held = SimpleNamespace()
    f = ut.function(lambda x: x * held.w)
    with pytest.raises(AttributeError, match="has no attribute 'w'"):
        f(1.0)
    held.w = 2.0
    assert f(1.0) == 2.0


def test_defaults_of_keywords_that_change() -> None:
    def scaled(x, *, by=2.0, name="up"):
        return x * by if name == "up" else -x

    @ut.function
    def f(x):
        return scaled(x)

    agree(f, 3.0)
    for name, value in {"by": 4.0, "name": "down"}.items():
        scaled.__kwdefaults__[name] = value
        agree(f, 3.0)
