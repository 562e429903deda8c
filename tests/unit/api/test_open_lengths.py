"""Arrays of ever new lengths share one capture from the third on, where it means the same."""

import math

import numpy as np
import pytest

import undertow as ut


def total(x):
    return ut.sum(x)


def scaled(x):
    return {"x": x * 2 + 1, "n": x.shape[0]}


def mean(x):
    return ut.sum(x) / len(x)


def chosen(x):
    return x[0] if x.shape[0] > 5 else x[-1]


def squares(x):
    return ut.map(lambda v: v * v + 1, x)


def table(x):
    return x[:, None] * x[None, :]


def softmax(x):
    e = ut.exp(x - ut.max(x))
    return e / ut.sum(e)


def slope(x):
    return ut.grad(lambda v: ut.sum(v * v * v))(x)


def loop(x):
    total = 0.0
    for v in x:
        total = total * 0.5 + v
    return total


def halved(x):
    return x * (x.shape[0] / 2)  # a Python float: f32 stays f32


def rooted(x):
    return x / math.sqrt(len(x))


def listed(x):
    return [x[0]] * x.shape[0]


def looked_up(x):
    return x * {3: 10.0}.get(x.shape[0], 1.0)


def flat(value):
    return [
        np.asarray(leaf)
        for leaf in ([*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value])
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize(
    ("program", "most"),
    [
        *((program, 3) for program in (total, scaled, mean, chosen, squares, table, softmax)),
        # These need the length itself, or compute in another dtype without it: then each length is captured.
        *((program, 9) for program in (loop, halved, rooted, listed, looked_up)),
    ],
)
def test_values_do_not_depend_on_what_was_called_before(program, most, dtype):
    seen = ut.function(program)
    for n in [*range(1, 9), 0][: 8 if program is not total else 9]:
        x = np.arange(1, n + 1).astype(dtype)
        for _ in range(2):  # the second is known
            found, alone = flat(seen(x)), flat(ut.function(program)(x))
            assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [(b.dtype, b.shape, b.tobytes()) for b in alone]
    assert len(seen.__undertow_programs__) <= most + (program is total)  # an empty array has its own


def test_fifty_lengths_are_three_captures():
    for program in (total, scaled, mean, softmax, slope):
        seen = ut.function(program)
        for n in range(1, 51):
            seen(np.ones(n))
        assert len(seen.__undertow_programs__) == 3
        assert len(seen.__undertow_programs__.quick) == 3  # none of them goes the long way any more


def test_each_axis_on_its_own():
    @ut.function
    def product(a, b):
        return a @ b

    for n, m, k in [(2, 3, 4), (5, 3, 4), (6, 3, 4), (7, 3, 4), (7, 5, 4), (8, 6, 9), (1, 6, 9), (8, 1, 1)]:
        a, b = np.arange(n * m, dtype=float).reshape(n, m), np.arange(m * k, dtype=float).reshape(m, k)
        np.testing.assert_array_equal(product(a, b), a @ b)
        if (m, k) == (3, 4):
            assert ("f64[?,3]" in str(product.graph(a, b))) == (n in (6, 7))


def test_arrays_of_one_element_broadcast():
    @ut.function
    def added(x, y):
        return x + y

    for n, m in [(2, 2), (3, 3), (4, 4), (5, 5), (1, 5), (5, 1), (1, 1), (6, 6)]:
        found = added(np.ones(n), np.arange(m * 1.0))
        np.testing.assert_array_equal(found, np.ones(n) + np.arange(m * 1.0))
    for _ in range(2):
        with pytest.raises(ut.UndertowError):
            added(np.ones(7), np.ones(8))


def test_outside_values_and_variables():
    count = ut.Variable(0)
    scale = 2.0

    @ut.function
    def noted(x):
        count.assign_add(x.shape[0])
        return ut.sum(x) * scale

    for n in range(2, 9):
        if n == 6:
            scale = 3.0
        assert noted(np.ones(n)) == n * scale
    assert count.value == sum(range(2, 9))


def test_a_loop_over_open_lengths_is_a_loop_of_the_graph():
    seen = ut.function(loop)
    for n in range(2, 20):
        x = np.arange(n * 1.0)
        assert seen(x) == loop(x)
    assert len(seen.__undertow_programs__) == 3


@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_every_engine(engine):
    seen = ut.function(softmax)
    with ut.options(engine=engine):
        for n in range(2, 7):
            np.testing.assert_allclose(seen(np.arange(n * 1.0)), softmax(np.arange(n * 1.0)), rtol=1e-12)
    assert len(seen.__undertow_programs__) == 3
