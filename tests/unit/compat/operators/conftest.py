"""Values and gradients of operators, compared with formulas in NumPy and with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import undertow.compat.v1 as tf


@pytest.fixture
def run() -> Iterator[Callable[..., Any]]:
    """Runs fetches in a new session, variables initialized."""
    with tf.Session() as session:
        count = 0

        def fetch(fetches: Any, feed_dict: Any = None) -> Any:
            nonlocal count
            if count != len(tf.global_variables()):
                session.run(tf.global_variables_initializer())
                count = len(tf.global_variables())
            return session.run(fetches, feed_dict)

        yield fetch


@pytest.fixture
def check(run: Callable[..., Any]) -> Callable[..., None]:
    """Checks the value of an operation on float64 arrays, and its gradients by central differences."""

    def checked(
        operation: Callable[..., Any], arrays: list[Any], expected: Any = None, tolerance: float = 1e-6
    ) -> None:
        arrays = [np.asarray(array, np.float64) for array in arrays]
        inputs = [tf.placeholder(tf.float64, array.shape) for array in arrays]
        value = operation(*inputs)
        feed = dict(zip(inputs, arrays, strict=True))
        got = run(value, feed)
        if expected is not None:
            assert got.shape == np.shape(expected)
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
        weights = np.cos(np.arange(got.size)).reshape(got.shape)  # so that no gradient cancels by symmetry
        loss = tf.reduce_sum(value * weights)
        gradients = run(tf.gradients(loss, inputs), feed)
        for k, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
            slopes = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = array.copy()
                    moved[place] += step
                    sides.append(run(loss, {**feed, inputs[k]: moved}))
                slopes[place] = (sides[0] - sides[1]) / 2e-6
            np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=tolerance)

    return checked
