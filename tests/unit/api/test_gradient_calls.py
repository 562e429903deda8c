"""The face of gradients: signatures, containers, variables, closures, what is a function again, vjp, saving."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import weakref
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close, assert_valid, check_gradient
from tests.support.differentiable import power
from tests.support.threads import in_threads

import undertow as ut


@ut.function
def product(x: ut.f64, n: ut.i64, y: ut.f64) -> ut.f64:
    return x * y if n <= 0 else x * product(x, n - 1, y * y)


# -- signatures ----------------------------------------------------------------------------------------------


def test_argnums() -> None:
    args = (1.1, 2, 0.9)
    dx, dy = ut.grad(product, (0, 2))(*args)
    assert ut.grad(product)(*args) == dx
    assert ut.grad(product, 2)(*args) == dy == ut.grad(product, -1)(*args)
    assert ut.grad(product, [2, 0])(*args) == (dy, dx)
    assert ut.grad(product, (2,))(*args) == (dy,)
    assert ut.grad(product, np.int64(2))(*args) == dy
    assert ut.grad(product, ())(*args) == ()
    assert ut.value_and_grad(product, (2, -3))(*args) == (product(*args), (dy, dx))


def test_one_function_for_one_gradient() -> None:
    assert ut.grad(power) is ut.grad(power)
    assert ut.grad(power) is not ut.grad(power, (0,))
    assert ut.grad(power) is not ut.value_and_grad(power)
    assert ut.grad(power).__name__ == "grad(power)"
    v = ut.Variable(1.0)
    assert ut.grad(power, variables=[v]) is ut.grad(power, variables=[v])
    assert ut.grad(power, variables=[v]) is not ut.grad(power, variables=v)
    assert repr(ut.value_and_grad(power)) == "<undertow function value_and_grad(power)>"


@dataclasses.dataclass
class Params:
    w: Any
    b: Any


class Layer(NamedTuple):
    p: Params
    scale: Any


@ut.function
def network(layers, x: ut.f64[2], n: ut.i64) -> ut.f64:
    h = x
    for layer in layers["layers"]:
        h = ut.tanh(layer.p.w @ h + layer.p.b) * layer.scale
    if n <= 0:
        return ut.sum(h)
    return network(layers, h, n - 1) + ut.sum(h * h)


def make_network() -> Any:
    rng = np.random.default_rng(3)
    return {"layers": [Layer(Params(rng.normal(size=(2, 2)), rng.normal(size=2)), 0.5 + k) for k in range(2)]}


def test_containers() -> None:
    layers = make_network()
    found = check_gradient(network, layers, np.array([0.3, -0.2]), 2, argnums=(0, 1))
    assert isinstance(found[0]["layers"][1], Layer) and isinstance(found[0]["layers"][0].p, Params)
    assert found[0]["layers"][0].p.w.shape == (2, 2)


def test_has_aux() -> None:
    @ut.function
    def loss(x: ut.f64, n: ut.i64):
        y = power(x, n)
        return y * y, {"y": y, "n": n}

    gradient, aux = ut.grad(loss, has_aux=True)(1.5, 2)
    assert_close(gradient, 4 * 1.5**3)
    assert aux == {"y": 1.5**2, "n": 2}
    (value, aux), gradient = ut.value_and_grad(loss, has_aux=True)(1.5, 2)
    assert (value, aux["n"]) == (1.5**4, 2)
    assert_close(gradient, 4 * 1.5**3)


def test_keywords_defaults_and_rests() -> None:
    @ut.function
    def f(x, *ys, scale=2.0, **others):
        total = x * scale
        for y in ys:
            total = total + x * y
        for z in others.values():
            total = total * z
        return total

    assert ut.grad(f)(3.0) == 2.0
    assert ut.grad(f)(3.0, 4.0, 5.0) == 11.0
    assert ut.grad(f, 2)(3.0, 4.0, 5.0) == 3.0
    assert ut.grad(f, (0, 1))(3.0, 4.0, scale=1.0, z=0.5) == (2.5, 1.5)
    assert ut.grad(f, -1)(3.0, 4.0) == 3.0

    @ut.function
    def g(x: ut.f64, y: ut.f64 = 2.0) -> ut.f64:
        return x * y * y

    assert ut.grad(g)(3.0) == 4.0
    assert ut.grad(g)(x=3.0) == 4.0
    assert ut.grad(g)(3.0, y=1.0) == 1.0
    assert ut.grad(g, 1)(3.0, 1.0) == 6.0


def test_arguments_given_by_name_have_a_number_too() -> None:
    @ut.function
    def g(x: ut.f64, y: ut.f64 = 2.0) -> ut.f64:
        return x * y * y

    assert ut.grad(g, (0, 1))(y=1.0, x=3.0) == (1.0, 6.0)
    assert ut.grad(g, 1)(3.0) == 12.0
    assert ut.grad(g, -1)(3.0) == 12.0


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @ut.function
    def loss(self, x: ut.f64, n: ut.i64) -> ut.f64:
        return self.scale * x if n <= 0 else x * self.loss(x, n - 1)

    def plain(self, x: Any) -> Any:
        return x * x * self.scale


@dataclasses.dataclass
class Weights:
    w: float

    @ut.function
    def loss(self, x: ut.f64) -> ut.f64:
        return self.w * x * x


def test_methods() -> None:
    model = Model(2.0)
    assert ut.grad(model.loss)(3.0, 2) == 54.0
    assert ut.grad(Model(1.0).loss)(3.0, 2) == 27.0
    assert ut.grad(model.plain)(3.0) == 12.0
    assert ut.grad(Weights(2.0).loss)(3.0) == 12.0
    assert ut.value_and_grad(Weights(2.0).loss, 0)(3.0) == (18.0, 12.0)
    assert ut.grad(Weights.loss)(Weights(2.0), 3.0) == Weights(9.0)
    assert ut.grad(Weights(2.0).loss, -1)(3.0) == 12.0
    value, back = ut.vjp(Weights(2.0).loss, 3.0)
    assert (value, back(1.0)) == (18.0, (12.0,))
    inside = ut.function(lambda x: ut.vjp(model.plain, x)[1](1.0)[0] + ut.grad(model.loss)(x, 0))
    assert inside(3.0) == 14.0


def test_functions_that_nobody_holds_are_forgotten() -> None:
    def make() -> weakref.ref[Any]:
        def f(x):
            return x * x

        assert ut.grad(f)(3.0) == 6.0
        return weakref.ref(f)

    found = make()
    gc.collect()
    assert found() is None


def test_plain_python_functions_and_lambdas() -> None:
    def f(x):
        return ut.sin(x) * x

    assert_close(ut.grad(f)(0.5), np.cos(0.5) * 0.5 + np.sin(0.5))
    assert ut.grad(lambda x, y: x * y, 1)(2.0, 3.0) == 2.0
    assert ut.grad(f) is ut.grad(f)
    copied = lambda x: x * x  # noqa: E731
    copied.__dict__.update(f.__dict__)  # as functools.wraps does
    assert ut.grad(copied)(3.0) == 6.0


def test_dtypes() -> None:
    @ut.function
    def f(x: ut.f32, n: ut.i32) -> ut.f32:
        return x if n <= 0 else x * f(x, n - 1)

    found = ut.grad(f)(np.float32(1.5), np.int32(2))
    assert found.dtype == np.float32 and abs(found - 3 * 1.5**2) < 1e-5

    @ut.function
    def wide(x: ut.f32) -> ut.f64:
        return ut.astype(x, ut.f64) * ut.astype(x, ut.f64)

    found = ut.grad(wide)(np.float32(1.5))
    assert found.dtype == np.float32 and found == 3.0

    @ut.function
    def recast(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else recast(ut.astype(ut.astype(x * x, ut.f32), ut.f64), n - 1)

    for way in WAYS:
        assert_close(ut.grad(recast).run(1.5, 2, **way), 4 * 1.5**3, 1e-6)


# -- functions again -----------------------------------------------------------------------------------------


def test_results_are_functions_again() -> None:
    slope = ut.grad(power)
    assert isinstance(slope, ut.Function)
    for way in WAYS:
        assert slope.map([1.0, 2.0, 3.0], [3, 2, 0], **way).tolist() == [3.0, 4.0, 0.0]
        assert slope.map([], np.zeros(0, np.int64), **way).tolist() == []
    assert ut.grad(slope)(2.0, 3) == 12.0
    assert "resume" in str(slope.graph(1.0, 1)) or "phase=1" in str(slope.graph(1.0, 1))
    assert_valid(slope, 1.0, 1)

    @ut.function
    def uses(x: ut.f64, n: ut.i64) -> ut.f64:
        return slope(x, n) + ut.sum(ut.map(slope, ut.stack([x, x * 2.0]), ut.stack([n, n])))

    for way in WAYS:
        assert uses.run(1.5, 2, **way) == 3.0 + 3.0 + 6.0
    check_gradient(uses, 1.5, 3)


def test_weights_shared_by_all_lanes_and_weights_of_each() -> None:
    @ut.function
    def f(w: ut.f64, x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else ut.tanh(w * f(w, x, n - 1))

    slope = ut.grad(f)
    xs, ns, ws = [0.1, 0.2, 0.3], [1, 0, 3], [0.5, 0.6, 0.7]
    for way in WAYS:
        shared = slope.map(ut.shared(0.5), xs, ns, **way)
        assert_close(shared, np.array([slope(0.5, x, n) for x, n in zip(xs, ns, strict=True)]), 1e-12)
        own = slope.map(ws, xs, ns, **way)
        assert_close(own, np.array([slope(*row) for row in zip(ws, xs, ns, strict=True)]), 1e-12)

    @ut.function
    def total(w: ut.f64[None], x: ut.f64) -> ut.f64:
        """Each lane is an entry of its own, with its own weight."""
        return ut.sum(ut.map(lambda v: f(v, x, 3), w))

    check_gradient(total, np.array(ws), 0.4, argnums=(0, 1))

    @ut.function
    def one_for_all(w: ut.f64, xs: ut.f64[None]) -> ut.f64:
        return ut.sum(ut.map(lambda x: f(w, x, 3), xs))

    check_gradient(one_for_all, 0.4, np.array(xs), argnums=(0, 1))
    check_gradient(one_for_all, 0.4, np.zeros(0), argnums=(0, 1))


@pytest.mark.slow
def test_inside_of_loops_maps_and_branches() -> None:
    @ut.function
    def descend(x: ut.f64, n: ut.i64) -> ut.f64:
        for _ in range(n):
            if x > 0.2:
                x = x - 0.1 * ut.grad(power)(x, 3)
            else:
                x = x + ut.sum(ut.map(lambda y: ut.grad(power, 0)(y, 2), ut.stack([x, x])))
        return x

    x = 0.9
    for _ in range(6):
        x = x - 0.1 * 3 * x * x if x > 0.2 else x + 4 * x
    for way in WAYS:
        assert_close(descend.run(0.9, 6, **way), x, 1e-12)
    check_gradient(descend, 0.9, 6)
    assert_valid(descend, 0.9, 6)


@pytest.mark.slow
def test_inside_of_a_recursive_function() -> None:
    @ut.function
    def flow(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else flow(x - 0.1 * ut.grad(power)(x, n), n - 1)

    x = 0.9
    for n in (4, 3, 2, 1):
        x = x - 0.1 * n * x ** (n - 1)
    for way in WAYS:
        assert_close(flow.run(0.9, 4, **way), x, 1e-12)
    check_gradient(flow, 0.9, 4, order=2)


# -- closures ------------------------------------------------------------------------------------------------


def test_values_of_functions_around_are_not_differentiated_but_used() -> None:
    @ut.function
    def outer(x: ut.f64) -> ut.f64:
        c = x * 3.0

        def inner(y):
            return y * y * c

        return ut.grad(inner)(x)

    for way in WAYS:
        assert outer.run(2.0, **way) == 24.0
    check_gradient(outer, 2.0, expected=24.0, order=2)


def test_functions_inside_of_what_is_differentiated() -> None:
    @ut.function
    def outer(x: ut.f64, n: ut.i64) -> ut.f64:
        c = ut.sin(x)

        @ut.function
        def inner(y, k) -> ut.f64:
            return y * c if k <= 0 else inner(y * c, k - 1) + x

        return inner(x, n) * c

    check_gradient(outer, 0.7, 3, order=2)


def test_perturbations_are_not_confused() -> None:
    """d/dx (x * d/dy (x + y)) is 1, not 2."""
    f = ut.function(lambda x: x * ut.grad(lambda y: x + y)(1.0))
    for way in WAYS:
        assert ut.grad(f).run(3.0, **way) == 1.0
    g = ut.function(lambda x: ut.grad(lambda y: x * y * y)(x) * x)  # 2 x^3
    assert ut.grad(g)(2.0) == 24.0


# -- variables and captured arrays ---------------------------------------------------------------------------


def test_variables() -> None:
    w, b = ut.Variable(np.array([0.5, -0.3])), ut.Variable(0.25)

    @ut.function
    def f(x: ut.f64[2], n: ut.i64) -> ut.f64:
        if n <= 0:
            return ut.sum(w.read() * x) + b.read()
        return ut.tanh(f(x * 0.5, n - 1)) * b.read()

    x = np.array([1.0, 2.0])
    assert_close(ut.grad(f)(x, 0), np.array([0.5, -0.3]))
    found = ut.grad(f, variables={"w": w, "b": b})(x, 2)
    assert set(found) == {"w", "b"} and found["w"].shape == (2,)
    by_args = ut.function(lambda p, x, n: _explicit(p["w"], p["b"], x, n))
    expected = check_gradient(by_args, {"w": np.array([0.5, -0.3]), "b": 0.25}, x, 2)
    assert_close(found, expected, 1e-12)
    dx, dv = ut.grad(f, 0, variables=[b, w])(x, 2)
    assert dx.shape == (2,) and isinstance(dv, list)
    assert_close(dv, [expected["b"], expected["w"]])
    value, dw = ut.value_and_grad(f, variables=w)(x, 2)
    assert_close((value, dw), (f(x, 2), expected["w"]))
    for way in WAYS:
        assert_close(ut.grad(f, variables=w).run(x, 2, **way), expected["w"])


@ut.function
def _explicit(w, b, x: ut.f64[2], n: ut.i64) -> ut.f64:
    if n <= 0:
        return ut.sum(w * x) + b
    return ut.tanh(_explicit(w, b, x * 0.5, n - 1)) * b


def test_captured_arrays() -> None:
    table = np.array([0.5, -0.3, 0.8])

    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        return table[n] * x if n <= 0 else table[n] * f(x, n - 1)

    found = ut.grad(f, variables=table)(2.0, 2)
    assert_close(found, np.array([-0.3 * 0.8 * 2, 0.5 * 0.8 * 2, 0.5 * -0.3 * 2]))
    dx, dt = ut.grad(f, 0, variables=(table,))(2.0, 2)
    assert_close(dx, 0.5 * -0.3 * 0.8)
    assert_close(dt, (found,))
    for way in WAYS:
        assert_close(ut.grad(f, variables=table).run(2.0, 2, **way), found)
    second = ut.grad(lambda x: ut.sum(ut.grad(f, variables=table)(x, 2)))(2.0)
    assert_close(second, np.sum(found) / 2.0)


def test_captured_arrays_are_found_wherever_they_are_used() -> None:
    held = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]

    @ut.function
    def takes(arrays, x: ut.f64) -> ut.f64:
        return ut.sum(arrays[0] * arrays[1]) * x

    twos = [np.full(2, 2.0), np.full(2, 2.0)]
    for function, expected in (
        (lambda x: ut.sum(ut.stack(held) * x), twos),
        (lambda x: ut.sum(ut.concat(held) * x), twos),
        (lambda x: sum([ut.sum(a) * x for a in held]), twos),
        (lambda x: np.sum(np.concatenate(held)) * x, twos),
        (lambda x: ut.sum(held[0].T + np.exp(held[1]) * 0.0) * x, [twos[0], np.zeros(2)]),
        (lambda x: takes(held, x), [np.array([6.0, 8.0]), np.array([2.0, 4.0])]),
        (lambda x: ut.sum(ut.map(lambda a, w: a * ut.sum(w) * x, held[0], ut.shared(held[1]))),
         [np.full(2, 14.0), np.full(2, 6.0)]),
        (lambda x: ut.cond(x > 0.0, lambda a: ut.sum(a) * x, lambda a: x, held[0]), [twos[0], np.zeros(2)]),
    ):  # fmt: skip
        assert_close(ut.grad(function, variables=held)(2.0), expected)


def test_a_variable_that_is_not_used_has_a_zero() -> None:
    v = ut.Variable(np.ones(2))
    assert ut.grad(lambda x: x * x, variables=v)(2.0).tolist() == [0.0, 0.0]


def test_assigning_inside() -> None:
    log = ut.Variable(0.0)

    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        log.assign_add(1.0)
        return x if n <= 0 else x * f(x, n - 1)

    for way in WAYS:
        log.assign(0.0)
        value, slope = ut.value_and_grad(f).run(1.5, 3, **way)
        assert_close((value, slope), (1.5**4, 4 * 1.5**3))
        assert log.read() == 4.0


def test_what_is_assigned_may_not_carry_a_derivative() -> None:
    v, mean = ut.Variable(2.0), ut.Variable(0.0)

    @ut.function
    def keep(x: ut.f64) -> ut.i64:
        v.assign(x)
        return 0

    @ut.function
    def through(x: ut.f64, n: ut.i64) -> ut.f64:
        keep(x * x)
        return v.read() * x if n <= 0 else through(x, n - 1)

    with pytest.raises(ut.CaptureError, match="is assigned a value on the path of the derivative"):
        ut.grad(through)(3.0, 2)
    with pytest.raises(
        ut.CaptureError, match="is assigned inside a function that is differentiated with respect to it"
    ):
        ut.grad(through, variables=v)(3.0, 2)

    @ut.function
    def averaged(x: ut.f64) -> ut.f64:
        mean.assign(ut.stop_gradient(0.5 * mean.read() + 0.5 * x))
        return mean.read() * x

    assert ut.grad(averaged)(2.0) == 1.0
    assert mean.read() == 1.0
    unread = ut.function(lambda x: (v.assign(x), x * x)[1])
    assert ut.grad(unread)(3.0) == 6.0 and v.read() == 3.0


def test_a_variable_is_read_as_it_is_now() -> None:
    w = ut.Variable(2.0)
    f = ut.function(lambda x: w.read() * x * x)
    slope = ut.grad(f)
    assert slope(3.0) == 12.0
    w.assign(5.0)
    assert slope(3.0) == 30.0
    assert ut.grad(f, variables=w)(3.0) == 9.0


def test_a_step_of_descent_in_one_run() -> None:
    w = ut.Variable(1.0)

    @ut.function
    def loss(x: ut.f64) -> ut.f64:
        return (w.read() * x - 3.0) ** 2.0

    @ut.function
    def step(x: ut.f64):
        value, slope = ut.value_and_grad(loss, variables=w)(x)
        w.assign_sub(0.1 * slope)
        return value

    values = [step(1.0) for _ in range(3)]
    assert_close(values, [4.0, 2.56, 1.6384])
    assert_close(w.read(), 3.0 - 2.0 * 0.8**3)


# -- vjp -----------------------------------------------------------------------------------------------------


def test_vjp_outside() -> None:
    value, back = ut.vjp(product, 1.1, 2, 0.9)
    dx, dy = ut.grad(product, (0, 2))(1.1, 2, 0.9)
    assert value == product(1.1, 2, 0.9)
    assert back(1.0) == (dx, None, dy)
    assert_close(back(2.0)[0], 2 * dx)


def test_vjp_takes_python_numbers_for_what_they_stand_for() -> None:
    @ut.function
    def f(x: ut.f32, n: ut.i32, y: ut.f32 = 2.0) -> ut.f32:
        return x * y if n <= 0 else x * f(x, n - 1, y)

    value, back = ut.vjp(f, 1.5, 2)
    dx, dn = back(1.0)
    assert value.dtype == dx.dtype == np.float32 and dn is None
    assert_close(dx, 6 * 1.5**2)
    assert_close(back(2)[0], 12 * 1.5**2)
    assert_close(ut.vjp(lambda *xs: xs[0] * xs[1], 2.0, 3.0)[1](1.0), (3.0, 2.0))


def test_objects_that_can_be_called() -> None:
    class Cube:
        def __call__(self, x):
            return x * x * x

    class Square:
        @ut.function
        def __call__(self, x: ut.f64) -> ut.f64:
            return x * x

    assert ut.grad(Cube())(2.0) == 12.0
    assert ut.grad(Square())(2.0) == 4.0
    assert ut.vjp(Cube(), 2.0)[1](1.0) == (12.0,)


def test_vjp_of_containers() -> None:
    @ut.function
    def f(p, x):
        return {"y": p["w"] * x, "n": p["n"] + 1, "z": (ut.sum(p["w"]),)}

    p, x = {"w": np.array([1.0, 2.0]), "n": 3}, np.array([3.0, 4.0])
    value, back = ut.vjp(f, p, x)
    assert value["n"] == 4
    dp, dx = back({"y": np.array([1.0, 10.0]), "n": None, "z": (100.0,)})
    assert dp["w"].tolist() == [103.0, 140.0] and dp["n"] is None and dx.tolist() == [1.0, 20.0]
    dp, dx = back({"y": None, "n": None, "z": (1.0,)})
    assert dp["w"].tolist() == [1.0, 1.0] and dx.tolist() == [0.0, 0.0]
    dp, dx = back({"y": None, "n": None, "z": (None,)})
    assert dp["w"].tolist() == [0.0, 0.0] and dx.tolist() == [0.0, 0.0]


def test_python_numbers_are_cotangents_of_any_dtype() -> None:
    _, back = ut.vjp(lambda x: (x * x, {"n": 3, "y": x * 3.0}), np.float32(2.0))
    for one in (1, 1.0):
        (dx,) = back((one, {"n": None, "y": one}))
        assert dx == 7.0 and dx.dtype == np.float32
    _, back = ut.vjp(lambda x: x * x, 2.0)
    assert back(1) == (4.0,)


def test_none_is_a_cotangent_of_whatever_it_stands_for() -> None:
    _, back = ut.vjp(lambda x: (x * x, None, {"a": x, "b": (x, "text")}), 3.0)
    assert back((1.0, None, None)) == (6.0,)
    assert back((1.0, None, {"b": (1.0, None), "a": 10.0})) == (17.0,)
    assert back(None) == (0.0,)

    @ut.function
    def inside(x):
        _, back = ut.vjp(lambda x: (x * x, None, {"a": x}), x)
        return back((1.0, None, None))

    assert inside(3.0) == (6.0,)


def test_what_is_no_number_has_none_for_a_cotangent() -> None:
    w = ut.Variable(2.0, name="w")
    _, back = ut.vjp(lambda x, p: x * p["w"], 3.0, {"w": w, "kind": "tanh", "n": 1})
    assert back(1.0) == (2.0, {"w": None, "kind": None, "n": None})


@pytest.mark.slow
def test_vjp_inside_used_twice_and_in_branches() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        value, back = ut.vjp(lambda y: power(y, n), x)
        one = back(1.0)[0]
        two = back(value)[0]
        if x > 1.0:
            three = back(x)[0]
        else:
            three = 0.0
        total = 0.0
        for _ in range(2):
            total = total + back(1.0)[0]
        return one + two + three + total

    def plain(x, n):
        slope = n * x ** (n - 1)
        return slope + slope * x**n + (slope * x if x > 1.0 else 0.0) + 2 * slope

    for way in WAYS:
        for x in (1.5, 0.5):
            assert_close(f.run(x, 3, **way), plain(x, 3), 1e-12)
    check_gradient(f, 1.5, 3)
    check_gradient(f, 0.5, 3)


# -- randomness, prints --------------------------------------------------------------------------------------


def test_random_draws_are_those_of_the_value() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        u = ut.random.uniform()
        return x * u if n <= 0 else ut.sin(x + u) * f(x * u, n - 1)

    for way in WAYS:
        value, slope = ut.value_and_grad(f).run(0.7, 3, seed=5, **way)
        assert value == f.run(0.7, 3, seed=5)
        near = [f.run(0.7 + h, 3, seed=5) for h in (1e-6, -1e-6)]
        assert_close(slope, (near[0] - near[1]) / 2e-6)
        assert ut.grad(f).run(0.7, 3, seed=6, **way) != slope


def test_prints_happen_once() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        print("n is", n)
        return x if n <= 0 else x * f(x, n - 1)

    for way in WAYS:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            ut.value_and_grad(f).run(1.5, 2, **way)
        assert out.getvalue() == "n is 2\nn is 1\nn is 0\n"


# -- other faces ---------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path: Path) -> None:
    slope = ut.grad(power)
    expected = slope(1.5, 3)
    ut.save(slope, tmp_path / "slope.ut")
    loaded = ut.load(tmp_path / "slope.ut")
    assert loaded(1.5, 3) == expected and loaded(1.5, 4) == slope(1.5, 4)
    for way in WAYS:
        assert ut.grad(loaded).run(1.5, 3, **way) == 9.0
    power(1.5, 3)
    ut.save(power, tmp_path / "power.ut")
    again = ut.load(tmp_path / "power.ut")
    for way in WAYS:
        assert ut.grad(again).run(1.5, 3, **way) == expected
        assert ut.value_and_grad(ut.grad(again)).run(1.5, 3, **way) == (expected, 9.0)


def test_subgraphs() -> None:
    with ut.SubGraph(returns=ut.f64) as sub:
        x = sub.input(ut.f64)
        n = sub.input(ut.i64)
        sub.output(ut.cond(n <= 0, lambda: x, lambda: x * sub(x, n - 1)))
    for way in WAYS:
        assert ut.grad(sub).run(1.5, 2, **way) == 3 * 1.5**2
        assert ut.grad(ut.grad(sub)).run(1.5, 2, **way) == 6 * 1.5

    with ut.SubGraph() as slopes:
        x = slopes.input(ut.f64)
        slopes.output(ut.grad(sub)(x, 2) * x)
    assert slopes(1.5) == 3 * 1.5**3
    assert ut.grad(slopes)(1.5) == 9 * 1.5**2


def test_threads() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else x * f(x, n - 1)

    assert in_threads(lambda k: ut.grad(f)(1.0 + k, 2), 8) == [3 * (1.0 + k) ** 2 for k in range(8)]


def test_options_apply() -> None:
    with ut.options(max_depth=5), pytest.raises(ut.RecursionLimit):
        ut.grad(power)(1.5, 10)
    assert ut.grad(power).run(2.0, 2, check_finite=True) == 4.0


# -- functions made anew -----------------------------------------------------------------------------------------


def test_a_function_that_a_loop_makes_anew_is_captured_once() -> None:
    found = []
    x = 0.0
    for x in (1.0, 2.0, 3.0):
        gradient = ut.grad(lambda w: w * w * x)  # noqa: B023  (as users write it)
        assert gradient(1.0) == 2 * x
        found.append(gradient)
    assert len(found[0].__undertow_programs__) == 1
    assert [g(1.0) for g in found] == [6.0, 6.0, 6.0]  # they read the same variable


def test_functions_that_only_look_the_same_are_not_mixed_up() -> None:
    def scaled(k: float) -> Any:
        return ut.grad(lambda w: w * k)

    found = [scaled(2.0), scaled(3.0)]
    assert [g(1.0) for g in found] == [2.0, 3.0]
    defaults = [ut.grad(lambda w, k=k: w * k) for k in (2.0, 3.0)]
    assert [g(1.0) for g in defaults] == [2.0, 3.0]
    namespaces: list[dict[str, Any]] = [{"k": 2.0}, {"k": 3.0}]
    code = (lambda w: w * k).__code__  # type: ignore[name-defined]  # noqa: F821
    others = [ut.grad(FunctionType(code, names)) for names in namespaces]
    assert [g(1.0) for g in others] == [2.0, 3.0]
    a, b = ut.grad(lambda w: w * 2.0), ut.grad(lambda w: w * 3.0)
    assert (a(1.0), b(1.0)) == (2.0, 3.0)


@ut.function
def changing(x: ut.f64[3]) -> ut.f64:
    x[1] *= 3.0
    x[0] = x[1] * x[2]
    return ut.sum(x * x)


@ut.function
def tripled(x: ut.f64[3]) -> ut.f64[3]:
    x[1] *= 3.0
    return x


def test_derivatives_of_a_function_that_changes_its_argument() -> None:
    """It changes a copy of its own, in a captured function as well."""
    x = np.array([1.0, 2.0, 3.0])
    slopes = [0.0, 360.0, 222.0]
    assert ut.grad(changing)(x).tolist() == slopes
    assert ut.value_and_grad(changing)(x)[0] == 369
    assert ut.grad(changing).map(np.stack([x, x])).tolist() == [slopes, slopes]
    assert ut.jacobian(tripled)(x).tolist() == np.diag([1.0, 3.0, 1.0]).tolist()
    assert ut.jacobian(tripled, mode="fwd")(x).tolist() == np.diag([1.0, 3.0, 1.0]).tolist()
    assert ut.hessian(changing)(x).tolist() == [[0, 0, 0], [0, 180, 216], [0, 216, 74]]
    assert ut.jvp(changing, (x,), (np.ones(3),))[1] == sum(slopes)
    assert ut.vjp(tripled, x)[1](np.ones(3))[0].tolist() == [1, 3, 1]
    assert x.tolist() == [1, 2, 3]

    @ut.function
    def inside(x: ut.f64[3]) -> Any:
        y = x * 1.0
        slopes = ut.grad(changing)(y), ut.jacobian(tripled)(y) @ y, ut.jvp(tripled, (y,), (y,))[1]
        return y, slopes

    y, found = inside(x)
    assert y.tolist() == [1, 2, 3]
    assert [value.tolist() for value in found] == [slopes, [1, 6, 3], [1, 6, 3]]
