"""ut.random: NumPy's distributions, streams of seeds, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES

R = ut.random
COUNT = 4000


def distance(x: Any, y: Any) -> float:
    """The statistic of Kolmogorov and Smirnov for two samples: above 2 once in 1,500 times if both are alike."""
    x, y = np.sort(x), np.sort(y)
    both = np.concatenate([x, y])
    shares = [np.searchsorted(sample, both, "right") / len(sample) for sample in (x, y)]
    return float(np.abs(shares[0] - shares[1]).max() * np.sqrt(len(x) * len(y) / (len(x) + len(y))))


DRAWS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda r: r.uniform(-2, 3, COUNT),
    "random": lambda r: r.random(COUNT),
    "normal": lambda r: r.normal(1, 2, COUNT),
    "standard_normal": lambda r: r.standard_normal(COUNT),
    "exponential": lambda r: r.exponential(2.0, COUNT),
    "gamma": lambda r: r.gamma(2.5, 3.0, COUNT),
    "flat gamma": lambda r: r.gamma(0.3, size=COUNT),
    "beta": lambda r: r.beta(2.0, 0.7, COUNT),
    "integers": lambda r: r.integers(3, 17, COUNT),
    "dice": lambda r: r.integers(1, 6, COUNT, endpoint=True),
    "choice": lambda r: r.choice(np.array([10.0, 20.0, 30.0]), COUNT),
    "loaded choice": lambda r: r.choice(3, COUNT, p=[0.1, 0.6, 0.3]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distributions_are_numpy_s(name: str) -> None:
    wanted = DRAWS[name](np.random.default_rng(1))
    with ut.options(seed=2):
        assert distance(DRAWS[name](R), wanted) < 2
        assert distance(ut.function(lambda: DRAWS[name](R))(), wanted) < 2


def test_those_that_numpy_lacks() -> None:
    with ut.options(seed=2):
        assert abs(R.bernoulli(0.3, COUNT).mean() - 0.3) < 0.03
        p = np.array([0.1, 0.6, 0.3])
        for found in (R.categorical(p=p, size=COUNT), R.categorical(logits=np.log(p), size=COUNT)):
            assert np.abs(np.bincount(found) / COUNT - p).max() < 0.03
        assert sorted(R.permutation(50)) == list(range(50)) != R.permutation(50).tolist()
        assert len(set(R.choice(9, 9, replace=False).tolist())) == 9


def test_shapes_are_those_of_the_parameters() -> None:
    assert np.shape(R.normal(0, 1)) == () and R.normal(0, 1, 3).shape == (3,) and R.uniform(size=(2, 3)).shape == (2, 3)
    assert R.normal(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert R.gamma(np.array([1.0, 0.0])).tolist()[1] == 0
    assert R.normal(0, 1, 2, ut.f32).dtype == np.float32 and R.integers(5, dtype=ut.i32).dtype == np.int32


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_draw_the_same_numbers(engine: str) -> None:
    @ut.function
    def draws(n, x):
        return R.gamma(x, x, n), R.beta(x, 2.0), R.integers(n, size=n), R.permutation(n), R.categorical(p=[x, 1 - x])

    wanted = draws.run(4, 0.25, seed=7, engine="reference")
    for one, other in zip(draws.run(4, 0.25, seed=7, engine=engine), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_options_are_a_stream() -> None:
    draw = ut.function(lambda x: R.normal() + x)

    def three() -> list[float]:
        with ut.options(seed=0):
            return [float(draw(0.0)), float(R.normal()), float(draw(0.0))]

    assert len(set(three())) == 3 and three() == three()
    assert draw.run(0.0, seed=0) == draw.run(0.0, seed=0)
    assert draw(0.0) != draw(0.0) and R.normal() != R.normal()
    with ut.options(seed=0):
        with ut.options(engine="reference"):
            first = draw(0.0)
        assert first == three()[0] and draw(0.0) != first


def test_gradients_flow_through_location_and_scale() -> None:
    by = ut.grad(lambda m, s: R.normal(m, s), argnums=(0, 1)).run(1.0, 2.0, seed=0)
    value = ut.function(lambda m, s: R.normal(m, s)).run(1.0, 2.0, seed=0)
    assert by[0] == 1.0 and np.isclose(by[1], (value - 1.0) / 2.0)
    assert ut.grad(lambda a: R.gamma(a, 2.0) + R.beta(a, a)).run(2.0, seed=0) == 0.0
    gamma = ut.function(lambda s: R.gamma(2.0, s))
    assert np.isclose(ut.grad(gamma).run(3.0, seed=0), gamma.run(3.0, seed=0) / 3.0)


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: R.uniform((3,)), "not a number"),
        (lambda: R.normal(()), "not a number"),
        (lambda: R.integers((3,)), "must be numbers"),
        (lambda: R.integers(5, 5), "no integer"),
        (lambda: R.integers(2.5), "must be integers"),
        (lambda: R.categorical(), "either"),
        (lambda: R.choice(3, 5, replace=False), "without replacement"),
    ],
)
def test_wrong_arguments_are_refused(draw: Callable[[], Any], match: str) -> None:
    with pytest.raises(ut.TypeMismatch, match=match):
        draw()


def test_an_empty_range_is_a_fault() -> None:
    with pytest.raises(ut.Fault) as stop:
        ut.function(lambda n: R.integers(n, n))(3)
    assert isinstance(stop.value, ValueError)


NOT_VALID: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (R.normal, (0.0, -1.0)),
    (R.exponential, (-1.0,)),
    (R.uniform, (1.0, 0.0)),
    (R.gamma, (-1.0,)),
    (R.gamma, (1.0, -2.0)),
    (R.beta, (-1.0, 1.0)),
    (R.beta, (1.0, 0.0)),
    (R.bernoulli, (2.0,)),
    (R.bernoulli, (-0.5,)),
    (R.bernoulli, (float("nan"),)),
    (lambda p: R.categorical(p=p), (np.array([0.5, -0.5]),)),
    (lambda p: R.categorical(p=p), (np.zeros(3),)),
    (lambda p: R.choice(3, p=p), (np.array([0.5, 0.5]),)),
    (lambda p: R.choice(2, p=p), (np.array([0.0, 0.0, 1.0]),)),
    (lambda p: R.choice(3, p=p), (np.array([0.5, 0.5, 0.5]),)),
    (lambda p: R.choice(3, p=p), (np.zeros(3),)),
    (lambda p: R.choice(3, p=p), (np.array([np.nan, 0.5, 0.5]),)),
    (lambda s: R.normal(np.zeros(2), s), (np.array([1.0, -1.0], np.float32),)),
]


@pytest.mark.parametrize(("draw", "parameters"), NOT_VALID)
def test_parameters_are_checked_as_numpy_does(draw: Callable[..., Any], parameters: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        draw(*parameters)
    for engine in ("auto", "reference"):
        with pytest.raises(ut.UndertowError) as stop:
            ut.function(lambda *given: draw(*given)).run(*parameters, engine=engine)
        assert isinstance(stop.value, ValueError)


def test_valid_parameters_at_the_edge() -> None:
    f = ut.function(lambda s, p, w: (R.normal(1.0, s), R.gamma(s), R.bernoulli(p), R.choice(2, p=w), R.uniform(s, s)))
    assert f(0.0, 1.0, np.array([0.0, 1.0])) == (1.0, 0.0, True, 1, 0.0)
