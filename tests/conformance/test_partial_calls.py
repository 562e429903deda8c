"""Vasilakopoulos' partial calls: what is needed is computed once, and what never comes is not waited for."""

from __future__ import annotations

import pytest
from tests.programs import find
from tests.support.engines import EVERY, forced

# Program -> the activations of its first case.
ACTIVATIONS = {
    "fib_twice": 1 + 9 + 41,
    "without_the_third": 2,  # itself and three_to_four: no call of `never`
    "without_any": 2,
    "only_the_third": 2,
    "near_end_of_walk": 1 + 4,
    "exp_and_slope": 2 + 2,  # the wrapper of the gradient, then as many calls of exp as without it
    "late_cotangent": 2 + 4,
    "unmet": 4 + 4,  # itself, the gradient, the lambda, pair; then exp, and nothing of `never`
}


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, engine: str) -> None:
    with forced():
        _, stats = find(name).run(0, engine=engine)
    assert stats.activations == ACTIVATIONS[name]


@pytest.mark.parametrize("engine", EVERY)
def test_a_gradient_makes_no_further_calls(engine: str) -> None:
    """Section 4.3: Exp and Exp_Grad are one call in two phases, so x**n takes n + 1 activations either way."""
    with forced():
        _, forward = find("exp_and_slope").function.run(2.0, 7, engine=engine, stats=True)
    assert forward.activations == 2 + 8
